//! What adaptive leases gain: how long until all others agree once a leader is stopped, or dies where crash
//! evidence frees no promise. Fixed leases beside them.

use super::rounds::{self, Cause};
use super::{Bound, MEMORY, Row, SIZES, print, started};
use bellwether::demo::process_cluster::{Agreement, ProcessCluster};
use std::path::Path;
use std::time::Duration;

/// Longer than a stall that a leader learns from.
const STOPPED: Duration = Duration::from_secs(1);
/// What comes before a round: longer than any lease that is promised for another reason. A resumed leader
/// votes late for its successor. While one of three is missing leases are the longest, since the other
/// follower alone could elect no leader. A first leader without a memory asks for the longest lease for two
/// seconds.
const REST: Duration = Duration::from_secs(2);
/// How often processes are asked: as fast as can be, questions would be the load that leaders learn from.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// What is promised for a quiet network.
const MEDIAN: Duration = Duration::from_millis(250);
const P99: Duration = Duration::from_millis(400);
/// How many rounds with adaptive leases come to one with fixed ones, which takes six times as long.
const FIXED_SHARE: usize = 5;

/// One round with a cluster that agrees on a leader: how long it took.
type Round = fn(&mut ProcessCluster, &mut Agreement) -> Result<Duration, String>;

/// Prints the rows of both sizes at once, adaptive leases beside fixed ones. Says whether the adaptive ones
/// are within their bounds.
pub fn measure(rounds: usize, logs: &Path) -> Result<bool, String> {
    let records = tempfile::tempdir_in(MEMORY).map_err(|error| format!("no folder for records: {error}"))?;
    let memory = Some(records.path());
    // Each waits most of the time.
    let sizes = std::thread::scope(|scope| {
        let threads = SIZES.map(|n| scope.spawn(move || measure_size(n, rounds, memory, logs)));
        threads.map(|thread| thread.join().unwrap_or(Err("a thread panicked".to_owned())))
    });
    sizes.into_iter().try_fold(true, |good, size| Ok(good & size?))
}

/// The rows of one size.
fn measure_size(n: usize, rounds: usize, memory: Option<&Path>, logs: &Path) -> Result<bool, String> {
    let mut good = true;
    for (what, states, round) in
        [("hang", None, hang as Round), ("majority, hang", memory, hang), ("majority, crash", memory, crash)]
    {
        let times = |rounds, mode| times(n, rounds, mode, states, round, logs);
        let adaptive = times(rounds, "adaptive")?;
        good &= print(&Row { n, what, times: adaptive, bound: Bound::MedianAndP99(MEDIAN, P99) });
        let fixed = times(rounds.div_ceil(FIXED_SHARE), "fixed")?;
        print(&Row { n, what: "  with fixed leases", times: fixed, bound: Bound::None });
    }
    Ok(good)
}

fn times(
    n: usize,
    rounds: usize,
    mode: &str,
    states: Option<&Path>,
    round: Round,
    logs: &Path,
) -> Result<Vec<Duration>, String> {
    let (mut processes, mut now) = started(n, &["--lease-mode", mode], Some(ASK_EVERY), states, logs)?;
    std::thread::sleep(REST);
    let mut times = Vec::new();
    for number in 1..=rounds {
        std::thread::sleep(REST);
        let wrong = |error| format!("round {number}: {error}");
        times.push(round(&mut processes, &mut now).map_err(wrong)?);
    }
    Ok(times)
}

fn hang(processes: &mut ProcessCluster, now: &mut Agreement) -> Result<Duration, String> {
    let (next, pause) = rounds::pause(processes, now, STOPPED)?;
    *now = next;
    Ok(pause.took)
}

fn crash(processes: &mut ProcessCluster, now: &mut Agreement) -> Result<Duration, String> {
    rounds::round(processes, now, Cause::Crash).map(|(took, _)| took)
}
