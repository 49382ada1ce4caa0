//! What the log says of each note: the event, its keys and its text (docs/logs.md).

use super::not_ready::{founding_refused, no_vote_yet};
use crate::base::{LogEvent, ms};
use crate::election::{
    Complaints, Denial, ElectionOutcome, Epoch, Founding, MEMBERS_MAX, Moment, NotReady, Notification, Peer,
    Reason, Stage, VoterConfig,
};
use std::{collections::BTreeSet, time::Duration};

/// The line of a note, without its limit. `lasted` is how long the election, or the time without a leader,
/// lasted that this note ends.
pub(super) fn line(note: &Notification, lasted: Option<Duration>) -> (LogEvent, String) {
    let (event, text) = match note {
        Notification::Asking { paused, expect } => return asking(*paused, *expect),
        Notification::ElectionBegins { reason } => {
            (LogEvent::info("election_begun").with("reason", reason.name()), "an election begins")
        }
        Notification::ElectionEnds { outcome } => election_ended(*outcome, lasted),
        Notification::NoCandidate => (
            LogEvent::warn("no_candidate"),
            "no process can lead: each live member is cordoned, stands aside, has priority 0, or an \
             application that is not healthy. Uncordon one, mend its application, or give one another \
             --priority",
        ),
        Notification::Leader { peer, epoch, reason, me } => {
            let event = leader(LogEvent::info("leader_elected"), peer, *epoch, *reason, *me);
            let text = if *me { "this process leads now" } else { "there is a leader" };
            (event.with_some("gap_ms", lasted.map(ms)), text)
        }
        Notification::Leaderless { former, epoch, reason, me, .. } => {
            leader_lost(former, *epoch, *reason, *me)
        }
        Notification::MemberUp(peer) => {
            (LogEvent::info("member_up").peer(peer).with("priority", peer.priority.0), "member is up")
        }
        Notification::MemberFailed { peer, reason } => {
            let reason = reason.map_or("told_by_the_leader", Reason::name);
            (LogEvent::warn("member_failed").peer(peer).with("reason", reason), "member failed")
        }
        Notification::MemberGone(peer) => (LogEvent::info("member_gone").peer(peer), "member is gone"),
        Notification::SameName { known, other } => (same_name(known, other), TWO_OF_ONE_NAME),
        Notification::LeadsAlone { others } => (
            LogEvent::warn("leads_alone").with("others", *others),
            "this process leads alone: no process has answered at the other addresses where peers may be",
        ),
        Notification::TooManyMembers(peer) => (
            LogEvent::warn("members_full").peer(peer).with("most", MEMBERS_MAX),
            "the election has as many members as it may have, and a peer is not taken in",
        ),
        Notification::StandsAside { aside } => stands_aside(*aside),
        Notification::StandsAgain => (LogEvent::info("candidate_again"), "this process is a candidate again"),
        Notification::AwaitsApplication { complaints } => awaits_application(*complaints),
        Notification::Application { complaints } => application(*complaints),
        Notification::WaitsForHolds { holds, at_most } => waits_for_holds(*holds, *at_most),
        Notification::Resigning { successor, reason } => resigning(successor.as_ref(), *reason),
        Notification::Recovering => (
            LogEvent::warn("recovering"),
            "this voter has no vote yet: it asks the other voters what it may have forgotten",
        ),
        Notification::NoVoteYet(not_ready) => return waits_for_vote(not_ready),
        Notification::VoterRecovers(peer) => voter_recovers(peer),
        Notification::Recovered(epoch) => {
            (LogEvent::info("recovered").with("epoch", epoch.0), "this voter votes from now on")
        }
        Notification::FoundingRefused(founding) => return may_not_found(*founding),
        Notification::RestartGrace(wait) => (
            LogEvent::info("restart_grace").with("wait_ms", ms(*wait)),
            "this voter was restarted and may have forgotten a promise; it votes for no process \
             before that is over",
        ),
        Notification::Denied { voter, stage, denial } => (denied(voter, *stage, *denial), "vote denied"),
        Notification::VotersChanged { config, given } => voters_changed(config, given),
        Notification::LeaseInUse { lease_ms, bound_ms, given_ms } => {
            lease_in_use(*lease_ms, *bound_ms, *given_ms)
        }
        Notification::VotersDiffer { peer, first_start } => {
            (LogEvent::warn("voters_differ").peer(peer), voters_differ(*first_start))
        }
    };
    (event, text.to_owned())
}

const TWO_OF_ONE_NAME: &str = "two live processes have one name, and people cannot tell them apart; give one \
                               of them another --name";

fn asking(paused: Option<Duration>, expect: usize) -> (LogEvent, String) {
    let (event, text) = match paused {
        None => {
            let event = LogEvent::info("asking").with_some("waits_for", (expect > 1).then_some(expect));
            (event, "this process asks its peers for the leader")
        }
        Some(paused) => (
            LogEvent::warn("paused").with("paused_ms", ms(paused)),
            "this process did not run for a while, and asks its peers for the leader before it answers again",
        ),
    };
    (event, text.to_owned())
}

/// The line of a leader that follows says all of an election that is won.
fn election_ended(outcome: ElectionOutcome, lasted: Option<Duration>) -> (LogEvent, &'static str) {
    let event = match outcome {
        ElectionOutcome::Won => LogEvent::debug("election_ended"),
        _ => LogEvent::info("election_ended"),
    };
    (event.with("outcome", outcome.name()).with_some("duration_ms", lasted.map(ms)), "the election has ended")
}

fn leader_lost(former: &Peer, epoch: Epoch, reason: Reason, me: bool) -> (LogEvent, &'static str) {
    let planned = matches!(reason, Reason::Resign | Reason::Transfer | Reason::Superseded | Reason::Start);
    let event = if planned { LogEvent::info("leader_lost") } else { LogEvent::warn("leader_lost") };
    let text = match (me, planned) {
        (true, _) => "this process leads no longer",
        (false, true) => "the leader has stepped down",
        (false, false) => "the leader is lost",
    };
    (leader(event, former, epoch, reason, me), text)
}

fn waits_for_holds(holds: usize, at_most: Duration) -> (LogEvent, &'static str) {
    let event = LogEvent::info("waits_for_holds").with("holds", holds).with("at_most_ms", ms(at_most));
    (event, "this process resigns once the holds of its applications are over")
}

fn resigning(successor: Option<&Peer>, reason: Reason) -> (LogEvent, &'static str) {
    let text = match reason {
        Reason::Transfer if successor.is_some() => "transferring leadership to another member",
        Reason::Transfer => {
            "this process leads no longer, and no member is to take over: an election decides"
        }
        _ if successor.is_some() => "told to stop, and handing over",
        _ => "told to stop, and no member can succeed it",
    };
    let event = LogEvent::info("resigning").with("reason", reason.name());
    (successor.into_iter().fold(event, LogEvent::peer), text)
}

fn awaits_application(complaints: Complaints) -> (LogEvent, &'static str) {
    let event = LogEvent::info("application_awaited").with("complaints", complaints.names().join(","));
    (event, "this process is a candidate once the application here is healthy")
}

fn application(complaints: Complaints) -> (LogEvent, &'static str) {
    if !complaints.any() {
        return (LogEvent::info("application_healthy"), "the application here is healthy");
    }
    let text = "the application here is not healthy: this process is no candidate, and a leader transfers \
                leadership where another can lead. --when-all-sick says what happens where none can";
    (LogEvent::warn("application_unhealthy").with("complaints", complaints.names().join(",")), text)
}

fn stands_aside(aside: Option<Duration>) -> (LogEvent, &'static str) {
    match aside {
        None => (
            LogEvent::warn("cordoned"),
            "cordoned by an operator, or by the preStop hook of a pod that drains; it does not lead \
             before `bellwether uncordon`, or its restart",
        ),
        Some(aside) => (
            LogEvent::warn("stands_aside").with("for_ms", ms(aside)),
            "this process has resigned and does not stand for a while, or before its restart",
        ),
    }
}

fn same_name(known: &Peer, other: &Peer) -> LogEvent {
    LogEvent::warn("name_taken")
        .peer(known)
        .with("other_id", other.id.to_string())
        .with("other_address", other.address.to_string())
}

fn denied(voter: &Peer, stage: Stage, denial: Denial) -> LogEvent {
    LogEvent::debug("vote_denied").peer(voter).with("asked", stage.name()).with("denial", denial.name())
}

/// A wait after a restart, which ends by itself, has a line of its own.
fn waits_for_vote(not_ready: &NotReady) -> (LogEvent, String) {
    (LogEvent::warn("no_vote_yet"), no_vote_yet(not_ready, Moment::default()))
}

fn may_not_found(founding: Founding) -> (LogEvent, String) {
    (LogEvent::error("founding_refused"), founding_refused(founding))
}

fn voter_recovers(peer: &Peer) -> (LogEvent, &'static str) {
    let text = "a voter has no vote: it has lost its record, or is new, and asks what it may have forgotten";
    (LogEvent::warn("voter_recovers").peer(peer), text)
}

fn voters_changed(config: &VoterConfig, given: &BTreeSet<String>) -> (LogEvent, &'static str) {
    let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let (event, text) = if config.voters == *given {
        (LogEvent::info("voters_changed"), "the voters of the election")
    } else {
        (
            LogEvent::warn("voters_changed"),
            "this process was started with other --voters than count; the voters change when a majority of \
             them has the same other ones",
        )
    };
    let event = event
        .with("voters", list(&config.voters))
        .with("given", list(given))
        .with("config_epoch", config.version.epoch.0)
        .with("config_version", config.version.version);
    (event, text)
}

fn voters_differ(first_start: bool) -> &'static str {
    if first_start {
        "a peer was started with other --voters or another --lease; at a first start all must be equal"
    } else {
        "a peer was started with other --voters; the voters change when a majority of them agrees"
    }
}

fn lease_in_use(lease_ms: u32, bound_ms: u32, given_ms: u32) -> (LogEvent, &'static str) {
    let (event, text) = if lease_ms == given_ms {
        (LogEvent::info("lease_in_use"), "the voters' lease")
    } else {
        (
            LogEvent::warn("lease_in_use"),
            "this process was started with another --lease than the voters use; the lease changes when a \
             majority of them has the same other one",
        )
    };
    (event.with("lease_ms", lease_ms).with("bound_ms", bound_ms).with("given_ms", given_ms), text)
}

/// Adds a leader.
fn leader(event: LogEvent, peer: &Peer, epoch: Epoch, reason: Reason, me: bool) -> LogEvent {
    event
        .with("leader", peer.name.as_str())
        .with("id", peer.id.to_string())
        .with("address", peer.address.to_string())
        .with("me", me)
        .with("epoch", epoch.0)
        .with("reason", reason.name())
}
