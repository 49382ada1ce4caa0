//! Real sidecars on loopback, and what they say of themselves: for the demo, the tests of real processes and
//! the benchmarks.
//!
//! A [`ProcessCluster`] starts, stops and kills processes of one binary. A thread for each asks `/leader`
//! over a kept-alive connection, by default about once a millisecond ([`ProcessCluster::ask_every`]).
//! [`ProcessCluster::until`] waits for what all of them say together.

use super::parent_death;
use super::poller::{ANSWER_BYTES_MAX, Observed, Shared, agent, agreement, describe, watch};
pub use super::poller::{Agreement, Leader, LeaderAnswer, Sighting};
use super::ports::{self, Ports, Reservation};
use crate::config;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two questions to one process, unless told otherwise.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// How long a single question may take. On two cores that forty threads want, half a second happens.
pub const GET_TIMEOUT: Duration = Duration::from_secs(10);

/// How the processes of a cluster are started.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// The program.
    pub binary: PathBuf,
    /// How many.
    pub n: usize,
    /// Their ports; none: free ones.
    pub base_port: Option<u16>,
    /// Flags for all of them, besides those that the cluster gives: names, ports, peers, cluster.
    pub flags: Vec<String>,
    /// With `--safety majority`, all of them voters: the folder in which each gets a state folder of its own,
    /// which a restart finds again. The cluster removes none of them. None: `classic`, without a state
    /// folder.
    pub majority: Option<PathBuf>,
    /// A folder for their logs, `p1.log` and so on; none: errors go where this process's errors go.
    pub logs: Option<PathBuf>,
    /// Starts a relay to a peer port, and returns the relay's: there the others dial that process. None: they
    /// dial its peer port.
    pub relay: Option<fn(u16) -> io::Result<u16>>,
}

/// How many clusters this process has had.
static CLUSTERS: AtomicU32 = AtomicU32::new(0);

/// Why a cluster could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A port is not free.
    #[error(
        "port {port} on 127.0.0.1 is not free ({source}); choose others with --base-port, or leave it out"
    )]
    Port {
        /// Which.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// A process or a thread could not be started.
    #[error("cannot start {what}: {source}")]
    Start {
        /// What.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {within:?}; what the processes say: {said}")]
    Deadline {
        /// What was waited for.
        what: String,
        /// How long.
        within: Duration,
        /// What they said instead.
        said: String,
    },
}

/// One place in a cluster: the process in it changes when it is restarted.
#[derive(Debug)]
struct Slot {
    ports: Ports,
    /// Where the others dial it: its peer port, or a relay's.
    dialled: u16,
    child: Option<Child>,
}

/// Processes, their ports, and the threads that watch them. Dropping it kills what still runs.
#[derive(Debug)]
pub struct ProcessCluster {
    plan: ClusterPlan,
    cluster: String,
    slots: Vec<Slot>,
    shared: Arc<Shared>,
    _reserved: Reservation,
}

impl ProcessCluster {
    /// Takes ports for the plan and begins to watch them; nothing runs yet.
    ///
    /// # Errors
    /// [`ClusterError::Port`] and [`ClusterError::Start`].
    pub fn new(plan: ClusterPlan) -> Result<ProcessCluster, ClusterError> {
        let start = |what: &str| {
            let what = what.to_owned();
            move |source| ClusterError::Start { what, source }
        };
        let reserved = match plan.base_port {
            Some(base) => {
                ports::from(base, plan.n).map_err(|(port, source)| ClusterError::Port { port, source })?
            }
            None => ports::free(plan.n).map_err(start("on free ports"))?,
        };
        let observed = Observed {
            sightings: vec![Sighting::default(); plan.n],
            starts: vec![0; plan.n],
            ask_every: Some(ASK_EVERY),
            stopped: false,
        };
        let shared = Arc::new(Shared { observed: Mutex::new(observed), changed: Condvar::new() });
        for (place, port) in reserved.ports.iter().map(|p| p.http).enumerate() {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("watch-{port}"))
                .spawn(move || watch(&shared, place, port))
                .map_err(start("a thread"))?;
        }
        let slot = |ports: &Ports| {
            let dialled = plan.relay.map_or(Ok(ports.peer), |relay| relay(ports.peer));
            Ok(Slot { ports: *ports, dialled: dialled.map_err(start("a relay"))?, child: None })
        };
        let slots = reserved.ports.iter().map(slot).collect::<Result<_, _>>()?;
        // Letters, digits and hyphens: a name of these can stand in a certificate.
        let cluster = match CLUSTERS.fetch_add(1, Ordering::Relaxed) {
            0 => format!("demo-{}", std::process::id()),
            before => format!("demo-{}-{before}", std::process::id()),
        };
        Ok(ProcessCluster { plan, cluster, slots, shared, _reserved: reserved })
    }

    /// How many places there are.
    pub fn n(&self) -> usize {
        self.slots.len()
    }

    /// The name of its cluster: another for each cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The name of the process in this place.
    pub fn name(&self, place: usize) -> String {
        format!("{}-{}", self.cluster, place + 1)
    }

    /// Its ports.
    pub fn ports(&self, place: usize) -> Ports {
        self.slots[place].ports
    }

    /// The id of its operating system process, while it runs.
    pub fn pid(&self, place: usize) -> Option<u32> {
        self.slots[place].child.as_ref().map(Child::id)
    }

    /// The places whose processes have not been killed or told to end.
    pub fn running(&self) -> Vec<usize> {
        (0..self.n()).filter(|place| self.slots[*place].child.is_some()).collect()
    }

    /// Starts the process of a place, with flags of its own. A name, a cluster or voters among them take the
    /// place of the cluster's, and peers are added to the cluster's.
    ///
    /// # Errors
    /// [`ClusterError::Start`].
    pub fn start(&mut self, place: usize, flags: &[&str]) -> Result<(), ClusterError> {
        let peers: Vec<String> = self.slots.iter().map(|s| format!("127.0.0.1:{}", s.dialled)).collect();
        let Slot { ports: Ports { peer, http }, dialled, .. } = self.slots[place];
        let name = self.name(place);
        let mut command = Command::new(&self.plan.binary);
        // In the container of a sidecar: its settings are not these processes'.
        for (variable, _) in std::env::vars_os().filter(|(name, _)| config::reads(&name.to_string_lossy())) {
            command.env_remove(variable);
        }
        command.arg("run");
        for (flag, value) in [("--election", &self.cluster), ("--name", &name)] {
            if !flags.contains(&flag) {
                command.args([flag, value]);
            }
        }
        command
            .args(["--peers", &peers.join(",")])
            .args(["--listen", &format!("127.0.0.1:{peer}"), "--http", &format!("127.0.0.1:{http}")])
            .args(["--advertise", &format!("127.0.0.1:{dialled}")])
            .args(&self.plan.flags)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Its own group: an interrupt at the terminal reaches the parent only, which ends the sidecar in
            // turn.
            .process_group(0);
        parent_death::attach(&mut command);
        let failed = |source| ClusterError::Start { what: name.clone(), source };
        if let Some(folder) = &self.plan.majority {
            let state = folder.join(&name);
            std::fs::create_dir_all(&state).map_err(failed)?;
            let voters: Vec<String> = (0..self.n()).map(|place| self.name(place)).collect();
            command.args(["--safety", "majority"]).arg("--state-dir").arg(state);
            if !flags.contains(&"--voters") {
                command.args(["--voters", &voters.join(",")]);
            }
        }
        if let Some(folder) = &self.plan.logs {
            let path = log_file(folder, place);
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
            command.stderr(file);
        }
        let child = command.spawn().map_err(failed)?;
        self.slots[place].child = Some(child);
        let mut observed = self.shared.lock();
        observed.starts[place] += 1;
        observed.sightings[place] = Sighting::default();
        Ok(())
    }

    /// Starts all that do not run.
    ///
    /// # Errors
    /// [`ClusterError::Start`].
    pub fn start_all(&mut self) -> Result<(), ClusterError> {
        for place in 0..self.n() {
            if self.slots[place].child.is_none() {
                self.start(place, &[])?;
            }
        }
        Ok(())
    }

    /// Sends a signal to the process of a place; one that has ended is left alone.
    pub fn signal(&self, place: usize, signal: Signal) {
        if let Some(pid) = self.slots[place].child.as_ref().map(Pid::from_child) {
            // It is our child and not waited for yet, so the number is still its own.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills a process, without a word and without waiting for its end; says when.
    pub fn kill(&self, place: usize) -> Instant {
        let at = Instant::now();
        self.signal(place, Signal::KILL);
        at
    }

    /// Waits for the end of a process that has been sent a signal. After that its place is free.
    ///
    /// # Errors
    /// [`ClusterError::Deadline`]; it then runs on.
    pub fn wait(&mut self, place: usize, within: Duration) -> Result<ExitStatus, ClusterError> {
        let deadline = Instant::now() + within;
        let Some(child) = &mut self.slots[place].child else { return Ok(ExitStatus::from_raw(0)) };
        loop {
            // An error would mean that it is no child of ours; then it has ended as far as we can know.
            match child.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                Ok(None) => break,
                Ok(Some(status)) => {
                    self.slots[place].child = None;
                    return Ok(status);
                }
                Err(source) => return Err(ClusterError::Start { what: "waiting for it".to_owned(), source }),
            }
        }
        Err(self.late(&format!("the end of {}", self.name(place)), within))
    }

    /// Asks every process this often from now on; none: not at all, and what is known of them stays as it is.
    pub fn ask_every(&self, pause: Option<Duration>) {
        self.shared.lock().ask_every = pause;
        self.shared.changed.notify_all();
    }

    /// Asks the process of a place once, on a connection of its own: the status, and the body.
    ///
    /// # Errors
    /// When there is no answer within [`GET_TIMEOUT`].
    pub fn get(&self, place: usize, path: &str) -> Result<(u16, String), ureq::Error> {
        let mut response =
            agent(GET_TIMEOUT).get(format!("http://127.0.0.1:{}{path}", self.ports(place).http)).call()?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        Ok((response.status().as_u16(), body))
    }

    /// What all incarnations of a place's process have written to its log; nothing where the plan has no
    /// logs.
    pub fn log(&self, place: usize) -> String {
        let path = self.plan.logs.as_ref().map(|folder| log_file(folder, place));
        path.and_then(|path| std::fs::read(path).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// What is known of a place.
    pub fn sighting(&self, place: usize) -> Sighting {
        self.shared.lock().sightings[place].clone()
    }

    /// Waits until what the places say satisfies `wanted`, and hands out its result.
    ///
    /// # Errors
    /// [`ClusterError::Deadline`], with what was waited for.
    pub fn until<T>(
        &self,
        what: &str,
        within: Duration,
        wanted: impl Fn(&[Sighting]) -> Option<T>,
    ) -> Result<T, ClusterError> {
        let deadline = Instant::now() + within;
        let mut observed = self.shared.lock();
        loop {
            if let Some(result) = wanted(&observed.sightings) {
                return Ok(result);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(observed);
                return Err(self.late(what, within));
            }
            let waited = self.shared.changed.wait_timeout(observed, left);
            observed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until all running processes name the same leader, a running one that says so itself, in the same
    /// epoch, above `epoch`.
    ///
    /// # Errors
    /// [`ClusterError::Deadline`].
    pub fn agree(&self, epoch: u64, within: Duration) -> Result<Agreement, ClusterError> {
        self.agree_among(&self.running(), epoch, within)
    }

    /// As [`ProcessCluster::agree`], of these places only.
    ///
    /// # Errors
    /// [`ClusterError::Deadline`].
    pub fn agree_among(
        &self,
        places: &[usize],
        epoch: u64,
        within: Duration,
    ) -> Result<Agreement, ClusterError> {
        let what = format!("agreement of {} processes on a leader above epoch {epoch}", places.len());
        self.until(&what, within, |sightings| agreement(sightings, places, epoch))
    }

    fn late(&self, what: &str, within: Duration) -> ClusterError {
        let observed = self.shared.lock();
        let describe = |(place, sighting): (usize, &Sighting)| match self.log(place).lines().last() {
            // It may have ended, and said why.
            Some(line) if sighting.answer.is_none() => {
                format!("{}; its log ends: {line}", describe(place, sighting))
            }
            _ => describe(place, sighting),
        };
        let said: Vec<String> = observed.sightings.iter().enumerate().map(describe).collect();
        ClusterError::Deadline { what: what.to_owned(), within, said: said.join("; ") }
    }
}

impl Drop for ProcessCluster {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        for slot in &mut self.slots {
            if let Some(child) = &mut slot.child {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn log_file(folder: &std::path::Path, place: usize) -> PathBuf {
    folder.join(format!("p{}.log", place + 1))
}
