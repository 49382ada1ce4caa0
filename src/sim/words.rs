//! Messages and notes in words, with places for ids.

use super::process::place_of;
use crate::election::{
    Body, Entry, Incumbent, Message, Note, Peer, Question, Refusal, State, Verdict, VoterView, Waits,
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
        Body::Tell { leader, entries } => {
            format!("tell: {} leads, members {}", incumbent(leader.as_ref()), entries_in_words(entries))
        }
        Body::Contest { question, ballot, freed, .. } => {
            let freed = freed.map_or_else(String::new, |epoch| format!(", as if epoch {epoch} were freed"));
            format!("{} epoch {} for {} ms{freed}", asked(*question), ballot.epoch, ballot.lease_ms)
        }
        Body::Vote { question, epoch, verdict, view, .. } => {
            format!(
                "to the {} of epoch {epoch}: {}, view {}",
                asked(*question),
                answered(verdict),
                votes(view)
            )
        }
        Body::Withdraw { epoch, .. } => format!("withdraws up to epoch {epoch}"),
        Body::Renew { sequence, view, .. } => {
            format!("renew {sequence}, view {}.{}", view.epoch, view.version)
        }
        Body::Renewed { sequence, promised, view, .. } => {
            let promised = if *promised { "promised" } else { "not promised" };
            format!("renewed {sequence}, {promised}, view {}.{}", view.epoch, view.version)
        }
        Body::Voters { view } => format!("voters: {}", votes(view)),
        Body::Recover { round, .. } => format!("recover, round {round}"),
        Body::Recovered { round, recollection, .. } => match recollection {
            None => format!("recovered, round {round}: has no record either"),
            Some(known) => format!("recovered, round {round}: view {}", votes(&known.view)),
        },
        Body::Prepared { majority } => format!("prepared: majority {majority}"),
        Body::Election | Body::Answer | Body::Coordinator { .. } | Body::Ask | Body::Prepare => {
            message.body.name().to_owned()
        }
    };
    format!("{text}  [epoch {epoch}]")
}

fn asked(question: Question) -> &'static str {
    match question {
        Question::Sounding => "sounding",
        Question::Claim => "claim",
    }
}

fn answered(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Yes => "yes".to_owned(),
        Verdict::Conditional => "conditional yes".to_owned(),
        Verdict::No(Refusal::Promised { for_ms }) => format!("no, promised for {for_ms} ms"),
        Verdict::No(refusal) => format!("no, {}", refusal.name()),
    }
}

fn votes(view: &VoterView) -> String {
    let names = view.voters.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    format!("{}.{} ({names})", view.stamp.epoch, view.stamp.version)
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
pub(super) fn told(note: &Note) -> String {
    match note {
        Note::Asking { paused: None, .. } => "asks who leads".to_owned(),
        Note::Asking { paused: Some(gap), .. } => {
            format!("asks who leads, after a pause of {} ms", gap.as_millis())
        }
        Note::Contesting { reason } => format!("contests ({})", reason.name()),
        Note::Contested { outcome } => format!("contest {}", outcome.name()),
        Note::NobodyEligible => "nobody may lead".to_owned(),
        Note::Leader { epoch, reason, me: true, .. } => format!("LEADS epoch {epoch} ({})", reason.name()),
        Note::Leader { peer, epoch, reason, .. } => {
            format!("follows {}, epoch {epoch} ({})", name(peer), reason.name())
        }
        Note::Leaderless { epoch, reason, me: true, .. } => {
            format!("LEADS NO LONGER, epoch {epoch} ({})", reason.name())
        }
        Note::Leaderless { former, epoch, reason, .. } => {
            format!("lost {}, epoch {epoch} ({})", name(former), reason.name())
        }
        Note::LeadsAlone { others } => format!("leads alone, though there are {others} other addresses"),
        Note::MemberUp(peer) => format!("member {} is up", name(peer)),
        Note::MemberFailed { peer, reason } => {
            format!("member {} failed ({})", name(peer), reason.map_or("told", |reason| reason.name()))
        }
        Note::MemberGone(peer) => format!("member {} is forgotten", name(peer)),
        Note::SameName { known, other } => format!("{} and {} have one name", name(known), name(other)),
        Note::TooManyMembers(peer) => format!("no room for {}", name(peer)),
        Note::Recovering => "has no record, and recovers".to_owned(),
        Note::Recovered(epoch) => format!("recovered in epoch {epoch}"),
        Note::Cautious(time) => format!("grants nobody for {} ms", time.as_millis()),
        Note::Refused { voter, question, refusal } => {
            format!("{}: {} refused ({})", asked(*question), name(voter), refusal.name())
        }
        Note::VotersChanged(view) => format!("uses view {}", votes(view)),
        Note::LeaseDiffers { peer, lease_ms } => format!("{} has a lease of {lease_ms} ms", name(peer)),
        Note::VotersDiffer(peer) => format!("{} was given other voters", name(peer)),
        Note::Resigning { successor: Some(to), .. } => format!("resigns to {}", name(to)),
        Note::Resigning { successor: None, .. } => "resigns".to_owned(),
    }
}

/// Why a process waits before it votes.
pub(super) fn waits(waits: &Waits) -> String {
    match waits {
        Waits::Recovery { missing, .. } => format!("recovery, for {}", missing.join(" ")),
        Waits::Caution { .. } => "caution".to_owned(),
    }
}
