//! What processes use of memory and processor time, from `/proc`. Shared by the tests and the benchmark.

use bellwether::demo::process_cluster::ProcessCluster;
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The unit of processor time in `/proc`: a hundredth of a second, on every architecture that matters here.
const TICK: Duration = Duration::from_millis(10);

/// One process at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Resident memory, the program's own pages and those of its file.
    pub resident_kib: u64,
    /// Of it, pages that belong to no file.
    pub anonymous_kib: u64,
    /// The most resident memory so far.
    pub resident_peak_kib: u64,
    pub threads: u64,
    /// Processor time so far.
    pub cpu: Duration,
    /// How often its threads have waited so far. Each wait ends with a wake-up.
    pub waits: u64,
}

impl Usage {
    /// What the kernel says of a process.
    pub fn of(pid: u32) -> Result<Usage, String> {
        let read = |file: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/{file}"))
                .map_err(|e| format!("{file} of {pid}: {e}"))
        };
        let status = read("status")?;
        let field =
            |name: &str| number(&status, name).ok_or_else(|| format!("/proc/{pid}/status has no {name}"));
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|e| format!("{pid}: {e}"))?;
        // A thread may end before it is looked at.
        let waits = threads.filter_map(|thread| {
            let status = std::fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
            number(&status, "voluntary_ctxt_switches")
        });
        // After the program's name in brackets: state is the first, utime the 12th, stime the 13th.
        let stat = read("stat")?;
        let after = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
        let ticks: u64 =
            after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
        Ok(Usage {
            resident_kib: field("VmRSS")?,
            anonymous_kib: field("RssAnon")?,
            resident_peak_kib: field("VmHWM")?,
            threads: field("Threads")?,
            cpu: TICK * u32::try_from(ticks).unwrap_or(u32::MAX),
            waits: waits.sum(),
        })
    }
}

/// The number in a line of a status file of `/proc`.
fn number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What a round trip of one byte over loopback takes on this machine, between two threads that wait for it.
/// It is the mean of 4,000. Processes mostly do the like, so a bound in round trips also holds on a slow
/// machine.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// From the question to the answer.
    pub took: Duration,
    /// Processor time of both threads.
    pub cpu: Duration,
}

impl RoundTrip {
    /// Measures it.
    pub fn measured() -> io::Result<RoundTrip> {
        const COUNT: u32 = 4000;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut asking = TcpStream::connect(listener.local_addr()?)?;
        let (mut answering, _) = listener.accept()?;
        for stream in [&asking, &answering] {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        }
        let mut byte = [0];
        let answers = std::thread::spawn(move || -> io::Result<Duration> {
            let mut byte = [0];
            for _ in 0..COUNT {
                answering.read_exact(&mut byte)?;
                answering.write_all(&byte)?;
            }
            Ok(thread_cpu())
        });
        let (began, before) = (Instant::now(), thread_cpu());
        for _ in 0..COUNT {
            asking.write_all(&byte)?;
            asking.read_exact(&mut byte)?;
        }
        let (took, asked) = (began.elapsed(), thread_cpu().saturating_sub(before));
        let answered = answers.join().map_err(|_| io::Error::other("the thread that answers panicked"))??;
        Ok(RoundTrip { took: took / COUNT, cpu: (asked + answered) / COUNT })
    }

    /// The share of a core that as many take, in percent.
    pub fn percent(self, a_second: u32) -> f64 {
        100.0 * (self.cpu * a_second).as_secs_f64()
    }
}

/// The processor time of this thread so far.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// What the processes of a cluster used while no client asked them anything.
pub struct Idle {
    watched: Duration,
    before: Vec<Usage>,
    after: Vec<Usage>,
}

/// Leaves a cluster alone for a while.
pub fn idle(processes: &ProcessCluster, watched: Duration) -> Result<Idle, String> {
    let all = || processes.running().into_iter().filter_map(|p| processes.pid(p)).map(Usage::of).collect();
    processes.ask_every(None);
    let began = Instant::now();
    let before: Result<Vec<Usage>, String> = all();
    std::thread::sleep(watched);
    let after: Result<Vec<Usage>, String> = all();
    Ok(Idle { watched: began.elapsed(), before: before?, after: after? })
}

impl Idle {
    /// Of each process, at the end.
    pub fn resident_kib(&self) -> impl Iterator<Item = u64> {
        self.after.iter().map(|u| u.resident_kib)
    }

    pub fn resident_kib_max(&self) -> u64 {
        self.resident_kib().max().unwrap_or_default()
    }

    pub fn resident_peak_kib_max(&self) -> u64 {
        self.after.iter().map(|u| u.resident_peak_kib).max().unwrap_or_default()
    }

    pub fn anonymous_kib_max(&self) -> u64 {
        self.after.iter().map(|u| u.anonymous_kib).max().unwrap_or_default()
    }

    pub fn threads_max(&self) -> u64 {
        self.after.iter().map(|u| u.threads).max().unwrap_or_default()
    }

    /// Each process at the end, in the order of their places, and what it spent.
    pub fn each(&self) -> impl Iterator<Item = (Usage, Spent)> {
        let seconds = self.watched.as_secs_f64();
        self.before.iter().zip(&self.after).map(move |(before, after)| {
            let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
            let waits = after.waits.saturating_sub(before.waits) as f64;
            (*after, Spent { cpu_percent: 100.0 * cpu / seconds, wake_ups: waits / seconds })
        })
    }

    /// The share of a core of the busiest process.
    pub fn cpu_percent_max(&self) -> f64 {
        self.each().map(|(_, spent)| spent.cpu_percent).fold(0.0, f64::max)
    }

    /// The wake-ups a second of the process that has most of them.
    pub fn wake_ups_max(&self) -> f64 {
        self.each().map(|(_, spent)| spent.wake_ups).fold(0.0, f64::max)
    }
}

/// What a process spent while it was left alone.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    /// Of a core.
    pub cpu_percent: f64,
    /// A second, of all its threads.
    pub wake_ups: f64,
}
