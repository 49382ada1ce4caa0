//! Why a process is not ready: a line for an operator whose pod does not become ready.

use super::Snapshot;
use crate::election::{Role, State, Status, Voting};
use crate::telemetry;

/// Why this process is not ready; none: it is. A process is ready once it has taken part, and stays so
/// without a leader, unless `leader_wanted`.
pub(super) fn why_not_ready(snapshot: &Snapshot, leader_wanted: bool) -> Option<String> {
    let Snapshot { status, now, turned, .. } = snapshot;
    if status.role == Role::Leaving {
        return Some("it has resigned and is about to end".to_owned());
    }
    if let Err(reason) = &snapshot.health {
        return Some(reason.clone());
    }
    let took_part = snapshot.took_part || status.takes_part(*now, *turned);
    let ready = took_part && (!leader_wanted || status.follows_or_leads(*now, *turned));
    (!ready).then(|| what_is_missing(snapshot))
}

/// What is missing, and in `majority` which voters this process waits for.
fn what_is_missing(snapshot: &Snapshot) -> String {
    let status = &snapshot.status;
    let silent = snapshot.now.since(snapshot.turned);
    if silent > status.answer_ttl {
        return format!(
            "the driver has not turned for {} ms (at most {} ms): this process was paused or gets no CPU \
             time. It asks its peers before it answers",
            silent.as_millis(),
            status.answer_ttl.as_millis(),
        );
    }
    if let Some(not_ready) = status.voting.as_ref().and_then(|voting| voting.not_ready.as_ref()) {
        return telemetry::no_vote_yet(not_ready, snapshot.now);
    }
    let what = match status.role {
        Role::Asking => "it is asking its peers which one leads, or waiting for them",
        Role::Electing if no_candidate(status) => {
            "each live member is cordoned or has priority 0, or an application that is not healthy, so none \
             may lead. Uncordon one, mend its application, or give one another --priority"
        }
        Role::Electing => "an election is under way and no process leads yet",
        Role::Leading if status.voting.is_some() => "no majority of the voters has renewed its lease in time",
        Role::Following if status.voting.is_some() => "it has not heard from the leader for a lease",
        Role::Leading if status.cut_off => {
            "it leads alone: discovery names addresses that refuse no connection, and it is connected with \
             none of them. Compare their secret or certificates, --election, --safety and the network policy"
        }
        Role::Leading | Role::Resigning | Role::Following | Role::Leaving => "it knows no leader",
    };
    match status.voting.as_ref().and_then(|voting| majority_missing(status, voting)) {
        Some(missing) => format!("{what}; {missing}"),
        None => what.to_owned(),
    }
}

/// Whether no live member stands, this process included.
fn no_candidate(status: &Status) -> bool {
    let mut alive = status.members.iter().filter(|member| member.state == State::Alive);
    alive.all(|member| !member.peer.rank().eligible())
}

/// Which voters are not there, where those that are make no majority.
fn majority_missing(status: &Status, voting: &Voting) -> Option<String> {
    let known = voting.config.as_ref()?;
    let alive = || status.members.iter().filter(|m| m.state == State::Alive).map(|m| m.peer.name.as_str());
    if known.has_majority(alive()) {
        return None;
    }
    let missing = known.voters.iter().filter(|name| !alive().any(|there| there == *name));
    let missing: Vec<String> = missing.cloned().collect();
    Some(format!(
        "{} of {} voters are needed; missing: {}",
        known.majority(),
        known.voters.len(),
        missing.join(", ")
    ))
}
