//! Model checks: the machine as it is, in a small network with every order of events and a bounded number of
//! faults.
//!
//! `world` is the state, `checks` what may happen next and what must hold, `digest` how states are told
//! apart. Each run prints its bounds, how many states it saw, how deep it went, and whether that was all of
//! them.
//!
//! # What a search covers
//!
//! It begins with voters that have just elected a leader and agree on it. Time goes in ticks, and a message
//! takes one. What a process has to do in a tick, it does in every order. Only where messages are said to
//! come in order, those of one sender keep theirs. The heartbeat is 1 tick, the lease and failure timeout 6,
//! the answer timeout 5, the coordinator timeout 6. Beside that, these may happen at any time, each as often
//! as its budget says:
//!
//! - a crash, with what was sent lost or not; a restart with the record at any time after it, or never;
//! - a restart without the record (a lost disk);
//! - a message lost; a message delayed for up to 12 ticks, so that it is overtaken by all others;
//! - one link cut, or all of one process's; mended at any time after it, or never;
//! - a pause of up to 8 ticks, which is more than a lease;
//! - SIGTERM: a resignation, an end, and a restart at any time after it, or never;
//! - a restart at once with another `--lease` (7 ticks instead of 6, or 6 instead of 7);
//! - the application beside a process is sick, and healthy at any time after it, or never;
//! - a process asks for a shorter lease (4 ticks) than the configuration's, and for that again at any time
//!   after it, or never.
//!
//! Searched is everything within these budgets and the bounds that are printed: how far epochs rise, and for
//! how long a voter tries to recover while others are away. Time itself has no bound: states that differ in
//! nothing but that are one.
//!
//! # What it cannot see
//!
//! A message takes a tick, a sixth of a lease, so that clocks whose rates differ by 1 % make no difference
//! here: the simulator looks at those. Changes of the voters, transfers and refused dials are looked at
//! there, too.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod checks;
mod digest;
mod long;
#[cfg(feature = "mutations")]
mod mutants;
mod world;

use bellwether::election::{
    CrashEvidence, Founding, MEMBERS_MAX, Preempt, Safety, Settings, Variant, WhenAllSick,
};
use checks::{
    AGREED, Bounds, FEW_EPOCHS, INVARIANTS, SAME_EPOCH, TWO_LEADERS, Worlds, fresh, search, settle, told,
};
use std::time::Duration;
use world::{Faults, Rules, TICK};

/// A search copies a machine for each state that it sees.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn ticks(n: u64) -> Duration {
    Duration::from_secs(n * TICK)
}

/// The shortest times that keep the relations which the machine asserts, and let an answer come in time.
fn settings(safety: Safety) -> Settings {
    Settings {
        app_is_probed: false,
        lifeline_required: false,
        when_all_sick: WhenAllSick::Keep,
        variant: Variant::Detector,
        safety,
        founding: Founding::Auto,
        preempt: Preempt::Never,
        crash_evidence: CrashEvidence::Suspect,
        heartbeat: ticks(1),
        lease_min: None,
        failure_timeout: ticks(6),
        answer_timeout: ticks(5),
        coordinator_timeout: ticks(6),
        stable_margin: ticks(2),
        start_timeout: ticks(6),
        expect: 0,
        members_max: MEMBERS_MAX,
        told_often_max: MEMBERS_MAX,
        forget_after: ticks(1000),
        hold_max: ticks(1),
        stop_wait: ticks(1),
        members_are_proved: false,
    }
}

fn rules(n: usize, safety: Safety, in_order: bool) -> Rules {
    Rules {
        settings: vec![settings(safety); n],
        in_order,
        other_lease: ticks(7),
        short_lease: ticks(4),
        #[cfg(feature = "mutations")]
        mutation: None,
    }
}

fn classic(faults: Faults, in_order: bool) -> Worlds {
    let first = settle(fresh(rules(3, Safety::Classic, in_order), Faults::default()), 40);
    Worlds::of(first, faults, BOUNDS, true, None)
}

fn majority(n: usize, faults: Faults, in_order: bool, agreed_after: Option<u64>) -> Worlds {
    let voters = (1..=n).map(|k| format!("p{k}")).collect();
    let first = settle(fresh(rules(n, Safety::Majority { voters }, in_order), Faults::default()), 40);
    Worlds::of(first, faults, BOUNDS, false, agreed_after)
}

/// Of three voters that were started with one lease and may be started again with another.
fn majority_with_leases(lease: Duration, other_lease: Duration, faults: Faults) -> Worlds {
    let voters = (1..=3).map(|k| format!("p{k}")).collect();
    let settings = Settings { failure_timeout: lease, ..settings(Safety::Majority { voters }) };
    let rules = Rules { settings: vec![settings; 3], other_lease, ..rules(3, Safety::Classic, true) };
    Worlds::of(settle(fresh(rules, NONE), 40), faults, BOUNDS, false, None)
}

/// A voter that recovers in vain does so for more than twice the lease.
const BOUNDS: Bounds = Bounds { epochs: 3, recovery: 14 };
/// Where a search for agreement looks, no epochs are left out, since they do not rise that far.
const ALL_EPOCHS: Bounds = Bounds { epochs: 8, ..BOUNDS };

/// After so much calm there is a leader that all follow. The failure timeout and the lease run out, pre-votes
/// fail, and a request for votes is granted.
const CALM: u64 = 25;

/// Only a search that hangs meets it, also on a machine that does other things besides.
const LIMIT: Duration = Duration::from_secs(1_500);
const NONE: Faults = Faults {
    crashes: 0,
    wipes: 0,
    losses: 0,
    delays: 0,
    cuts: 0,
    pauses: 0,
    stops: 0,
    relets: 0,
    shorts: 0,
    sicks: 0,
};
const CRASH: Faults = Faults { crashes: 1, ..NONE };
const LOST_DISK: Faults = Faults { crashes: 1, wipes: 1, ..NONE };
const LOSS: Faults = Faults { losses: 1, ..NONE };
const DELAY: Faults = Faults { delays: 1, ..NONE };
const CUT: Faults = Faults { cuts: 1, ..NONE };
const PAUSE: Faults = Faults { pauses: 1, ..NONE };
const STOP: Faults = Faults { stops: 1, ..NONE };
const RELET: Faults = Faults { relets: 1, ..NONE };
const SICK: Faults = Faults { sicks: 1, ..NONE };
const SHORT: Faults = Faults { shorts: 1, ..NONE };

/// More states than any single fault has. What a rule remembers without need makes further states that differ
/// in nothing else, and then a search that is bounded in time sees less.
const STATES_MAX: usize = 250_000;

/// All states are seen, and these hold in all of them. Returns how many there are.
fn holds(title: &str, model: Worlds, properties: &[&'static str]) -> usize {
    let found = search(title, model, LIMIT, properties);
    if let Some((property, path)) = &found.path {
        panic!("{title}: {property}\n{}", told(path));
    }
    assert!(found.complete, "{title}: there was no time for all states");
    found.states
}

fn is_safe(title: &str, model: Worlds) {
    holds(title, model, &[TWO_LEADERS, SAME_EPOCH, INVARIANTS]);
}

fn is_safe_and_agrees(title: &str, model: Worlds) {
    let model = Worlds { bounds: ALL_EPOCHS, ..model };
    let states = holds(title, model, &[TWO_LEADERS, SAME_EPOCH, INVARIANTS, FEW_EPOCHS, AGREED]);
    assert!(
        states <= STATES_MAX,
        "{title}: {states} states are too many: what do the rules keep without need?"
    );
}

/// `classic` promises one leader a side, and that is two: the shortest way there is a cut-off leader.
#[test]
fn classic_has_two_leaders_in_a_partition() {
    let found = search("classic, a partition", classic(CUT, false), LIMIT, &[TWO_LEADERS]);
    let (_, path) = found.path.expect("the model does not see the two leaders of a partition");
    println!("{}", told(&path));
}

/// Everything else holds in `classic`, too.
#[test]
fn classic_keeps_its_invariants() {
    holds("classic, faults", classic(Faults { losses: 1, ..CRASH }, true), &[INVARIANTS]);
}

#[test]
fn majority_bears_each_fault() {
    for faults in [CRASH, LOST_DISK, CUT, PAUSE, STOP, SICK] {
        is_safe_and_agrees("majority", majority(3, faults, true, Some(CALM)));
    }
    for faults in [LOSS, DELAY] {
        is_safe_and_agrees("majority", majority(3, faults, false, Some(CALM)));
    }
}
