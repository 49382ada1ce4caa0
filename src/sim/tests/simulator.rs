//! What the simulator itself promises.

use super::{args, broken, run_broken};
use crate::election::Mutation;
use crate::sim::fault_kind::Counts;
use crate::sim::plan_generator::draw;
use crate::sim::run::{run, run_world};
use crate::sim::shrink::minimise;
use crate::sim::trace::Trace;

#[test]
fn the_same_seed_gives_the_same_run() {
    for majority in [false, true] {
        let lines = |seed| run(draw(seed, &args(3, majority)), Trace::kept()).lines;
        let (first, second) = (lines(11), lines(11));
        assert!(first.len() > 100);
        assert_eq!(first, second);
        assert_ne!(first, lines(12));
    }
}

#[test]
fn what_is_made_smaller_breaks_the_same_rule() {
    let clause = Some(Mutation::LeaseFromAcknowledgement);
    let args = args(3, true);
    let (seed, violation) = (1..=100)
        .find_map(|seed| Some((seed, run_broken(seed, &args, clause, None).violation?)))
        .unwrap_or_else(|| panic!("no seed shows it"));
    let plan = draw(seed, &args);
    let faults = plan.faults.len();
    let (plan, runs) = minimise(plan, violation.rule, |plan| run_world(broken(plan, clause, None)));
    assert!(plan.faults.len() < faults && runs > 1, "seed {seed}: {} of {faults}", plan.faults.len());
    let again = run_world(broken(plan, clause, None)).violation;
    assert_eq!(again.map(|again| again.rule), Some(violation.rule), "seed {seed}");
}

#[test]
fn every_kind_of_fault_occurs() {
    let mut counts = Counts::default();
    for seed in 1..=60 {
        for majority in [false, true] {
            counts.add(&run(draw(seed, &args(3, majority)), Trace::default()).counts);
        }
    }
    for (sort, count) in counts.faults() {
        assert!(count > 0, "{} never occurs", sort.name());
    }
    assert!(counts.disks_lost > 0 && counts.elections > 0);
}
