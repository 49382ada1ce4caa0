//! `bellwether sim`: whole clusters in one process and in virtual time, from a seed.
//!
//! It drives [`Machine`](crate::election::Machine) unchanged, in place of the driver, the transport, the
//! store and discovery. `plan_generator` draws a seed into a plan of faults (`plan`). `world` runs the plan,
//! with `network`, `node`, `disk`, `dns` and `clock`; `checker` checks the rules all the time. At the end all
//! faults stop, and the cluster has to agree on a leader within a bound (`run`). The same seed and flags give
//! the same run, to the byte of its trace. `sweep` runs many seeds, `shrink` makes a failing plan smaller,
//! `compare` compares variants.

mod applications;
mod assumptions;
mod checker;
mod clock;
mod compare;
mod connections;
mod disk;
mod dns;
mod fault;
mod fault_generator;
mod fault_kind;
mod faults;
mod hold;
mod inbox;
mod link_faults;
mod network;
mod node;
mod operation_checker;
mod operators;
mod plan;
mod plan_generator;
mod queue;
mod rule;
mod run;
mod shrink;
mod sweep;
mod target;
mod timers;
mod timing;
mod trace;
mod vote_checker;
mod world;

#[cfg(test)]
mod tests;

use crate::config::{SimArgs, SimTask};
use std::io::{Write, stdout};
use std::process::ExitCode;
use trace::Trace;

/// Does what the command line asks for. The exit code is 1 if a rule was broken, and 0 otherwise.
pub fn run(args: &SimArgs) -> ExitCode {
    sweep::say_the_seed_of_a_panic(args);
    let mut out = stdout().lock();
    // A reader may close the pipe early; the exit code still tells the result.
    let broken = match &args.task {
        &SimTask::Seeds { first, last } => {
            let totals = sweep::sweep(args, first, last, |line| drop(writeln!(out, "{line}")));
            drop(write!(out, "{totals}"));
            totals.violations > 0
        }
        &SimTask::Replay(seed) => {
            let outcome = sweep::of_seed(seed, || run::run(plan_generator::draw(seed, args), Trace::kept()));
            drop(writeln!(out, "{}", outcome.lines.join("\n")));
            outcome.violation.is_some()
        }
        SimTask::CompareVariants(sizes) => compare::compare(sizes, &mut out).is_err(),
        &SimTask::Minimise(seed) => sweep::of_seed(seed, || minimised(args, seed, &mut out)),
    };
    ExitCode::from(u8::from(broken))
}

/// Prints the smallest plan that breaks the rule which this seed breaks, and its trace.
fn minimised(args: &SimArgs, seed: u64, out: &mut impl Write) -> bool {
    let plan = plan_generator::draw(seed, args);
    let Some(violation) = run::run(plan.clone(), Trace::default()).violation else {
        drop(writeln!(out, "seed {seed} breaks no rule: there is nothing to minimise"));
        return false;
    };
    let before = plan.faults.len();
    let (plan, runs) = shrink::minimise(plan, violation.rule, |plan| run::run(plan, Trace::default()));
    let left = plan.faults.len();
    let outcome = run::run(plan, Trace::kept());
    drop(writeln!(out, "{}", outcome.lines.join("\n")));
    drop(writeln!(out, "seed {seed}: {left} of {before} faults are enough ({runs} runs)"));
    true
}
