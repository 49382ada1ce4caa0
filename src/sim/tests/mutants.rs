//! Every clause of the rules is left out once, and somebody has to notice: the simulator, within so many seeds, or a test of that
//! rule.
//!
//! | who notices | which clauses |
//! | --- | --- |
//! | the simulator (`Seeds`) | those where something breaks within some hundred seeds: [`caught_by`] has the first one |
//! | the simulator's partitions (`partitions.rs`) | `NoYielding`: a hub of low rank is refused for ever |
//! | `election/machine/majority/tests` (`RuleTest`) | those that need a coincidence of three or more faults, and those that only cost time: `WithdrawalForgotten` blocks for a lease, `SuccessorNotFavoured` costs a further round, `NoAgreement` lets leaders swing the view |
//!
//! One is a second line of defence. `OwnClaimSurvivesGrant`: a process that claims has promised itself to itself for a full
//! lease, and its claim is dead before that ends, so it never grants while its claim could still be won.

use super::{args, run_broken};
use crate::election::Mutation;
use crate::sim::world::Sabotage;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Who notices that a clause is missing.
enum By {
    /// A run of `n` processes, by one of so many seeds from this one on. The first to notice was found among the first third.
    Seeds { n: usize, majority: bool, from: u64, most: u64 },
    /// A test in these files, whose text this is, which leaves the clause out, and expects another outcome then. Here it is
    /// only looked that there is one.
    RuleTest(&'static str),
}

const RULES: &str = concat!(
    include_str!("../../election/machine/majority/tests.rs"),
    include_str!("../../election/machine/majority/tests/recovery.rs"),
    include_str!("../../election/machine/majority/tests/schedules.rs"),
    include_str!("../../election/machine/majority/tests/views.rs"),
);
const PARTITIONS: &str = include_str!("partitions.rs");

fn caught_by(clause: Mutation) -> By {
    use Mutation::*;
    let seeds = |n, from, most| By::Seeds { n, majority: true, from, most };
    match clause {
        NoSounding => seeds(3, 1, 10),
        RepeatedClaimRestartsLease => seeds(5, 1, 100),
        LeaseFromWinning => seeds(3, 1, 50),
        OwnGrantExempt => seeds(5, 370, 1200),
        NoWithdrawal => seeds(3, 1, 150),
        PromiseIgnored => seeds(3, 1, 50),
        PromiseShort => seeds(3, 1, 50),
        EpochGrantedTwice => seeds(5, 1, 200),
        GrantNotDurable => seeds(3, 1, 10),
        RefusalRaisesEpoch => seeds(3, 1, 50),
        NoDrift => seeds(3, 1, 50),
        LeaseFromAcknowledgement => seeds(3, 1, 50),
        RenewedByOne => seeds(3, 1, 10),
        StaleLeaderFollowed => seeds(3, 340, 1200),
        LapsedLeaseRenewed => seeds(3, 1, 50),
        NoCaution => seeds(5, 1, 100),
        NoRestamp => seeds(5, 1, 50),
        ChangedAtOnce => seeds(5, 1, 50),
        HandoverUnprepared => seeds(5, 1, 50),
        NoDedupe => By::Seeds { n: 3, majority: false, from: 1, most: 100 },
        NoYielding => By::RuleTest(PARTITIONS),
        NoneGivesWay
        | EverybodyOfOneView
        | LeaseOfSoundingForgotten
        | WithdrawalForgotten
        | OwnClaimSurvivesGrant
        | FarewellFreesAny
        | WithdrawalFreesAny
        | SuccessorNotFavoured
        | IncarnationIgnored
        | ConditionalCounts
        | RecoveryCountsItself
        | RecoveryEarly
        | NoRecovery
        | RecoveryEchoIgnored
        | ViewsByVersion
        | CountedInOwnView
        | ChangesOverlap
        | NoAgreement
        | LaterViewNotTaken
        | OldSoundingCounts
        | OwnViewJudges
        | ViewOfGrantForgotten
        | CautiousByAnyView
        | CommittedByLateRound
        | ChangedWithoutSupport => By::RuleTest(RULES),
    }
}

/// What is wrong with what this clause says of itself.
fn missed(clause: Mutation) -> Option<String> {
    match caught_by(clause) {
        By::Seeds { n, majority, from, most } => {
            let args = args(n, majority);
            let broken = |seed| run_broken(seed, &args, Some(clause), None).violation;
            let found = (from..from + most).find_map(|seed| Some((seed, broken(seed)?)));
            if let Some((seed, violation)) = &found {
                println!("{clause:?}: n = {n}, seed {seed}: {violation}");
            }
            found.is_none().then(|| format!("{clause:?}: no seed from {from} to {} notices", from + most))
        }
        By::RuleTest(text) => {
            let named = text.contains(&format!("Mutation::{clause:?})"));
            (!named).then(|| format!("{clause:?}: no test of a rule leaves it out"))
        }
    }
}

#[test]
fn every_clause_is_missed_by_somebody() {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || Mutation::ALL.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(take).filter_map(|clause| missed(*clause)).collect::<Vec<_>>()
    };
    let missed: Vec<String> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|_| vec!["a panic".to_owned()]))
            .collect()
    });
    assert!(missed.is_empty(), "{missed:#?}");
    let by_seeds = Mutation::ALL.iter().filter(|clause| matches!(caught_by(**clause), By::Seeds { .. }));
    assert!(by_seeds.count() >= 20, "the simulator is to notice twenty clauses at least");
}

#[test]
fn a_driver_that_sends_first_or_keeps_nothing_is_noticed() {
    for sabotage in [Sabotage::SendBeforePersist, Sabotage::NeverPersist] {
        for majority in [false, true] {
            let args = args(3, majority);
            let found = (1..=20).find_map(|seed| run_broken(seed, &args, None, Some(sabotage)).violation);
            assert!(found.is_some(), "{sabotage:?}, majority {majority}: no seed notices");
        }
    }
}
