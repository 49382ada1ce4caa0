//! Messages and notes in words, with places for ids.

use super::node::place_of;
use crate::election::{
    Body, Entry, Incumbent, Message, NotReady, Notification, Peer, RecoveredState, Stage, State, VoteOutcome,
    VoteRequest, VoterConfig,
};

/// A message, without its ends.
pub(super) fn said(message: &Message) -> String {
    let epoch = message.epoch;
    let text = match &message.body {
        Body::Heartbeat { sequence, .. } | Body::HeartbeatAck { sequence, .. } => {
            format!("{} {sequence}", message.body.name())
        }
        Body::Membership { entries, .. } => format!("membership: {}", entries_in_words(entries)),
        Body::Join { entry, .. } => format!("join: {}", entries_in_words(std::slice::from_ref(entry))),
        Body::Leave { id, version } => {
            let by = if version.is_some() { "its leader says so" } else { "it says so" };
            format!("leave: p-{} ({by})", place_of(*id))
        }
        Body::Resign { successor, leaving } => {
            let to = successor.map_or_else(|| "nobody".to_owned(), |id| format!("p-{}", place_of(id)));
            format!("resign to {to}{}", if *leaving { ", leaving" } else { "" })
        }
        Body::LeaderInfo { leader, entries } => {
            format!(
                "leader_info: {} leads, members {}",
                incumbent(leader.as_ref()),
                entries_in_words(entries)
            )
        }
        Body::VoteRequest { request: VoteRequest { ballot, contender, transfer, config } } => {
            let what = asked(ballot.stage);
            let transfer = transfer.map_or("", |_| ", as successor");
            let contender = if *contender { "" } else { ", no contender" };
            let (epoch, lease_ms) = (ballot.epoch, ballot.lease_ms);
            format!(
                "{what} of epoch {epoch} for {lease_ms} ms{transfer}{contender}, configuration {}",
                votes(config)
            )
        }
        Body::Vote { ballot, outcome, config } => {
            let config =
                config.as_ref().map_or_else(String::new, |c| format!(", configuration {}", votes(c)));
            format!("to the {} of epoch {}: {}{config}", asked(ballot.stage), ballot.epoch, answered(outcome))
        }
        Body::Renew { sequence, config, lease_ms, .. } => {
            format!("renew {sequence} for {lease_ms} ms, configuration {}.{}", config.epoch, config.version)
        }
        Body::Renewed { sequence, promised, config, .. } => {
            let promised = if *promised { "promised" } else { "not promised" };
            format!("renewed {sequence}, {promised}, configuration {}.{}", config.epoch, config.version)
        }
        Body::Configuration { config } => format!("configuration: {}", votes(config)),
        Body::Recover { round, .. } => format!("recover, round {round}"),
        Body::Recovered { round, state, .. } => format!("recovered, round {round}: {}", known(state)),
        Body::TransferReady { majority } => format!("transfer ready: {majority}"),
        Body::Election
        | Body::Answer
        | Body::Coordinator { .. }
        | Body::LeaderQuery
        | Body::ProposeTransfer => message.body.name().to_owned(),
    };
    format!("{text}  [epoch {epoch}]")
}

fn asked(stage: Stage) -> &'static str {
    match stage {
        Stage::PreVote => "pre-vote",
        Stage::Vote => "vote",
    }
}

fn answered(outcome: &VoteOutcome) -> String {
    match outcome {
        VoteOutcome::Granted => "granted".to_owned(),
        VoteOutcome::Denied(denial) => {
            let wait = denial.wait().map_or_else(String::new, |wait| format!(" for {} ms", wait.as_millis()));
            format!("denied, {}{wait}", denial.name())
        }
    }
}

fn known(state: &RecoveredState) -> String {
    match state {
        RecoveredState::Empty => "it has no record either".to_owned(),
        RecoveredState::Founding(config) => format!("it is founding with {}", votes(config)),
        RecoveredState::Founded(config) => format!("configuration {}", votes(config)),
    }
}

fn votes(config: &VoterConfig) -> String {
    let VoterConfig { version, voters, lease_ms, bound_ms } = config;
    let names = voters.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    format!("{}.{} ({names}; {lease_ms}/{bound_ms} ms)", version.epoch, version.version)
}

pub(super) fn entries_in_words(entries: &[Entry]) -> String {
    let each = entries.iter().map(|entry| match entry.state {
        State::Alive => name(&entry.peer),
        State::Failed => format!("{}(failed)", name(&entry.peer)),
    });
    let text = each.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "nobody".to_owned() } else { text }
}

fn incumbent(leader: Option<&Incumbent>) -> String {
    leader.map_or_else(|| "nobody".to_owned(), |leader| name(&leader.peer))
}

fn name(peer: &Peer) -> String {
    format!("p-{}", place_of(peer.id))
}

/// A note.
pub(super) fn told(note: &Notification) -> String {
    match note {
        Notification::Asking { paused: None, .. } => "asks who leads".to_owned(),
        Notification::Asking { paused: Some(gap), .. } => {
            format!("asks who leads, after a pause of {} ms", gap.as_millis())
        }
        Notification::Contesting { reason } => format!("contests ({})", reason.name()),
        Notification::Contested { outcome } => format!("contest {}", outcome.name()),
        Notification::NoCandidate => "nobody may lead".to_owned(),
        Notification::Leader { epoch, reason, me: true, .. } => {
            format!("LEADS epoch {epoch} ({})", reason.name())
        }
        Notification::Leader { peer, epoch, reason, .. } => {
            format!("follows {}, epoch {epoch} ({})", name(peer), reason.name())
        }
        Notification::Leaderless { epoch, reason, me: true, .. } => {
            format!("LEADS NO LONGER, epoch {epoch} ({})", reason.name())
        }
        Notification::Leaderless { former, epoch, reason, .. } => {
            format!("lost {}, epoch {epoch} ({})", name(former), reason.name())
        }
        Notification::LeadsAlone { others } => {
            format!("leads alone, though there are {others} other addresses")
        }
        Notification::MemberUp(peer) => format!("member {} is up", name(peer)),
        Notification::MemberFailed { peer, reason } => {
            format!("member {} failed ({})", name(peer), reason.map_or("told", |reason| reason.name()))
        }
        Notification::MemberGone(peer) => format!("member {} is forgotten", name(peer)),
        Notification::SameName { known, other } => {
            format!("{} and {} have one name", name(known), name(other))
        }
        Notification::TooManyMembers(peer) => format!("no room for {}", name(peer)),
        Notification::Recovering => "has no record, and recovers".to_owned(),
        Notification::Recovered(epoch) => format!("votes from now on, in epoch {epoch}"),
        Notification::FoundingRefused(_) => "may not found a cluster".to_owned(),
        Notification::RestartGrace(time) => format!("votes for no process for {} ms", time.as_millis()),
        Notification::Denied { voter, stage, denial } => {
            format!("{}: {} denies it ({})", asked(*stage), name(voter), denial.name())
        }
        Notification::VotersChanged(config) => format!("uses configuration {}", votes(config)),
        Notification::LeaseInUse { lease_ms, bound_ms, given_ms } => {
            format!("uses lease {lease_ms} ms, bound {bound_ms} ms (given {given_ms} ms)")
        }
        Notification::VotersDiffer(peer) => format!("{} was given other voters", name(peer)),
        Notification::Resigning { successor: Some(to), .. } => format!("resigns to {}", name(to)),
        Notification::Resigning { successor: None, .. } => "resigns".to_owned(),
    }
}

/// Why a process does not vote yet.
pub(super) fn not_ready(not_ready: &NotReady) -> String {
    match not_ready {
        NotReady::Recovery { missing, .. } => format!("recovery, for {}", missing.join(" ")),
        NotReady::Founding { missing } => format!("founding, for {}", missing.join(" ")),
        NotReady::Grace { .. } => "restart grace".to_owned(),
    }
}
