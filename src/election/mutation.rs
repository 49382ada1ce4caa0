//! The clauses of the rules that tests leave out on purpose, to see that the simulator or a test of the rule notices.
//!
//! A build that is not for tests has none of them: [`Machine::mutant`](super::Machine) is then always false.

/// Declares the clauses, and for tests the list of all of them.
macro_rules! clauses {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One clause, left out or turned round.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[cfg_attr(not(test), allow(dead_code))]
        pub(crate) enum Mutation {
            $($(#[$doc])* $name,)*
        }

        #[cfg(test)]
        impl Mutation {
            /// All of them.
            pub(crate) const ALL: &[Mutation] = &[$(Mutation::$name,)*];
        }
    };
}

clauses! {
    /// Rule 2: it claims without sounding.
    NoSounding,
    /// Rule 3: the lease of a claim counts from its last repetition.
    RepeatedClaimRestartsLease,
    /// Rule 3: the lease of a claim counts from the moment of winning.
    LeaseFromWinning,
    /// Rule 3: a contestant's own grant asks nobody, its own promise neither.
    OwnGrantExempt,
    /// Rule 3: of two claims of one epoch none gives way.
    NoneGivesWay,
    /// Rule 3: a claimant that gives up says nothing.
    NoWithdrawal,
    /// Rule 3: a withdrawal that overtakes its claim is forgotten.
    WithdrawalForgotten,
    /// Rule 4: a grant does not ask what was promised to another.
    PromiseIgnored,
    /// Rule 4: a promise is half a lease.
    PromiseShort,
    /// Rule 4: an epoch is granted again, to another.
    EpochGrantedTwice,
    /// Rule 4: the epoch of a grant is not made durable.
    GrantNotDurable,
    /// Rule 4: a grant leaves the voter's own claim of a lower epoch as it is.
    OwnClaimSurvivesGrant,
    /// Rule 4: a farewell frees what was promised to anybody.
    FarewellFreesAny,
    /// Rule 4: a withdrawal frees what was promised for any epoch, also for a later one.
    WithdrawalFreesAny,
    /// Rule 4: nobody yields after a failed sounding or claim.
    NoYielding,
    /// Rule 4: the successor named in a farewell is outranked as any other.
    SuccessorNotFavoured,
    /// Rule 4: another life of a process has the same rights as the one that it was granted to.
    IncarnationIgnored,
    /// Rules 2 and 4: who refuses takes over the epoch all the same.
    RefusalRaisesEpoch,
    /// Rule 5: the leader counts on all of its lease, without the drift.
    NoDrift,
    /// Rule 5: a renewal counts from its acknowledgement.
    LeaseFromAcknowledgement,
    /// Rule 5: the lease is renewed by any acknowledgement, not by a majority.
    RenewedByOne,
    /// Rule 5: a heartbeat or announcement of a lower epoch is followed.
    StaleLeaderFollowed,
    /// Rule 6: a lease that is over can be renewed.
    LapsedLeaseRenewed,
    /// Rule 7: a restarted voter grants at once.
    NoCaution,
    /// Rule 7: a conditional grant counts as a grant.
    ConditionalCounts,
    /// Rule 7: with conditional grants, everybody of the highest view is enough.
    EverybodyOfOneView,
    /// Rule 2: who agrees to a sounding keeps no lease that is longer than those it has promised.
    LeaseOfSoundingForgotten,
    /// Rule 8: who recovers counts itself.
    RecoveryCountsItself,
    /// Rule 8: answers from before the lease after its start count.
    RecoveryEarly,
    /// Rule 8: a voter without a record begins at once with what its flags say.
    NoRecovery,
    /// Rule 8: answers to a former life count.
    RecoveryEchoIgnored,
    /// Rule 9: views are ordered by their version alone.
    ViewsByVersion,
    /// Rule 9: a majority is counted in the claimant's own view.
    CountedInOwnView,
    /// Rule 9: a leader changes the view without committing its own first.
    NoRestamp,
    /// Rule 9: the next change does not wait for the last.
    ChangesOverlap,
    /// Rule 9: all voters are changed at once, and committed by a majority of the new view.
    ChangedAtOnce,
    /// Rule 9: the view is changed without asking for a majority's agreement.
    NoAgreement,
    /// Rule 2: a contestant keeps its view, also where one who agrees has a later one.
    LaterViewNotTaken,
    /// Rule 2: a sounding counts however long it took.
    OldSoundingCounts,
    /// Rule 4: a voter goes by its own view, also where the contestant has a later one.
    OwnViewJudges,
    /// Rule 4: a voter that grants keeps its own view, also where the claimant has a later one.
    ViewOfGrantForgotten,
    /// Rule 7: a cautious voter goes by the contestant's view alone, where that is the later one.
    CautiousByAnyView,
    /// Rule 9: an acknowledgement commits a view however old its round is.
    CommittedByLateRound,
    /// Rule 9: a voter is removed also where too few of those that stay can renew the lease.
    ChangedWithoutSupport,
    /// Spec, rule 4: an election that this process takes part in already begins another of its own.
    NoDedupe,
    /// Rule 11: the incumbent resigns without asking whether the successor can win.
    HandoverUnprepared,
}
