//! A command under `bellwether exec` beside each process, and whether two of them ever acted at one instant.
//!
//! Each exec is process 1 of a PID namespace, as in a container. Its command and a descendant in a session of
//! its own, which ignores SIGTERM, write down each instant at which they act.

use super::network::Network;
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

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

/// One exec for each place.
pub struct Workers {
    execs: Vec<Option<Child>>,
    acts: PathBuf,
}

/// What came of them.
pub struct Worked {
    /// How many commands ran.
    pub commands: usize,
    /// How many instants they wrote down.
    pub acts: usize,
    /// Commands that acted while an earlier one still did, in words.
    pub overlaps: Vec<String>,
}

impl Workers {
    pub fn new(n: usize, folder: &Path) -> Workers {
        Workers { execs: (0..n).map(|_| None).collect(), acts: folder.join("acts") }
    }

    /// Starts those that do not run.
    pub fn start(&mut self, network: &Network) {
        for place in 0..self.execs.len() {
            let ended = |exec: &mut Child| exec.try_wait().unwrap().is_some();
            if self.execs[place].as_mut().is_none_or(ended) {
                self.execs[place] = Some(self.exec(network, place));
            }
        }
    }

    fn exec(&self, network: &Network, place: usize) -> Child {
        let mut command = network.namespace(place).run("setpriv".as_ref());
        command
            .args(["--pdeathsig", "KILL", "unshare", "--pid", "--kill-child", "--mount-proc"])
            .args([env!("CARGO_BIN_EXE_bellwether"), "exec", "--", "python3", "-c", WORK])
            .arg(place.to_string())
            .arg(&self.acts)
            .env_remove("BELLWETHER_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Kills exec or its command, often where one runs. Says which, if there is one.
    pub fn strike(&self, random: &mut Rng) -> Option<&'static str> {
        let running = |exec: &Option<Child>| {
            let exec = child(exec.as_ref()?.id())?;
            Some((exec, child(exec)?))
        };
        let mut running: Vec<(u32, u32)> = self.execs.iter().filter_map(running).collect();
        random.shuffle(&mut running);
        let (exec, command) = running.pop()?;
        let (victim, what) =
            if random.bool() { (exec, "SIGKILL of exec") } else { (command, "SIGKILL of its command") };
        // It may have ended just now.
        kill_process(Pid::from_raw(i32::try_from(victim).unwrap())?, Signal::KILL).ok()?;
        Some(what)
    }

    /// Ends all, and looks at what they have written.
    pub fn end(mut self) -> Worked {
        self.stop();
        let text = fs::read_to_string(&self.acts).unwrap_or_default();
        worked(&text)
    }

    fn stop(&mut self) {
        for exec in self.execs.iter_mut().flatten() {
            exec.kill().ok();
            exec.wait().ok();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
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
    Worked { commands: commands.len(), acts, overlaps }
}

#[test]
fn commands_that_act_at_one_instant_are_seen() {
    let overlaps = |text: &str| worked(text).overlaps.len();
    assert_eq!(overlaps("10 1 a 10\n20 1 a 10\n21 2 b 21\n30 2 b 21\n"), 0);
    assert_eq!(overlaps("10 1 a 10\n30 1 a 10\n21 2 b 21\n40 2 b 21\n"), 1);
    assert_eq!(overlaps("10 1 a 10\n30 1 a 10\n12 2 b 12\n15 2 b 12\n20 3 c 20\n25 3 c 20\n"), 2);
    assert_eq!(worked("10 1 a 10\n11 1 a 10\n").commands, 1);
}
