//! What happened in a world, as lines that people read.

use bellwether::election::{
    Body, Entry, Incumbent, Message, Note, Peer, ProcessId, Question, Refusal, State, Verdict, ViewStamp,
    VoterView,
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

    pub fn noted(&mut self, now: Duration, who: usize, note: &Note) {
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

fn asked(question: Question) -> &'static str {
    match question {
        Question::Sounding => "sounding",
        Question::Claim => "claim",
    }
}

fn why(refusal: Refusal) -> String {
    match refusal {
        Refusal::Promised { for_ms } => format!("promised for {for_ms} ms"),
        other => other.name().to_string(),
    }
}

fn version(stamp: ViewStamp) -> String {
    format!("{}.{}", stamp.epoch, stamp.version)
}

fn voters(view: &VoterView) -> String {
    let names: Vec<&str> = view.voters.iter().map(String::as_str).collect();
    format!("{} of view {}", names.join(" "), version(view.stamp))
}

fn said(message: &Message) -> String {
    let mut text = match &message.body {
        Body::Election | Body::Answer | Body::Coordinator { .. } | Body::Ask | Body::Prepare => {
            message.body.name().to_string()
        }
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
        Body::Tell { leader, entries } => {
            format!("tell: {} leads, members {}", incumbent(leader), list(entries))
        }
        Body::Contest { question, ballot, freed, .. } => {
            let freed = freed.map_or_else(String::new, |epoch| format!(", {epoch} freed"));
            format!("contest: {} for {}{freed}", asked(*question), ballot.epoch)
        }
        Body::Vote { question, epoch, verdict, .. } => {
            let verdict = match verdict {
                Verdict::Yes => "yes".to_string(),
                Verdict::Conditional => "yes if all".to_string(),
                Verdict::No(refusal) => format!("no ({})", why(*refusal)),
            };
            format!("vote: {} for {epoch}: {verdict}", asked(*question))
        }
        Body::Withdraw { epoch, .. } => format!("withdraw up to {epoch}"),
        Body::Renew { sequence, .. } => format!("renew {sequence}"),
        Body::Renewed { sequence, promised: true, .. } => format!("renewed {sequence}"),
        Body::Renewed { sequence, promised: false, .. } => format!("renewed {sequence}, no promise"),
        Body::Voters { view } => format!("voters: {}", voters(view)),
        Body::Recover { round, .. } => format!("recover, round {round}"),
        Body::Recovered { round, recollection, .. } => {
            let view = recollection.as_ref().map_or_else(|| "no record".to_string(), |r| voters(&r.view));
            format!("recovered, round {round}: {view}")
        }
        Body::Prepared { majority } => {
            format!("prepared: {}", if *majority { "a majority" } else { "no majority" })
        }
    };
    let _ = write!(text, ", epoch {}", message.epoch);
    text
}

fn peer(peer: &Peer) -> String {
    name(peer.id)
}

fn told(note: &Note) -> String {
    match note {
        Note::Asking { paused: None, .. } => "asks who leads".to_string(),
        Note::Asking { paused: Some(gap), .. } => format!("asks who leads, after a pause of {gap:?}"),
        Note::Contesting { reason } => format!("contests ({})", reason.name()),
        Note::Contested { outcome } => format!("contest {}", outcome.name()),
        Note::NobodyEligible => "nobody may lead".to_string(),
        Note::Leader { epoch, reason, me: true, .. } => format!("LEADS epoch {epoch} ({})", reason.name()),
        Note::Leader { peer: leader, epoch, reason, .. } => {
            format!("follows {}, epoch {epoch} ({})", peer(leader), reason.name())
        }
        Note::Leaderless { former, epoch, reason, me, .. } => {
            let whom = if *me { "LEADS NO LONGER".to_string() } else { format!("lost {}", peer(former)) };
            format!("{whom}, epoch {epoch} ({})", reason.name())
        }
        Note::MemberUp(member) => format!("member {} is up", peer(member)),
        Note::MemberFailed { peer: member, reason } => {
            let reason = reason.map_or("told", |r| r.name());
            format!("member {} failed ({reason})", peer(member))
        }
        Note::MemberGone(member) => format!("member {} is forgotten", peer(member)),
        Note::SameName { known, other } => format!("{} and {} have one name", peer(known), peer(other)),
        Note::LeadsAlone { others } => format!("leads alone, though there are {others} other addresses"),
        Note::TooManyMembers(member) => format!("no room for {}", peer(member)),
        Note::Recovering => "has no record: asks the voters".to_string(),
        Note::Recovered(epoch) => format!("has recovered, epoch {epoch}"),
        Note::Cautious(wait) => format!("grants nobody for {wait:?}"),
        Note::Refused { voter, question, refusal } => {
            format!("{} refuses its {} ({})", peer(voter), asked(*question), why(*refusal))
        }
        Note::VotersChanged(view) => format!("voters are {}", voters(view)),
        Note::LeaseDiffers { peer: other, lease_ms } => {
            format!("{} has a lease of {lease_ms} ms", peer(other))
        }
        Note::VotersDiffer(other) => format!("{} has other voters", peer(other)),
        Note::Resigning { successor: Some(to), .. } => format!("resigns to {}", peer(to)),
        Note::Resigning { successor: None, .. } => "resigns".to_string(),
    }
}
