//! The leader dies or leaves, and the others go on.

use crate::harness::started;
use crate::rounds::{self, ANSWER_TIMEOUT, Cause, FAILURE_TIMEOUT};
use std::time::Duration;

/// As many failovers: how long each took, sorted. Leases are fixed, so that silence takes far longer than
/// evidence.
fn failovers(n: usize, cause: Cause, rounds: usize, flags: &[&str]) -> Vec<Duration> {
    let (mut real, mut now) = started(n, &[&["--preempt", "never", "--lease-mode", "fixed"], flags].concat());
    let mut times = Vec::new();
    for round in 1..=rounds {
        let wrong = |error| panic!("{cause:?}, n = {n}, round {round}: {error}");
        let (took, _) = rounds::round(&mut real, &mut now, cause).unwrap_or_else(wrong);
        times.push(took);
    }
    times.sort_unstable();
    println!("{cause:?}, n = {n}, {flags:?}: median {:?}, max {:?}", times[rounds / 2], times[rounds - 1]);
    times
}

/// With evidence no process waits for silence; the benchmark measures how fast it is then.
fn without_silence(n: usize, cause: Cause, rounds: usize) {
    let times = failovers(n, cause, rounds, &[]);
    assert!(times[rounds / 2] < FAILURE_TIMEOUT / 4, "{times:?}");
}

fn by_silence(n: usize, rounds: usize) {
    let times = failovers(n, Cause::Crash, rounds, &["--crash-evidence", "off"]);
    assert!(times[rounds - 1] <= FAILURE_TIMEOUT + ANSWER_TIMEOUT, "{times:?}");
    assert!(times[0] > FAILURE_TIMEOUT / 2, "there was evidence after all: {times:?}");
}

#[test]
fn survivors_of_a_crash_agree_on_a_new_leader_in_a_higher_epoch() {
    without_silence(3, Cause::Crash, 10);
    without_silence(5, Cause::Crash, 10);
}

#[test]
fn after_a_resignation_the_best_ranked_member_leads() {
    without_silence(3, Cause::Resignation, 10);
    without_silence(5, Cause::Resignation, 10);
}

#[test]
fn without_crash_evidence_silence_decides_within_its_bound() {
    by_silence(3, 2);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_crashes_and_resignations() {
    for n in [3, 5] {
        for cause in [Cause::Crash, Cause::Resignation] {
            without_silence(n, cause, 100);
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_crashes_without_evidence() {
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| by_silence(3, 20));
            scope.spawn(|| by_silence(5, 20));
        }
    });
}
