//! The clauses that decide, each by its name and with the number that docs/safety/protocol.md has.
//!
//! The rules ask [`Clauses`], so that they read as the clauses do. A build for tests can leave out one clause
//! at a time.

use super::{ConfigVersion, Epoch, Flags, Incarnation, Instance, Moment, ProcessId, VoterConfig, counted};
use std::collections::BTreeSet;
use std::time::Duration;

#[cfg(any(test, feature = "mutations"))]
pub(super) type Rules = super::mutations::LeftOut;
#[cfg(not(any(test, feature = "mutations")))]
pub(super) type Rules = Stated;

/// All clauses as they are stated.
#[derive(Clone, Copy, Hash, Debug, Default)]
pub(super) struct Stated;

impl Clauses for Stated {}

/// Each method is a clause, or one question that a clause answers.
pub(super) trait Clauses: Copy {
    /// Clause 1: for how long a voter promises when a request or round asks for this lease.
    fn promise_lasts(self, lease: Duration) -> Duration {
        lease
    }

    /// Clause 1: how much of a lease a leader counts on. Clocks may differ by the rest.
    fn lease_counts(self, lease: Duration) -> Duration {
        counted(lease)
    }

    /// Clause 2: whether a vote is durable before its answer leaves.
    fn vote_is_durable(self) -> bool {
        true
    }

    /// Clause 3: whether a voter of the epoch `own` may vote in `epoch`. It repeats a vote that it has given
    /// there.
    fn may_vote_in(self, epoch: Epoch, own: Epoch, repeats: bool) -> bool {
        epoch > own || epoch == own && repeats
    }

    /// Clauses 4, 13 and 17: whether a promise `to` an instance keeps this process from voting for another,
    /// itself included.
    fn promise_binds(self, to: Instance, candidate: Instance, _myself: Instance) -> bool {
        to != candidate
    }

    /// Clause 5: whether a request that names this configuration may ask for this lease.
    fn lease_allowed(self, lease_ms: u32, named: &VoterConfig) -> bool {
        lease_ms <= named.lease_ms
    }

    /// Clauses 5 and 8: when a promise ends that would end at `end`. It ends neither an earlier promise to
    /// the same instance early, nor the restart grace.
    fn promise_ends(self, end: Moment, earlier: Moment, grace: Moment) -> Moment {
        end.max(earlier).max(grace)
    }

    /// Clause 6: whether a leader's message of this epoch comes too late for a process of the epoch `own`.
    fn is_stale(self, epoch: Epoch, own: Epoch) -> bool {
        epoch < own
    }

    /// Clause 7: whether a voter that stores `own` votes for a request that names this configuration.
    fn may_vote_with(self, named: ConfigVersion, own: ConfigVersion) -> bool {
        named >= own
    }

    /// Clause 7: whether a vote stores the configuration of its request.
    fn vote_stores_config(self) -> bool {
        true
    }

    /// Clause 7: whether a voter that stores `own` acknowledges a round that names this configuration.
    fn may_acknowledge(self, named: ConfigVersion, own: ConfigVersion) -> bool {
        named == own
    }

    /// Clause 8: for how long a restarted voter votes for no process. Rounds ask for `_shortest` at least.
    fn grace_lasts(self, bound: Duration, _shortest: Option<Duration>) -> Duration {
        bound
    }

    /// Clause 8: whether the restart grace keeps this process from voting for a candidate, itself included.
    fn grace_binds(self, _candidate: Instance, _myself: Instance) -> bool {
        true
    }

    /// Clause 8: whether a round ends the restart grace although this voter does not acknowledge it.
    fn stale_round_ends_grace(self) -> bool {
        false
    }

    /// Clause 8: whether crash evidence that frees a promise leaves the restart grace that is part of it.
    fn evidence_keeps_grace(self) -> bool {
        true
    }

    /// Clause 9: whether a resignation in this epoch frees the promise `to` an instance.
    fn resignation_frees(self, to: Instance, sender: Option<Instance>, epoch: Epoch, own: Epoch) -> bool {
        epoch >= own && sender == Some(to)
    }

    /// Clause 9: whether a resignation ends the restart grace.
    fn resignation_ends_grace(self) -> bool {
        false
    }

    /// Clause 10: what a voter without a record knows before any answer.
    fn known_without_answers(self, _flagged: &VoterConfig) -> Option<(Epoch, VoterConfig)> {
        None
    }

    /// Clause 10: whether those that have answered are a majority. The asking voter `_me` is none of them.
    fn recovery_is_told<'a>(
        self,
        config: &VoterConfig,
        told: impl Iterator<Item = &'a str>,
        _me: &'a str,
    ) -> bool {
        config.has_majority(told)
    }

    /// Clause 11: whether an answer to a question of this moment counts. `late_from` is one bound after the
    /// start.
    fn answer_is_late_enough(self, asked: Moment, late_from: Moment) -> bool {
        asked >= late_from
    }

    /// Clause 11: whether an answer to this incarnation is one to `own`.
    fn answer_is_mine(self, to: Incarnation, own: Incarnation) -> bool {
        to == own
    }

    /// Clause 12: the epoch of a recovered voter, from those that it was told.
    fn recovered_epoch(self, told: impl Iterator<Item = Epoch>) -> Epoch {
        told.max().unwrap_or_default()
    }

    /// Clause 12: the configuration of a recovered voter, from those that it was told.
    fn recovered_config<'a>(self, told: impl Iterator<Item = &'a VoterConfig>) -> Option<&'a VoterConfig> {
        told.max_by_key(|config| config.version)
    }

    /// Clause 14: from when the lease of an elected leader counts.
    fn elected_lease_begins(self, first_request: Moment, _now: Moment) -> Moment {
        first_request
    }

    /// Clause 14: the first sending of a request, which is repeated now.
    fn request_begins(self, first_request: Moment, _now: Moment) -> Moment {
        first_request
    }

    /// Clause 15: whether a vote for another ends the voter's own candidacy.
    fn vote_ends_candidacy(self) -> bool {
        true
    }

    /// Clause 16: the lease by which a round extends the leader's, of the one that it asks for and the
    /// configuration's.
    fn round_lease(self, asked_ms: u32, _configured_ms: u32) -> u32 {
        asked_ms
    }

    /// Clause 16: from when the lease of an acknowledged round counts.
    fn round_lease_begins(self, sent: Moment, _now: Moment) -> Moment {
        sent
    }

    /// Clause 16: whether a round extends the lease: a majority has to have acknowledged it.
    fn round_extends(self, majority: bool) -> bool {
        majority
    }

    /// Clause 16: whether a round is too late to extend or commit anything: its lease has ended.
    fn round_is_over(self, now: Moment, until: Moment) -> bool {
        now >= until
    }

    /// Clause 17: whether the sender has resigned from this epoch.
    fn has_resigned(self, resigned: Option<(ProcessId, Epoch)>, from: ProcessId, epoch: Epoch) -> bool {
        resigned == Some((from, epoch))
    }

    /// Clause 18: whether a configuration is later than `own`.
    fn is_later(self, named: ConfigVersion, own: ConfigVersion) -> bool {
        named > own
    }

    /// Clause 18: the version of the first configuration of this epoch's leader.
    fn first_version(self, epoch: Epoch, _former: ConfigVersion) -> ConfigVersion {
        ConfigVersion { epoch, version: 0 }
    }

    /// Clause 19: whether a new leader changes nothing before a configuration of its own is committed.
    fn writes_own_config(self) -> bool {
        true
    }

    /// Clause 19: whether rounds of the last configuration count for the next.
    fn rounds_outlive_config(self) -> bool {
        false
    }

    /// Clause 19: until when a leader leads that writes the next configuration. A majority of the present one
    /// has promised until `promised`; an earlier one may have promised more.
    fn lease_goes_on(self, lease_until: Moment, promised: Moment) -> Moment {
        lease_until.min(promised)
    }

    /// Clause 20: the voters after one step towards the target.
    fn next_voters(
        self,
        one_step: Option<BTreeSet<String>>,
        _target: &BTreeSet<String>,
    ) -> Option<BTreeSet<String>> {
        one_step
    }

    /// Clause 21: the next lease and bound on the way to a lease, in milliseconds.
    fn next_lease(self, config: &VoterConfig, target_ms: u32) -> Option<(u32, u32)> {
        config.next_lease(target_ms)
    }

    /// Clause 22: whether a process was started with these same flags.
    fn has_same_flags(self, flags: Flags, given: Flags) -> bool {
        flags == given
    }

    /// Clause 22: whether the processes of this list that agree are enough to begin founding.
    fn may_begin_founding<'a>(
        self,
        flagged: &'a VoterConfig,
        agrees: impl Fn(&'a str) -> bool,
        connected_answered: bool,
    ) -> bool {
        flagged.voters.iter().all(|name| agrees(name)) && connected_answered
    }

    /// Clause 22: whether a process that has voted forbids founding beside it.
    fn record_forbids_founding(self) -> bool {
        true
    }

    /// Clause 23: the configuration of a process that is founding its own, from what the others have said.
    fn founded<'a>(
        self,
        by_others: Option<&'a VoterConfig>,
        _own: &'a VoterConfig,
    ) -> Option<&'a VoterConfig> {
        by_others
    }

    /// Clause 24: whether a candidate asks for pre-votes before it asks for votes.
    fn pre_votes_come_first(self) -> bool {
        true
    }

    /// Clause 24: whether a candidate takes the later configuration of a voter.
    fn takes_later_config(self) -> bool {
        true
    }

    /// Clause 24: whether a process that may be no candidate asks the voters for a later configuration.
    fn asks_for_config(self) -> bool {
        true
    }

    /// Clause 25: whether a better contender is in the way of this process, or of another.
    fn rank_counts(self) -> bool {
        true
    }

    /// Clause 25: whether a candidate that can or cannot win is a contender.
    fn is_contender(self, may_win: bool) -> bool {
        may_win
    }

    /// Clause 26: whether a majority of the next configuration stores the present one.
    fn is_supported<'a>(self, next: &VoterConfig, stores: impl Iterator<Item = &'a str>) -> bool {
        next.has_majority(stores)
    }

    /// Beside the clauses: whether a majority was started with what a leader changes the configuration to.
    fn is_agreed<'a>(self, config: &VoterConfig, agreeing: impl Iterator<Item = &'a str>) -> bool {
        config.has_majority(agreeing)
    }

    /// Clause 27: whether a leader begins a pre-vote for an epoch above that of a voter.
    fn heeds_higher_epoch(self) -> bool {
        true
    }

    /// Clause 28: whether a leader that goes on asks first whether its successor can win.
    fn asks_successor(self) -> bool {
        true
    }

    /// Clause 29: whether a process counts as a voter, or as a leader. `listed`: this process's configuration
    /// or its `--voters` name it, or it is one that was asked.
    fn counts_as_voter(self, listed: bool) -> bool {
        listed
    }

    /// Clause 29: whether a configuration counts. `of_leader`: it comes from the leader that this process
    /// follows, which has written it.
    fn counts_as_leaders(self, of_leader: bool) -> bool {
        of_leader
    }

    /// Clause 30: whether a process is a candidate that is cordoned, has resigned for a while (`aside`), or
    /// has an application that is not healthy.
    fn is_candidate(self, cordoned: bool, aside: bool, unhealthy: bool) -> bool {
        !cordoned && !aside && !unhealthy
    }

    /// Clause 30: whether a member has the priority that its messages name.
    fn heeds_priority(self) -> bool {
        true
    }

    /// Rule 1 of holds: how much of what is left of a firm lease a hold may take. Its holder's clocks may be
    /// slewed.
    fn hold_lasts(self, left: Duration) -> Duration {
        left * 9 / 10
    }

    /// Rule 2 of holds: whether a promise counts for them. `firm`: its voter frees it for no crash evidence.
    fn counts_as_firm(self, firm: bool) -> bool {
        firm
    }

    /// Rule 2 of holds: whether the configuration may change. `held`: a hold is out. `firm`: each is of this
    /// term, and a firm majority has acknowledged the present one for as long as the holds before it rest on.
    fn changes_under_hold(self, held: bool, firm: bool) -> bool {
        !held || firm
    }

    /// Rule 3 of holds: whether a hold that ends at `end` on the slow clock is over.
    fn hold_is_over(self, end: Moment, slow: Moment, _fast: Moment) -> bool {
        slow >= end
    }

    /// Rule 4 of holds: whether a resignation waits. `held`: a hold is out.
    fn waits_for_holds(self, held: bool) -> bool {
        held
    }

    /// Rule 5 of holds: whether the end of a leadership frees this process's promise to itself.
    fn own_promise_ends(self, held: bool) -> bool {
        !held
    }

    /// Rule 4 of `classic`: whether a process of the epoch `own` takes part in this round already.
    fn is_known_round(self, epoch: Epoch, own: Epoch) -> bool {
        epoch <= own
    }

    /// Adaptive leases: how long a follower lets its leader be silent that has named this lease.
    fn silence_lasts(self, named: Duration) -> Duration {
        named
    }
}
