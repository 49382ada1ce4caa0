//! The clauses of the rules that tests leave out on purpose, to see that the simulator or a test of the rule notices.
//!
//! A build that is not for tests has none of them: [`Machine::mutant`](super::Machine) is then always false. The feature
//! `mutations` is for tests outside the crate.

/// Declares the clauses, and for tests the list of all of them.
macro_rules! clauses {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One clause, left out or turned round.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[cfg_attr(not(any(test, feature = "mutations")), allow(dead_code))]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        #[cfg(any(test, feature = "mutations"))]
        impl Mutation {
            /// All of them.
            pub const ALL: &[Mutation] = &[$(Mutation::$name,)*];
        }
    };
}

clauses! {
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
    /// Clause 8: a restarted voter votes for itself at once.
    OwnVoteInGrace,
    /// Clause 8: a round ends the restart grace and forgets the rest of it.
    GraceEndedByRound,
    /// Clause 8: a round of a lower epoch ends the restart grace.
    GraceEndedByStaleRound,
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
    /// Clause 20: all voters are changed in one step.
    VotersChangedAtOnce,
    /// Clause 21: lease and bound are lowered in one step.
    LeaseLoweredAtOnce,
    /// Clause 21: lease and bound are raised in one step.
    LeaseRaisedAtOnce,
    /// Clause 21: a lower bound does not wait until longer leases are over.
    NoLowerWait,
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
    /// The guard beside the clauses: the configuration changes without a majority's agreement.
    NoAgreement,
    /// Spec, rule 4: an election that this process takes part in already begins another of its own.
    NoDedupe,
}
