//! Model checks: the machine as it is, in a small network with every order of events and a bounded number of faults.
//!
//! `world` is the state, `checks` what may happen next and what must hold, `digest` how states are told apart. Each run prints
//! its bounds, how many states it saw and how deep it went.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod checks;
mod digest;
mod world;

use bellwether::election::{CrashEvidence, Preempt, Safety, Settings, Variant};
use checks::{AGREED, Bounds, INVARIANTS, SAME_EPOCH, TWO_LEADERS, Worlds, fresh, search, settle, told};
use std::time::Duration;
use world::{Faults, Rules, TICK};

fn ticks(n: u64) -> Duration {
    Duration::from_secs(n * TICK)
}

/// The shortest times that keep the relations which the machine asserts.
fn settings(safety: Safety) -> Settings {
    Settings {
        variant: Variant::Detector,
        safety,
        preempt: Preempt::Never,
        crash_evidence: CrashEvidence::Suspect,
        heartbeat: ticks(1),
        failure_timeout: ticks(4),
        answer_timeout: ticks(3),
        coordinator_timeout: ticks(5),
        stable_margin: ticks(2),
        start_timeout: ticks(6),
        expect: 0,
        forget_after: ticks(1000),
    }
}

fn rules(n: usize, safety: Safety) -> Rules {
    Rules { settings: vec![settings(safety); n], rates: vec![TICK; n], evidence: false, in_order: false }
}

/// `classic` promises one leader a side, and that is two: the shortest way there is a cut-off leader.
#[test]
fn classic_has_two_leaders_in_a_partition() {
    let first = settle(fresh(rules(3, Safety::Classic), Faults::default()), 8);
    let mut first = first;
    first.faults = Faults { cuts: 1, ..Faults::default() };
    let model = Worlds { first, bounds: Bounds { ticks: 14, epochs: 2 }, classic: true, agreed_after: 100 };
    let found = search("classic, a partition", model, Duration::from_secs(60), &[TWO_LEADERS]);
    let path = found.path(TWO_LEADERS).expect("the model does not see the two leaders of a partition");
    println!("{}", told(path));
    assert!(found.path(INVARIANTS).is_none());
}

/// Everything else holds in `classic`, too.
#[test]
fn classic_keeps_its_invariants() {
    let mut first = settle(fresh(rules(3, Safety::Classic), Faults::default()), 8);
    first.faults = Faults { crashes: 1, losses: 1, ..Faults::default() };
    let model = Worlds { first, bounds: Bounds { ticks: 20, epochs: 4 }, classic: true, agreed_after: 12 };
    let wrong = [INVARIANTS, AGREED];
    let found = search("classic, faults", model, Duration::from_secs(60), &wrong);
    for property in wrong {
        assert!(found.path(property).is_none(), "{property}\n{}", told(found.path(property).unwrap()));
    }
    let _ = (found.states, found.depth, SAME_EPOCH);
    assert!(found.complete);
}
