//! Memory, threads and processor time of processes that are left alone.

use crate::harness::started;
use crate::usage::{self, RoundTrip};
use std::time::Duration;

/// The promises are those of the release build, which the benchmark checks (5 MiB, 0.5 %). A debug build's
/// program alone takes 14 MiB, so there only what a process allocates is checked.
const RESIDENT_KIB_MAX: u64 = 5 * 1024;
const CPU_PERCENT_MAX: f64 = if cfg!(debug_assertions) { 2.0 } else { 0.5 };
/// On a slow machine what as many round trips over loopback take in a second.
const CPU_ROUND_TRIPS_MAX: u32 = if cfg!(debug_assertions) { 320 } else { 80 };
/// A follower has seven threads of its own, and a few of its pools until they have been idle for a while.
const THREADS_MAX: u64 = 24;

fn left_alone(watched: Duration) {
    let round_trip = RoundTrip::measured().unwrap();
    let percent_max = CPU_PERCENT_MAX.max(round_trip.percent(CPU_ROUND_TRIPS_MAX));
    let (real, _) = started(5, &[]);
    let idle = usage::idle(&real, watched).unwrap();
    println!(
        "n = 5, {}: resident {:.2} MiB, peak {:.2}, not backed by a file {:.2}; {} threads; {:.0} \
         wake-ups a second; {:.2} % of a core, {percent_max:.2} are allowed where a round trip over \
         loopback takes {:?}",
        if cfg!(debug_assertions) { "debug build" } else { "release build" },
        idle.resident_kib_max() as f64 / 1024.0,
        idle.resident_peak_kib_max() as f64 / 1024.0,
        idle.anonymous_kib_max() as f64 / 1024.0,
        idle.threads_max(),
        idle.wake_ups_max(),
        idle.cpu_percent_max(),
        round_trip.took
    );
    let debug = cfg!(debug_assertions);
    let resident = if debug { idle.anonymous_kib_max() } else { idle.resident_kib_max() };
    assert!(resident <= RESIDENT_KIB_MAX, "{resident} KiB; {RESIDENT_KIB_MAX} are allowed");
    assert!(idle.threads_max() <= THREADS_MAX);
    assert!(idle.cpu_percent_max() < percent_max);
}

#[test]
fn processes_that_are_left_alone_use_little() {
    left_alone(Duration::from_secs(5));
}

#[test]
#[ignore = "takes half a minute"]
fn processes_that_are_left_alone_for_long_use_little() {
    left_alone(Duration::from_secs(30));
}
