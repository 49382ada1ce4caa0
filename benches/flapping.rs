//! Whether adaptive leases flap where sidecars get little of the processor, or delays jump, beside a fixed
//! lease of 250 ms: `cargo bench --bench flapping [-- --minutes 30] [--under weight|quota|jumps]`. But
//! for `jumps` it needs root, for control groups.
//!
//! - `weight`: the sidecars of a cluster have one control group of the least CPU weight. That is how the pods
//!   of a node share, if none has CPU requests. stress-ng keeps all cores busy in a group of normal weight.
//! - `quota`: each sidecar has a group with a quota of 10 % of a core, and shares it with a busy neighbour.
//! - `jumps`: what one sidecar sends to another takes from 1 to 150 ms, and that jumps twice a second.
//!
//! All clusters of three run at once. The disturbance begins once each has a leader. The first minute after
//! that does not count. Fails when a cluster with adaptive leases has more than one change of its leader, or
//! had none for longer than two of its longest leases.

#[path = "flapping/group.rs"]
mod group;
#[path = "relay.rs"]
#[allow(dead_code)]
mod relay;

use bellwether::demo::process_cluster::{ClusterPlan, ProcessCluster};
use group::{Group, Limit};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

const N: usize = 3;
const MINUTES: u64 = 30;
/// How long a leader may learn before changes count.
const UNCOUNTED: Duration = Duration::from_secs(60);
/// How long all wait for their first leader.
const PATIENCE: Duration = Duration::from_secs(30);
/// Processes are not asked while they run: questions would be a load, and logs tell more.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Between two looks for an interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Two of the longest leases.
const LEADERLESS_MAX: Duration = Duration::from_secs(3);
/// Leader changes that are allowed.
const CHANGES_MAX: usize = 1;
/// Keeps all cores busy. Fewer workers delay turns less.
const STRESS: &str = "exec stress-ng --cpu 8 --quiet";
/// A neighbour that wants all it can get.
const BUSY: &str = "while :; do :; done";
const ADAPTIVE: &str = "--lease-mode adaptive";
/// The fixed lease of 250 ms. Shorter timeouts make it possible.
const FIXED: &str =
    "--lease-mode fixed --lease 250ms --heartbeat 50ms --answer-timeout 100ms --dial-timeout 100ms";
const LOGS: &str = "--log-format json";

/// What disturbs the sidecars.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Weight,
    Quota,
    Jumps,
}

/// A cluster, what it is called in the table, and the groups of its processes.
struct Tried {
    what: String,
    adaptive: bool,
    processes: ProcessCluster,
    groups: Vec<Group>,
}

/// What the logs of a cluster say of the counted time.
struct Seen {
    changes: usize,
    leaderless: Duration,
}

fn main() -> ExitCode {
    let asked = asked(std::env::args().skip(1));
    match asked.and_then(|(under, minutes)| run(under, Duration::from_secs(minutes * 60))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What the command line asks for. Cargo itself adds `--bench`.
fn asked(mut args: impl Iterator<Item = String>) -> Result<(Under, u64), String> {
    let (mut under, mut minutes) = (Under::Weight, MINUTES);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--minutes" => {
                let number = args.next().and_then(|n| n.parse().ok()).filter(|n| (2..=600).contains(n));
                minutes = number.ok_or("--minutes needs a number from 2 to 600")?;
            }
            "--under" => {
                under = match args.next().as_deref() {
                    Some("weight") => Under::Weight,
                    Some("quota") => Under::Quota,
                    Some("jumps") => Under::Jumps,
                    _ => return Err("--under needs weight, quota or jumps".to_owned()),
                }
            }
            _ => {
                return Err(format!(
                    "{arg} is not known; there are --minutes N and --under weight|quota|jumps"
                ));
            }
        }
    }
    Ok((under, minutes))
}

/// Whether adaptive leases keep to their bounds.
fn run(under: Under, lasts: Duration) -> Result<bool, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(|error| error.to_string())?;
    }
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for logs and records: {error}"))?;
    let mut tried = Vec::new();
    for majority in [false, true] {
        for adaptive in [true, false] {
            tried.push(Tried::start(under, majority, adaptive, folder.path())?);
        }
    }
    let at_most = lasts + PATIENCE;
    let stress = (under == Under::Weight).then(|| Group::new("stress", Limit::Normal));
    let mut stress = stress.transpose()?;
    let loaded: Vec<(&mut Group, &str)> = match under {
        Under::Weight => stress.iter_mut().map(|group| (group, STRESS)).collect(),
        Under::Quota => tried.iter_mut().flat_map(|it| &mut it.groups).map(|group| (group, BUSY)).collect(),
        Under::Jumps => {
            relay::begin_to_delay();
            Vec::new()
        }
    };
    for (group, command) in loaded {
        group.load(command, at_most)?;
    }
    pass(UNCOUNTED, &interrupted)?;
    let (from, counted) = (SystemTime::now(), lasts.saturating_sub(UNCOUNTED));
    pass(counted, &interrupted)?;
    let until = SystemTime::now();
    if stress.as_mut().is_some_and(|stress| !stress.is_loaded()) {
        return Err("stress-ng has ended early, or is not there (Debian's package is stress-ng)".to_owned());
    }
    println!(
        "{:.0} minutes, after the first; {}:",
        counted.as_secs_f64() / 60.0,
        match under {
            Under::Weight =>
                "stress-ng on all cores, a cluster's sidecars in a group of the least CPU weight",
            Under::Quota => "a quota of 10 % of a core, shared with a busy neighbour",
            Under::Jumps => "delays of 1 to 150 ms each way, which jump",
        }
    );
    println!("{:<22} {:>7} {:>17}", "3 processes", "changes", "leaderless, at most");
    let mut good = true;
    for cluster in &tried {
        let seen = cluster.seen(from, until)?;
        println!("{:<22} {:>7} {:>15} ms", cluster.what, seen.changes, seen.leaderless.as_millis());
        good &= !cluster.adaptive || (seen.changes <= CHANGES_MAX && seen.leaderless <= LEADERLESS_MAX);
    }
    if !good {
        println!("adaptive leases are over their bounds; logs: {}", folder.keep().display());
    }
    Ok(good)
}

/// Lets time pass. An interrupt ends the run in order: no group and no load stays behind.
fn pass(time: Duration, interrupted: &AtomicBool) -> Result<(), String> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if interrupted.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        std::thread::sleep(LOOK_EVERY.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

impl Tried {
    fn start(under: Under, majority: bool, adaptive: bool, folder: &Path) -> Result<Tried, String> {
        let level = if majority { "majority" } else { "classic" };
        let what = format!("{level}, {}", if adaptive { "adaptive" } else { "fixed 250 ms" });
        let short = what.replace([',', ' '], "");
        let own = folder.join(&short);
        std::fs::create_dir(&own).map_err(|error| error.to_string())?;
        let flags = [if adaptive { ADAPTIVE } else { FIXED }, LOGS];
        let plan = ClusterPlan {
            binary: env!("CARGO_BIN_EXE_bellwether").into(),
            n: N,
            base_port: None,
            flags: flags.iter().flat_map(|flags| flags.split(' ')).map(str::to_owned).collect(),
            majority: majority.then(|| own.clone()),
            logs: Some(own),
            relay: (under == Under::Jumps).then_some(relay::start),
        };
        let mut processes = ProcessCluster::new(plan).map_err(|error| error.to_string())?;
        processes.start_all().map_err(|error| error.to_string())?;
        processes.agree(0, PATIENCE).map_err(|error| error.to_string())?;
        processes.ask_every(Some(ASK_EVERY));
        let (limit, count) = match under {
            Under::Weight => (Limit::Least, 1),
            Under::Quota => (Limit::Quota10, N),
            Under::Jumps => (Limit::Normal, 0),
        };
        let groups: Vec<Group> =
            (0..count).map(|at| Group::new(&format!("{short}{at}"), limit)).collect::<Result<_, String>>()?;
        for (place, group) in (0..N).zip(groups.iter().cycle()) {
            group.add(processes.pid(place).ok_or("a process has ended")?)?;
        }
        Ok(Tried { what, adaptive, processes, groups })
    }

    /// What happened between these two instants.
    fn seen(&self, from: SystemTime, until: SystemTime) -> Result<Seen, String> {
        let mut terms: Vec<(SystemTime, bool, Duration)> = Vec::new();
        for place in 0..N {
            for line in self.processes.log(place).lines() {
                let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
                let begins = line["event"] == "leader_elected";
                if line["me"] != true || !(begins || line["event"] == "leader_lost") {
                    continue;
                }
                let at = line["ts"].as_str().and_then(|at| humantime::parse_rfc3339(at).ok());
                let gap = Duration::try_from_secs_f64(line["gap_ms"].as_f64().unwrap_or(0.0) / 1000.0);
                terms.push((at.ok_or("a log line without a time")?, begins, gap.unwrap_or_default()));
            }
        }
        if terms.is_empty() {
            return Err(format!("{}: the logs name no leader at all", self.what));
        }
        terms.sort_unstable();
        let counted = terms.iter().filter(|(at, begins, _)| *begins && *at >= from && *at <= until);
        let gaps: Vec<Duration> = counted.map(|(_, _, gap)| *gap).collect();
        let mut leaderless = gaps.iter().copied().max().unwrap_or_default();
        // No member leads at the end, perhaps since long.
        let begun = terms.iter().filter(|(_, begins, _)| *begins).count();
        if begun * 2 <= terms.len()
            && let Some((lost, _, _)) = terms.last()
        {
            leaderless = leaderless.max(until.duration_since((*lost).max(from)).unwrap_or_default());
        }
        Ok(Seen { changes: gaps.len(), leaderless })
    }
}
