//! What may be told of a process.

use super::{Core, Phase, Protocol};
use crate::election::{Incumbent, MemberStatus, Role, State, Status};

impl<P: Protocol> Core<P> {
    /// What may be told of it.
    pub(crate) fn status(&self) -> Status {
        let own =
            MemberStatus { peer: self.me.clone(), state: State::Alive, last_heard: None, round_trip: None };
        let others = self.members.iter().map(|m| MemberStatus {
            peer: m.peer.clone(),
            state: m.state,
            // Messages are to be expected only along the star; elsewhere an age would look like a failure.
            last_heard: m.last_heard.filter(|_| self.phase.leading() || self.leads(m.peer.id)),
            round_trip: m.round_trip.filter(|_| self.phase.leading()),
        });
        let mut members: Vec<MemberStatus> = std::iter::once(own).chain(others).collect();
        members.sort_by_key(|m| std::cmp::Reverse(m.peer.rank()));
        Status {
            cluster: self.cluster.clone(),
            me: self.me.clone(),
            role: match self.phase {
                Phase::Asking(_) => Role::Asking,
                Phase::Waiting(_) | Phase::Electing | Phase::Deferring => Role::Electing,
                Phase::Leading(_) if self.holds.resigning.is_some() => Role::Resigning,
                Phase::Leading(_) => Role::Leading,
                Phase::Following => Role::Following,
                Phase::Leaving => Role::Leaving,
            },
            epoch: self.epoch,
            leader: self.incumbent(),
            members,
            valid_until: P::valid_until(self),
            voting: P::voting(self),
            cut_off: self.cut_off(),
            holds: self.holds_out(),
            candidacy: self.eligibility.candidacy,
            answer_ttl: self.pause_after(),
            lease: self.pace,
            worst_delay: self.adaptation.worst(self.last_turn.at),
            lease_reason: self.phase.leading().then(|| P::lease_asked(self).1),
        }
    }

    /// Whether discovery names other processes that may run, and none is connected. An address that refuses
    /// each dial has none: a pod beside it may not have a sidecar yet.
    fn cut_off(&self) -> bool {
        P::LEADS_WITHOUT_VOTES && self.dial_targets.name_others() && !self.members.iter().any(|m| m.linked)
    }

    /// The leader, as this process tells it to others. Of itself it tells what it knows now, since it may
    /// have found out its address after its election.
    pub(crate) fn incumbent(&self) -> Option<Incumbent> {
        let mut leader = self.leader.clone()?;
        if leader.peer.id == self.me.id {
            leader.peer = self.me.clone();
        }
        Some(leader)
    }
}
