//! What may be told of a process, and what it keeps over a restart.

use super::{Machine, Phase};
use crate::election::recovery::Recovery;
use crate::election::{
    Incumbent, MemberView, Moment, NotReady, Record, RecoveredState, Role, State, View, VoteRecord, Voting,
};

impl Machine {
    /// What may be told of it.
    pub fn view(&self) -> View {
        let own =
            MemberView { peer: self.me.clone(), state: State::Alive, last_heard: None, round_trip: None };
        let others = self.members.iter().map(|m| MemberView {
            peer: m.peer.clone(),
            state: m.state,
            // Only along the star are messages to be expected; elsewhere an age would look like a failure.
            last_heard: m.last_heard.filter(|_| self.phase.leading() || self.leads(m.peer.id)),
            round_trip: m.round_trip.filter(|_| self.phase.leading()),
        });
        let mut members: Vec<MemberView> = std::iter::once(own).chain(others).collect();
        members.sort_by_key(|m| std::cmp::Reverse(m.peer.rank()));
        View {
            cluster: self.cluster.clone(),
            me: self.me.clone(),
            role: match self.phase {
                Phase::Asking(_) => Role::Asking,
                Phase::Waiting(_) | Phase::Electing | Phase::Deferring => Role::Contesting,
                Phase::Leading(_) => Role::Leading,
                Phase::Following => Role::Following,
                Phase::Leaving => Role::Leaving,
            },
            epoch: self.epoch,
            leader: self.incumbent(),
            members,
            valid_until: self.valid_until(),
            voting: self.voting(),
            answer_ttl: self.settings.failure_timeout,
        }
    }

    /// The leader, as it is told to others: of itself, what is known now, since its address may have been found out since
    /// its election.
    pub(super) fn incumbent(&self) -> Option<Incumbent> {
        let mut leader = self.leader.clone()?;
        if leader.peer.id == self.me.id {
            leader.peer = self.me.clone();
        }
        Some(leader)
    }

    /// What is to be durable now.
    pub fn record(&self) -> Record {
        Record { cluster: self.cluster.clone(), id: self.me.id, epoch: self.epoch, vote: self.vote_record() }
    }

    /// Until when what it says about the leader holds: as leader its lease, as follower how long that may be silent.
    pub(super) fn valid_until(&self) -> Option<Moment> {
        match self.phase {
            Phase::Leading(_) => self.majority.term.as_ref().map(|term| term.lease_until),
            Phase::Following if self.majority.votes() => {
                Some(self.majority.leader_heard.plus(self.silence_of_leader()))
            }
            _ => None,
        }
    }

    /// What `majority` adds to the view.
    fn voting(&self) -> Option<Voting> {
        let m = &self.majority;
        let missing = || {
            let missing = |r: &Recovery| r.missing(&self.me.name, &m.flagged(), m.given);
            m.recovery.as_ref().map(missing).unwrap_or_default()
        };
        let not_ready = match (&m.state, m.grace_until) {
            (RecoveredState::Founded(_), until) => until.map(|until| {
                let until = self.last_turn.plus(until.since(self.last_slow));
                NotReady::Grace { until }
            }),
            (RecoveredState::Founding(_), _) => Some(NotReady::Founding { missing: missing().0 }),
            (RecoveredState::Empty, _) => {
                let (missing, differ) = missing();
                Some(NotReady::Recovery { missing, differ })
            }
        };
        let others = m.flags.iter().map(|(id, flags)| (*id, flags.lease_ms));
        let leases_ms = others.chain([(self.me.id, m.given.lease_ms)]).collect();
        m.votes().then(|| Voting { config: m.config().cloned(), not_ready, leases_ms })
    }

    /// The vote's part of the durable record.
    fn vote_record(&self) -> Option<VoteRecord> {
        let (founding, config) = match &self.majority.state {
            RecoveredState::Empty => return None,
            RecoveredState::Founding(config) => (true, config.clone()),
            RecoveredState::Founded(config) => (false, config.clone()),
        };
        Some(VoteRecord { name: self.me.name.clone(), founding, config })
    }
}
