//! What a voter shows of its vote.

use super::Majority;
use super::recovery_answers::Recovery;
use crate::election::core::{Core, Phase, Protocol};
use crate::election::{Moment, NotReady, RecoveredState, Voting};

impl Core<Majority> {
    /// Until when its answer about the leader holds. For the leader that is the end of its lease, for a
    /// follower the moment at which it gives up a silent leader.
    pub(super) fn valid_until(&self) -> Option<Moment> {
        match self.phase {
            Phase::Leading(_) => self.protocol.leading.as_ref().map(|leading| leading.lease_until),
            // No voter promises more than the lease, whatever this process was started with.
            Phase::Following => {
                let silence = self.silence_of_leader();
                let lease = Majority::longest_lease(self).map_or(silence, |longest| longest.min(silence));
                Some(self.protocol.leader_heard.plus(lease))
            }
            _ => None,
        }
    }

    /// What it shows of its vote.
    pub(super) fn voting(&self) -> Voting {
        let m = &self.protocol;
        let others = m.flags.iter().map(|(id, flags)| (*id, flags.lease_ms));
        let leases_ms = others.chain([(self.me.id, m.given.lease_ms)]).collect();
        Voting { config: m.config().cloned(), not_ready: self.not_ready(), leases_ms }
    }

    /// What keeps it from its vote.
    pub(super) fn not_ready(&self) -> Option<NotReady> {
        let m = &self.protocol;
        match (&m.state, m.grace_until) {
            (RecoveredState::Founded(_), until) => until.map(|until| {
                let until = self.last_turn.at.plus(until.since(self.last_turn.slow));
                NotReady::Grace { until }
            }),
            (RecoveredState::Founding(own), _) => {
                let recovery = m.recovery.as_ref();
                let missing = recovery.map(|r| r.not_founding(&self.me.name, own).cloned().collect());
                Some(NotReady::Founding { missing: missing.unwrap_or_default() })
            }
            (RecoveredState::Empty, _) => {
                let missing = |r: &Recovery| r.missing(&self.me.name, &m.flagged(), m.given);
                let (missing, differ) = m.recovery.as_ref().map(missing).unwrap_or_default();
                let records = m.recovery.as_ref().and_then(|r| r.records(&self.me.name));
                Some(NotReady::Recovery { missing, differ, records })
            }
        }
    }
}
