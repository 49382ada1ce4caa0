//! How long a failover takes, with real processes on loopback:
//! `cargo bench --bench failover [-- --rounds 20]`.
//!
//! `-- --rested` measures 100 rounds after a rest beside 100 without one, in clear and with the channel. A
//! cluster that rests has closed the links that nothing needs, and rest is when leaders crash. It fails when
//! the rest or the channel adds more than 1 ms to a median.
//!
//! `-- --detection` measures how long it takes to notice a leader that hangs, one whose network is cut, and
//! one that has died where only its lease tells, with adaptive leases and with fixed ones. It fails when an
//! adaptive median is over 250 ms, or a p99 over 400 ms.
//!
//! `-- --trace` says where the time of a failover goes, step by step.
//!
//! Prints a table, and fails when a round breaks what has to hold (one leader, a higher epoch, the right
//! successor, no election when a process comes back) or a measured time is over its bound.
//!
//! `-- --image PROGRAM` names the image's program: a static build without the simulator and `inject`. Its
//! memory has bounds. Without it, the memory of the bench's own build is printed, and has none.
//!
//! `-- --beside OTHER --image PROGRAM` measures PROGRAM beside OTHER, for instance the image's program of an
//! earlier version: start, failovers, memory. It fails when a figure of PROGRAM is more than 5 % above that
//! of OTHER. Both have to be builds of the same kind, so that only the versions differ.
//!
//! With `--safety majority` a failover also waits for durable records, several one after the other. The bench
//! measures the cost of the rules with the records in memory (/dev/shm). It measures once more in the folder
//! for temporary files (TMPDIR), whose disk decides then: the table shows that with the time of one save
//! there, and it has no bound.

#[path = "failover/beside.rs"]
mod beside;
#[path = "failover/detection.rs"]
mod detection;
#[path = "failover/percentile.rs"]
mod percentile;
#[path = "relay.rs"]
#[allow(dead_code)]
mod relay;
#[path = "failover/rested.rs"]
mod rested;
#[path = "../tests/processes/rounds.rs"]
mod rounds;
#[path = "failover/trace.rs"]
mod trace;
#[path = "../tests/processes/usage.rs"]
mod usage;
#[path = "../tests/support/wait.rs"]
mod wait;

use bellwether::demo::process_cluster::{Agreement, ClusterPlan, ProcessCluster};
use bellwether::election::{Epoch, ProcessId, Record};
use bellwether::store::Store;
use percentile::{ms, percentile};
use rounds::{ANSWER_TIMEOUT, Cause, FAILURE_TIMEOUT, PATIENCE};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const ROUNDS: usize = 100;
const SIZES: [usize; 2] = [3, 5];
const CAUSES: [(Cause, &str); 2] =
    [(Cause::Crash, "crash (SIGKILL)"), (Cause::Resignation, "resignation (SIGTERM)")];
/// The medians that are promised where a process resigns, or its death is seen. On a slow machine as many
/// round trips over loopback.
const FAST: Duration = Duration::from_millis(10);
const FAST_ROUND_TRIPS: u32 = 125;
/// How soon after its last process has started a cluster has a leader, where its number is known.
const START: Duration = Duration::from_millis(100);
const START_ROUND_TRIPS: u32 = 10 * FAST_ROUND_TRIPS;
/// How many clusters share the rounds that mostly wait, and how often their processes are asked.
const CLUSTERS: usize = 10;
const SLOW_ASK_EVERY: Duration = Duration::from_millis(20);
/// How long a stopped leader stays stopped.
const STOPPED: Duration = Duration::from_secs(5);
/// The bench's own build of the program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_bellwether");
/// Resident memory of one process of the image, in clear and with the channel, and its share of a core while
/// nothing happens.
const RESIDENT_KIB_MAX: u64 = 5 * 1024;
const RESIDENT_CHANNEL_KIB_MAX: u64 = 6 * 1024;
/// On a slow machine what as many round trips over loopback take in a second.
const IDLE_PERCENT_MAX: f64 = 0.5;
const IDLE_ROUND_TRIPS_MAX: u32 = 80;
/// A folder in memory.
const MEMORY: &str = "/dev/shm";
/// How many saves are timed.
const SAVES: usize = 50;
const IDLE_WATCHED: Duration = Duration::from_secs(20);
/// What members with the channel share.
const SECRET: &str = "a-secret-of-a-benchmark-over-loopback";

/// A line of the table.
struct Row<'a> {
    n: usize,
    what: &'a str,
    times: Vec<Duration>,
    bound: Bound,
}

/// What must hold of a line's times.
enum Bound {
    Median(Duration),
    MedianAndP99(Duration, Duration),
    Max(Duration),
    None,
}

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let logs = match tempfile::tempdir() {
        Ok(logs) => logs,
        Err(error) => {
            eprintln!("error: no folder for logs: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(&asked, logs.path()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}\nlogs: {}", logs.keep().display());
            ExitCode::FAILURE
        }
    }
}

/// What is to be measured.
enum Task {
    /// All rows.
    All,
    /// What a rest before each round and the channel cost.
    Rested,
    /// How long it takes to notice a leader that only its silence tells of.
    Detection,
    /// Where the time of a failover goes.
    Trace,
    /// This version beside another program.
    Beside(PathBuf),
}

/// What the command line asks for.
struct Asked {
    task: Task,
    /// The rounds of each row, for all rows and for detection.
    rounds: usize,
    /// The image's program.
    image: Option<PathBuf>,
}

/// Whether everything was within its bound.
fn run(asked: &Asked, logs: &Path) -> Result<bool, String> {
    let Asked { task, rounds, image } = asked;
    let (began, image) = (Instant::now(), image.as_deref());
    let secret = logs.join("secret");
    std::fs::write(&secret, SECRET).map_err(|error| format!("no file for a secret: {error}"))?;
    let secret = secret.to_str().ok_or("the folder for temporary files has a name that is no text")?;
    let channel = ["--peer-secret-file", secret];
    let round_trip = usage::RoundTrip::measured().map_err(|e| format!("no round trip over loopback: {e}"))?;
    let fast = FAST.max(round_trip.took * FAST_ROUND_TRIPS);
    if !matches!(task, Task::Trace) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!(
            "a round trip over loopback takes {:.1} µs, and {:.1} of processor time",
            micros(round_trip.took),
            micros(round_trip.cpu)
        );
        print_head();
    }
    let in_time = match task {
        Task::Trace => return trace::measure(*rounds, logs),
        Task::Detection => return detection::measure(*rounds, logs),
        Task::Rested => rested::measure(&channel, fast, logs)?,
        Task::All => {
            let start = START.max(round_trip.took * START_ROUND_TRIPS);
            starts(rounds.div_ceil(5), start, logs)? & measure(*rounds, fast, logs)?
        }
        Task::Beside(other) => {
            let programs = [image.unwrap_or(Path::new(PROGRAM)), other];
            return beside::measure(programs, &channel, logs);
        }
    };
    let percent_max = IDLE_PERCENT_MAX.max(round_trip.percent(IDLE_ROUND_TRIPS_MAX));
    let small = idle(&channel, percent_max, image, logs)?;
    println!("took {:.0} s", began.elapsed().as_secs_f64());
    Ok(in_time && small)
}

/// What the command line asks for. Cargo itself adds `--bench`.
fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { task: Task::All, rounds: ROUNDS, image: None };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => {}
            "--rounds" => {
                let number = args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                asked.rounds = number.ok_or("--rounds needs a number from 1 on")?;
            }
            "--detection" => asked.task = Task::Detection,
            "--rested" => asked.task = Task::Rested,
            "--trace" => asked.task = Task::Trace,
            "--beside" => {
                asked.task = Task::Beside(args.next().ok_or("--beside needs another program")?.into());
            }
            "--image" => asked.image = Some(args.next().ok_or("--image needs the image's program")?.into()),
            _ => {
                return Err(format!(
                    "{arg} is not known; there are --rounds N, --detection, --rested, --trace, --beside \
                     OTHER and --image PROGRAM"
                ));
            }
        }
    }
    Ok(asked)
}

/// The head of a table.
fn print_head() {
    println!(
        "time from the signal to the leader until all survivors name the same new leader, release build:"
    );
    println!(
        "{:>2}  {:<34} {:>6} {:>11} {:>11} {:>11}  bound",
        "n", "what", "rounds", "median ms", "p99 ms", "max ms"
    );
}

/// Whether the starts of clusters whose number is known are within their bound.
fn starts(rounds: usize, bound: Duration, logs: &Path) -> Result<bool, String> {
    let mut good = true;
    for n in SIZES {
        let number = n.to_string();
        for (what, flags, majority) in [
            ("start of all, --expect", &["--expect", &number][..], false),
            ("majority, start of all", &[], true),
        ] {
            let mut times = Vec::new();
            for _ in 0..rounds {
                let records = tempfile::tempdir_in(MEMORY).map_err(|e| e.to_string())?;
                let states = majority.then(|| records.path());
                let (processes, last) = start(plan(Path::new(PROGRAM), n, flags, states, logs)?)?;
                let now = processes.agree(0, PATIENCE).map_err(|e| e.to_string())?;
                times.push(now.since.saturating_duration_since(last));
            }
            good &= print(&Row { n, what, times, bound: Bound::Median(bound) });
        }
    }
    Ok(good)
}

/// Whether everything was within its bound.
fn measure(rounds: usize, fast: Duration, logs: &Path) -> Result<bool, String> {
    let mut good = true;
    for n in SIZES {
        for (cause, what) in CAUSES {
            let (took, back) = rounds_of(n, cause, rounds, &[], None, None, logs)?;
            good &= print(&Row { n, what, times: took, bound: Bound::Median(fast) });
            print(&Row { n, what: "  rejoin, from the start", times: back, bound: Bound::None });
        }
    }
    let silence = FAILURE_TIMEOUT + ANSWER_TIMEOUT;
    for n in SIZES {
        let flags = ["--crash-evidence", "off"];
        let parts = in_parallel(rounds, |share| {
            rounds_of(n, Cause::Crash, share, &flags, Some(SLOW_ASK_EVERY), None, logs)
        })?;
        let times = parts.into_iter().flat_map(|(took, _)| took).collect();
        good &= print(&Row { n, what: "crash, --crash-evidence off", times, bound: Bound::Max(silence) });
    }
    let pauses = rounds.div_ceil(2);
    for n in SIZES {
        let pauses: Vec<rounds::Pause> =
            in_parallel(pauses, |share| pauses_of(n, share, logs))?.into_iter().flatten().collect();
        let took = pauses.iter().map(|p| p.took).collect();
        good &= print(&Row { n, what: "pause (SIGSTOP for 5 s)", times: took, bound: Bound::Max(silence) });
        let joined = pauses.iter().map(|p| p.joined).collect();
        print(&Row { n, what: "  rejoin, from SIGCONT", times: joined, bound: Bound::None });
        let answers: u64 = pauses.iter().map(|p| p.answers).sum();
        println!(
            "    none of the {answers} answers of the resumed leaders from SIGCONT on claimed leadership"
        );
    }
    good &= majority(rounds, fast, logs)?;
    Ok(good)
}

/// The rows of `--safety majority`.
fn majority(rounds: usize, fast: Duration, logs: &Path) -> Result<bool, String> {
    let temporary = |folder: Option<&str>| {
        let dir = folder.map_or_else(tempfile::tempdir, tempfile::tempdir_in);
        dir.map_err(|error| format!("no folder for records: {error}"))
    };
    let (memory, disk) = (temporary(Some(MEMORY))?, temporary(None)?);
    let lease_over = FAILURE_TIMEOUT + ANSWER_TIMEOUT + Duration::from_millis(100);
    let mut good = true;
    for n in SIZES {
        let shm = Some(memory.path());
        let (took, back) = rounds_of(n, Cause::Resignation, rounds, &[], None, shm, logs)?;
        let what = "majority, resignation (SIGTERM)";
        good &= print(&Row { n, what, times: took, bound: Bound::Median(fast) });
        print(&Row { n, what: "  rejoin, from the start", times: back, bound: Bound::None });
        let release = ["--crash-evidence", "release"];
        let (times, _) = rounds_of(n, Cause::Crash, rounds, &release, None, shm, logs)?;
        let what = "majority, crash, release";
        good &= print(&Row { n, what, times, bound: Bound::Median(fast) });
        let parts = in_parallel(rounds, |share| {
            rounds_of(n, Cause::Crash, share, &[], Some(SLOW_ASK_EVERY), shm, logs)
        })?;
        let times = parts.into_iter().flat_map(|(took, _)| took).collect();
        good &= print(&Row { n, what: "majority, crash", times, bound: Bound::Max(lease_over) });
    }
    let save = saving(disk.path())?;
    println!(
        "    the same with the records in {}, where one save takes {:.1} ms:",
        std::env::temp_dir().display(),
        ms(save)
    );
    for n in SIZES {
        for (cause, flags, what) in [
            (Cause::Resignation, &[][..], "majority on disk, resignation"),
            (Cause::Crash, &["--crash-evidence", "release"], "majority on disk, crash, release"),
        ] {
            let (times, _) = rounds_of(n, cause, rounds.div_ceil(5), flags, None, Some(disk.path()), logs)?;
            print(&Row { n, what, times, bound: Bound::None });
        }
    }
    Ok(good)
}

/// The median of saving a small record in this folder.
fn saving(folder: &Path) -> Result<Duration, String> {
    let (mut store, _) = Store::open(folder).map_err(|error| error.to_string())?;
    let id = ProcessId(uuid::Uuid::new_v4());
    let mut record = Record { cluster: "c".to_owned(), id, epoch: Epoch(1), vote: None };
    let mut times = Vec::new();
    for _ in 0..SAVES {
        let at = Instant::now();
        record.epoch = record.epoch.next();
        store.save(&record).map_err(|error| error.to_string())?;
        times.push(at.elapsed());
    }
    times.sort_unstable();
    Ok(percentile(&times, 50))
}

/// `states`: where voters keep their records; none: `classic`.
fn plan(
    program: &Path,
    n: usize,
    flags: &[&str],
    states: Option<&Path>,
    logs: &Path,
) -> Result<ClusterPlan, String> {
    let flags = ["--preempt", "never"].iter().chain(flags);
    Ok(ClusterPlan {
        binary: program.to_owned(),
        n,
        base_port: None,
        flags: flags.map(|f| (*f).to_owned()).collect(),
        majority: states.map(Path::to_owned),
        logs: Some(tempfile::tempdir_in(logs).map_err(|e| e.to_string())?.keep()),
        relay: None,
    })
}

/// Starts all processes, and says when the last one was started.
fn start(plan: ClusterPlan) -> Result<(ProcessCluster, Instant), String> {
    let mut processes = ProcessCluster::new(plan).map_err(|e| e.to_string())?;
    processes.start_all().map_err(|e| e.to_string())?;
    Ok((processes, Instant::now()))
}

/// A cluster that agrees on a leader.
fn running(plan: ClusterPlan) -> Result<(ProcessCluster, Agreement), String> {
    let (processes, _) = start(plan)?;
    let now = processes.agree(0, PATIENCE).map_err(|e| e.to_string())?;
    Ok((processes, now))
}

fn started(
    n: usize,
    flags: &[&str],
    ask_every: Option<Duration>,
    states: Option<&Path>,
    logs: &Path,
) -> Result<(ProcessCluster, Agreement), String> {
    let (processes, now) = started_with(Path::new(PROGRAM), n, flags, states, logs)?;
    if ask_every.is_some() {
        processes.ask_every(ask_every);
    }
    Ok((processes, now))
}

/// As [`started`], of another program.
fn started_with(
    program: &Path,
    n: usize,
    flags: &[&str],
    states: Option<&Path>,
    logs: &Path,
) -> Result<(ProcessCluster, Agreement), String> {
    running(plan(program, n, flags, states, logs)?)
}

/// As many failovers one after the other: how long each took, and how long the rejoining after it.
fn rounds_of(
    n: usize,
    cause: Cause,
    rounds: usize,
    flags: &[&str],
    ask_every: Option<Duration>,
    states: Option<&Path>,
    logs: &Path,
) -> Result<(Vec<Duration>, Vec<Duration>), String> {
    let (mut processes, mut now) = started(n, flags, ask_every, states, logs)?;
    let (mut times, mut back) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let what = format!("{cause:?} {flags:?}, round {round} of {}", processes.name(now.leader));
        let wrong = |error| format!("{what}: {error}");
        let (took, joined) = rounds::round(&mut processes, &mut now, cause).map_err(wrong)?;
        times.push(took);
        back.push(joined);
    }
    Ok((times, back))
}

fn pauses_of(n: usize, rounds: usize, logs: &Path) -> Result<Vec<rounds::Pause>, String> {
    let (mut processes, mut now) = started(n, &[], Some(SLOW_ASK_EVERY), None, logs)?;
    let mut pauses = Vec::new();
    for round in 1..=rounds {
        let (next, pause) = rounds::pause(&mut processes, &now, STOPPED)
            .map_err(|error| format!("pause, round {round} of {}: {error}", processes.name(now.leader)))?;
        pauses.push(pause);
        now = next;
    }
    Ok(pauses)
}

/// Shares rounds out to clusters that run at the same time.
fn in_parallel<T: Send>(
    rounds: usize,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let shares =
        (0..CLUSTERS).map(|i| rounds / CLUSTERS + usize::from(i < rounds % CLUSTERS)).filter(|s| *s > 0);
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || work(share))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or(Err("a thread panicked".to_owned()))).collect()
    })
}

/// Prints a line; says whether it is within its bound.
fn print(row: &Row<'_>) -> bool {
    let mut times = row.times.clone();
    times.sort_unstable();
    let (median, p99, max) = (percentile(&times, 50), percentile(&times, 99), percentile(&times, 100));
    let (good, bound) = match row.bound {
        Bound::Median(bound) => (median <= bound, format!("median <= {} ms", bound.as_millis())),
        Bound::MedianAndP99(half, most) => (
            median <= half && p99 <= most,
            format!("median <= {} ms, p99 <= {} ms", half.as_millis(), most.as_millis()),
        ),
        Bound::Max(bound) => (max <= bound, format!("max <= {} ms", bound.as_millis())),
        Bound::None => (true, String::new()),
    };
    let verdict = match row.bound {
        Bound::None => "",
        _ if good => ": ok",
        _ => ": OVER",
    };
    println!(
        "{:>2}  {:<34} {:>6} {:>11.1} {:>11.1} {:>11.1}  {bound}{verdict}",
        row.n,
        row.what,
        times.len(),
        ms(median),
        ms(p99),
        ms(max)
    );
    good
}

/// Memory and processor time of five processes that are left alone, in clear and with the channel at the same
/// time.
fn idle(channel: &[&str], percent_max: f64, image: Option<&Path>, logs: &Path) -> Result<bool, String> {
    let bound = |kib| image.map(|_| kib);
    let kinds = [
        ("in clear", &[][..], bound(RESIDENT_KIB_MAX)),
        ("channel", channel, bound(RESIDENT_CHANNEL_KIB_MAX)),
    ];
    let program = image.unwrap_or(Path::new(PROGRAM));
    let watched = |flags| idle_of(program, flags, logs);
    let seen = std::thread::scope(|scope| {
        let watched = &watched;
        let threads = kinds.map(|(_, flags, _)| scope.spawn(move || watched(flags)));
        threads.map(|thread| thread.join().unwrap_or(Err("a thread panicked".to_owned())))
    });
    println!("\n{}:", program.display());
    println!("one process of 5, left alone for {} s, the largest of them:", IDLE_WATCHED.as_secs());
    let mut good = true;
    for ((what, _, resident_kib_max), idle) in kinds.into_iter().zip(seen) {
        good &= print_idle(what, &idle?, percent_max, resident_kib_max);
    }
    Ok(good)
}

/// What five processes of a program use that are left alone.
fn idle_of(program: &Path, flags: &[&str], logs: &Path) -> Result<usage::Idle, String> {
    let (processes, _now) = started_with(program, 5, flags, None, logs)?;
    usage::idle(&processes, IDLE_WATCHED)
}

/// Prints what one of them took; says whether it is within its bounds.
fn print_idle(what: &str, idle: &usage::Idle, percent_max: f64, resident_kib_max: Option<u64>) -> bool {
    let (resident, percent) = (idle.resident_kib_max(), idle.cpu_percent_max());
    let small = resident_kib_max.is_none_or(|max| resident <= max);
    let quiet = percent < percent_max;
    let verdict = |good| if good { "ok" } else { "OVER" };
    let bound = match resident_kib_max {
        Some(max) => format!("at most {} MiB: {}", max / 1024, verdict(small)),
        None => "no bound, since this is not the image's program (--image)".to_owned(),
    };
    println!(
        "  {what}: resident memory {:.2} MiB ({:.2} at its peak, {:.2} not backed by a file), {} threads; \
         {bound}",
        mib(resident),
        mib(idle.resident_peak_kib_max()),
        mib(idle.anonymous_kib_max()),
        idle.threads_max(),
    );
    println!(
        "  {what}: {:.0} wake-ups a second; processor time {percent:.2} % of a core; less than \
         {percent_max:.1} %: {}",
        idle.wake_ups_max(),
        verdict(quiet)
    );
    small && quiet
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
