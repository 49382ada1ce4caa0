//! Clusters for tests: with logs, which are shown when a test fails.

use crate::rounds::{self, PATIENCE};
use crate::wait::within;
use bellwether::demo::process_cluster::{Agreement, ClusterPlan, ProcessCluster};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use tempfile::TempDir;

/// Often enough to see what happens, and not so often that two cores have nothing else to do.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// How much of a log is shown when a test fails, in bytes from its end.
const LOG_SHOWN: usize = 1_500;

/// The program.
pub fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bellwether"))
}

/// A cluster, its logs and its state folders.
pub struct Real {
    processes: ProcessCluster,
    folder: TempDir,
}

/// A cluster of which nothing runs yet.
pub fn processes(n: usize, flags: &[&str]) -> Real {
    planned(n, flags, false)
}

/// A cluster of voters of which nothing runs yet.
pub fn voters(n: usize, flags: &[&str]) -> Real {
    planned(n, flags, true)
}

fn planned(n: usize, flags: &[&str], majority: bool) -> Real {
    let folder = tempfile::tempdir().unwrap();
    let plan = ClusterPlan {
        binary: binary(),
        n,
        base_port: None,
        flags: flags.iter().map(|f| (*f).to_owned()).collect(),
        majority: majority.then(|| folder.path().join("states")),
        logs: Some(folder.path().to_owned()),
        relay: None,
    };
    let processes = ProcessCluster::new(plan).unwrap();
    processes.ask_every(Some(ASK_EVERY));
    Real { processes, folder }
}

/// A cluster that has agreed on its first leader.
pub fn started(n: usize, flags: &[&str]) -> (Real, Agreement) {
    let mut real = processes(n, flags);
    real.start_all().unwrap();
    let now = real.agree(0, PATIENCE).unwrap();
    (real, now)
}

/// A cluster of voters that has agreed on its first leader. Each has its vote.
pub fn voters_started(n: usize, flags: &[&str]) -> (Real, Agreement) {
    let mut real = voters(n, flags);
    real.start_all().unwrap();
    let now = real.agree(0, PATIENCE).unwrap();
    // The slowest of three may have found others that voted without it, and ask for its vote still.
    rounds::ready(&real).unwrap();
    (real, now)
}

impl Real {
    /// The state folder of a voter.
    pub fn state(&self, place: usize) -> PathBuf {
        self.folder.path().join("states").join(self.name(place))
    }

    /// Waits until a process has logged all of these in one line, and returns that line.
    pub fn logged(&self, place: usize, words: &[&str]) -> String {
        let found = within(PATIENCE, || {
            let log = self.log(place);
            let mut lines = log.lines();
            lines.find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned)
        });
        found.unwrap_or_else(|| panic!("{} logs no line with {words:?}", self.name(place)))
    }

    /// Waits for a process to end by itself.
    pub fn end(&mut self, place: usize) -> ExitStatus {
        self.wait(place, PATIENCE).unwrap()
    }

    /// Starts a process that cannot start, and checks that it ends with this code, and why.
    pub fn refuses(&mut self, place: usize, flags: &[&str], code: i32, words: &[&str]) {
        self.start(place, flags).unwrap();
        let status = self.end(place);
        assert_eq!(status.code(), Some(code), "{status}");
        self.logged(place, words);
    }

    /// What a process answers. It sends no answer that has grown old before it could be sent, which happens
    /// on a busy machine: then it is asked again.
    pub fn answer(&self, place: usize, path: &str) -> (u16, String) {
        within(PATIENCE, || self.get(place, path).ok()).expect("no answer")
    }

    /// The value of a metric, by its name with its labels.
    pub fn metric(&self, place: usize, name: &str) -> Option<f64> {
        let (_, text) = self.answer(place, "/metrics");
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.and_then(|value| value.parse().ok())
    }
}

impl Deref for Real {
    type Target = ProcessCluster;

    fn deref(&self) -> &ProcessCluster {
        &self.processes
    }
}

impl DerefMut for Real {
    fn deref_mut(&mut self) -> &mut ProcessCluster {
        &mut self.processes
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for place in 0..self.n() {
            let log = self.log(place);
            let mut begin = log.len().saturating_sub(LOG_SHOWN);
            while !log.is_char_boundary(begin) {
                begin += 1;
            }
            eprintln!("--- {} ---\n{}", self.name(place), &log[begin..]);
        }
    }
}
