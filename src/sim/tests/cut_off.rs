//! A leader that is cut off from the majority, or stopped, answers no at the latest when its lease ends. The
//! other side's leader answers yes only after that, also where their clocks differ as much as is allowed.

use super::{MS, SECOND, broken, cut, leaders, pass, peaceful, settled};
use crate::sim::clock::{Ns, RATE_PPM_MAX, SLEW_PPM_MAX};
use crate::sim::queue::Item;
use crate::sim::world::World;

/// How often both sides are asked.
const ASKED_EVERY: Ns = MS / 10;
/// What a leader counts on of its lease, on the slowest clock.
const LEASE: Ns = 1_485 * MS * 1_000 / 995;

/// How long after this moment the leader answers no, and how long after it another answers yes.
fn replaced(world: &mut World, leader: usize) -> (Ns, Ns) {
    let begun = world.now;
    let mut no = None;
    while world.now < begun + 10 * SECOND {
        let now = leaders(world);
        assert!(now.len() <= 1, "{now:?} both answer yes");
        if !now.contains(&leader) {
            no.get_or_insert(world.now - begun);
        }
        if let (Some(no), [_]) = (no, now.as_slice()) {
            return (no, world.now - begun);
        }
        pass(world, ASKED_EVERY);
    }
    panic!("no other process leads")
}

/// A world whose leader's clock runs at this rate, and all others' at the opposite one. So with slewing.
fn skewed(seed: u64, n: usize, ppm: i32, slew: i32) -> (World, usize) {
    let mut world = broken(peaceful(seed, n), None, None);
    let leader = settled(&mut world);
    for place in 0..n {
        let now = world.now;
        let sign = if place == leader { 1 } else { -1 };
        world.nodes[place].clock.change_rate(now, sign * ppm);
        world.nodes[place].clock.slew(now, sign * slew);
        world.rearm(place);
    }
    pass(&mut world, 2 * SECOND + seed * 37 * MS);
    assert_eq!(leaders(&world), [leader]);
    (world, leader)
}

fn checked(what: &str, n: usize, ppm: i32, (no, yes): (Ns, Ns)) {
    println!(
        "{what}, n = {n}, leader's clock {ppm} ppm: no after {} us, yes after {} us",
        no / 1000,
        yes / 1000
    );
    assert!(no <= LEASE + ASKED_EVERY, "{what}, n = {n}, {ppm} ppm: still yes after {no} ns");
    assert!(yes > no, "{what}, n = {n}, {ppm} ppm: no after {no} ns, yes after {yes} ns");
}

#[test]
fn a_leader_that_is_cut_off_says_no_before_another_says_yes() {
    for n in [3, 5] {
        for ppm in [-RATE_PPM_MAX, 0, RATE_PPM_MAX] {
            for seed in 1..=8 {
                let (mut world, leader) = skewed(seed, n, ppm, 0);
                cut(&mut world, |a, _| a == leader);
                checked("cut off", n, ppm, replaced(&mut world, leader));
            }
        }
    }
}

#[test]
fn a_leader_that_is_stopped_says_no_before_another_says_yes_and_when_it_goes_on() {
    for n in [3, 5] {
        for ppm in [-RATE_PPM_MAX, 0, RATE_PPM_MAX] {
            for seed in 1..=8 {
                let (mut world, leader) = skewed(seed, n, ppm, 0);
                let goes_on = world.now + 6 * SECOND;
                world.nodes[leader].paused_until = goes_on;
                world.queue.put(goes_on, Item::Resume(world.nodes[leader].instance()));
                checked("stopped", n, ppm, replaced(&mut world, leader));
                let new = leaders(&world);
                while world.now < goes_on + 3 * SECOND {
                    assert_eq!(leaders(&world), new);
                    pass(&mut world, MS);
                }
            }
        }
    }
}

#[test]
fn clocks_that_are_slewed_apart_change_nothing() {
    for n in [3, 5] {
        for slew in [-SLEW_PPM_MAX, SLEW_PPM_MAX] {
            for ppm in [-RATE_PPM_MAX, RATE_PPM_MAX] {
                for seed in 1..=4 {
                    let (mut world, leader) = skewed(seed, n, ppm, slew);
                    cut(&mut world, |a, _| a == leader);
                    checked("cut off and slewed", n, ppm, replaced(&mut world, leader));
                }
            }
        }
    }
}
