//! bellwether beside other systems that elect a leader, three processes of each, on loopback:
//! `cargo bench --bench peers [-- --rounds 20] [--minutes 3] [--only raft,etcd] [--plot FILE]
//! [--image PROGRAM]`. `--only` has bellwether, bellwether-shortest, raft, etcd, keepalived, lease, jgroups
//! and curator.
//!
//! The others are hashicorp/raft, etcd, keepalived, client-go's Lease, JGroups and Curator. Programs in
//! benches/peers give them bellwether's command line and its `/leader`, so that one prober measures all of
//! them. Go and Maven fetch their libraries. keepalived needs root, for network namespaces. The Lease needs
//! an API server, which KUBECONFIG names. What is missing is skipped, and said.
//!
//! Each has its defaults, and once more its shortest times: those that its documentation or its program
//! allows, or 250 ms. A round is SIGKILL, SIGTERM or SIGSTOP of the leader, until both others name the same
//! next leader. Each signal has a cluster of its own, and its part of a row ends after its rounds, or after
//! its minutes. The clusters of a row rest at the same time, and one round at a time is measured. Records
//! are in memory (/dev/shm). After the rounds, wrk asks a follower for `/leader` over four connections. The
//! rows of client-go, JGroups and Curator run at once, after the others and without wrk.

#[path = "failover/percentile.rs"]
mod percentile;
#[path = "peers/plot.rs"]
mod plot;
#[path = "peers/programs.rs"]
mod programs;
#[path = "../tests/processes/usage.rs"]
#[allow(dead_code)]
mod usage;
#[path = "peers/wrk.rs"]
mod wrk;

use bellwether::demo::process_cluster::{Agreement, ClusterPlan, ProcessCluster};
use percentile::{ms, percentile};
use programs::{Builder, Program, System};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
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
/// How often processes are asked whose rows run at once; those of the other rows each millisecond.
const ASK_SELDOM: Duration = Duration::from_millis(20);
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
    /// What a follower answers, if it was asked.
    answers_a_second: Option<f64>,
}

/// What the command line asks for.
struct Asked {
    rounds: usize,
    minutes: u64,
    only: Option<Vec<String>>,
    plot: Option<PathBuf>,
    /// The image's program, in the place of the bench's own.
    image: Option<PathBuf>,
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
    let mut asked = Asked { rounds: ROUNDS, minutes: MINUTES, only: None, plot: None, image: None };
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
            "--image" if !value.is_empty() => asked.image = Some(value.into()),
            _ => {
                return Err(format!(
                    "{arg} is not known; there are --rounds N, --minutes N, --only NAME,NAME, --plot FILE \
                     and --image PROGRAM"
                ));
            }
        }
    }
    Ok(asked)
}

fn run(asked: &Asked) -> Result<(), String> {
    let builder = Builder::new(asked.image.clone())?;
    println!("milliseconds until both others name the same next leader, median / p99 (rounds):");
    let [kill, term, stop] = SIGNALS.map(|(_, what)| what);
    println!("{:<34} {kill:^24} {term:^24} {stop:^24} {:>8} {:>10}", "", "MiB", "answers/s");
    if !wrk::is_there() {
        println!("!!! SKIPPED: answers a second: there is no wrk (Debian's package is wrk)");
    }
    let programs = |systems: &[System]| -> Vec<Program> {
        let wanted = |name| asked.only.as_ref().is_none_or(|only| only.iter().any(|wanted| wanted == name));
        let wanted = systems.iter().filter(|(name, _)| wanted(*name));
        let made = wanted
            .map(|(name, make)| make(&builder).inspect_err(|why| println!("!!! SKIPPED: {name}: {why}")));
        made.flat_map(Result::unwrap_or_default).collect()
    };
    let measured = |program: &Program, alone: bool| {
        row(program, asked, alone)
            .inspect(|row| println!("{}", line(row)))
            .inspect_err(|why| println!("!!! FAILED: {}: {why}", program.what))
            .ok()
    };
    let one_by_one = programs(&programs::ONE_BY_ONE);
    let mut rows: Vec<Row> = one_by_one.iter().filter_map(|program| measured(program, true)).collect();
    let at_once = programs(&programs::AT_ONCE);
    rows.extend(std::thread::scope(|scope| {
        let threads: Vec<_> =
            at_once.iter().map(|program| scope.spawn(move || measured(program, false))).collect();
        let ended = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
        ended.collect::<Vec<Row>>()
    }));
    match &asked.plot {
        Some(file) => plot::write(file, &rows),
        None => Ok(()),
    }
}

/// Measures one program. Where it has the machine alone, it is asked more often, and by wrk at the end.
fn row(program: &Program, asked: &Asked, alone: bool) -> Result<Row, String> {
    let records = tempfile::tempdir_in(MEMORY).map_err(text)?;
    let (folder, measuring) = (|what: &str| records.path().join(what), Mutex::new(()));
    let rounds_of = |(signal, what)| {
        let rounds = rounds(program, asked, signal, folder(what), alone, &measuring);
        rounds.map_err(|error| format!("{what}: {error}"))
    };
    let measured = if alone {
        std::thread::scope(|scope| {
            let threads = SIGNALS.map(|signal| scope.spawn(move || rounds_of(signal)));
            threads.map(|thread| thread.join().unwrap_or(Err("a thread panicked".to_owned())))
        })
    } else {
        SIGNALS.map(rounds_of)
    };
    let measured: Vec<Measured> = measured.into_iter().collect::<Result<_, _>>()?;
    let memory_kib = measured.iter().map(|measured| measured.memory_kib).max().unwrap_or(0);
    let times = measured.into_iter().map(|measured| measured.times).collect();
    let answers_a_second = if alone { answers_a_second(program, folder("wrk"))? } else { None };
    Ok(Row { system: program.what.clone(), times, memory_kib, answers_a_second })
}

/// What the rounds of one signal gave.
struct Measured {
    /// Sorted.
    times: Vec<Duration>,
    memory_kib: u64,
}

/// All rounds of one signal. Of several clusters that lock `measuring`, one at a time has a round.
fn rounds(
    program: &Program,
    asked: &Asked,
    signal: Signal,
    folder: PathBuf,
    alone: bool,
    measuring: &Mutex<()>,
) -> Result<Measured, String> {
    let (mut processes, mut now) = started(program, folder)?;
    if !alone {
        processes.ask_every(Some(ASK_SELDOM));
    }
    // A first leader asks for the longest lease until it has learnt for two seconds.
    std::thread::sleep(REST);
    let until = Instant::now() + Duration::from_secs(60 * asked.minutes);
    let mut times = Vec::new();
    while times.len() < asked.rounds && Instant::now() < until {
        std::thread::sleep(REST);
        times.push(round(&mut processes, &mut now, signal, measuring)?);
    }
    times.sort_unstable();
    let memory_kib = follower_kib(&processes, &now)?;
    Ok(Measured { times, memory_kib })
}

/// Processes that agree, with records in a folder that this makes.
fn started(program: &Program, folder: PathBuf) -> Result<(ProcessCluster, Agreement), String> {
    std::fs::create_dir(&folder).map_err(text)?;
    let mut processes = ProcessCluster::new(ClusterPlan {
        binary: program.path.clone(),
        n: N,
        base_port: None,
        flags: program.flags.clone(),
        majority: program.records.then(|| folder.clone()),
        logs: Some(folder),
        relay: None,
    })
    .map_err(text)?;
    processes.start_all().map_err(text)?;
    let now = processes.agree(0, PATIENCE).map_err(text)?;
    Ok((processes, now))
}

/// What a follower answers that only wrk asks.
fn answers_a_second(program: &Program, folder: PathBuf) -> Result<Option<f64>, String> {
    let (processes, now) = started(program, folder)?;
    processes.ask_every(None);
    let follower = (0..N).find(|place| *place != now.leader).ok_or("no follower")?;
    wrk::answers_a_second(processes.ports(follower).http)
}

/// The leader is taken down, both others agree on the next, and it comes back.
fn round(
    processes: &mut ProcessCluster,
    now: &mut Agreement,
    signal: Signal,
    measuring: &Mutex<()>,
) -> Result<Duration, String> {
    let place = now.leader;
    let others: Vec<usize> = (0..processes.n()).filter(|other| *other != place).collect();
    let measured = measuring.lock().unwrap_or_else(PoisonError::into_inner);
    let at = Instant::now();
    signal_group(processes, place, signal);
    let next = processes.agree_among(&others, now.epoch, PATIENCE).map_err(text)?;
    let took = next.since.saturating_duration_since(at);
    drop(measured);
    if signal == Signal::STOP {
        std::thread::sleep(STOPPED.saturating_sub(at.elapsed()));
        signal_group(processes, place, Signal::CONT);
    } else {
        processes.wait(place, END_MAX).map_err(text)?;
        processes.start(place, &[]).map_err(text)?;
    }
    // Its return may cost others an election; bellwether none.
    *now = processes.agree(next.epoch - 1, PATIENCE).map_err(text)?;
    Ok(took)
}

/// Signals a process and what it has started: each process of a cluster has a group of its own.
fn signal_group(processes: &ProcessCluster, place: usize, signal: Signal) {
    let group = processes.pid(place).and_then(|pid| Pid::from_raw(pid as i32));
    // It is our child and not waited for yet, so the number is still its own.
    group.map(|group| kill_process_group(group, signal).ok());
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
    let answers = row.answers_a_second.map_or("-".to_owned(), |answers| format!("{answers:.0}"));
    let mib = row.memory_kib as f64 / 1024.0;
    format!("{:<34} {} {mib:>8.1} {answers:>10}", row.system, cells.join(" "))
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// How the programs of a system are made.
pub type Make = fn(&Builder) -> Result<Vec<Program>, String>;

/// Where the sources of the others' programs are.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
}
