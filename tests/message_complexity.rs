//! How many messages the paper's election and heartbeats cost: exactly the numbers of the analysis.
//! `bellwether::sim` compares all variants with it.
//!
//! n processes, ranked 1 to n. Each message takes a millisecond, and none is lost.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{Event, Incarnation, Preempt, Settings, Timer, Variant};
use std::time::Duration;
use support::world::{Options, World, id};

const SIZES: [usize; 5] = [3, 4, 5, 7, 10];
/// Longer than a start and shorter than the stable margin.
const MET: Duration = Duration::from_millis(500);
/// Longer than an election.
const PATIENCE: Duration = Duration::from_secs(5);

/// n processes that have just been started.
fn started(n: usize, settings: &Settings) -> World {
    // What the crash of a process leaves behind is each test's own.
    let mut world = World::new(n, settings, Options { evidence: false, ..Options::default() });
    (1..=n).for_each(|k| world.start(k, false));
    world
}

/// The Elections, Answers and Coordinators of the paper's election, which the process of this rank begins.
fn paper(n: usize, initiator: usize, leader_crashes: bool) -> [u64; 3] {
    let settings = Settings { variant: Variant::Paper, preempt: Preempt::Always, ..Settings::default() };
    let mut world = started(n, &settings);
    let begins = if leader_crashes {
        assert!(world.run_until(PATIENCE, |w| w.agreed().is_some_and(|(leader, _)| leader == n)));
        world.run(MET);
        world.vanish(n);
        Event::Crashed { id: id(n), incarnation: Incarnation(1) }
    } else {
        world.run(MET);
        Event::Timer(Timer::Margin)
    };
    let sent = |w: &World| ["election", "answer", "coordinator"].map(|name| w.sent_of(&[name]));
    let before = sent(&world);
    world.tell(initiator, begins);
    let best = world.live().into_iter().max();
    assert!(world.run_until(PATIENCE, |w| w.agreed().map(|(leader, _)| leader) == best), "n = {n}");
    // What is on its way.
    world.run(Duration::from_millis(10));
    let after = sent(&world);
    [0, 1, 2].map(|kind| after[kind] - before[kind])
}

#[test]
fn the_paper_costs_each_kind_by_the_initiators_rank() {
    for n in SIZES {
        for rank in [1, 2, n.div_ceil(3), n / 2, n - 2, n - 1] {
            let above = (n - rank) as u64;
            let expected = [above * (above + 1) / 2, above * (above - 1) / 2, n as u64 - 2];
            assert_eq!(paper(n, rank, true), expected, "n = {n}, initiator {rank}");
        }
    }
}

#[test]
fn the_paper_costs_n_squared_less_1_if_all_live_and_the_lowest_starts() {
    for n in SIZES {
        assert_eq!(paper(n, 1, false).iter().sum::<u64>(), (n * n - 1) as u64, "n = {n}");
    }
}

/// Heartbeats go between the leader and its followers only: 2(n-1) an interval, never all-to-all.
#[test]
fn heartbeats_cost_2_times_n_less_1_an_interval() {
    for n in [1, 2, 3, 5, 10, 20] {
        for variant in [Variant::Detector, Variant::Paper] {
            let settings = Settings { variant, ..Settings::default() };
            let mut world = started(n, &settings);
            assert!(world.run_until(Duration::from_secs(5), |w| w.agreed().is_some()));
            world.run(Duration::from_secs(2));
            let beats = |w: &World| w.sent_of(&["heartbeat", "heartbeat_ack"]);
            let others = |w: &World| w.sent.values().sum::<u64>() - beats(w);
            let (before, quiet) = (beats(&world), others(&world));
            world.run(settings.heartbeat * 20);
            assert_eq!(beats(&world) - before, 20 * 2 * (n as u64 - 1), "n = {n}, {variant:?}");
            assert_eq!(others(&world), quiet, "a settled cluster says nothing else");
        }
    }
}
