//! A bounded simulation: the first seeds of each kind break no rule. It is also what judges a mutant
//! (tests/mutants/run).

use super::args;
use crate::sim::plan_generator::draw;
use crate::sim::run::run;
use crate::sim::trace::Trace;

#[test]
fn the_first_seeds_break_no_rule() {
    for (n, majority, most) in [(3, true, 200), (5, true, 150), (3, false, 100), (5, false, 50)] {
        for seed in 1..=most {
            let violation = run(draw(seed, &args(n, majority)), Trace::default()).violation;
            assert_eq!(violation, None, "n = {n}, majority {majority}, seed {seed}");
        }
    }
}
