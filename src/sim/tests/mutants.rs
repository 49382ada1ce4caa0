//! Every clause of the rules is left out once, and the simulator has to notice within so many seeds.

use super::{args, run_broken};
use crate::election::Mutation::{self, *};

const CLAUSES: [Mutation; 37] = [
    NoSounding,
    RepeatedClaimRestartsLease,
    LeaseFromWinning,
    OwnGrantExempt,
    NoWithdrawal,
    WithdrawalForgotten,
    PromiseIgnored,
    PromiseShort,
    EpochGrantedTwice,
    GrantNotDurable,
    OwnClaimSurvivesGrant,
    FarewellFreesAny,
    WithdrawalFreesAny,
    NoYielding,
    SuccessorNotFavoured,
    IncarnationIgnored,
    RefusalRaisesEpoch,
    NoDrift,
    LeaseFromAcknowledgement,
    RenewedByOne,
    StaleLeaderFollowed,
    LapsedLeaseRenewed,
    NoCaution,
    ConditionalCounts,
    RecoveryCountsItself,
    RecoveryEarly,
    NoRecovery,
    RecoveryEchoIgnored,
    ViewsByVersion,
    CountedInOwnView,
    NoRestamp,
    ChangesOverlap,
    ChangedAtOnce,
    NoAgreement,
    NoDedupe,
    HandoverUnprepared,
    HandoverUnprepared,
];

#[test]
#[ignore = "explores"]
fn explore() {
    let most: u64 = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2000);
    let only = std::env::var("ONLY").unwrap_or_default();
    std::panic::set_hook(Box::new(|_| {}));
    for clause in CLAUSES {
        if !format!("{clause:?}").contains(&only) {
            continue;
        }
        for n in [3, 5] {
            let args = args(n, true);
            let mut found = std::collections::BTreeMap::<String, (u64, u32)>::new();
            for seed in 1..=most {
                if let Some(v) = run_broken(seed, &args, Some(clause), None).violation {
                    found.entry(format!("{:?}", v.rule)).or_insert((seed, 0)).1 += 1;
                    if found.values().map(|f| f.1).sum::<u32>() > 20 {
                        break;
                    }
                }
            }
            println!("{clause:?} n={n}: {found:?}");
        }
    }
}
