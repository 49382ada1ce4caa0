//! Messages and notifications in words, for the traces of the simulator and of tests.

use super::{
    Body, Denial, Entry, Message, NotReady, Notification, Peer, ProcessId, RecoveredState, State,
    VoteOutcome, VoterConfig,
};

/// Describes with these names for ids.
pub struct Describer<N>(pub N);

impl<N: Fn(ProcessId) -> String> Describer<N> {
    fn name(&self, peer: &Peer) -> String {
        (self.0)(peer.id)
    }

    /// Members by name, failed ones marked as such.
    pub fn members(&self, entries: &[Entry]) -> String {
        let each = entries.iter().map(|entry| match entry.state {
            State::Alive => self.name(&entry.peer),
            State::Failed => format!("{}(failed)", self.name(&entry.peer)),
        });
        let text = each.collect::<Vec<_>>().join(" ");
        if text.is_empty() { "none".to_owned() } else { text }
    }

    /// A message without its ends.
    pub fn message(&self, message: &Message) -> String {
        let text = match &message.body {
            Body::Election
            | Body::Answer
            | Body::Declare
            | Body::Coordinator { .. }
            | Body::LeaderQuery { .. }
            | Body::ProposeTransfer => message.body.name().to_owned(),
            Body::Heartbeat { sequence, .. } => format!("heartbeat {sequence}"),
            Body::HeartbeatAck { sequence, .. } => format!("heartbeat_ack {sequence}"),
            Body::Membership { version, entries } => {
                format!("membership {}: {}", version.version, self.members(entries))
            }
            Body::Join { version, entry } => {
                format!("join {}: {}", version.version, self.members(std::slice::from_ref(entry)))
            }
            Body::Leave { version: Some(version), id } => {
                format!("leave {}: {}", version.version, (self.0)(*id))
            }
            Body::Leave { version: None, id } => format!("leave: {}", (self.0)(*id)),
            Body::Resign { successor, leaving } => {
                let to = successor.map_or_else(|| "no process".to_owned(), &self.0);
                format!("resign to {to}{}", if *leaving { ", leaving" } else { "" })
            }
            Body::LeaderInfo { leader, entries } => {
                let leader = leader.as_ref().map_or_else(|| "none".to_owned(), |l| self.name(&l.peer));
                format!("leader_info: leader {leader}, members {}", self.members(entries))
            }
            Body::VoteRequest { request } => {
                let ballot = request.ballot;
                let contender = if request.contender { "" } else { ", no contender" };
                let transfer =
                    request.transfer.map_or_else(String::new, |epoch| format!(", transfer of {epoch}"));
                format!("vote_request: {} for {}{contender}{transfer}", ballot.stage.name(), ballot.epoch)
            }
            Body::Vote { ballot, outcome, .. } => {
                let outcome = match outcome {
                    VoteOutcome::Granted => "granted".to_owned(),
                    VoteOutcome::Denied(why) => format!("denied ({})", denial(*why)),
                };
                format!("vote: {} for {}: {outcome}", ballot.stage.name(), ballot.epoch)
            }
            Body::Renew { sequence, .. } => format!("renew {sequence}"),
            Body::Renewed { sequence, promised: true, .. } => format!("renewed {sequence}"),
            Body::Renewed { sequence, promised: false, .. } => format!("renewed {sequence}, no promise"),
            Body::Configuration { config } => format!("configuration {}", configuration(config)),
            Body::Recover { round, .. } => format!("recover, round {round}"),
            Body::Recovered { round, state, .. } => format!("recovered, round {round}: {}", recovered(state)),
            Body::TransferReady { majority } => {
                format!("transfer_ready: {}", if *majority { "a majority" } else { "no majority" })
            }
        };
        format!("{text}, epoch {}", message.epoch)
    }

    /// A notification, without the process that it is about.
    pub fn notification(&self, note: &Notification) -> String {
        match note {
            Notification::Asking { paused: None, .. } => "asks for the leader".to_owned(),
            Notification::Asking { paused: Some(gap), .. } => {
                format!("asks for the leader, after a pause of {gap:?}")
            }
            Notification::ElectionBegins { reason } => format!("begins an election ({})", reason.name()),
            Notification::ElectionEnds { outcome } => format!("ends the election: {}", outcome.name()),
            Notification::NoCandidate => "no process may lead".to_owned(),
            Notification::Leader { epoch, reason, me: true, .. } => {
                format!("LEADS epoch {epoch} ({})", reason.name())
            }
            Notification::Leader { peer, epoch, reason, .. } => {
                format!("follows {}, epoch {epoch} ({})", self.name(peer), reason.name())
            }
            Notification::Leaderless { epoch, reason, me: true, .. } => {
                format!("LEADS NO LONGER, epoch {epoch} ({})", reason.name())
            }
            Notification::Leaderless { former, epoch, reason, .. } => {
                format!("lost {}, epoch {epoch} ({})", self.name(former), reason.name())
            }
            Notification::LeadsAlone { others } => {
                format!("leads alone, though discovery names others: {others}")
            }
            Notification::MemberUp(peer) => format!("member {} is up", self.name(peer)),
            Notification::MemberFailed { peer, reason } => {
                let reason = reason.map_or("told", |reason| reason.name());
                format!("member {} failed ({reason})", self.name(peer))
            }
            Notification::MemberGone(peer) => format!("member {} is forgotten", self.name(peer)),
            Notification::SameName { known, other } => {
                format!("{} and {} have one name", self.name(known), self.name(other))
            }
            Notification::TooManyMembers(peer) => format!("no room for {}", self.name(peer)),
            Notification::Recovering => "has no vote: asks the voters".to_owned(),
            Notification::NoVoteYet(waits) => format!("has no vote yet: {}", not_ready(waits)),
            Notification::VoterRecovers(peer) => format!("{} has no vote", self.name(peer)),
            Notification::Recovered(epoch) => format!("votes from now on, epoch {epoch}"),
            Notification::FoundingRefused(founding) => format!("may not found the cluster ({founding:?})"),
            Notification::RestartGrace(wait) => format!("votes for no process for {wait:?}"),
            Notification::Denied { voter, stage, denial: why } => {
                format!("{} denies its {} ({})", self.name(voter), stage.name(), denial(*why))
            }
            Notification::VotersChanged { config, .. } => {
                format!("uses configuration {}", configuration(config))
            }
            Notification::LeaseInUse { lease_ms, bound_ms, given_ms } => {
                format!("uses a lease of {lease_ms} ms, a bound of {bound_ms} ms; was given {given_ms} ms")
            }
            Notification::VotersDiffer { peer, .. } => format!("{} has other voters", self.name(peer)),
            Notification::StandsAside { aside: None } => "is cordoned".to_owned(),
            Notification::StandsAside { aside: Some(aside) } => format!("stands aside for {aside:?}"),
            Notification::WaitsForHolds { holds, at_most } => {
                format!("resigns once {holds} holds are over, within {at_most:?}")
            }
            Notification::StandsAgain => "stands again".to_owned(),
            Notification::AwaitsApplication { .. } => "waits for its application".to_owned(),
            Notification::Application { complaints } => {
                format!("its application is healthy: {}", !complaints.any())
            }
            Notification::Resigning { successor: Some(to), .. } => format!("resigns to {}", self.name(to)),
            Notification::Resigning { successor: None, .. } => "resigns".to_owned(),
        }
    }
}

/// Why a process does not vote yet.
pub fn not_ready(not_ready: &NotReady) -> String {
    match not_ready {
        NotReady::Recovery { missing, .. } => format!("recovery, for {}", missing.join(" ")),
        NotReady::Founding { missing } => format!("founding, for {}", missing.join(" ")),
        NotReady::Grace { .. } => "restart grace".to_owned(),
    }
}

fn denial(denial: Denial) -> String {
    match denial.wait() {
        Some(wait) => format!("{} for {wait:?}", denial.name()),
        None => denial.name().to_owned(),
    }
}

fn configuration(config: &VoterConfig) -> String {
    let VoterConfig { version, voters, lease_ms, bound_ms } = config;
    let names = voters.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let bound =
        if lease_ms == bound_ms { String::new() } else { format!(", lease {lease_ms}, bound {bound_ms}") };
    format!("{}.{}, voters {names}{bound}", version.epoch, version.version)
}

fn recovered(state: &RecoveredState) -> String {
    match state {
        RecoveredState::Empty => "no record".to_owned(),
        RecoveredState::Founding(config) => format!("founding {}", configuration(config)),
        RecoveredState::Founded(config) => configuration(config),
    }
}
