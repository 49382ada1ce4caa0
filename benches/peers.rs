//! bellwether beside other systems that elect a leader, three processes of each, on loopback:
//! `cargo bench --bench peers [-- --rounds 20] [--minutes 3] [--only raft,etcd] [--plot FILE]`.
//!
//! The others are hashicorp/raft, etcd, client-go's Lease, JGroups and Curator. Programs in benches/peers
//! give them bellwether's command line and its `/leader`, so that one prober measures all of them. Go and
//! Maven fetch their libraries. The Lease needs an API server, which KUBECONFIG names. What is missing is
//! skipped, and said.
//!
//! Each has its defaults, and once more its shortest times: those that its documentation or its program
//! allows, or 250 ms. A round is SIGKILL, SIGTERM or SIGSTOP of the leader, until both others name the same
//! next leader. A row ends after its rounds, or after its minutes. Records are in memory (/dev/shm).

#[path = "failover/percentile.rs"]
mod percentile;
#[path = "peers/plot.rs"]
mod plot;
#[path = "peers/programs.rs"]
mod programs;
#[path = "../tests/processes/usage.rs"]
#[allow(dead_code)]
mod usage;

use bellwether::demo::process_cluster::{Agreement, ClusterPlan, ProcessCluster};
use percentile::percentile;
use programs::{Builder, Program};
use rustix::process::Signal;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const N: usize = 3;
const ROUNDS: usize = 20;
const MINUTES: u64 = 3;
/// A folder in memory.
const MEMORY: &str = "/dev/shm";
/// The slowest of them takes this long after a crash, and three times as long after a hang.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long a process may take to end after a signal.
const END_MAX: Duration = Duration::from_secs(20);
/// Before each round: longer than adaptive leases of bellwether and sessions of others take to settle.
const REST: Duration = Duration::from_secs(2);
/// How long a stopped leader stays stopped, or until the others agree.
const STOPPED: Duration = Duration::from_secs(1);

/// How a leader is taken down.
const SIGNALS: [(Signal, &str); 3] =
    [(Signal::KILL, "SIGKILL"), (Signal::TERM, "SIGTERM"), (Signal::STOP, "SIGSTOP")];

/// One line of the table.
struct Row {
    system: String,
    /// By signal; sorted.
    times: Vec<Vec<Duration>>,
    memory_kib: u64,
}

/// What the command line asks for.
struct Asked {
    rounds: usize,
    minutes: u64,
    only: Option<Vec<String>>,
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    match asked(std::env::args().skip(1)).and_then(|asked| run(&asked)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What the command line asks for. Cargo itself adds `--bench`.
fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { rounds: ROUNDS, minutes: MINUTES, only: None, plot: None };
    while let Some(arg) = args.next() {
        let value = if arg == "--bench" { String::new() } else { args.next().unwrap_or_default() };
        let number = || value.parse::<u64>().ok().filter(|n| (1..=1_000).contains(n));
        match arg.as_str() {
            "--bench" => {}
            "--rounds" => asked.rounds = number().ok_or("--rounds needs a number from 1 to 1000")? as usize,
            "--minutes" => asked.minutes = number().ok_or("--minutes needs a number from 1 to 1000")?,
            "--only" if !value.is_empty() => {
                asked.only = Some(value.split(',').map(str::to_owned).collect());
            }
            "--plot" if !value.is_empty() => asked.plot = Some(value.into()),
            _ => {
                return Err(format!(
                    "{arg} is not known; there are --rounds N, --minutes N, --only NAME,NAME and --plot FILE"
                ));
            }
        }
    }
    Ok(asked)
}

fn run(asked: &Asked) -> Result<(), String> {
    let builder = Builder::new()?;
    println!("milliseconds until both others name the same next leader, median / p99 (rounds):");
    println!("{:<34} {:^24} {:^24} {:^24} {:>8}", "", SIGNALS[0].1, SIGNALS[1].1, SIGNALS[2].1, "MiB");
    let mut rows = Vec::new();
    for (name, make) in programs::ALL {
        if asked.only.as_ref().is_some_and(|only| !only.iter().any(|wanted| wanted == name)) {
            continue;
        }
        let programs = match make(&builder) {
            Ok(programs) => programs,
            Err(why) => {
                println!("!!! SKIPPED: {name}: {why}");
                continue;
            }
        };
        for program in programs {
            match row(&program, asked) {
                Ok(row) => {
                    println!("{}", line(&row));
                    rows.push(row);
                }
                Err(why) => println!("!!! FAILED: {}: {why}", program.what),
            }
        }
    }
    match &asked.plot {
        Some(file) => plot::write(file, &rows),
        None => Ok(()),
    }
}

/// Measures one program.
fn row(program: &Program, asked: &Asked) -> Result<Row, String> {
    let records = tempfile::tempdir_in(MEMORY).map_err(text)?;
    let mut times = Vec::new();
    let mut memory_kib = 0;
    for (signal, what) in SIGNALS {
        // Another folder and another election each time: none inherits what the one before has learnt.
        let folder = records.path().join(what);
        std::fs::create_dir(&folder).map_err(text)?;
        let mut processes = ProcessCluster::new(ClusterPlan {
            binary: program.path.clone(),
            n: N,
            base_port: None,
            flags: program.flags.clone(),
            majority: program.records.then(|| folder.clone()),
            logs: Some(folder.clone()),
            relay: None,
        })
        .map_err(text)?;
        processes.start_all().map_err(text)?;
        let mut now = processes.agree(0, PATIENCE).map_err(text)?;
        // A first leader asks for the longest lease until it has learnt for two seconds.
        std::thread::sleep(REST);
        let until = Instant::now() + Duration::from_secs(60 * asked.minutes);
        let mut row = Vec::new();
        while row.len() < asked.rounds && Instant::now() < until {
            std::thread::sleep(REST);
            row.push(round(&mut processes, &mut now, signal).map_err(|error| format!("{what}: {error}"))?);
        }
        row.sort_unstable();
        times.push(row);
        memory_kib = memory_kib.max(follower_kib(&processes, &now)?);
    }
    Ok(Row { system: program.what.clone(), times, memory_kib })
}

/// The leader is taken down, both others agree on the next, and it comes back.
fn round(processes: &mut ProcessCluster, now: &mut Agreement, signal: Signal) -> Result<Duration, String> {
    let place = now.leader;
    let others: Vec<usize> = (0..processes.n()).filter(|other| *other != place).collect();
    let at = Instant::now();
    processes.signal(place, signal);
    let next = processes.agree_among(&others, now.epoch, PATIENCE).map_err(text)?;
    let took = next.since.saturating_duration_since(at);
    if signal == Signal::STOP {
        std::thread::sleep(STOPPED.saturating_sub(at.elapsed()));
        processes.signal(place, Signal::CONT);
    } else {
        processes.wait(place, END_MAX).map_err(text)?;
        processes.start(place, &[]).map_err(text)?;
    }
    // Its return may cost others an election; bellwether none.
    *now = processes.agree(next.epoch - 1, PATIENCE).map_err(text)?;
    Ok(took)
}

/// The resident memory of the largest follower.
fn follower_kib(processes: &ProcessCluster, now: &Agreement) -> Result<u64, String> {
    let followers = (0..processes.n()).filter(|place| *place != now.leader);
    let used = followers.filter_map(|place| processes.pid(place)).map(usage::Usage::of);
    used.map(|used| used.map(|used| used.resident_kib)).try_fold(0, |most, kib| Ok(most.max(kib?)))
}

fn line(row: &Row) -> String {
    let cells = row.times.iter().map(|times| {
        let [median, p99] = [50, 99].map(|percent| ms(percentile(times, percent)));
        format!("{:^24}", format!("{median:.1} / {p99:.1} ({})", times.len()))
    });
    let cells: Vec<String> = cells.collect();
    format!("{:<34} {} {:>8.1}", row.system, cells.join(" "), row.memory_kib as f64 / 1024.0)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// What is called like this by [`programs::ALL`].
pub type Make = fn(&Builder) -> Result<Vec<Program>, String>;

/// Where the sources of the others' programs are.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
}
