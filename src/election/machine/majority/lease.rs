//! The leader's lease: clauses 1 and 16. A round of heartbeats that a majority acknowledges extends it, counted from its
//! sending.

use super::{Heard, Machine, Moment};
use crate::election::machine::Mutation;
use crate::election::voters::{duration, milliseconds};
use crate::election::{Body, ConfigVersion, Now, Reason, Timer, counted};
use std::time::Duration;

impl Machine {
    /// From now on this process's requests and rounds ask for this lease, or the configuration's where that is shorter.
    pub fn ask_for_lease(&mut self, lease: Duration) {
        self.majority.asks_ms = milliseconds(lease);
    }

    /// The lease that its next request or round asks for, in milliseconds.
    pub(in crate::election::machine) fn lease_asked_ms(&self) -> u32 {
        self.majority.config().map_or(0, |config| config.lease_ms).min(self.majority.asks_ms)
    }

    /// What a leader counts on of a lease (clause 1).
    pub(super) fn counted(&self, lease_ms: u32) -> Duration {
        let lease = duration(lease_ms);
        if self.mutant(Mutation::NoMargin) { lease } else { counted(lease) }
    }

    /// A leader's heartbeat asks for another lease. Its own promise is the first.
    pub(in crate::election::machine) fn begin_round(&mut self, now: Now) -> Option<Body> {
        let (sequence, lease_ms) = (self.sequence, self.lease_asked_ms());
        let config = self.majority.config()?;
        let (longest, config) = (self.counted(config.lease_ms), config.version);
        let oldest =
            Some(now.at.0.saturating_sub(longest)).filter(|_| !self.mutant(Mutation::LateRoundCommits));
        self.majority.term.as_mut()?.begin_round(sequence, now.at, lease_ms, oldest.map(Moment));
        self.promise(now, self.myself(), duration(lease_ms));
        Some(Body::Renew { sequence, membership: self.members.version, lease_ms, config })
    }

    /// After a round was sent, this process has acknowledged it already: alone it is a majority.
    pub(in crate::election::machine) fn round_sent(&mut self, now: Now) {
        let name = self.me.name.clone();
        self.extend(now, self.sequence, &name);
    }

    /// A follower answers a round. An acknowledgement, which says what it stores, counts for the round that it names, never
    /// for an earlier one.
    pub(super) fn on_renewed(&mut self, by: Heard, sequence: u32, stores: Option<ConfigVersion>) {
        let Some(name) = self.voter(by.now, by.from).map(str::to_owned) else { return };
        if !self.phase.leading() || by.epoch != self.epoch {
            return;
        }
        let used = self.majority.config().map(|config| config.version);
        if stores.is_some() {
            self.extend(by.now, sequence, &name);
        }
        if self.phase.leading() && used != stores {
            // It has missed the configuration.
            self.tell_config_to(by.from);
        }
    }

    /// A round that a majority of the configuration it names acknowledges extends the lease to its sending plus its lease,
    /// and commits that configuration, but neither later than that (clause 16).
    fn extend(&mut self, now: Now, sequence: u32, acknowledged_by: &str) {
        let without = self.without();
        let (Some(config), Some(term)) = (self.majority.state.founded(), &mut self.majority.term) else {
            return;
        };
        let Some(round) = term.acknowledge(sequence, acknowledged_by) else { return };
        round.sent = if without(Mutation::LeaseFromAcknowledgement) { now.at } else { round.sent };
        let (majority, sent, lease_ms) = (round.has_majority(config), round.sent, round.lease_ms);
        let until = sent.plus(self.counted(lease_ms));
        let late = now.at >= until && !without(Mutation::LateRoundCommits);
        let Some(term) = &mut self.majority.term else { return };
        if late || !majority && !without(Mutation::RenewedByOne) {
            return;
        }
        term.committed.get_or_insert(now.slow);
        if until > term.lease_until {
            term.lease_until = until;
            self.arm(Timer::Lease, until.since(now.at));
        }
        self.reconfigure(now);
    }

    /// The lease is over, so it does not lead any more. Checked before anything else in every turn.
    pub(in crate::election::machine) fn check_lease(&mut self, now: Now) {
        let over = self.majority.term.as_ref().is_some_and(|term| now.at >= term.lease_until);
        if over && self.phase.leading() {
            self.lapse(now);
        }
    }

    pub(in crate::election::machine) fn lapse(&mut self, now: Now) {
        self.lose_leader(Reason::Lapse);
        self.contest(now);
    }
}
