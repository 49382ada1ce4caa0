//! Partial partitions, in which consensus protocols are known to elect without end or never ("Omni-Paxos:
//! Breaking the Barriers of Partial Connectivity", EuroSys 2023). Each has to end with one leader that stays.

use super::{MS, SECOND, broken, cut, leaders, peaceful, settled, sound};
use crate::election::{Mutation, Priority};
use crate::sim::clock::Ns;
use crate::sim::world::World;

const N: usize = 5;
const HUB: usize = 2;
/// The old leader's lease, the time in which a connection is found to be dead, and three elections. Each
/// election is an answer timeout and two coordinator timeouts.
const BOUND: Ns = (1_500 + 3_000 + 3 * (300 + 2 * 900)) * MS;
/// Every seed ranks the processes in another way.
const SEEDS: u64 = 24;

/// Cuts, and returns the leader after the bound and how many elections the cut caused.
fn after_cut(
    seed: u64,
    hub: Priority,
    clause: Option<Mutation>,
    cuts: impl Fn(usize, usize, usize) -> bool,
) -> Option<(usize, u64)> {
    let mut plan = peaceful(seed, N);
    plan.places[HUB].priority = hub;
    let mut world = broken(plan, clause, None);
    let leader = settled(&mut world);
    cut(&mut world, |a, b| cuts(leader, a, b));
    let before = world.counts.elections;
    let until = world.now + BOUND;
    world.run_until(until);
    let [leader] = *leaders(&world) else { return None };
    let elections = world.counts.elections - before;
    stays(&mut world, leader, before + elections)?;
    sound(&world);
    Some((leader, elections))
}

/// No other process is elected in the next twenty seconds.
fn stays(world: &mut World, leader: usize, elections: u64) -> Option<()> {
    let until = world.now + 20 * SECOND;
    world.run_until(until);
    (leaders(world) == [leader] && world.counts.elections == elections).then_some(())
}

/// All of them end with one leader after at most so many elections.
fn end(name: &str, most: u64, hub: Priority, cuts: impl Fn(usize, usize, usize) -> bool) -> Vec<usize> {
    let ended = |seed| {
        let ended = after_cut(seed, hub, None, &cuts);
        let Some((leader, elections)) = ended else { panic!("{name}, seed {seed}: no leader that stays") };
        assert!(elections <= most, "{name}, seed {seed}: {elections} elections");
        leader
    };
    (1..=SEEDS).map(ended).collect()
}

/// Each place reaches the hub only: the leader loses its majority.
fn star(_: usize, a: usize, b: usize) -> bool {
    a != HUB && b != HUB
}

/// The same, and the former leader reaches no place, unless it is the hub.
fn star_without_leader(leader: usize, a: usize, b: usize) -> bool {
    star(leader, a, b) || leader != HUB && (a == leader || b == leader)
}

/// Each place reaches its neighbours only.
fn chain(_: usize, a: usize, b: usize) -> bool {
    a.abs_diff(b) > 1
}

const RANKS: [Priority; 3] = [Priority(50), Priority::DEFAULT, Priority(200)];

#[test]
fn when_the_quorum_is_lost_only_the_hub_can_lead_and_does() {
    for hub in RANKS {
        let ended = end("quorum loss", 1, hub, star);
        assert!(ended.iter().all(|leader| *leader == HUB), "{hub:?}: {ended:?}");
    }
}

#[test]
fn a_constrained_election_ends_with_the_hub() {
    for hub in RANKS {
        let ended = end("constrained election", 1, hub, star_without_leader);
        assert!(ended.iter().all(|leader| *leader == HUB), "{hub:?}: {ended:?}");
    }
}

#[test]
fn in_a_chain_one_leads_and_no_other_unseats_it() {
    for hub in RANKS {
        let ended = end("chain", 1, hub, chain);
        assert!(ended.iter().all(|leader| *leader != 0 && *leader != N - 1), "{hub:?}: {ended:?}");
    }
}

#[test]
fn a_process_that_loses_only_its_link_to_the_leader_does_not_unseat_it() {
    let other = |leader: usize| (leader + 1) % N;
    let ended = end("one link", 0, Priority::DEFAULT, |leader, a, b| a == leader && b == other(leader));
    assert_eq!(ended.len() as u64, SEEDS);
}

#[test]
fn a_contender_for_good_keeps_a_hub_of_low_rank_from_leading() {
    let hub = Priority(50);
    let never =
        (1..=SEEDS).any(|seed| after_cut(seed, hub, Some(Mutation::ContenderForGood), star).is_none());
    assert!(never, "the others always refuse it, and cannot lead themselves");
}
