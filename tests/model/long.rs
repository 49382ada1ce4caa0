//! The searches that take minutes: all of one fault in any order and of two faults. Of more faults than that,
//! or of five voters, they search what there is time for.
//!
//! `cargo test --profile checks --test model -- --ignored --nocapture --test-threads 1`
//!
//! `BELLWETHER_MODEL_SECONDS=10` before it bounds each search of more than a million states. `.ci/run` does
//! that.

use super::checks::{INVARIANTS, SAME_EPOCH, TWO_LEADERS, Worlds, search, settle, told};
use super::world::Faults;
use super::{
    CRASH, CUT, DELAY, LOSS, LOST_DISK, NONE, PAUSE, RELET, SHORT, STOP, is_safe, majority,
    majority_with_leases, ticks,
};
use std::time::Duration;

/// The variable that bounds the searches that see a part of the states.
const PART_SECONDS: &str = "BELLWETHER_MODEL_SECONDS";

/// How long a search runs where there is no time for all states: 45 s, or what [`PART_SECONDS`] says.
fn part_limit() -> Duration {
    let seconds = std::env::var(PART_SECONDS);
    Duration::from_secs(
        seconds.map_or(45, |text| text.parse().expect("BELLWETHER_MODEL_SECONDS is whole seconds")),
    )
}

/// The lost disk is the longest search: all of its states are not on record.
#[test]
#[ignore = "takes minutes; .ci/run has a part of each"]
fn majority_bears_each_fault_in_any_order() {
    for faults in [CRASH, CUT, PAUSE, STOP, LOST_DISK] {
        is_safe_in_time("majority", majority(3, faults, false, None));
    }
}

#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn majority_bears_two_faults() {
    let twice = [Faults { losses: 2, ..NONE }, Faults { delays: 2, ..NONE }, Faults { losses: 1, ..DELAY }];
    let with_loss = [CRASH, CUT, PAUSE, STOP].map(|faults| Faults { losses: 1, ..faults });
    for faults in [twice.as_slice(), &with_loss].concat() {
        is_safe("majority", majority(3, faults, true, None));
    }
}

/// Those of two faults that have more than a million states.
#[test]
#[ignore = "takes minutes; .ci/run has a part of it"]
fn majority_bears_a_lost_disk_and_a_loss_or_a_delay_and_another_fault() {
    let with_delay = [CRASH, PAUSE, STOP].map(|faults| Faults { delays: 1, ..faults });
    for faults in [&[Faults { losses: 1, ..LOST_DISK }], with_delay.as_slice()].concat() {
        is_safe_in_time("majority", majority(3, faults, true, None));
    }
}

/// A named successor is no candidate any more.
#[test]
#[ignore = "takes minutes; .ci/run has a part of it"]
fn majority_bears_a_sick_application_and_another_fault() {
    for faults in [CRASH, STOP] {
        is_safe_in_time("majority", majority(3, Faults { sicks: 1, ..faults }, true, None));
    }
}

/// A leader or a candidate asks for a shorter lease for a while: what was promised for longer stays promised.
#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn majority_bears_shorter_rounds() {
    let title = "majority, shorter rounds";
    for faults in [SHORT, Faults { crashes: 1, ..SHORT }, Faults { stops: 1, ..SHORT }] {
        is_safe(title, majority(3, faults, true, None));
    }
    is_safe_in_time(title, majority(3, Faults { cuts: 1, ..SHORT }, true, None));
}

/// Processes are replaced by ones with a longer lease, or with a shorter one. Two of three change that of the
/// configuration.
#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn majority_bears_another_lease() {
    for (before, after) in [(6, 7), (7, 6)] {
        for faults in [RELET, Faults { relets: 2, ..NONE }, Faults { relets: 2, ..LOSS }] {
            let title = format!("majority, from {before} ticks of lease to {after}");
            is_safe(&title, majority_with_leases(ticks(before), ticks(after), faults));
        }
    }
}

/// Another crash, or a disk lost, while the leader is dead or just back. There is no time for all states.
#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn majority_bears_a_lost_disk_when_its_leader_has_died() {
    let mut model = majority(3, LOST_DISK, true, None);
    assert!(model.first.leaders().eq([2]), "the highest leads");
    model.first.crash(2, true);
    is_safe_so_far("majority, its leader dead", model);
}

/// A crash, or a disk lost, and another cut, while the leader and another voter have not reached each other
/// for longer than a lease. That voter would lead, were the third to forget what it has promised. There is no
/// time for all states.
#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn majority_bears_a_lost_disk_when_links_are_cut() {
    for faults in [CRASH, LOST_DISK] {
        let faults = Faults { cuts: 1, ..faults };
        let mut model = majority(3, faults, true, None);
        model.first.cut(1, 2);
        model.first.faults = NONE;
        model.first = settle(model.first, 8);
        model.first.faults = faults;
        is_safe_so_far("majority, p2 and p3 cut", model);
    }
}

/// There is no time for all states.
#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn five_voters_bear_a_lost_disk() {
    is_safe_so_far("majority", majority(5, LOST_DISK, true, None));
}

/// The same, further on: the leader has just died, and another's disk was lost at the same moment.
#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn five_voters_bear_a_dead_leader_and_a_lost_disk() {
    let mut model = majority(5, NONE, true, None);
    assert!(model.first.leaders().eq([4]), "the highest leads");
    model.first.crash(4, true);
    model.first.crash(3, true);
    model.first.start(3, true);
    is_safe_so_far("majority", model);
}

/// The properties hold in all states. Where [`PART_SECONDS`] bounds the search, they hold in those that there
/// is time for.
fn is_safe_in_time(title: &str, model: Worlds) {
    match std::env::var_os(PART_SECONDS) {
        Some(_) => is_safe_so_far(title, model),
        None => is_safe(title, model),
    }
}

/// The properties hold in all states that there is time for.
fn is_safe_so_far(title: &str, model: Worlds) {
    let found = search(title, model, part_limit(), &[TWO_LEADERS, SAME_EPOCH, INVARIANTS]);
    if let Some((property, path)) = &found.path {
        panic!("{title}: {property}\n{}", told(path));
    }
}
