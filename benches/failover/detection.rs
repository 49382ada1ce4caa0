//! What adaptive leases gain: how long until all others agree once a leader is stopped, its network is cut,
//! or it dies where crash evidence frees no promise. Fixed leases beside them.

use super::rounds::{self, Cause, PATIENCE, RESIGNATION_MAX};
use super::{Bound, MEMORY, PROGRAM, Row, SIZES, plan, print, relay, running};
use bellwether::demo::process_cluster::{Agreement, ClusterError, ClusterPlan, ProcessCluster};
use std::path::Path;
use std::time::{Duration, Instant};

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

/// What starts a relay.
type Relay = fn(u16) -> std::io::Result<u16>;

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
    let relay: Option<Relay> = Some(relay::start);
    for (what, states, relay, round) in [
        ("hang", None, None, hang as Round),
        ("network cut", None, relay, cut),
        ("majority, hang", memory, None, hang),
        ("majority, network cut", memory, relay, cut),
        ("majority, crash", memory, None, crash),
    ] {
        let times = |rounds, mode| {
            let flags = ["--lease-mode", mode];
            let plan = ClusterPlan { relay, ..plan(Path::new(PROGRAM), n, &flags, states, logs)? };
            times(plan, rounds, round)
        };
        let adaptive = times(rounds, "adaptive")?;
        good &= print(&Row { n, what, times: adaptive, bound: Bound::MedianAndP99(MEDIAN, P99) });
        let fixed = times(rounds.div_ceil(FIXED_SHARE), "fixed")?;
        print(&Row { n, what: "  with fixed leases", times: fixed, bound: Bound::None });
    }
    Ok(good)
}

fn times(plan: ClusterPlan, rounds: usize, round: Round) -> Result<Vec<Duration>, String> {
    let (mut processes, mut now) = running(plan)?;
    processes.ask_every(Some(ASK_EVERY));
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

/// Nothing passes from or to the leader, until the others agree. Then it ends, and comes back as another
/// incarnation: the former one would remember for minutes how late answers can be.
fn cut(processes: &mut ProcessCluster, now: &mut Agreement) -> Result<Duration, String> {
    let text = |error: ClusterError| error.to_string();
    rounds::acquainted(processes)?;
    let others = rounds::others(processes, now.leader);
    let peer = processes.ports(now.leader).peer;
    let at = Instant::now();
    relay::cut(peer);
    let next = processes.agree_among(&others, now.epoch, PATIENCE);
    processes.kill(now.leader);
    let ended = processes.wait(now.leader, RESIGNATION_MAX);
    relay::heal(peer);
    let next = next.map_err(text)?;
    ended.map_err(text)?;
    rounds::bring_back(processes, now.leader, &[], &next)?;
    let took = next.since.saturating_duration_since(at);
    *now = next;
    Ok(took)
}
