//! The clauses left out or turned round, one at a time. The simulator, the model or a test of the rule has to
//! notice. Only builds for tests have this.

use super::clauses::{Clauses, Stated};
use super::{ConfigVersion, Epoch, Flags, Incarnation, Instance, Moment, ProcessId, VoterConfig};
use Mutation::*;
use std::collections::BTreeSet;
use std::time::Duration;

/// Declares the mutations, and the list of all of them.
macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One clause, left out or turned round.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        impl Mutation {
            /// All of them.
            pub const ALL: &[Mutation] = &[$(Mutation::$name,)*];
        }
    };
}

mutations! {
    /// Clause 1: a promise is half a lease.
    PromiseShort,
    /// Clause 1: a leader counts on all of its lease, without the margin.
    NoMargin,
    /// Clause 2: a vote is not durable when its answer leaves.
    VoteNotDurable,
    /// Clause 3: a voter votes twice in one epoch.
    EpochVotedTwice,
    /// Clause 4: a vote does not look at the promise to another process.
    PromiseIgnored,
    /// Clause 5: a later, shorter promise to the same process ends an earlier one.
    PromiseShortened,
    /// Clause 5: a voter promises more than the lease of the configuration that is named.
    LongerLeaseGranted,
    /// Clause 6: a round of a lower epoch is acknowledged.
    StaleRoundAcknowledged,
    /// Clause 7: a voter votes for a request that names an older configuration.
    OlderConfigVotedFor,
    /// Clause 7: a vote does not store the later configuration of its request.
    ConfigOfVoteNotStored,
    /// Clause 7: a round that names another configuration is acknowledged.
    OlderConfigAcknowledged,
    /// Clause 8: a restarted voter votes at once.
    NoGrace,
    /// Clause 8: a restarted voter waits for the shortest lease of a round, and not for the bound.
    GraceOfRound,
    /// Clause 8: a restarted voter votes for itself at once.
    OwnVoteInGrace,
    /// Clause 8: a round ends the restart grace and forgets the rest of it.
    GraceEndedByRound,
    /// Clause 8: a round of a lower epoch ends the restart grace.
    GraceEndedByStaleRound,
    /// Clause 8: crash evidence frees the restart grace with the promise that it is part of.
    GraceFreedByEvidence,
    /// Clause 9: a resignation frees every promise, and ends the restart grace.
    ResignFreesAny,
    /// Clause 9: a resignation of a lower epoch frees a later promise to its sender.
    LateResignFrees,
    /// Clause 10: a voter without a record begins with what its flags or one answer say.
    NoRecovery,
    /// Clause 10: a recovering voter counts itself.
    RecoveryCountsItself,
    /// Clause 11: answers to questions from the first bound after the start count.
    RecoveryEarly,
    /// Clause 11: answers to a former incarnation count.
    RecoveryEchoIgnored,
    /// Clause 12: a recovered voter does not take the epoch that it was told.
    RecoveredEpochForgotten,
    /// Clause 12: a recovered voter takes the lowest configuration that it was told.
    RecoveredConfigLowest,
    /// Clause 13: a candidate's own promise to another does not bind its own vote.
    OwnVoteExempt,
    /// Clause 14: the lease counts from the moment of winning.
    LeaseFromWinning,
    /// Clause 14: the lease counts from the last repetition of the request.
    RepetitionRestartsLease,
    /// Clause 15: a vote for another leaves the voter's own candidacy as it is.
    CandidacySurvivesVote,
    /// Clause 16: a round counts from its acknowledgement.
    LeaseFromAcknowledgement,
    /// Clause 16: a round extends by the lease of the configuration, and not by the one that it asks for.
    RoundCountsLonger,
    /// Clause 16: any acknowledgement extends the lease.
    RenewedByOne,
    /// Clause 16: a round commits, and extends, after its own lease is over.
    LateRoundCommits,
    /// Clause 17: a promise to a process binds another incarnation of it as if it were the same.
    IncarnationIgnored,
    /// Clause 17: a late message of a resigned epoch is followed.
    ResignedEpochFollowed,
    /// Clause 18: configurations are ordered by their counter alone.
    ConfigByCounter,
    /// Clause 19: a new leader changes the configuration without writing its own first.
    NoRestamp,
    /// Clause 19: the next configuration does not wait until the last is committed.
    ChangesOverlap,
    /// Clause 19: the lease goes on over the next configuration, as an earlier one has promised it.
    LeaseOutlivesConfig,
    /// Clause 20: all voters are changed in one step.
    VotersChangedAtOnce,
    /// Clause 21: lease and bound are lowered in one step.
    LeaseLoweredAtOnce,
    /// Clause 21: lease and bound are raised in one step.
    LeaseRaisedAtOnce,
    /// Clause 22: a majority of the list is enough to begin founding.
    FoundedByMajority,
    /// Clause 22: a voter begins founding beside one that has voted.
    FoundedBesideRecord,
    /// Clause 22: a voter begins founding beside one of another list.
    FoundedWithOtherList,
    /// Clause 22: a voter begins founding beside one of another lease.
    FoundedWithOtherLease,
    /// Clause 23: a founding voter votes before the others are founding.
    FoundedAtOnce,
    /// Clause 24: a candidate asks for votes at once.
    NoPreVote,
    /// Clause 24: a candidate keeps its configuration, also where a voter has a later one.
    LaterConfigNotTaken,
    /// Clause 24: a process that may not stand asks for no later configuration.
    ConfigNotAsked,
    /// Clause 25: no rank counts.
    NoRanks,
    /// Clause 25: a candidate that cannot win stays a contender.
    ContenderForGood,
    /// Clause 26: the next configuration does not wait for a majority of its own.
    ChangedWithoutSupport,
    /// Clause 27: a leader ignores that a voter has a higher epoch.
    HigherEpochIgnored,
    /// Clause 28: a leader resigns without asking whether its successor can win.
    TransferUnprepared,
    /// Clause 29: a process that no list names counts as a voter and as a leader.
    StrangersCount,
    /// Clause 29: a configuration counts from any member.
    ConfigOfAny,
    /// Clause 30: a cordoned process is a candidate.
    CordonIgnored,
    /// Clause 30: a process that has resigned for a while is a candidate.
    AsideIgnored,
    /// Clause 30: a process whose application is not healthy is a candidate.
    HealthIgnored,
    /// Clause 30: a member counts for what it was started with.
    PriorityIgnored,
    /// Rule 1 of holds: a hold takes all that the voters have promised.
    HoldTakesLease,
    /// Rule 2 of holds: a hold rests on promises that crash evidence frees.
    HoldOnLoosePromise,
    /// Rule 2 of holds: the configuration changes past a hold.
    ChangesUnderHold,
    /// Rule 3 of holds: a hold is over on the fast clock.
    HoldEndsEarly,
    /// Rule 4 of holds: a resignation does not wait.
    ResignsUnderHold,
    /// Rule 5 of holds: a leadership's end frees the promise that a hold rests on.
    OwnPromiseFreedUnderHold,
    /// The guard beside the clauses: the configuration changes without a majority's agreement.
    NoAgreement,
    /// Adaptive leases: a follower lets its leader be silent for half the lease that it was told.
    SilenceShort,
    /// Spec, rule 4: an election that this process takes part in already begins another of its own.
    NoDedupe,
}

/// The clauses, without one of them or with all. Each asks [`Stated`], so that tests judge the very clauses
/// that a release build has.
#[derive(Clone, Copy, Hash, Debug, Default)]
pub(super) struct LeftOut(pub(super) Option<Mutation>);

impl LeftOut {
    fn has(self, clause: Mutation) -> bool {
        self.0 == Some(clause)
    }
}

impl Clauses for LeftOut {
    fn promise_lasts(self, lease: Duration) -> Duration {
        if self.has(PromiseShort) { lease / 2 } else { Stated.promise_lasts(lease) }
    }

    fn lease_counts(self, lease: Duration) -> Duration {
        if self.has(NoMargin) { lease } else { Stated.lease_counts(lease) }
    }

    fn vote_is_durable(self) -> bool {
        !self.has(VoteNotDurable) && Stated.vote_is_durable()
    }

    fn may_vote_in(self, epoch: Epoch, own: Epoch, repeats: bool) -> bool {
        Stated.may_vote_in(epoch, own, repeats || self.has(EpochVotedTwice))
    }

    fn promise_binds(self, to: Instance, candidate: Instance, myself: Instance) -> bool {
        let free = self.has(PromiseIgnored)
            || self.has(OwnVoteExempt) && candidate == myself
            || self.has(IncarnationIgnored) && to.id == candidate.id;
        !free && Stated.promise_binds(to, candidate, myself)
    }

    fn lease_allowed(self, lease_ms: u32, named: &VoterConfig) -> bool {
        self.has(LongerLeaseGranted) || Stated.lease_allowed(lease_ms, named)
    }

    fn promise_ends(self, end: Moment, earlier: Moment, grace: Moment) -> Moment {
        let earlier = if self.has(PromiseShortened) { Moment::default() } else { earlier };
        let grace = if self.has(GraceEndedByRound) { Moment::default() } else { grace };
        Stated.promise_ends(end, earlier, grace)
    }

    fn is_stale(self, epoch: Epoch, own: Epoch) -> bool {
        !self.has(StaleRoundAcknowledged) && Stated.is_stale(epoch, own)
    }

    fn may_vote_with(self, named: ConfigVersion, own: ConfigVersion) -> bool {
        self.has(OlderConfigVotedFor) || Stated.may_vote_with(named, own)
    }

    fn vote_stores_config(self) -> bool {
        !self.has(ConfigOfVoteNotStored) && Stated.vote_stores_config()
    }

    fn may_acknowledge(self, named: ConfigVersion, own: ConfigVersion) -> bool {
        self.has(OlderConfigAcknowledged) || Stated.may_acknowledge(named, own)
    }

    fn grace_lasts(self, bound: Duration, shortest: Option<Duration>) -> Duration {
        shortest.filter(|_| self.has(GraceOfRound)).unwrap_or_else(|| Stated.grace_lasts(bound, shortest))
    }

    fn grace_binds(self, candidate: Instance, myself: Instance) -> bool {
        let exempt = self.has(OwnVoteInGrace) && candidate == myself;
        !exempt && !self.has(NoGrace) && Stated.grace_binds(candidate, myself)
    }

    fn stale_round_ends_grace(self) -> bool {
        self.has(GraceEndedByStaleRound) || Stated.stale_round_ends_grace()
    }

    fn resignation_frees(self, to: Instance, sender: Option<Instance>, epoch: Epoch, own: Epoch) -> bool {
        let epoch = if self.has(LateResignFrees) { own } else { epoch };
        self.has(ResignFreesAny) || Stated.resignation_frees(to, sender, epoch, own)
    }

    fn resignation_ends_grace(self) -> bool {
        self.has(ResignFreesAny) || Stated.resignation_ends_grace()
    }

    fn known_without_answers(self, flagged: &VoterConfig) -> Option<(Epoch, VoterConfig)> {
        let known = self.has(NoRecovery).then(|| (Epoch::ZERO, flagged.clone()));
        known.or(Stated.known_without_answers(flagged))
    }

    fn recovery_is_told<'a>(
        self,
        config: &VoterConfig,
        told: impl Iterator<Item = &'a str>,
        me: &'a str,
    ) -> bool {
        let itself = Some(me).filter(|_| self.has(RecoveryCountsItself));
        Stated.recovery_is_told(config, told.chain(itself), me)
    }

    fn answer_is_late_enough(self, asked: Moment, late_from: Moment) -> bool {
        self.has(RecoveryEarly) || Stated.answer_is_late_enough(asked, late_from)
    }

    fn answer_is_mine(self, to: Incarnation, own: Incarnation) -> bool {
        self.has(RecoveryEchoIgnored) || Stated.answer_is_mine(to, own)
    }

    fn recovered_epoch(self, told: impl Iterator<Item = Epoch>) -> Epoch {
        if self.has(RecoveredEpochForgotten) { Epoch::ZERO } else { Stated.recovered_epoch(told) }
    }

    fn recovered_config<'a>(self, told: impl Iterator<Item = &'a VoterConfig>) -> Option<&'a VoterConfig> {
        if self.has(RecoveredConfigLowest) {
            told.min_by_key(|config| config.version)
        } else {
            Stated.recovered_config(told)
        }
    }

    fn elected_lease_begins(self, first_request: Moment, now: Moment) -> Moment {
        if self.has(LeaseFromWinning) { now } else { Stated.elected_lease_begins(first_request, now) }
    }

    fn request_begins(self, first_request: Moment, now: Moment) -> Moment {
        if self.has(RepetitionRestartsLease) { now } else { Stated.request_begins(first_request, now) }
    }

    fn vote_ends_candidacy(self) -> bool {
        !self.has(CandidacySurvivesVote) && Stated.vote_ends_candidacy()
    }

    fn round_lease(self, asked_ms: u32, configured_ms: u32) -> u32 {
        if self.has(RoundCountsLonger) { configured_ms } else { Stated.round_lease(asked_ms, configured_ms) }
    }

    fn round_lease_begins(self, sent: Moment, now: Moment) -> Moment {
        if self.has(LeaseFromAcknowledgement) { now } else { Stated.round_lease_begins(sent, now) }
    }

    fn round_extends(self, majority: bool) -> bool {
        self.has(RenewedByOne) || Stated.round_extends(majority)
    }

    fn round_is_over(self, now: Moment, until: Moment) -> bool {
        !self.has(LateRoundCommits) && Stated.round_is_over(now, until)
    }

    fn has_resigned(self, resigned: Option<(ProcessId, Epoch)>, from: ProcessId, epoch: Epoch) -> bool {
        !self.has(ResignedEpochFollowed) && Stated.has_resigned(resigned, from, epoch)
    }

    fn is_later(self, named: ConfigVersion, own: ConfigVersion) -> bool {
        let by_counter = |config: ConfigVersion| ConfigVersion { epoch: Epoch::ZERO, ..config };
        if self.has(ConfigByCounter) {
            by_counter(named) > by_counter(own)
        } else {
            Stated.is_later(named, own)
        }
    }

    fn first_version(self, epoch: Epoch, former: ConfigVersion) -> ConfigVersion {
        if self.has(ConfigByCounter) {
            ConfigVersion { epoch, version: former.version + 1 }
        } else {
            Stated.first_version(epoch, former)
        }
    }

    fn writes_own_config(self) -> bool {
        !self.has(NoRestamp) && Stated.writes_own_config()
    }

    fn lease_goes_on(self, lease_until: Moment, promised: Moment) -> Moment {
        if self.has(LeaseOutlivesConfig) { lease_until } else { Stated.lease_goes_on(lease_until, promised) }
    }

    fn rounds_outlive_config(self) -> bool {
        self.has(ChangesOverlap) || Stated.rounds_outlive_config()
    }

    fn next_voters(
        self,
        one_step: Option<BTreeSet<String>>,
        target: &BTreeSet<String>,
    ) -> Option<BTreeSet<String>> {
        let step = if self.has(VotersChangedAtOnce) { Some(target.clone()) } else { one_step };
        Stated.next_voters(step, target)
    }

    fn next_lease(self, config: &VoterConfig, target_ms: u32) -> Option<(u32, u32)> {
        let at_once = self.has(LeaseLoweredAtOnce) && target_ms < config.lease_ms
            || self.has(LeaseRaisedAtOnce) && target_ms > config.lease_ms;
        if at_once {
            return Some((target_ms, target_ms));
        }
        Stated.next_lease(config, target_ms)
    }

    fn has_same_flags(self, flags: Flags, given: Flags) -> bool {
        let voters = if self.has(FoundedWithOtherList) { given.voters } else { flags.voters };
        let lease_ms = if self.has(FoundedWithOtherLease) { given.lease_ms } else { flags.lease_ms };
        Stated.has_same_flags(Flags { voters, lease_ms }, given)
    }

    fn may_begin_founding<'a>(
        self,
        flagged: &'a VoterConfig,
        agrees: impl Fn(&'a str) -> bool,
        connected_answered: bool,
    ) -> bool {
        let agreeing = flagged.voters.iter().map(String::as_str).filter(|name| agrees(name));
        self.has(FoundedByMajority) && flagged.has_majority(agreeing)
            || Stated.may_begin_founding(flagged, &agrees, connected_answered)
    }

    fn record_forbids_founding(self) -> bool {
        !self.has(FoundedBesideRecord) && Stated.record_forbids_founding()
    }

    fn founded<'a>(
        self,
        by_others: Option<&'a VoterConfig>,
        own: &'a VoterConfig,
    ) -> Option<&'a VoterConfig> {
        Stated.founded(by_others, own).or(Some(own).filter(|_| self.has(FoundedAtOnce)))
    }

    fn pre_votes_come_first(self) -> bool {
        !self.has(NoPreVote) && Stated.pre_votes_come_first()
    }

    fn takes_later_config(self) -> bool {
        !self.has(LaterConfigNotTaken) && Stated.takes_later_config()
    }

    fn asks_for_config(self) -> bool {
        !self.has(ConfigNotAsked) && Stated.asks_for_config()
    }

    fn rank_counts(self) -> bool {
        !self.has(NoRanks) && Stated.rank_counts()
    }

    fn is_contender(self, may_win: bool) -> bool {
        self.has(ContenderForGood) || Stated.is_contender(may_win)
    }

    fn is_supported<'a>(self, next: &VoterConfig, stores: impl Iterator<Item = &'a str>) -> bool {
        self.has(VotersChangedAtOnce) || self.has(ChangedWithoutSupport) || Stated.is_supported(next, stores)
    }

    fn is_agreed<'a>(self, config: &VoterConfig, agreeing: impl Iterator<Item = &'a str>) -> bool {
        self.has(NoAgreement) || Stated.is_agreed(config, agreeing)
    }

    fn heeds_higher_epoch(self) -> bool {
        !self.has(HigherEpochIgnored) && Stated.heeds_higher_epoch()
    }

    fn asks_successor(self) -> bool {
        !self.has(TransferUnprepared) && Stated.asks_successor()
    }

    fn counts_as_voter(self, listed: bool) -> bool {
        self.has(StrangersCount) || Stated.counts_as_voter(listed)
    }

    fn counts_as_leaders(self, of_leader: bool) -> bool {
        self.has(ConfigOfAny) || Stated.counts_as_leaders(of_leader)
    }

    fn is_candidate(self, cordoned: bool, aside: bool, unhealthy: bool) -> bool {
        let (cordoned, aside) = (cordoned && !self.has(CordonIgnored), aside && !self.has(AsideIgnored));
        Stated.is_candidate(cordoned, aside, unhealthy && !self.has(HealthIgnored))
    }

    fn heeds_priority(self) -> bool {
        !self.has(PriorityIgnored) && Stated.heeds_priority()
    }

    fn hold_lasts(self, left: Duration) -> Duration {
        // A leader counts on 99 parts of 100, and a holder may be slow by one in twelve.
        if self.has(HoldTakesLease) { left * 12 / 11 } else { Stated.hold_lasts(left) }
    }

    fn counts_as_firm(self, firm: bool) -> bool {
        self.has(HoldOnLoosePromise) || Stated.counts_as_firm(firm)
    }

    fn evidence_keeps_grace(self) -> bool {
        !self.has(GraceFreedByEvidence) && Stated.evidence_keeps_grace()
    }

    fn changes_under_hold(self, held: bool, firm: bool) -> bool {
        self.has(ChangesUnderHold) || Stated.changes_under_hold(held, firm)
    }

    fn hold_is_over(self, end: Moment, slow: Moment, fast: Moment) -> bool {
        Stated.hold_is_over(end, if self.has(HoldEndsEarly) { fast } else { slow }, fast)
    }

    fn waits_for_holds(self, held: bool) -> bool {
        !self.has(ResignsUnderHold) && Stated.waits_for_holds(held)
    }

    fn own_promise_ends(self, held: bool) -> bool {
        self.has(OwnPromiseFreedUnderHold) || Stated.own_promise_ends(held)
    }

    fn is_known_round(self, epoch: Epoch, own: Epoch) -> bool {
        !self.has(NoDedupe) && Stated.is_known_round(epoch, own)
    }

    fn silence_lasts(self, named: Duration) -> Duration {
        if self.has(SilenceShort) { named / 2 } else { Stated.silence_lasts(named) }
    }
}
