//! Tests of the simulator, and of the machine by means of it.

mod mutants;

use super::draw::draw;
use super::run::{Outcome, run_world};
use super::trace::Trace;
use super::world::{Sabotage, World};
use crate::config::{SimArgs, SimTask};
use crate::election::Mutation;

/// Arguments for these many processes, each seed with its own mix of faults.
fn args(n: usize, majority: bool) -> SimArgs {
    let task = SimTask::Seeds { first: 0, last: 0 };
    SimArgs { task, n, majority, swarm: true, crash_evidence: None }
}

/// Runs a seed with something broken on purpose.
fn run_broken(seed: u64, args: &SimArgs, clause: Option<Mutation>, sabotage: Option<Sabotage>) -> Outcome {
    let mut world = World::new(draw(seed, args), Trace::default());
    world.mutation = clause;
    world.sabotage = sabotage;
    run_world(world)
}
