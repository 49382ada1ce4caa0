//! Leases that adapt, over the whole of what a leader remembers.

use super::{MS, SECOND, broken, pass, peaceful, settled};
use crate::election::LeaseReason;
use crate::sim::fault::{Fault, Kind};
use crate::sim::link_faults::{Classes, Effect};
use crate::sim::target::Between;
use crate::sim::world::World;
use std::time::Duration;

/// The epoch at a place, the lease in use there, and why it is so long.
fn lease(world: &World, place: usize) -> (u64, Option<Duration>, Option<LeaseReason>) {
    let status = world.nodes[place].machine.as_ref().unwrap().status();
    (status.epoch.0, status.lease, status.lease_reason)
}

#[test]
fn a_lease_grows_with_a_delay_and_shrinks_once_that_is_forgotten() {
    let shortest = Duration::from_millis(300);
    let mut plan = peaceful(1, 3);
    plan.places.iter_mut().for_each(|place| place.settings.lease_min = Some(shortest));
    let (at, lasts) = (10 * SECOND, 2 * SECOND);
    let slow = Effect::Slow(60 * MS);
    let kind = Kind::Disturb { between: Between::All, classes: Classes::ALL, effect: slow };
    plan.faults.push(Fault { at, cue: None, lasts, kind });
    let mut world = broken(plan, None, None);
    let leader = settled(&mut world);
    pass(&mut world, 4 * SECOND);
    let (epoch, ..) = lease(&world, leader);
    assert_eq!(lease(&world, leader), (epoch, Some(shortest), Some(LeaseReason::Shortest)));
    // A round trip of 122 ms.
    let grown = Duration::from_millis(344);
    for later in [3 * SECOND, 280 * SECOND] {
        pass(&mut world, later);
        assert_eq!(lease(&world, leader), (epoch, Some(grown), Some(LeaseReason::Delay)));
    }
    pass(&mut world, 40 * SECOND);
    assert_eq!(lease(&world, leader), (epoch, Some(shortest), Some(LeaseReason::Shortest)));
}
