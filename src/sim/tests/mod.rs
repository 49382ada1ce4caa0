//! Tests of the simulator, and of the machine by means of it.

mod adaptive;
mod cut_off;
mod drawn;
mod first_start;
mod mutants;
mod partitions;
mod rollout;
mod seeds;
mod shapes;
mod simulator;
mod suspends;

use super::clock::{MS, Ns};
use super::plan::{Draft, Plan};
use super::plan_generator::draw;
use super::run::{RunOutcome, run_world};
use super::trace::Trace;
use super::world::{Sabotage, World};
use crate::config::{SimArgs, SimTask};
use crate::election::{Mutation, Preempt, Priority, Safety, Settings};

const SECOND: Ns = 1000 * MS;

/// Arguments for these many processes, each seed with its own mix of faults.
fn args(n: usize, majority: bool) -> SimArgs {
    let task = SimTask::Seeds { first: 0, last: 0 };
    SimArgs { task, n, majority, swarm: true, crash_evidence: None }
}

/// A world of this seed's plan, with something broken on purpose.
fn broken(plan: Plan, clause: Option<Mutation>, sabotage: Option<Sabotage>) -> World {
    let mut world = World::new(plan, Trace::default());
    world.mutation = clause;
    world.sabotage = sabotage;
    world
}

/// Runs a seed with something broken on purpose.
fn run_broken(seed: u64, args: &SimArgs, clause: Option<Mutation>, sabotage: Option<Sabotage>) -> RunOutcome {
    run_world(broken(draw(seed, args), clause, sabotage))
}

/// `n` voters with even clocks and nothing that goes wrong; the seed decides how they rank.
fn peaceful(seed: u64, n: usize) -> Plan {
    let voters = (0..n).map(|place| format!("p-{place}")).collect();
    let settings = Settings {
        safety: Safety::Majority { voters },
        preempt: Preempt::Never,
        expect: n,
        ..Settings::default()
    };
    let place = |place: usize| Draft {
        settings: settings.clone(),
        priority: Priority::DEFAULT,
        revision: "a".to_owned(),
        clock_ns: SECOND,
        ppm: 0,
        starts_at: Some(10 * MS * place as Ns),
    };
    Plan {
        seed,
        n,
        places: (0..n).map(place).collect(),
        delay: MS,
        jitter: 0,
        link_timeout: 3 * SECOND,
        faults: Vec::new(),
        short_leases: false,
        whole_seconds: false,
        chaos: Ns::MAX,
        dead: 0,
    }
}

/// The places that answer now that they lead.
fn leaders(world: &World) -> Vec<usize> {
    world.nodes.iter().filter(|p| p.leads(world.now)).map(|p| p.place).collect()
}

/// Lets five seconds pass, by when all voters vote without conditions and one of them leads.
fn settled(world: &mut World) -> usize {
    world.run_until(5 * SECOND);
    let found = leaders(world);
    assert_eq!(found.len(), 1, "seed {}: {found:?}", world.plan.seed);
    found[0]
}

/// From now on nothing passes between these.
fn cut(world: &mut World, between: impl Fn(usize, usize) -> bool) {
    for a in 0..world.nodes.len() {
        for b in 0..world.nodes.len() {
            if a != b && (between(a, b) || between(b, a)) {
                world.net.faults[a][b].holding += 1;
            }
        }
    }
}

/// Lets time pass; no rule may break. A run ends where a rule breaks, and the wait would then have no end.
fn pass(world: &mut World, time: Ns) {
    let until = world.now + time;
    world.run_until(until);
    sound(world);
}

fn sound(world: &World) {
    assert_eq!(world.checker.violation, None, "seed {}", world.plan.seed);
}
