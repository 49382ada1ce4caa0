//! A first start where the number of processes is known: a leader comes by messages alone, whatever their
//! order. The best process leads. To wait for its next question would take 250 ms, for an answer 300 ms.

use super::{MS, broken, leaders, peaceful, sound};
use crate::election::Safety;
use crate::sim::clock::Ns;
use fastrand::Rng;

/// After the last process has started: the promise for such a start, many times what the messages take.
const BOUND: Ns = 100 * MS;
const SEEDS: u64 = 400;

/// Whether the best process leads after the bound. Starts lie up to 20 ms apart. Messages take 0.1 to 6 ms.
fn leads_in_time(seed: u64, n: usize, classic: bool) -> bool {
    let mut random = Rng::with_seed(seed);
    let mut plan = peaceful(seed, n);
    plan.delay = random.u64(MS / 10..MS);
    plan.jitter = random.u64(0..5 * MS);
    for place in &mut plan.places {
        place.starts_at = Some(random.u64(0..20 * MS));
        if classic {
            place.settings.safety = Safety::Classic;
        }
    }
    let last = plan.places.iter().filter_map(|place| place.starts_at).max().unwrap();
    let mut world = broken(plan, None, None);
    world.run_until(last + BOUND);
    sound(&world);
    let best = world.nodes.iter().max_by_key(|node| node.id()).map(|node| node.place);
    leaders(&world) == Vec::from_iter(best)
}

#[test]
fn a_first_start_of_a_known_number_waits_for_no_timer() {
    for n in [2, 3, 5] {
        for classic in [false, true] {
            let late: Vec<u64> = (1..=SEEDS).filter(|seed| !leads_in_time(*seed, n, classic)).collect();
            assert!(
                late.is_empty(),
                "n = {n}, classic: {classic}: {} seeds, {:?} first",
                late.len(),
                late[0]
            );
        }
    }
}
