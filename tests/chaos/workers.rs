//! A command under `bellwether exec` beside each process, and whether two of them ever acted at one instant.
//!
//! Each exec is process 1 of a PID namespace, as in a container. Its command and a descendant in a session of
//! its own, which ignores SIGTERM, write down each instant at which they act.
//!
//! Or exec has no namespace of its own, and is stopped and killed alone. Then its command goes on, which no
//! exec can prevent, and a database that checks the epoch refuses what it writes.

use super::database::{Database, OWNER};
use super::network::Network;
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The command: each line is an instant of CLOCK_MONOTONIC, the epoch, the place, and when the command began.
const WORK: &str = r#"
import os, signal, sys, time
file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
tag = f"{os.environ['BELLWETHER_EPOCH']} {sys.argv[1]} {time.monotonic_ns()}"
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    os.write(file, f"{time.monotonic_ns()} {tag}\n".encode())
    time.sleep(0.004)
"#;

/// The command without a namespace. Its descendant also writes into a table that a guard protects, and says
/// when it was refused. It outlives an exec that is killed.
const FENCED_WORK: &str = r#"
import os, sys, time, psycopg2
acts, refusals = (os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for name in sys.argv[2:4])
epoch = int(os.environ["BELLWETHER_EPOCH"])
tag = f"{epoch} {sys.argv[1]} {time.monotonic_ns()}"
if os.fork() != 0:
    while True:
        time.sleep(1)
os.setsid()
connection = psycopg2.connect("")
while True:
    os.write(acts, f"{time.monotonic_ns()} {tag}\n".encode())
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("select fencing.enter('journal', 'chaos', %s)", (epoch,))
            cursor.execute("insert into journal (epoch, entry) values (%s, %s)", (epoch, tag))
    except psycopg2.Error as error:
        if error.pgcode != "LF001":
            raise
        os.write(refusals, b"refused\n")
    time.sleep(0.02)
"#;
/// An exec without a namespace does not run for a while.
pub const EXEC_STOPPED: &str = "SIGSTOP of exec";
/// How long that is, in milliseconds.
const STOPPED_MS: std::ops::Range<u64> = 2_000..5_000;
/// For how long a descendant outlives its exec that was killed. Then what watches services kills it.
const ORPHANED: Duration = Duration::from_secs(3);

/// One exec for each place.
pub struct Workers {
    execs: Vec<Option<Child>>,
    acts: PathBuf,
    /// None: each exec is process 1 of a PID namespace.
    bare: Option<Bare>,
}

/// What is kept of execs without a namespace.
struct Bare {
    database: Database,
    refusals: PathBuf,
    /// Execs that are stopped, and descendants without one: when which signal is due.
    due: Vec<(Instant, u32, Signal)>,
}

/// What came of them.
pub struct Worked {
    /// How many commands ran.
    pub commands: usize,
    /// How many instants they wrote down.
    pub acts: usize,
    /// Commands that acted while an earlier one still did, in words.
    pub overlaps: Vec<String>,
    /// What the database says; none: there was none.
    pub fenced: Option<Fenced>,
}

/// What came of the writes.
pub struct Fenced {
    pub written: usize,
    pub refused: usize,
    /// Writes with a lower epoch than the one before.
    pub stale: usize,
}

impl Workers {
    /// `fenced`: execs without a namespace of their own, and a database.
    pub fn new(n: usize, folder: &Path, fenced: bool) -> Workers {
        let bare = fenced.then(|| {
            let database = Database::start(None);
            database.run(OWNER, "update fencing.guards set election = 'chaos'").unwrap();
            Bare { database, refusals: folder.join("refusals"), due: Vec::new() }
        });
        Workers { execs: (0..n).map(|_| None).collect(), acts: folder.join("acts"), bare }
    }

    /// Starts those that do not run, and sends the signals that are due.
    pub fn start(&mut self, network: &Network) {
        if let Some(bare) = &mut self.bare {
            let now = Instant::now();
            let over = |(at, ..): &mut (Instant, u32, Signal)| *at <= now;
            for (_, victim, signal) in bare.due.extract_if(.., over) {
                send(victim, signal);
            }
        }
        for place in 0..self.execs.len() {
            let ended = |exec: &mut Child| exec.try_wait().unwrap().is_some();
            if self.execs[place].as_mut().is_none_or(ended) {
                self.execs[place] = Some(self.exec(network, place));
            }
        }
    }

    fn exec(&self, network: &Network, place: usize) -> Child {
        let mut command = network.namespace(place).run("setpriv".as_ref());
        command.args(["--pdeathsig", "KILL"]);
        let work = match &self.bare {
            Some(_) => FENCED_WORK,
            None => {
                command.args(["unshare", "--pid", "--kill-child", "--mount-proc"]);
                WORK
            }
        };
        command
            .args([env!("CARGO_BIN_EXE_bellwether"), "exec", "--", "/usr/bin/python3", "-c", work])
            .arg(place.to_string())
            .arg(&self.acts);
        if let Some(Bare { database, refusals, .. }) = &self.bare {
            command.arg(refusals).envs(database.variables());
        }
        command.env_remove("BELLWETHER_URL").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Kills exec or its command, often where one runs. Says which and where, if there is one. An exec
    /// without a namespace may be stopped instead.
    pub fn strike(&mut self, random: &mut Rng) -> Option<(&'static str, usize)> {
        let running = |place| Some((place, self.pid(place)?, self.command(place)?));
        let mut running: Vec<(usize, u32, u32)> = (0..self.execs.len()).filter_map(running).collect();
        random.shuffle(&mut running);
        let (place, exec, command) = running.pop()?;
        Some((self.strike_at(exec, command, random), place))
    }

    fn strike_at(&mut self, exec: u32, command: u32, random: &mut Rng) -> &'static str {
        match (&mut self.bare, random.u8(..3)) {
            (Some(bare), 0) => {
                send(exec, Signal::STOP);
                let stopped = Duration::from_millis(random.u64(STOPPED_MS));
                bare.due.push((Instant::now() + stopped, exec, Signal::CONT));
                EXEC_STOPPED
            }
            (Some(bare), 1) => {
                let orphan = child(command);
                send(exec, Signal::KILL);
                bare.due.extend(orphan.map(|orphan| (Instant::now() + ORPHANED, orphan, Signal::KILL)));
                "SIGKILL of exec alone"
            }
            (None, 0 | 1) => {
                send(exec, Signal::KILL);
                "SIGKILL of exec"
            }
            _ => {
                send(command, Signal::KILL);
                "SIGKILL of its command"
            }
        }
    }

    /// Ends the exec of a place, as the kubelet ends a container, and waits for that.
    pub fn terminate(&mut self, place: usize) {
        let Some(pid) = self.pid(place) else { return };
        send(pid, Signal::TERM);
        // It may be stopped.
        send(pid, Signal::CONT);
        if let Some(exec) = &mut self.execs[place] {
            exec.wait().unwrap();
        }
    }

    /// Whether there is a database that has refused no write yet.
    pub fn awaits_refusal(&self) -> bool {
        self.bare.as_ref().is_some_and(|bare| bare.refused() == 0)
    }

    fn pid(&self, place: usize) -> Option<u32> {
        let started = self.execs[place].as_ref()?.id();
        if self.bare.is_some() { Some(started) } else { child(started) }
    }

    fn command(&self, place: usize) -> Option<u32> {
        child(self.pid(place)?)
    }

    /// Ends all, and looks at what they have written.
    pub fn end(mut self) -> Worked {
        self.stop();
        let text = fs::read_to_string(&self.acts).unwrap_or_default();
        Worked { fenced: self.bare.as_ref().map(Bare::fenced), ..worked(&text) }
    }

    fn stop(&mut self) {
        for place in 0..self.execs.len() {
            let orphan = self.command(place).and_then(child).filter(|_| self.bare.is_some());
            if let Some(exec) = &mut self.execs[place] {
                exec.kill().ok();
                exec.wait().ok();
            }
            if let Some(orphan) = orphan {
                send(orphan, Signal::KILL);
            }
        }
        for (_, victim, _) in self.bare.iter_mut().flat_map(|bare| bare.due.drain(..)) {
            send(victim, Signal::KILL);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Bare {
    fn refused(&self) -> usize {
        fs::read_to_string(&self.refusals).unwrap_or_default().lines().count()
    }

    fn fenced(&self) -> Fenced {
        let count = |script: &str| self.database.run(OWNER, script).unwrap().parse().unwrap();
        Fenced {
            written: count("select count(*) from journal"),
            refused: self.refused(),
            stale: count(
                "select count(*) from (select epoch, lag(epoch) over (order by id) as before from journal) \
                 as writes where epoch < before",
            ),
        }
    }
}

/// It may have ended just now.
fn send(victim: u32, signal: Signal) {
    if let Some(victim) = Pid::from_raw(i32::try_from(victim).unwrap()) {
        kill_process(victim, signal).ok();
    }
}

/// The first child of a process.
fn child(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split(' ').next()?.parse().ok()
}

fn worked(text: &str) -> Worked {
    let mut commands: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut acts = 0;
    for line in text.lines() {
        let (instant, tag) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} is no act"));
        let instant = instant.parse().unwrap();
        let (first, last) = commands.entry(tag).or_insert((instant, instant));
        (*first, *last) = ((*first).min(instant), (*last).max(instant));
        acts += 1;
    }
    let mut by_begin: Vec<(u64, u64, &str)> =
        commands.iter().map(|(tag, (first, last))| (*first, *last, *tag)).collect();
    by_begin.sort_unstable();
    let mut overlaps = Vec::new();
    let mut latest: Option<(u64, &str)> = None;
    for (first, last, tag) in by_begin {
        if let Some((until, before)) = latest.filter(|(until, _)| first <= *until) {
            let ms = (until - first) as f64 / 1e6;
            overlaps.push(format!("{tag:?} acted {ms} ms before the last act of {before:?}"));
        }
        latest = latest.max(Some((last, tag)));
    }
    Worked { commands: commands.len(), acts, overlaps, fenced: None }
}

#[test]
fn commands_that_act_at_one_instant_are_seen() {
    let overlaps = |text: &str| worked(text).overlaps.len();
    assert_eq!(overlaps("10 1 a 10\n20 1 a 10\n21 2 b 21\n30 2 b 21\n"), 0);
    assert_eq!(overlaps("10 1 a 10\n30 1 a 10\n21 2 b 21\n40 2 b 21\n"), 1);
    assert_eq!(overlaps("10 1 a 10\n30 1 a 10\n12 2 b 12\n15 2 b 12\n20 3 c 20\n25 3 c 20\n"), 2);
    assert_eq!(worked("10 1 a 10\n11 1 a 10\n").commands, 1);
}
