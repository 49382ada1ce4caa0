//! A rolling restart of voters with disks: the leader last, each when the one before votes again.

use super::{MS, SECOND, broken, leaders, pass, peaceful, settled};
use crate::election::Event;
use crate::sim::node::{Input, Node, Restart};
use crate::sim::run::agreed;
use crate::sim::world::World;

/// Whether it grants without conditions.
fn grants(process: &Node) -> bool {
    let voting = |machine: &crate::election::Machine| {
        let status = machine.status();
        status.voting.is_some_and(|voting| voting.config.is_some() && voting.not_ready.is_none())
    };
    process.machine.as_ref().is_some_and(voting)
}

/// Lets time pass, a millisecond at a time, in each of which a majority grants.
fn wait(world: &mut World, until: impl Fn(&World) -> bool) {
    let end = world.now + 20 * SECOND;
    while !until(world) {
        assert!(world.now < end, "seed {}: it never comes to that", world.plan.seed);
        pass(world, MS);
        let granting = world.nodes.iter().filter(|p| grants(p)).count();
        assert!(2 * granting > world.nodes.len(), "seed {}: {granting} grant", world.plan.seed);
        assert!(leaders(world).len() <= 1);
    }
}

#[test]
fn a_rollout_changes_the_leader_once_and_loses_no_majority() {
    for seed in 1..=20 {
        let mut world = broken(peaceful(seed, 3), None, None);
        let leader = settled(&mut world);
        let before = world.counts.elections;
        for step in 1..=3 {
            let place = (leader + step) % 3;
            let process = &mut world.nodes[place];
            process.revision = "b".to_owned();
            process.fate = Restart { down: 700 * MS, ..Restart::default() };
            let instance = process.instance();
            world.input(instance, Input::Event(Event::Stop));
            wait(&mut world, |world| {
                let back = &world.nodes[place];
                !back.runs_as(instance) && grants(back) && agreed(world).is_some()
            });
        }
        assert_eq!(world.counts.elections, before + 1, "seed {seed}");
        assert_ne!(leaders(&world), [leader], "seed {seed}");
    }
}
