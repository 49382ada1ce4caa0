//! A host that is suspended: a leader on it stops leading when it wakes, however little of that its clocks
//! have measured.

use super::{MS, SECOND, broken, leaders, pass, peaceful, settled, sound};
use crate::election::Role;
use crate::sim::clock::Ns;
use crate::sim::node::Stall;
use crate::sim::world::World;

/// A world with a leader, at another moment of its lease for each seed.
fn led(seed: u64, whole_seconds: bool) -> (World, usize) {
    let mut plan = peaceful(seed, 3);
    plan.whole_seconds = whole_seconds;
    let mut world = broken(plan, None, None);
    let leader = settled(&mut world);
    pass(&mut world, seed * 137 * MS);
    (world, leader)
}

/// A world whose leader's host has just woken from a suspend, and its driver has not turned yet.
fn woken(seed: u64, whole_seconds: bool, lasts: Ns) -> (World, usize) {
    let (mut world, leader) = led(seed, whole_seconds);
    world.suspend(leader, lasts);
    assert!(leaders(&world).is_empty(), "seed {seed}: a suspended host answers nothing");
    // One nanosecond before it goes on.
    pass(&mut world, lasts - 1);
    world.nodes[leader].clock.wake(world.now);
    (world, leader)
}

/// Shorter than a lease, so that no gap between two turns shows it.
#[test]
fn a_leader_whose_host_was_suspended_does_not_lead_on() {
    for (whole_seconds, lasts) in
        [(false, 30 * MS), (false, 1_200 * MS), (true, 1_001 * MS), (true, 1_400 * MS)]
    {
        for seed in 1..=4 {
            let what = format!("seed {seed}, whole seconds: {whole_seconds}, {} ms", lasts / MS);
            let (mut world, leader) = woken(seed, whole_seconds, lasts);
            assert!(!world.nodes[leader].leads(world.now), "{what}: the answers from before do not stand");
            while world.nodes[leader].time.suspends() == 0 {
                assert!(!world.nodes[leader].leads(world.now), "{what}");
                pass(&mut world, MS / 10);
            }
            let role = world.nodes[leader].machine.as_ref().map(|machine| machine.status().role);
            assert_ne!(role, Some(Role::Leading), "{what}");
            pass(&mut world, 10 * SECOND);
            assert_eq!(leaders(&world).len(), 1, "{what}");
            sound(&world);
        }
    }
}

/// It shows what it has decided only when its host has woken. Its clocks have measured less than the lease,
/// but they show the suspend.
#[test]
fn a_leader_that_was_held_up_over_a_suspend_counts_on_nothing() {
    for seed in 1..=20 {
        let (mut world, leader) = led(seed, true);
        world.nodes[leader].stall = Some(Stall { takes: 300 * MS, before_status: true });
        while world.nodes[leader].busy.is_none() {
            pass(&mut world, MS / 10);
        }
        world.suspend(leader, 1_200 * MS);
        pass(&mut world, 10 * SECOND);
        assert_eq!(leaders(&world).len(), 1, "seed {seed}");
        sound(&world);
    }
}
