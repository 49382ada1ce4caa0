//! Makes a failing plan smaller: faults are left out as long as the same rule is still broken.

use super::plan::Plan;
use super::rule::Rule;
use super::run::RunOutcome;

/// The most runs that are spent on it.
const RUNS_MAX: usize = 500;

/// The smallest plan found that breaks the same rule, and how many runs that took. `run` runs a plan.
pub(super) fn minimise(mut plan: Plan, rule: Rule, run: impl Fn(Plan) -> RunOutcome) -> (Plan, usize) {
    let mut runs = 0;
    let mut fails = |plan: &Plan| {
        runs += 1;
        run(plan.clone()).violation.is_some_and(|violation| violation.rule == rule)
    };
    let mut left = RUNS_MAX;
    let mut chunk = plan.faults.len().max(1);
    while left > 0 {
        let mut smaller = false;
        let mut from = 0;
        while from < plan.faults.len() && left > 0 {
            let mut without = plan.clone();
            without.faults.drain(from..(from + chunk).min(plan.faults.len()));
            left -= 1;
            if fails(&without) {
                (plan, smaller) = (without, true);
            } else {
                from += chunk;
            }
        }
        if chunk == 1 && !smaller {
            break;
        }
        chunk = (chunk / 2).max(1);
    }
    for simpler in [quiet as fn(&mut Plan), all_live, even_clocks, even_ranks] {
        let mut changed = plan.clone();
        simpler(&mut changed);
        if fails(&changed) {
            plan = changed;
        }
    }
    (plan, runs)
}

fn quiet(plan: &mut Plan) {
    (plan.delay, plan.jitter) = (super::clock::MS, 0);
}

fn all_live(plan: &mut Plan) {
    plan.dead = 0;
}

fn even_clocks(plan: &mut Plan) {
    for place in &mut plan.places {
        (place.ppm, place.clock_ns) = (0, 0);
    }
}

fn even_ranks(plan: &mut Plan) {
    for place in &mut plan.places {
        place.priority = crate::election::Priority::DEFAULT;
    }
}
