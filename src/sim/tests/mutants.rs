//! Every clause of the rules is left out once, and somebody has to notice.

use super::{args, run_broken};
use crate::election::Mutation;

#[test]
#[ignore = "explores"]
fn explore() {
    let most: u64 = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2000);
    let only = std::env::var("ONLY").unwrap_or_default();
    std::panic::set_hook(Box::new(|_| {}));
    for &clause in Mutation::ALL {
        if !format!("{clause:?}").contains(&only) {
            continue;
        }
        for n in [3, 5] {
            let args = args(n, true);
            let mut found = std::collections::BTreeMap::<String, (u64, u32)>::new();
            let mut seeds = 0;
            for seed in 1..=most {
                seeds = seed;
                if let Some(v) = run_broken(seed, &args, Some(clause), None).violation {
                    found.entry(format!("{:?}", v.rule)).or_insert((seed, 0)).1 += 1;
                    if found.values().map(|f| f.1).sum::<u32>() > 5 {
                        break;
                    }
                }
            }
            println!("{clause:?} n={n} to {seeds}: {found:?}");
        }
    }
}
