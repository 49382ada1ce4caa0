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

/// The shortest times that keep the relations which the machine asserts, and let an answer come in time.
fn settings(safety: Safety) -> Settings {
    Settings {
        variant: Variant::Detector,
        safety,
        preempt: Preempt::Never,
        crash_evidence: CrashEvidence::Suspect,
        heartbeat: ticks(1),
        failure_timeout: ticks(5),
        answer_timeout: ticks(3),
        coordinator_timeout: ticks(4),
        stable_margin: ticks(2),
        start_timeout: ticks(6),
        expect: 0,
        forget_after: ticks(1000),
    }
}

fn rules(n: usize, safety: Safety) -> Rules {
    Rules { settings: vec![settings(safety); n], rates: vec![TICK; n], evidence: false, in_order: false }
}

fn majority(n: usize) -> Rules {
    let voters = (1..=n).map(|k| format!("p{k}")).collect();
    rules(n, Safety::Majority { voters })
}

const LIMIT: Duration = Duration::from_secs(100);

/// `classic` promises one leader a side, and that is two: the shortest way there is a cut-off leader.
#[test]
fn classic_has_two_leaders_in_a_partition() {
    let first = settle(fresh(rules(3, Safety::Classic), Faults::default()), 30);
    let bounds = Bounds { epochs: 2, recovery: 0, pause: 8 };
    let model = Worlds::of(first, Faults { cuts: 1, ..Faults::default() }, bounds, true, None);
    let found = search("classic, a partition", model, LIMIT, &[TWO_LEADERS]);
    let (_, path) = found.path.expect("the model does not see the two leaders of a partition");
    println!("{}", told(&path));
}

fn holds(title: &str, model: Worlds, properties: &[&'static str]) {
    let found = search(title, model, LIMIT, properties);
    if let Some((property, path)) = &found.path {
        panic!("{title}: {property}\n{}", told(path));
    }
    assert!(found.complete, "{title}: there was no time for all states");
}

/// Everything else holds in `classic`, too.
#[test]
fn classic_keeps_its_invariants() {
    let first = settle(fresh(rules(3, Safety::Classic), Faults::default()), 30);
    let faults = Faults { crashes: 1, losses: 1, ..Faults::default() };
    let bounds = Bounds { epochs: 3, recovery: 0, pause: 8 };
    holds("classic, faults", Worlds::of(first, faults, bounds, true, None), &[INVARIANTS]);
}

fn try_majority(title: &str, n: usize, faults: Faults) {
    let first = settle(fresh(majority(n), Faults::default()), 40);
    let bounds = Bounds { epochs: 2, recovery: 14, pause: 8 };
    holds(title, Worlds::of(first, faults, bounds, false, None), &[TWO_LEADERS, SAME_EPOCH, INVARIANTS]);
}

#[test]
fn majority_crash() {
    try_majority("majority, a crash", 3, Faults { crashes: 1, ..Faults::default() });
}

#[test]
fn majority_loss() {
    try_majority("majority, loss", 3, Faults { losses: 1, ..Faults::default() });
}

#[test]
fn majority_cut() {
    try_majority("majority, a cut", 3, Faults { cuts: 1, ..Faults::default() });
}

#[test]
fn majority_wipe() {
    try_majority("majority, a lost disk", 3, Faults { crashes: 1, wipes: 1, ..Faults::default() });
}

#[test]
fn majority_delay() {
    try_majority("majority, a delay", 3, Faults { delays: 1, ..Faults::default() });
}
#[test]
fn majority_pause() {
    try_majority("majority, a pause", 3, Faults { pauses: 1, ..Faults::default() });
}

#[test]
#[ignore]
fn explore() {
    let v = |name: &str, default: u64| std::env::var(name).ok().map_or(default, |v| v.parse().unwrap());
    let faults = Faults {
        crashes: v("C", 0) as u8, wipes: v("W", 0) as u8, losses: v("L", 0) as u8, delays: v("D", 0) as u8,
        cuts: v("X", 0) as u8, pauses: v("P", 0) as u8, stops: v("S", 0) as u8,
    };
    let mut rules = if v("CLASSIC", 0) > 0 { rules(v("N", 3) as usize, Safety::Classic) } else { majority(v("N", 3) as usize) };
    rules.evidence = v("EV", 0) > 0;
    rules.in_order = v("INORDER", 0) > 0;
    if let Ok(rates) = std::env::var("RATES") {
        rules.rates = rates.split(',').map(|r| r.parse().unwrap()).collect();
    }
    for s in &mut rules.settings {
        if v("RELEASE", 0) > 0 { s.crash_evidence = CrashEvidence::Release; }
        if v("LEASE", 0) > 0 { s.failure_timeout = ticks(v("LEASE", 0)); }
        if v("ANSWER", 0) > 0 { s.answer_timeout = ticks(v("ANSWER", 0)); s.coordinator_timeout = ticks(v("ANSWER", 0) + 1); }
    }
    let first = settle(fresh(rules, Faults::default()), v("SETTLE", 40));
    let bounds = Bounds { epochs: v("E", 2), recovery: v("R", 14), pause: v("PM", 8) };
    let calm = Some(v("CALM", 0)).filter(|c| *c > 0);
    let model = Worlds::of(first, faults, bounds, v("CLASSIC", 0) > 0, calm);
    let found = search("explore", model, Duration::from_secs(v("LIMIT", 100)), &[TWO_LEADERS, SAME_EPOCH, INVARIANTS, AGREED]);
    if let Some((property, path)) = &found.path {
        println!("{property}\n{}", told(path));
    }
}
