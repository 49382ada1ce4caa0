//! What a leader keeps of its term: its lease, and the rounds of heartbeats that can extend it.

use crate::election::clauses::Clauses;
use crate::election::{Moment, ProcessId, VoterConfig};
use std::collections::{BTreeSet, VecDeque};

/// The most rounds that are kept. A lease has no more, unless it is hundreds of heartbeats long.
const ROUNDS_MAX: usize = 256;

/// A leader's term.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct LeaderState {
    /// Until when it leads, unless a majority extends that.
    pub(super) lease_until: Moment,
    /// Until when a majority has promised firmly to vote for no other process.
    pub(super) firm_until: Moment,
    /// Until when a majority of the present configuration has promised to vote for no other process. The
    /// lease may be longer, by a promise of the one before.
    promised_until: Moment,
    /// Until when holds rested on it when the present configuration began, and whether a firm majority has
    /// acknowledged a round of the present one that lasts as long.
    firm_before: Moment,
    pub(super) firm: bool,
    /// Whether a majority has acknowledged a round since its election.
    pub(super) renewed: bool,
    /// The rounds of the present configuration that can still extend the lease, newest last: at most
    /// [`ROUNDS_MAX`].
    rounds: VecDeque<Round>,
    /// Whether a majority is known to store the present configuration (clause 19).
    pub(super) committed: bool,
    /// The members that have acknowledged a round of the present configuration (clause 26).
    pub(super) stores: BTreeSet<String>,
    /// When it last began a pre-vote for a higher epoch (clause 27).
    pub(super) campaigned_at: Option<Moment>,
    /// The process that it has asked to take over, and that has not answered (clause 28).
    pub(super) proposed: Option<ProcessId>,
}

/// One round of heartbeats.
#[derive(Clone, Hash, Debug)]
pub(super) struct Round {
    sequence: u32,
    pub(super) sent: Moment,
    pub(super) lease_ms: u32,
    acknowledged: BTreeSet<String>,
    /// Those of them whose promise is firm.
    firm: BTreeSet<String>,
}

impl Round {
    /// Whether a majority of this configuration, which the round names, has acknowledged it.
    pub(super) fn has_majority(&self, config: &VoterConfig) -> bool {
        config.has_majority(self.acknowledged.iter().map(String::as_str))
    }

    /// Whether a majority of it has promised firmly.
    pub(super) fn has_firm_majority(&self, config: &VoterConfig) -> bool {
        config.has_majority(self.firm.iter().map(String::as_str))
    }
}

impl LeaderState {
    pub(super) fn new(lease_until: Moment) -> LeaderState {
        LeaderState { lease_until, promised_until: lease_until, ..LeaderState::default() }
    }

    /// Until when holds may rest on its lease.
    pub(super) fn firm_until(&self) -> Moment {
        self.firm_until.min(self.lease_until)
    }

    /// A majority of the present configuration has acknowledged a round that lasts until then. Says whether
    /// that extends the lease.
    pub(super) fn promised(&mut self, until: Moment) -> bool {
        self.promised_until = until.max(self.promised_until);
        let extends = until > self.lease_until;
        self.lease_until = until.max(self.lease_until);
        extends
    }

    /// A firm majority has acknowledged a round that lasts until then.
    pub(super) fn promised_firmly(&mut self, until: Moment) {
        self.firm |= until >= self.firm_before;
        self.firm_until = until.max(self.firm_until);
    }

    /// Begins a round. Rounds that were sent when `over` says so can extend nothing any more.
    pub(super) fn begin_round(
        &mut self,
        sequence: u32,
        sent: Moment,
        lease_ms: u32,
        over: impl Fn(Moment) -> bool,
    ) {
        while self.rounds.front().is_some_and(|round| over(round.sent)) || self.rounds.len() >= ROUNDS_MAX {
            self.rounds.pop_front();
        }
        let (acknowledged, firm) = (BTreeSet::new(), BTreeSet::new());
        self.rounds.push_back(Round { sequence, sent, lease_ms, acknowledged, firm });
    }

    /// A member acknowledges a round. The acknowledgement counts for this round, never for an earlier one
    /// (clause 16).
    pub(super) fn acknowledge(&mut self, sequence: u32, name: &str, firm: bool) -> Option<&mut Round> {
        let round = self.rounds.iter_mut().find(|round| round.sequence == sequence)?;
        round.acknowledged.insert(name.to_owned());
        if firm {
            round.firm.insert(name.to_owned());
        }
        if !self.stores.contains(name) {
            self.stores.insert(name.to_owned());
        }
        Some(round)
    }

    /// There is another configuration: no round of the last one counts for it.
    pub(super) fn begin_config(&mut self, clauses: impl Clauses) {
        self.committed = false;
        // The majorities of the one before need not meet those of the next.
        self.lease_until = clauses.lease_goes_on(self.lease_until, self.promised_until);
        self.promised_until = Moment::default();
        self.stores.clear();
        if !self.firm {
            self.firm_until = Moment::default();
        }
        (self.firm_before, self.firm) = (self.firm_until, false);
        if !clauses.rounds_outlive_config() {
            self.rounds.clear();
        }
    }
}
