//! What more members cost, with real processes on loopback:
//! `cargo bench --bench scale [-- --rounds 10] [--sizes 3,5,10,30,100] [--plots docs/scale]
//! [--image PROGRAM]`.
//!
//! For each size: a start of all at once, crashes and resignations of the leader, and what the processes use
//! that are left alone. Times are from the logs, since questions to a hundred processes would be a load: to a
//! millisecond. A start counts from that of the last process, all else from the signal, until the last
//! process knows the leader. `--plots` writes a picture of each figure into a folder. `--image` measures the
//! image's program in the place of the bench's own, which takes more memory.
//!
//! Fails where a bound for the largest size is not kept: 3 s for a start, and 100 ms for the median after a
//! crash.

#[path = "failover/percentile.rs"]
mod percentile;
#[path = "scale/plot.rs"]
mod plot;
#[path = "../tests/processes/rounds.rs"]
#[allow(dead_code)]
mod rounds;
#[path = "../tests/processes/usage.rs"]
#[allow(dead_code)]
mod usage;
#[path = "../tests/support/wait.rs"]
mod wait;

use bellwether::demo::process_cluster::{Agreement, ClusterPlan, ProcessCluster};
use percentile::{ms, percentile};
use plot::Line;
use rounds::{PATIENCE, RESIGNATION_MAX};
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use usage::{Spent, Usage};

const ROUNDS: usize = 10;
/// A log has 64 changes of the leader in a row one by one, and each round has two.
const ROUNDS_A_CLUSTER: usize = 25;
const SIZES: [usize; 5] = [3, 5, 10, 30, 100];
/// Processes are asked so often whether they agree: hardly a load.
const ASK_EVERY: Duration = Duration::from_millis(250);
const LEFT_ALONE: Duration = Duration::from_secs(20);
/// After a start, links that nothing needs are closed for about so long.
const SETTLED: Duration = Duration::from_secs(30);
const START_MAX: Duration = Duration::from_secs(3);
const CRASH_MEDIAN_MAX: Duration = Duration::from_millis(100);
const LO: &str = "lo:";

/// What the command line asks for.
struct Asked {
    rounds: usize,
    sizes: Vec<usize>,
    program: PathBuf,
    /// Where pictures go.
    plots: Option<PathBuf>,
}

fn main() -> ExitCode {
    match asked(std::env::args().skip(1)).and_then(|asked| run(&asked)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What the command line asks for. Cargo itself adds `--bench`.
fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let program = env!("CARGO_BIN_EXE_bellwether").into();
    let mut asked = Asked { rounds: ROUNDS, sizes: SIZES.to_vec(), program, plots: None };
    while let Some(arg) = args.next() {
        let value = if arg == "--bench" { String::new() } else { args.next().unwrap_or_default() };
        match arg.as_str() {
            "--bench" => {}
            "--rounds" => {
                let number = value.parse().ok().filter(|n| *n > 0);
                asked.rounds = number.ok_or("--rounds needs a number from 1 on")?;
            }
            "--sizes" => {
                let sizes = value.split(',').map(|n| n.parse().ok().filter(|n| (2..=256).contains(n)));
                asked.sizes =
                    sizes.collect::<Option<_>>().ok_or("--sizes needs numbers from 2 to 256, with commas")?;
            }
            "--plots" if !value.is_empty() => asked.plots = Some(value.into()),
            "--image" if !value.is_empty() => asked.program = value.into(),
            _ => {
                return Err(format!(
                    "{arg} is not known; there are --rounds N, --sizes N,N, --plots FOLDER and \
                     --image PROGRAM"
                ));
            }
        }
    }
    Ok(asked)
}

/// Whether the bounds were kept.
fn run(asked: &Asked) -> Result<bool, String> {
    println!(
        "{:>3} | {:>8} | {:^17} | {:^17} | {:^46} | {:^46} | {:>8}",
        "n",
        "start ms",
        "crash ms",
        "resignation ms",
        "the leader, left alone",
        "a follower, the largest",
        "bytes/s"
    );
    let largest = asked.sizes.iter().max().copied().unwrap_or_default();
    let mut good = true;
    let mut rows = Vec::new();
    for n in &asked.sizes {
        let row = Row::of(*n, asked)?;
        println!("{row}");
        good &= *n < largest || row.started <= START_MAX && percentile(&row.crashes, 50) <= CRASH_MEDIAN_MAX;
        rows.push(row);
    }
    if let Some(folder) = &asked.plots {
        write_plots(&rows, folder)?;
    }
    if !good {
        println!(
            "over a bound: at n = {largest} a start takes {START_MAX:?} at most, and the median after a \
             crash is {CRASH_MEDIAN_MAX:?} at most"
        );
    }
    Ok(good)
}

/// One figure of a row, and the name of its line.
type Figure = (&'static str, fn(&Row) -> f64);

/// One picture: its file's name, its title and its lines.
type Picture = (&'static str, &'static str, &'static [Figure]);

/// All pictures.
const PICTURES: [Picture; 8] = [
    ("start", "a start of all at once, ms", &[("until all agree", |row| ms(row.started))]),
    (
        "crash",
        "SIGKILL of the leader, ms until all agree",
        &[
            ("median", |row| ms(percentile(&row.crashes, 50))),
            ("p99", |row| ms(percentile(&row.crashes, 99))),
        ],
    ),
    (
        "resignation",
        "SIGTERM of the leader, ms until all agree",
        &[
            ("median", |row| ms(percentile(&row.resignations, 50))),
            ("p99", |row| ms(percentile(&row.resignations, 99))),
        ],
    ),
    ("bytes", "bytes a second at rest, all processes", &[("bytes", |row| row.bytes_a_second as f64)]),
    (
        "memory",
        "resident memory, MiB",
        &[("leader", |row| row.leader.mib()), ("largest follower", |row| row.follower.mib())],
    ),
    (
        "threads",
        "threads",
        &[
            ("leader", |row| row.leader.usage.threads as f64),
            ("largest follower", |row| row.follower.usage.threads as f64),
        ],
    ),
    (
        "descriptors",
        "open descriptors",
        &[
            ("leader", |row| row.leader.descriptors as f64),
            ("largest follower", |row| row.follower.descriptors as f64),
        ],
    ),
    (
        "wake-ups",
        "wake-ups a second at rest",
        &[
            ("leader", |row| row.leader.spent.wake_ups),
            ("most of a follower", |row| row.follower.spent.wake_ups),
        ],
    ),
];

fn write_plots(rows: &[Row], folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(text)?;
    for (name, title, figures) in PICTURES {
        let line = |(name, of): &Figure| Line {
            name,
            points: rows.iter().map(|row| (row.n as f64, of(row))).collect(),
        };
        let lines: Vec<Line> = figures.iter().map(line).collect();
        plot::write(&folder.join(format!("{name}.svg")), title, &lines)?;
    }
    Ok(())
}

/// What was measured of one size. Times are sorted.
struct Row {
    n: usize,
    started: Duration,
    crashes: Vec<Duration>,
    resignations: Vec<Duration>,
    leader: Used,
    follower: Used,
    /// Of all processes together, over loopback.
    bytes_a_second: u64,
}

/// What a process used that was left alone.
#[derive(Clone, Copy, Default)]
struct Used {
    usage: Usage,
    descriptors: usize,
    spent: Spent,
}

impl Row {
    fn of(n: usize, asked: &Asked) -> Result<Row, String> {
        let mut times = [Vec::new(), Vec::new()];
        let mut cluster = Cluster::start(n, asked)?;
        let started = cluster.started;
        for round in 0..asked.rounds {
            if round > 0 && round.is_multiple_of(ROUNDS_A_CLUSTER) {
                cluster = Cluster::start(n, asked)?;
            }
            for (signal, times) in [Signal::KILL, Signal::TERM].into_iter().zip(&mut times) {
                times.push(cluster.round(signal)?);
            }
        }
        let [mut crashes, mut resignations] = times;
        crashes.sort_unstable();
        resignations.sort_unstable();
        rounds::acquainted(&cluster.processes)?;
        let (leader, follower, bytes_a_second) = left_alone(&cluster.processes)?;
        Ok(Row { n, started, crashes, resignations, leader, follower, bytes_a_second })
    }
}

/// Processes whose logs are read.
struct Cluster {
    processes: ProcessCluster,
    now: Agreement,
    /// How long their start took.
    started: Duration,
    _logs: TempDir,
}

impl Cluster {
    fn start(n: usize, asked: &Asked) -> Result<Cluster, String> {
        let logs = tempfile::tempdir().map_err(text)?;
        let flags = ["--preempt", "never", "--log-format", "json"];
        let plan = ClusterPlan {
            binary: asked.program.clone(),
            n,
            base_port: None,
            flags: flags.map(str::to_owned).to_vec(),
            majority: None,
            logs: Some(logs.path().to_owned()),
            relay: None,
        };
        let mut processes = ProcessCluster::new(plan).map_err(text)?;
        processes.ask_every(Some(ASK_EVERY));
        processes.start_all().map_err(text)?;
        let all_started = SystemTime::now();
        let now = processes.agree(0, PATIENCE).map_err(text)?;
        let started = known_after(&processes, &processes.running(), now.epoch, all_started)?;
        Ok(Cluster { processes, now, started, _logs: logs })
    }

    /// Takes the leader down and starts it again. How long it took until all others knew the next one.
    fn round(&mut self, signal: Signal) -> Result<Duration, String> {
        let Cluster { processes, now, .. } = self;
        rounds::acquainted(processes)?;
        let survivors: Vec<usize> = processes.running().into_iter().filter(|p| *p != now.leader).collect();
        let at = SystemTime::now();
        processes.signal(now.leader, signal);
        let next = processes.agree_among(&survivors, now.epoch, PATIENCE).map_err(text)?;
        processes.wait(now.leader, RESIGNATION_MAX).map_err(text)?;
        let took = known_after(processes, &survivors, next.epoch, at)?;
        rounds::bring_back(processes, now.leader, &[], &next)?;
        *now = next;
        Ok(took)
    }
}

/// How long after an instant the last of these processes knew the leader of an epoch, by their logs.
fn known_after(
    processes: &ProcessCluster,
    places: &[usize],
    epoch: u64,
    after: SystemTime,
) -> Result<Duration, String> {
    let mut last = after;
    for place in places {
        // A line is written after the answer that it is about.
        let line = wait::within(PATIENCE, || {
            let log = processes.log(*place);
            let lines = log.lines().filter(|line| line.contains("leader_elected"));
            lines
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .find(|line| line["event"] == "leader_elected" && line["epoch"] == epoch)
        });
        let line = line.ok_or_else(|| {
            format!("the log of {} names no leader of epoch {epoch}", processes.name(*place))
        })?;
        let at = line["ts"].as_str().and_then(|at| humantime::parse_rfc3339(at).ok());
        last = last.max(at.ok_or("a log line without a time")?);
    }
    Ok(last.duration_since(after).unwrap_or_default())
}

/// What the leader uses, and the follower that uses most of each; and the bytes a second of all. The leader
/// is that of the end: it may have changed since the last round.
fn left_alone(processes: &ProcessCluster) -> Result<(Used, Used, u64), String> {
    let places = processes.running();
    processes.ask_every(None);
    std::thread::sleep(SETTLED);
    let sent = bytes_sent()?;
    let idle = usage::idle(processes, LEFT_ALONE)?;
    let sent = bytes_sent()? - sent;
    let mut used = Vec::new();
    for (place, (usage, spent)) in places.iter().zip(idle.each()) {
        let pid = processes.pid(*place).ok_or("a process has ended")?;
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(text)?.count();
        used.push(Used { usage, descriptors, spent });
    }
    let leads = |place: &usize| processes.get(*place, "/is-leader").is_ok_and(|(status, _)| status == 200);
    let leader = used.remove(places.iter().position(leads).ok_or("no process leads")?);
    let mut largest = Used::default();
    for Used { usage, descriptors, spent } in used {
        largest.usage.resident_kib = largest.usage.resident_kib.max(usage.resident_kib);
        largest.usage.threads = largest.usage.threads.max(usage.threads);
        largest.descriptors = largest.descriptors.max(descriptors);
        largest.spent.cpu_percent = largest.spent.cpu_percent.max(spent.cpu_percent);
        largest.spent.wake_ups = largest.spent.wake_ups.max(spent.wake_ups);
    }
    Ok((leader, largest, sent / LEFT_ALONE.as_secs()))
}

/// What has gone over loopback so far.
fn bytes_sent() -> Result<u64, String> {
    let devices = std::fs::read_to_string("/proc/net/dev").map_err(text)?;
    let line = devices.lines().find_map(|line| line.trim_start().strip_prefix(LO));
    let received = line.and_then(|line| line.split_whitespace().next()).and_then(|bytes| bytes.parse().ok());
    received.ok_or_else(|| "/proc/net/dev has no loopback device".to_owned())
}

impl Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = |times: &[Duration]| {
            let ms = |percent| percentile(times, percent).as_millis();
            format!("{:>4}, p99 {:>5}", ms(50), ms(99))
        };
        write!(
            f,
            "{:>3} | {:>8} | {:>17} | {:>17} | {:>46} | {:>46} | {:>8}",
            self.n,
            self.started.as_millis(),
            times(&self.crashes),
            times(&self.resignations),
            self.leader.to_string(),
            self.follower.to_string(),
            self.bytes_a_second
        )
    }
}

impl Used {
    fn mib(&self) -> f64 {
        self.usage.resident_kib as f64 / 1024.0
    }
}

impl Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = self.mib();
        let (threads, descriptors) = (self.usage.threads, self.descriptors);
        let Spent { cpu_percent, wake_ups } = self.spent;
        write!(f, "{mib:.1} MiB, {threads} thr., {descriptors} fd, {cpu_percent:.2} %, {wake_ups:.0} wakes/s")
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
