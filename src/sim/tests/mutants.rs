//! Every clause is left out once, and an instrument has to notice: the simulator, within a number of seeds,
//! or a test of that clause.
//!
//! | what notices | which clauses |
//! | --- | --- |
//! | the simulator (`Seeds`) | those where something breaks within some hundred seeds: `survey` prints the first one |
//! | `election/majority/tests` (`RuleTest`) | all of `majority`; alone those that need a coincidence of three or more faults |

use super::{args, run_broken};
use crate::election::Mutation;
use crate::sim::world::Sabotage;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What notices that a clause is missing.
enum By {
    /// A run of `n` processes by one of `most` seeds, `from` being the first. The first to notice was found
    /// among the first third.
    Seeds { n: usize, majority: bool, from: u64, most: u64 },
    /// A test in these files, whose text this is. It leaves the clause out, and expects another outcome then.
    /// Here the check is only that there is such a test.
    RuleTest(&'static str),
}

const RULES: &str = concat!(
    include_str!("../../election/majority/tests/adaptive.rs"),
    include_str!("../../election/majority/tests/candidate.rs"),
    include_str!("../../election/majority/tests/configuration.rs"),
    include_str!("../../election/majority/tests/contest.rs"),
    include_str!("../../election/majority/tests/first_start_schedules.rs"),
    include_str!("../../election/majority/tests/founding.rs"),
    include_str!("../../election/majority/tests/holds.rs"),
    include_str!("../../election/majority/tests/lease.rs"),
    include_str!("../../election/majority/tests/operations.rs"),
    include_str!("../../election/majority/tests/promise.rs"),
    include_str!("../../election/majority/tests/recovery.rs"),
    include_str!("../../election/majority/tests/schedules.rs"),
    include_str!("../../election/majority/tests/strangers.rs"),
    include_str!("../../election/majority/tests/transfer.rs"),
    include_str!("../../election/majority/tests/voter.rs"),
);

fn caught_by(clause: Mutation) -> By {
    use Mutation::*;
    let seeds = |n, most| By::Seeds { n, majority: true, from: 1, most };
    match clause {
        VoteNotDurable | NoPreVote => seeds(3, 10),
        NoMargin | LeaseFromWinning | LeaseFromAcknowledgement | RenewedByOne => seeds(3, 20),
        PromiseShort | PromiseIgnored | OwnVoteExempt | ConfigByCounter | NoRestamp => seeds(3, 30),
        NoGrace | OwnVoteInGrace | ResignFreesAny => seeds(3, 60),
        LeaseLoweredAtOnce | LeaseRaisedAtOnce | TransferUnprepared => seeds(3, 60),
        RepetitionRestartsLease | VotersChangedAtOnce => seeds(5, 60),
        PromiseShortened | CandidacySurvivesVote | ChangesOverlap => seeds(3, 300),
        FoundedAtOnce => seeds(3, 350),
        NoRecovery | RecoveryEarly | FoundedBesideRecord => seeds(3, 450),
        NoDedupe => By::Seeds { n: 3, majority: false, from: 1, most: 100 },
        LongerLeaseGranted
        | EpochVotedTwice
        | StaleRoundAcknowledged
        | OlderConfigVotedFor
        | ConfigOfVoteNotStored
        | OlderConfigAcknowledged
        | GraceEndedByRound
        | GraceEndedByStaleRound
        | LateResignFrees
        | RecoveryCountsItself
        | RecoveryEchoIgnored
        | RecoveredEpochForgotten
        | RecoveredConfigLowest
        | LateRoundCommits
        | IncarnationIgnored
        | ResignedEpochFollowed
        | LeaseOutlivesConfig
        | FoundedByMajority
        | FoundedWithOtherList
        | FoundedWithOtherLease
        | LaterConfigNotTaken
        | ConfigNotAsked
        | NoRanks
        | ContenderForGood
        | ChangedWithoutSupport
        | HigherEpochIgnored
        | StrangersCount
        | ConfigOfAny
        | PriorityIgnored
        | GraceOfRound
        | RoundCountsLonger
        | SilenceShort
        | NoAgreement => By::RuleTest(RULES),
        CordonIgnored | AsideIgnored | HealthIgnored => seeds(3, 60),
        GraceFreedByEvidence | ChangesUnderHold => By::RuleTest(RULES),
        HoldTakesLease | HoldOnLoosePromise | HoldEndsEarly | ResignsUnderHold | OwnPromiseFreedUnderHold => {
            By::RuleTest(RULES)
        }
    }
}

mod long {
    use super::*;

    /// Prints the first seed that notices each clause, to be written into [`caught_by`].
    #[test]
    #[ignore = "a search of its own: it prints which seed notices which clause"]
    fn survey() {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(clause) = Mutation::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                for (n, most) in [(3, 3000), (5, 1500)] {
                    let args = args(n, true);
                    let broken = |seed| run_broken(seed, &args, Some(*clause), None).violation;
                    match (1..=most).find_map(|seed| Some((seed, broken(seed)?))) {
                        Some((seed, violation)) => {
                            println!("{clause:?}: n = {n}, seed {seed}: {:?}", violation.rule);
                            break;
                        }
                        None => println!("{clause:?}: n = {n}: none of {most}"),
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
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
fn every_clause_has_a_witness() {
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
