//! What happened in a world, as lines that people read.

use bellwether::election::{
    Body, Denial, Entry, Incumbent, Message, Notification, Peer, ProcessId, RecoveredState, Stage, State,
    VoteOutcome, VoterConfig,
};
use std::fmt::Write as _;
use std::time::Duration;

/// How much is written down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// Nothing.
    Off,
    /// Everything but heartbeats and their acknowledgements.
    On,
    /// Everything.
    Heartbeats,
}

/// The lines so far.
pub struct Trace {
    pub detail: Detail,
    pub lines: Vec<String>,
}

impl Trace {
    pub fn line(&mut self, now: Duration, text: &str) {
        if self.detail != Detail::Off {
            self.lines.push(format!("{:>4}.{:03}  {text}", now.as_secs(), now.subsec_millis()));
        }
    }

    /// A message leaves; `fate` says what the network does with it, empty if it carries it.
    pub fn sent(&mut self, now: Duration, from: usize, to: ProcessId, message: &Message, fate: &str) {
        let beat = matches!(
            message.body,
            Body::Heartbeat { .. } | Body::HeartbeatAck { .. } | Body::Renew { .. } | Body::Renewed { .. }
        );
        if self.detail == Detail::Off || beat && fate.is_empty() && self.detail < Detail::Heartbeats {
            return;
        }
        let text = format!("p{from} -> {}  {}{fate}", name(to), said(message));
        self.line(now, &text);
    }

    pub fn noted(&mut self, now: Duration, who: usize, note: &Notification) {
        if self.detail != Detail::Off {
            let text = format!("p{who}        {}", told(note));
            self.line(now, &text);
        }
    }
}

/// The name of a process with one of the world's ids.
pub fn name(id: ProcessId) -> String {
    format!("p{}", super::world::number(id))
}

fn list(entries: &[Entry]) -> String {
    let each = entries.iter().map(|e| match e.state {
        State::Alive => name(e.peer.id),
        State::Failed => format!("{}(failed)", name(e.peer.id)),
    });
    let text = each.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "nobody".to_string() } else { text }
}

fn incumbent(leader: &Option<Incumbent>) -> String {
    leader.as_ref().map_or_else(|| "nobody".to_string(), |l| name(l.peer.id))
}

fn asked(stage: Stage) -> &'static str {
    match stage {
        Stage::PreVote => "pre-vote",
        Stage::Vote => "vote",
    }
}

fn why(denial: Denial) -> String {
    match denial.wait() {
        Some(wait) => format!("{} for {wait:?}", denial.name()),
        None => denial.name().to_string(),
    }
}

fn config(config: &VoterConfig) -> String {
    let VoterConfig { version, voters, lease_ms, bound_ms } = config;
    let names: Vec<&str> = voters.iter().map(String::as_str).collect();
    let bound =
        if lease_ms == bound_ms { String::new() } else { format!(", lease {lease_ms}, bound {bound_ms}") };
    format!("{}.{}, voters {}{bound}", version.epoch, version.version, names.join(" "))
}

fn state(state: &RecoveredState) -> String {
    match state {
        RecoveredState::Empty => "no record".to_string(),
        RecoveredState::Founding(known) => format!("founding {}", config(known)),
        RecoveredState::Founded(known) => config(known),
    }
}

fn said(message: &Message) -> String {
    let mut text = match &message.body {
        Body::Election
        | Body::Answer
        | Body::Coordinator { .. }
        | Body::LeaderQuery
        | Body::ProposeTransfer => message.body.name().to_string(),
        Body::Heartbeat { sequence, .. } => format!("heartbeat {sequence}"),
        Body::HeartbeatAck { sequence, .. } => format!("heartbeat_ack {sequence}"),
        Body::Membership { version, entries } => {
            format!("membership {}: {}", version.version, list(entries))
        }
        Body::Join { version, entry } => {
            format!("join {}: {}", version.version, list(std::slice::from_ref(entry)))
        }
        Body::Leave { version: Some(version), id } => format!("leave {}: {}", version.version, name(*id)),
        Body::Leave { version: None, id } => format!("leave: {}", name(*id)),
        Body::Resign { successor, leaving } => {
            let to = successor.map_or_else(|| "nobody".to_string(), name);
            format!("resign to {to}{}", if *leaving { ", leaving" } else { "" })
        }
        Body::LeaderInfo { leader, entries } => {
            format!("leader_info: {} leads, members {}", incumbent(leader), list(entries))
        }
        Body::VoteRequest { request } => {
            let ballot = request.ballot;
            let contender = if request.contender { "" } else { ", no contender" };
            let transfer =
                request.transfer.map_or_else(String::new, |epoch| format!(", transfer of {epoch}"));
            format!("vote_request: {} for {}{contender}{transfer}", asked(ballot.stage), ballot.epoch)
        }
        Body::Vote { ballot, outcome, .. } => {
            let outcome = match outcome {
                VoteOutcome::Granted => "granted".to_string(),
                VoteOutcome::Denied(denial) => format!("denied ({})", why(*denial)),
            };
            format!("vote: {} for {}: {outcome}", asked(ballot.stage), ballot.epoch)
        }
        Body::Renew { sequence, .. } => format!("renew {sequence}"),
        Body::Renewed { sequence, promised: true, .. } => format!("renewed {sequence}"),
        Body::Renewed { sequence, promised: false, .. } => format!("renewed {sequence}, no promise"),
        Body::Configuration { config: known } => format!("configuration {}", config(known)),
        Body::Recover { round, .. } => format!("recover, round {round}"),
        Body::Recovered { round, state: known, .. } => format!("recovered, round {round}: {}", state(known)),
        Body::TransferReady { majority } => {
            format!("transfer_ready: {}", if *majority { "a majority" } else { "no majority" })
        }
    };
    let _ = write!(text, ", epoch {}", message.epoch);
    text
}

fn peer(peer: &Peer) -> String {
    name(peer.id)
}

fn told(note: &Notification) -> String {
    match note {
        Notification::Asking { paused: None, .. } => "asks who leads".to_string(),
        Notification::Asking { paused: Some(gap), .. } => format!("asks who leads, after a pause of {gap:?}"),
        Notification::Contesting { reason } => format!("contests ({})", reason.name()),
        Notification::Contested { outcome } => format!("contest {}", outcome.name()),
        Notification::NoCandidate => "nobody may lead".to_string(),
        Notification::Leader { epoch, reason, me: true, .. } => {
            format!("LEADS epoch {epoch} ({})", reason.name())
        }
        Notification::Leader { peer: leader, epoch, reason, .. } => {
            format!("follows {}, epoch {epoch} ({})", peer(leader), reason.name())
        }
        Notification::Leaderless { former, epoch, reason, me, .. } => {
            let whom = if *me { "LEADS NO LONGER".to_string() } else { format!("lost {}", peer(former)) };
            format!("{whom}, epoch {epoch} ({})", reason.name())
        }
        Notification::MemberUp(member) => format!("member {} is up", peer(member)),
        Notification::MemberFailed { peer: member, reason } => {
            let reason = reason.map_or("told", |r| r.name());
            format!("member {} failed ({reason})", peer(member))
        }
        Notification::MemberGone(member) => format!("member {} is forgotten", peer(member)),
        Notification::SameName { known, other } => {
            format!("{} and {} have one name", peer(known), peer(other))
        }
        Notification::LeadsAlone { others } => {
            format!("leads alone, though there are {others} other addresses")
        }
        Notification::TooManyMembers(member) => format!("no room for {}", peer(member)),
        Notification::Recovering => "has no vote: asks the voters".to_string(),
        Notification::Recovered(epoch) => format!("votes from now on, epoch {epoch}"),
        Notification::FoundingRefused(founding) => format!("may not found the cluster ({founding:?})"),
        Notification::RestartGrace(wait) => format!("votes for no process for {wait:?}"),
        Notification::Denied { voter, stage, denial } => {
            format!("{} denies its {} ({})", peer(voter), asked(*stage), why(*denial))
        }
        Notification::VotersChanged(known) => format!("uses configuration {}", config(known)),
        Notification::LeaseInUse { lease_ms, bound_ms, given_ms } => {
            format!("uses a lease of {lease_ms} ms, a bound of {bound_ms} ms; was given {given_ms} ms")
        }
        Notification::VotersDiffer(other) => format!("{} has other voters", peer(other)),
        Notification::Resigning { successor: Some(to), .. } => format!("resigns to {}", peer(to)),
        Notification::Resigning { successor: None, .. } => "resigns".to_string(),
    }
}
