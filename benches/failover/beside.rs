//! This version beside another program, for instance of an earlier version. The rounds of both alternate, so
//! that the machine's noise hits both alike.

use super::rounds::{self, Cause};
use super::{Bound, MEMORY, Row, SIZES, ms, percentile, print, started_with, usage};
use std::path::Path;
use std::time::{Duration, Instant};

/// Clusters of each program for each row. Identities are random, and the time of a round depends on them.
const CLUSTERS: usize = 6;
/// Rounds of each cluster.
const ROUNDS: usize = 50;
/// As [`ROUNDS`], where a round takes a lease.
const SLOW_ROUNDS: usize = 5;
/// Starts of all processes of a cluster.
const STARTS: usize = 20;
/// How long five processes are left alone before their memory is read, in each cluster.
const REST: Duration = Duration::from_secs(10);
/// The default of `--heartbeat`. The rounds that take a lease begin at moments spread over one interval:
/// silence counts from the last heartbeat.
const HEARTBEAT: Duration = Duration::from_millis(250);
/// The most that a median may be above the other program's, in percent.
const WORSE_PERCENT_MAX: f64 = 5.0;

/// What a row does: its cause, its words, whether the level is `majority`, its flags, and whether a round
/// waits for the end of a lease.
struct Kind {
    cause: Cause,
    what: &'static str,
    majority: bool,
    flags: &'static [&'static str],
    slow: bool,
}

const KINDS: [Kind; 5] = [
    Kind { cause: Cause::Crash, what: "crash", majority: false, flags: &[], slow: false },
    Kind { cause: Cause::Resignation, what: "resignation", majority: false, flags: &[], slow: false },
    Kind {
        cause: Cause::Resignation,
        what: "majority, resignation",
        majority: true,
        flags: &[],
        slow: false,
    },
    Kind {
        cause: Cause::Crash,
        what: "majority, crash, release",
        majority: true,
        flags: &["--crash-evidence", "release"],
        slow: false,
    },
    Kind { cause: Cause::Crash, what: "majority, crash", majority: true, flags: &[], slow: true },
];

/// The programs that are compared, the newer one first.
type Programs<'a> = [&'a Path; 2];

/// Whether no figure is more than 5 % above the other program's. `channel`: the flags that turn the channel
/// on.
pub fn measure(programs: Programs<'_>, channel: &[&str], logs: &Path) -> Result<bool, String> {
    let mut good = true;
    for n in SIZES {
        good &= compare(n, "start of all", starts(programs, n, false, logs)?);
        good &= compare(n, "majority, start of all", starts(programs, n, true, logs)?);
        for kind in &KINDS {
            good &= compare(n, kind.what, failovers(programs, n, kind, logs)?);
        }
    }
    for (what, flags) in [("in clear", &[][..]), ("channel", channel)] {
        let [new, old] = resident_mib(programs, flags, logs)?;
        good &= verdict(&format!("resident memory, {what}: {new:.2} MiB and {old:.2} MiB"), new, old);
    }
    Ok(good)
}

/// The resident memory of a process that is left alone: the median of all processes of several clusters.
fn resident_mib(programs: Programs<'_>, flags: &[&str], logs: &Path) -> Result<[f64; 2], String> {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..CLUSTERS {
        for (program, all) in programs.iter().zip(&mut all) {
            let (processes, _now) = started_with(program, 5, flags, None, logs)?;
            all.extend(usage::idle(&processes, REST)?.resident_kib());
        }
    }
    Ok(all.map(|mut kib: Vec<u64>| {
        kib.sort_unstable();
        kib[kib.len() / 2] as f64 / 1024.0
    }))
}

/// How long it takes from the start of all processes until they agree.
fn starts(
    programs: Programs<'_>,
    n: usize,
    majority: bool,
    logs: &Path,
) -> Result<[Vec<Duration>; 2], String> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (program, times) in programs.iter().zip(&mut times) {
            let records = tempfile::tempdir_in(MEMORY).map_err(|e| format!("no folder for records: {e}"))?;
            let states = majority.then(|| records.path());
            let began = Instant::now();
            let (_processes, now) = started_with(program, n, &[], states, logs)?;
            times.push(now.since.saturating_duration_since(began));
        }
    }
    Ok(times)
}

/// How long the failovers of a row take.
fn failovers(
    programs: Programs<'_>,
    n: usize,
    kind: &Kind,
    logs: &Path,
) -> Result<[Vec<Duration>; 2], String> {
    let mut times = [Vec::new(), Vec::new()];
    for cluster in 0..CLUSTERS {
        let records = tempfile::tempdir_in(MEMORY).map_err(|e| format!("no folder for records: {e}"))?;
        let states = kind.majority.then(|| records.path());
        let mut clusters = Vec::new();
        for program in programs {
            clusters.push(started_with(program, n, kind.flags, states, logs)?);
        }
        for at in 0..if kind.slow { SLOW_ROUNDS } else { ROUNDS } {
            for ((processes, now), times) in clusters.iter_mut().zip(&mut times) {
                if kind.slow {
                    std::thread::sleep(HEARTBEAT.mul_f64(spread(cluster * SLOW_ROUNDS + at)));
                }
                let round = rounds::round(processes, now, kind.cause);
                times.push(round.map_err(|e| format!("{}: {e}", kind.what))?.0);
            }
        }
    }
    Ok(times)
}

/// The share of an interval at which a round begins: all are spread evenly over it.
fn spread(at: usize) -> f64 {
    at as f64 / (CLUSTERS * SLOW_ROUNDS) as f64
}

/// Prints a row of each program, and how far their medians are apart.
fn compare(n: usize, what: &str, times: [Vec<Duration>; 2]) -> bool {
    let medians = times.map(|mut times| {
        times.sort_unstable();
        let median = ms(percentile(&times, 50));
        print(&Row { n, what, times, bound: Bound::None });
        median
    });
    let [new, old] = medians;
    verdict("medians", new, old)
}

/// Prints how far one figure is above the other, and whether that is within the bound.
fn verdict(what: &str, new: f64, old: f64) -> bool {
    let worse = 100.0 * (new / old - 1.0);
    let good = worse <= WORSE_PERCENT_MAX;
    let word = if good { "ok" } else { "OVER" };
    println!("    {what}, this beside the other: {worse:+.1} %; at most {WORSE_PERCENT_MAX} %: {word}");
    good
}
