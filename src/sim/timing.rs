//! Draws the timeouts of a run, within what `config` allows, and changes of `--lease` in the middle of it.

use super::clock::{MS, Ns, ns};
use super::fault::{Fault, Kind};
use super::link_faults::{Classes, Effect};
use super::plan::Plan;
use super::target::{Between, Target};
use crate::election::{DRIFT, LEASE_MIN_SHORTEST, Preempt, Settings, TOLD_OFTEN_MAX};
use fastrand::Rng;
use std::time::Duration;

const SECOND: Ns = 1000 * MS;
/// How much longer than the shortest one a lease is at most.
const LONGER_MS: u64 = 3_000;
/// The longest delay that a jump adds.
const DELAY_JUMP_MAX: Ns = 150 * MS;

/// The shortest lease that goes with these settings, in milliseconds. Four heartbeats fit in. Two of them and
/// an answer fit in what a leader counts on of it.
fn shortest_lease_ms(settings: &Settings) -> u64 {
    let ms = |duration: Duration| ns(duration) / MS;
    let (heartbeat, answer) = (ms(settings.heartbeat), ms(settings.answer_timeout));
    let drift = u64::from(DRIFT);
    (4 * heartbeat).max(((2 * heartbeat + answer) * drift).div_ceil(drift - 1))
}

/// A lease, often the shortest one.
fn lease(random: &mut Rng, settings: &Settings) -> Duration {
    let longer = match random.u8(0..4) {
        0 => 0,
        1 => random.u64(0..=300),
        _ => random.u64(0..=LONGER_MS),
    };
    Duration::from_millis(shortest_lease_ms(settings) + longer)
}

/// Other timeouts than the defaults, the same for all processes.
pub(super) fn timeouts(random: &mut Rng, settings: &mut Settings) {
    let ms = Duration::from_millis;
    settings.heartbeat = match random.u8(0..32) {
        // Rare, because each costs as much as ten other runs.
        0 => ms(random.u64(10..=50)),
        1..=6 => ms(random.u64(50..=150)),
        _ => ms(random.u64(150..=500)),
    };
    // A dial may take 200 ms, and an answer no less.
    settings.answer_timeout = ms(random.u64(200..=700));
    // `config` allows less. In the paper's procedure elections then begin anew for good. The coordinator
    // timeout has to outlast an answer timeout, two ways of a message, and what clocks are slewed apart.
    settings.coordinator_timeout = settings.answer_timeout + ms(random.u64(200..=1_200));
    settings.failure_timeout = lease(random, settings);
    settings.stable_margin = ms(random.u64(0..=1_500));
    settings.start_timeout = settings.stable_margin + ms(random.u64(0..=3_000));
    if let Preempt::After(delay) = &mut settings.preempt {
        *delay = settings.heartbeat.max(*delay);
    }
}

/// Leaders learn how long leases have to be: all of them, or each other one.
pub(super) fn adapt(random: &mut Rng, plan: &mut Plan) {
    let least = LEASE_MIN_SHORTEST.as_millis() as u64;
    let (shortest, every) = (random.u64(least..=2 * least), random.usize(1..=2));
    let often = random.usize(1..=TOLD_OFTEN_MAX);
    for place in plan.places.iter_mut().step_by(every) {
        place.settings.lease_min = Some(Duration::from_millis(shortest));
        place.settings.told_often_max = often;
    }
}

/// The delay of what each process sends jumps again and again, by itself.
pub(super) fn jump_delays(random: &mut Rng, plan: &mut Plan) {
    let (most, every) = (random.u64(5 * MS..=DELAY_JUMP_MAX), random.u64(300 * MS..=3 * SECOND));
    for jump in 0..plan.chaos / every {
        for place in 0..plan.n {
            let effect = Effect::Slow(random.u64(0..=most));
            let between = Between::From(Target::Place(place));
            let kind = Kind::Disturb { between, classes: Classes::ALL, effect };
            plan.faults.push(Fault { at: jump * every, cue: None, lasts: every, kind });
        }
    }
}

/// Processes get another `--lease`, which takes a restart. All of them are restarted one after the other,
/// once or twice; or a single one in error, which is put right later or not.
pub(super) fn change_leases(random: &mut Rng, plan: &mut Plan) {
    let mut at = random.u64(SECOND..=5 * SECOND);
    let before = plan.places[0].settings.failure_timeout;
    let other = lease(random, &plan.places[0].settings);
    let mut order: Vec<usize> = (0..plan.n).collect();
    let step = random.u64(50 * MS..=longest_step(plan.n));
    let rounds = match random.u8(0..6) {
        0 | 1 => {
            order = vec![random.usize(0..plan.n)];
            if random.bool() { vec![other] } else { vec![other, before] }
        }
        2 | 3 => vec![other],
        4 => vec![other, before],
        _ => vec![other, lease(random, &plan.places[0].settings)],
    };
    let in_error = order.len() == 1;
    for lease in rounds {
        random.shuffle(&mut order);
        for place in &order {
            let lasts = random.u64(50 * MS..=600 * MS);
            plan.faults.push(Fault {
                at,
                cue: None,
                lasts,
                kind: Kind::ChangeLease { place: *place, lease, in_error },
            });
            at += step;
        }
        at += random.u64(0..=3 * SECOND);
    }
    plan.chaos = plan.chaos.max(at);
}

/// In one of eight runs leases have room for holds that outlast what a leader remembers of its applications.
pub(super) fn long_lease(random: &mut Rng, settings: &mut Settings) {
    if random.u8(0..8) == 0 {
        settings.failure_timeout = Duration::from_millis(random.u64(6_000..=12_000));
    }
}

/// The longest time between two restarts of a row, so that all of them take some ten seconds at most.
pub(super) fn longest_step(n: usize) -> Ns {
    (10 * SECOND / n as Ns).min(1_500 * MS)
}

/// The longest lease that any process is ever given.
pub(super) fn longest_lease(plan: &Plan) -> Duration {
    let given = plan.places.iter().map(|place| place.settings.failure_timeout);
    let changed = plan.faults.iter().filter_map(|fault| match fault.kind {
        Kind::ChangeLease { lease, .. } => Some(lease),
        _ => None,
    });
    given.chain(changed).max().unwrap_or_default()
}
