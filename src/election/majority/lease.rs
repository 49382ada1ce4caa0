//! The leader's lease: clauses 1 and 16. A round of heartbeats that a majority acknowledges extends it,
//! counted from its sending.

use super::Majority;
use crate::election::Moment;
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Heard, SHORTEST_INTERVAL};
use crate::election::types::time::{duration, milliseconds};
use crate::election::{ConfigVersion, DRIFT, LeaseReason, Now, Reason, Timer};
use std::time::Duration;

impl Core<Majority> {
    /// From now on this process's requests and rounds ask for this lease, or the configuration's where that
    /// is shorter.
    pub fn ask_for_lease(&mut self, lease: Duration) {
        self.protocol.asks_ms = milliseconds(lease);
    }

    /// The lease that its next round asks for, in whole milliseconds, and why. A short one gains nothing
    /// where the voters that are connected could not elect another leader.
    pub(super) fn lease_asked(&self) -> (Duration, LeaseReason) {
        let longest = duration(self.longest_asked_ms());
        let elects = self.protocol.config().is_some_and(|config| config.has_majority(self.linked_names()));
        match self.adaptation.lease(self.last_turn.at, longest) {
            (lease, reason) if elects || reason == LeaseReason::Fixed => {
                (duration(milliseconds(lease)), reason)
            }
            _ => (longest, LeaseReason::Voters),
        }
    }

    /// The longest lease that it may ask for, in milliseconds.
    fn longest_asked_ms(&self) -> u32 {
        self.protocol.config().map_or(0, |config| config.lease_ms).min(self.protocol.asks_ms)
    }

    /// The lease that its next request for votes asks for, in milliseconds: it outlasts an answer timeout.
    pub(super) fn lease_requested_ms(&self) -> u32 {
        let within = self.answer_timeout() + SHORTEST_INTERVAL * 2;
        let outlasts_ms = milliseconds(within + within / (DRIFT - 1));
        milliseconds(self.lease_asked().0).max(outlasts_ms).min(self.longest_asked_ms())
    }

    /// The names of the members that are connected.
    pub(super) fn linked_names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|m| m.linked).map(|m| m.peer.name.as_str())
    }

    /// What a leader counts on of a lease (clause 1).
    pub(super) fn counted(&self, lease_ms: u32) -> Duration {
        self.clauses.lease_counts(duration(lease_ms))
    }

    /// A leader's heartbeat asks for another lease. Its own promise is the first.
    /// Returns that lease, and the configuration that the heartbeat names.
    pub(super) fn begin_round(&mut self, now: Now) -> Option<(Duration, ConfigVersion)> {
        let (sequence, (lease, _)) = (self.heartbeats.sequence, self.lease_asked());
        let config = self.protocol.config()?;
        let (longest, config) = (self.counted(config.lease_ms), config.version);
        let clauses = self.clauses;
        let over = |sent: Moment| clauses.round_is_over(now.at, sent.plus(longest));
        self.protocol.leading.as_mut()?.begin_round(sequence, now.at, milliseconds(lease), over);
        self.promise(now, self.myself(), lease);
        Some((lease, config))
    }

    /// After a round was sent, this process has acknowledged it already: alone it is a majority.
    pub(super) fn round_sent(&mut self, now: Now) {
        let name = self.me.name.clone();
        self.extend(now, self.heartbeats.sequence, &name, true);
    }

    /// A follower answers a round. An acknowledgement, which says what it stores, counts for the round that
    /// it names, never for an earlier one.
    pub(super) fn on_renewed(&mut self, by: Heard, sequence: u32, stores: Option<ConfigVersion>, firm: bool) {
        let Some(name) = self.voter(by.now, by.from).map(str::to_owned) else { return };
        if !self.phase.leading() || by.epoch != self.epoch {
            return;
        }
        let used = self.protocol.config().map(|config| config.version);
        if stores.is_some() && self.is_listed(by.from) {
            self.extend(by.now, sequence, &name, firm);
        }
        if self.phase.leading() && used != stores {
            // It has missed the configuration.
            self.tell_config_to(by.from);
        }
    }

    /// A round names a configuration. When a majority of it acknowledges the round, the leader's lease
    /// extends to the round's sending plus its lease, and the configuration is committed. Neither happens
    /// after that end (clause 16).
    fn extend(&mut self, now: Now, sequence: u32, acknowledged_by: &str, firm: bool) {
        let clauses = self.clauses;
        let (Some(config), Some(leading)) = (self.protocol.state.founded(), &mut self.protocol.leading)
        else {
            return;
        };
        let firm = clauses.counts_as_firm(firm);
        let Some(round) = leading.acknowledge(sequence, acknowledged_by, firm) else { return };
        round.sent = clauses.round_lease_begins(round.sent, now.at);
        let lease_ms = clauses.round_lease(round.lease_ms, config.lease_ms);
        let (majority, sent) = (round.has_majority(config), round.sent);
        let firm = round.has_firm_majority(config);
        let until = sent.plus(clauses.lease_counts(duration(lease_ms)));
        if clauses.round_is_over(now.at, until) || !clauses.round_extends(majority) {
            return;
        }
        leading.committed = true;
        leading.renewed = true;
        if firm {
            leading.promised_firmly(until);
        }
        if leading.promised(until) {
            self.arm(Timer::Lease, until.since(now.at));
        }
        if !firm {
            // The voters that have acknowledged it may be connected no more.
            self.check_connections(now);
        }
        self.reconfigure(now);
    }

    /// The lease is over, so this process does not lead any more. Every turn checks this before anything
    /// else.
    pub(super) fn check_lease(&mut self, now: Now) {
        if self.protocol.leading.as_ref().is_some_and(|leading| now.at >= leading.lease_until) {
            self.lose_leader(Reason::Lapse);
            self.start_campaign(now);
        }
    }

    /// A leader that has lost its connections to a majority counts on firm promises only. Something on the
    /// path may have refused the dials of the others. Where crash evidence frees promises, they then elect
    /// another leader.
    pub(super) fn check_connections(&mut self, now: Now) {
        if self.protocol.leading.is_none() {
            return;
        }
        let connected = self.linked_names().chain([self.me.name.as_str()]);
        if self.protocol.config().is_none_or(|config| config.has_majority(connected)) {
            return;
        }
        let freely = self.settings.crash_evidence.frees_promises();
        // Before its first round is acknowledged, its own flag stands for those of its voters.
        if let Some(leading) = &mut self.protocol.leading
            && (leading.renewed || freely)
        {
            leading.lease_until = leading.firm_until();
            let left = leading.lease_until.since(now.at);
            self.arm(Timer::Lease, left);
            self.check_lease(now);
        }
    }
}
