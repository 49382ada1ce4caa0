//! Real processes, each in its own network namespace with its own small disk, and the samplers that ask them.

use super::health::{Conditions, Health, Times, barred};
use super::history::{Lifetime, Nanos, Observation, Observer};
use super::log_table::{check, documented};
use super::network::{Network, Path as Way, Paths, address, enter, own_clocks};
use super::sampler::{Place, Samplers, TIMEOUT};
use super::workers::{Worked, Workers};
use crate::namespace::must;
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Where a process answers, inside its namespace.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4040);
/// How long anything may take that has no bound of its own; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes on the disk of a process.
const DISK: &str = "size=256k";
/// What members with the channel share, and the file that it is in.
const SECRET: &str = "a-secret-of-a-cluster-under-real-faults";
const SECRET_FILE: &str = "secret";
/// Fills a disk.
const BALLAST: &str = "ballast";
/// By how much boot clocks differ at most, in seconds: eleven days.
const CLOCK_RANGE: u64 = 1_000_000;
/// How much of a log is shown when a test fails, in bytes from its end.
const LOG_SHOWN: usize = 3_000;

/// What is promised (`--safety`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Safety {
    Classic,
    Majority,
}

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct ChaosPlan {
    pub n: usize,
    pub safety: Safety,
    /// Each place's priority; a place without one has the default.
    pub priorities: Vec<u16>,
    /// Whether all share a secret, and have the channel between them.
    pub channel: bool,
    /// More flags for all.
    pub flags: Vec<&'static str>,
    /// Between an answer and the next question to the same process.
    pub pause: Duration,
}

/// How a process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Running,
    /// SIGSTOP.
    Stopped,
    Ended,
}

struct Node {
    state: State,
    child: Option<Child>,
    /// Its disk has no room.
    full: bool,
    /// It was started without its record, and is not ready yet.
    blank: bool,
    disk: PathBuf,
    log: PathBuf,
}

/// A cluster. Dropping it ends the processes and takes away what it made.
pub struct Cluster {
    plan: ChaosPlan,
    samplers: Samplers,
    nodes: Vec<Node>,
    network: Network,
    health: Health,
    clocks: bool,
    random: fastrand::Rng,
    /// Commands under exec; none: nothing runs beside the processes.
    workers: Option<Workers>,
    files: TempDir,
}

impl Cluster {
    /// A cluster of which nothing runs yet.
    pub fn new(plan: ChaosPlan, seed: u64) -> Cluster {
        let n = plan.n;
        let files = tempfile::tempdir().unwrap();
        fs::write(files.path().join(SECRET_FILE), SECRET).unwrap();
        let network = Network::new(n);
        let places = (0..n).map(|place| {
            let door = network.door(place);
            Place { http: HTTP, enter: Box::new(move || enter(&door)), pause: plan.pause }
        });
        let samplers = Samplers::start(places.collect());
        let clocks = own_clocks();
        let random = fastrand::Rng::with_seed(seed);
        let health = Health::new(n);
        let mut cluster = Cluster {
            plan,
            samplers,
            nodes: Vec::new(),
            network,
            health,
            clocks,
            random,
            workers: None,
            files,
        };
        for place in 0..n {
            let disk = cluster.files.path().join(format!("disk-{place}"));
            let log = cluster.files.path().join(format!("p-{place}.log"));
            fs::create_dir(&disk).unwrap();
            must(Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "bellwether-chaos"]).arg(&disk));
            let state = State::Ended;
            cluster.nodes.push(Node { state, child: None, full: false, blank: false, disk, log });
        }
        cluster
    }

    /// A cluster that has agreed on its first leader.
    pub fn started(plan: ChaosPlan, seed: u64) -> Cluster {
        let mut cluster = Cluster::new(plan, seed);
        for place in 0..cluster.n() {
            cluster.start(place);
        }
        let all: Vec<usize> = (0..cluster.n()).collect();
        cluster.agreement(&all, PATIENCE).unwrap_or_else(|| panic!("no first leader: {}", cluster.said()));
        // The start has a bound of its own.
        cluster.health = Health::new(cluster.n());
        cluster.note();
        cluster
    }

    pub fn n(&self) -> usize {
        self.nodes.len()
    }

    /// Runs a command under exec beside each process from now on. `fenced`: the execs can be stopped and
    /// killed alone, and there is a database.
    pub fn begin_work(&mut self, fenced: bool) {
        self.workers = Some(Workers::new(self.n(), self.files.path(), fenced));
        self.look_at_workers();
    }

    /// Ends the exec of a place in order.
    pub fn terminate_worker(&mut self, place: usize) {
        self.workers.iter_mut().for_each(|workers| workers.terminate(place));
    }

    /// Starts each exec that has ended anew.
    pub fn look_at_workers(&mut self) {
        self.workers.iter_mut().for_each(|workers| workers.start(&self.network));
    }

    /// Kills an exec or its command; says which.
    pub fn strike_worker(&mut self, random: &mut fastrand::Rng) -> Option<(&'static str, usize)> {
        self.workers.as_mut()?.strike(random)
    }

    /// Whether there is a database that has refused no write yet.
    pub fn awaits_refusal(&self) -> bool {
        self.workers.as_ref().is_some_and(Workers::awaits_refusal)
    }

    /// Ends all commands. None: there were none.
    pub fn end_work(&mut self) -> Option<Worked> {
        self.workers.take().map(Workers::end)
    }

    pub fn now(&self) -> Nanos {
        self.samplers.now()
    }

    pub fn state(&self, place: usize) -> State {
        self.nodes[place].state
    }

    /// Whether its disk has no room.
    pub fn is_full(&self, place: usize) -> bool {
        self.nodes[place].full
    }

    /// Whether a process that was started without its record is not ready yet.
    pub fn any_blank(&self) -> bool {
        self.nodes.iter().any(|node| node.blank)
    }

    /// Whether boot clocks differ.
    pub fn own_clocks(&self) -> bool {
        self.clocks
    }

    /// Starts the process of a place, with a boot clock that tells another time than all others'.
    pub fn start(&mut self, place: usize) {
        let peers: Vec<String> = (0..self.n()).map(|p| format!("{}:4041", address(p))).collect();
        let own = &peers[place];
        let mut command = self.network.namespace(place).run("setpriv".as_ref());
        // It does not outlive the thread that starts it, however that ends.
        command.args(["--pdeathsig", "KILL"]);
        if self.clocks {
            let offset = self.random.u64(..CLOCK_RANGE).to_string();
            command.args(["unshare", "--time", "--monotonic", &offset, "--boottime", &offset]);
        }
        command
            .args([env!("CARGO_BIN_EXE_bellwether"), "run", "--election", "chaos"])
            .args(["--name", &name(place), "--peers", &peers.join(",")])
            .args(["--listen", own, "--advertise", own, "--http", "127.0.0.1:4040"])
            .arg("--state-dir")
            .arg(&self.nodes[place].disk)
            .args(["--log", "debug", "--log-format", "json"]);
        if let Some(priority) = self.plan.priorities.get(place) {
            command.args(["--priority", &priority.to_string()]);
        }
        if self.plan.channel {
            command.arg("--peer-secret-file").arg(self.files.path().join(SECRET_FILE));
        }
        if self.plan.safety == Safety::Majority {
            let names: Vec<String> = (0..self.n()).map(name).collect();
            command.args(["--safety", "majority", "--voters", &names.join(",")]);
        }
        let node = &self.nodes[place];
        let log = fs::OpenOptions::new().create(true).append(true).open(&node.log).unwrap();
        command.args(&self.plan.flags).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("BELLWETHER_") {
                command.env_remove(variable);
            }
        }
        self.samplers.watched(place).life.lock().unwrap().life += 1;
        let child = command.spawn().unwrap();
        let node = &mut self.nodes[place];
        node.child = Some(child);
        node.state = State::Running;
        self.note();
    }

    /// Sends a signal. After SIGSTOP and until SIGCONT it counts as stopped; the end is waited for elsewhere.
    pub fn signal(&mut self, place: usize, signal: Signal) {
        if signal == Signal::STOP {
            self.nodes[place].state = State::Stopped;
            self.note();
        }
        if let Some(child) = &self.nodes[place].child {
            // It is our child and has not been waited for.
            kill_process(Pid::from_child(child), signal).unwrap();
        }
        if signal == Signal::CONT {
            self.nodes[place].state = State::Running;
            self.note();
        }
    }

    /// Ends a process by this signal and waits until it has ended.
    pub fn end(&mut self, place: usize, signal: Signal) -> ExitStatus {
        self.nodes[place].state = State::Ended;
        self.note();
        self.signal(place, signal);
        // It has answered its last question, and still the kernel may take seconds to take its threads down.
        let ended = within(PATIENCE, || self.try_wait(place));
        ended.unwrap_or_else(|| {
            panic!(
                "{} does not end within {PATIENCE:?} of {signal:?}\n{}\n{}",
                name(place),
                self.threads(place),
                self.log_end(place)
            )
        })
    }

    /// What each thread of a process waits for, as the kernel tells it.
    fn threads(&self, place: usize) -> String {
        let Some(child) = &self.nodes[place].child else { return String::new() };
        let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
        let told = |task: PathBuf| {
            let part = |what: &str| fs::read_to_string(task.join(what)).unwrap_or_default().trim().to_owned();
            let status = part("status");
            let state = status.lines().filter(|l| l.starts_with("State") || l.starts_with("Sig"));
            format!("{} {} {:?}", part("comm"), part("syscall"), state.collect::<Vec<_>>())
        };
        let tasks = fs::read_dir(tasks).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        tasks.map(told).collect::<Vec<_>>().join("\n")
    }

    /// The exit status of a process that has ended.
    pub fn try_wait(&mut self, place: usize) -> Option<ExitStatus> {
        let status = self.nodes[place].child.as_mut()?.try_wait().unwrap()?;
        let node = &mut self.nodes[place];
        (node.child, node.state) = (None, State::Ended);
        self.note();
        Some(status)
    }

    /// Empties the disk of a process that has ended.
    pub fn empty(&mut self, place: usize) {
        assert_eq!(self.nodes[place].state, State::Ended);
        for entry in fs::read_dir(&self.nodes[place].disk).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let mut life = self.samplers.watched(place).life.lock().unwrap();
        life.folder += 1;
        drop(life);
        self.nodes[place].blank = true;
    }

    /// Leaves no room on its disk.
    pub fn fill(&mut self, place: usize) {
        self.nodes[place].full = true;
        self.note();
        let mut ballast = File::create(self.nodes[place].disk.join(BALLAST)).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
        // The remainder of a page.
        while ballast.write_all(&[0]).is_ok() {}
    }

    /// Makes room again.
    pub fn free(&mut self, place: usize) {
        fs::remove_file(self.nodes[place].disk.join(BALLAST)).unwrap();
        self.nodes[place].full = false;
        self.note();
    }

    /// Changes what is cut.
    pub fn set_paths(&mut self, paths: Paths) {
        let before = self.conditions();
        let mut meanwhile = before.clone();
        meanwhile.reaches = paths.reaches();
        let now = self.samplers.now();
        self.health.note(now, &before.both(&meanwhile));
        self.network.set(paths);
        self.note();
    }

    /// Cuts a place off from all others, and the other way round, without a word.
    pub fn isolate(&mut self, place: usize) {
        self.set_paths(Paths::cut_all(self.n(), Way::Drop, |from, to| from == place || to == place));
    }

    pub fn heal(&mut self) {
        self.set_paths(Paths::open(self.n()));
    }

    fn conditions(&self) -> Conditions {
        let runs = |node: &Node| node.state == State::Running && !node.full && !node.blank;
        Conditions { reaches: self.network.paths().reaches(), runs: self.nodes.iter().map(runs).collect() }
    }

    fn note(&mut self) {
        let conditions = self.conditions();
        self.health.note(self.samplers.now(), &conditions);
    }

    /// Checks whether processes that were started without their record are ready by now.
    pub fn look_at_blank(&mut self) {
        for place in 0..self.n() {
            if self.nodes[place].blank && self.nodes[place].state == State::Running && self.is_ready(place) {
                self.nodes[place].blank = false;
                self.note();
            }
        }
    }

    fn is_ready(&self, place: usize) -> bool {
        status(&self.network.door(place), "/readyz") == Some(200)
    }

    pub fn samplers(&self) -> &Samplers {
        &self.samplers
    }

    pub fn health(&self) -> &Health {
        &self.health
    }

    /// When the process of each place was no candidate for its application's sake.
    pub fn barred(&self) -> Vec<Times> {
        let now = self.now();
        let began = SystemTime::now() - Duration::from_nanos(now);
        let log = |node: &Node| fs::read(&node.log).unwrap_or_default();
        self.nodes.iter().map(|node| barred(&String::from_utf8_lossy(&log(node)), began, now)).collect()
    }

    pub fn observers(&self) -> Vec<Observer> {
        self.samplers.observers()
    }

    /// The latest answer of the process that is there now, and when it was received.
    pub fn latest(&self, place: usize) -> Option<(Nanos, Observation)> {
        let watched = self.samplers.watched(place);
        let life: Lifetime = *watched.life.lock().unwrap();
        let observer = watched.observer.lock().unwrap();
        let sample = observer.latest.as_ref().filter(|sample| sample.life == life)?;
        Some((sample.received, sample.answer.clone()?))
    }

    /// The place that said last that it leads.
    pub fn leader(&self) -> Option<usize> {
        let yes = |place: usize| Some((self.latest(place).filter(|(_, answer)| answer.yes)?.0, place));
        (0..self.n()).filter_map(yes).max().map(|(_, place)| place)
    }

    /// Waits until these places name one leader in one epoch, and one of them says that it is the leader.
    /// Returns its place and the epoch. Only answers to questions that were asked from now on count.
    pub fn agreement(&mut self, places: &[usize], patience: Duration) -> Option<(usize, u64)> {
        let began = self.now();
        within(patience, || self.agreed(places, began))
    }

    /// The same, if it is so by answers to questions that were asked after this moment.
    pub fn agreed(&mut self, places: &[usize], after: Nanos) -> Option<(usize, u64)> {
        self.look_at_blank();
        let answers: Option<Vec<Observation>> = places
            .iter()
            .map(|place| self.latest(*place).filter(|(at, _)| *at > after).map(|(_, answer)| answer))
            .collect();
        let answers = answers?;
        let first = answers.first().filter(|answer| answer.leader.is_some())?;
        let one = answers.iter().all(|a| a.leader == first.leader && a.epoch == first.epoch);
        let mut yes = places.iter().zip(&answers).filter(|(_, answer)| answer.yes);
        let (leader, _) = yes.next()?;
        (one && yes.next().is_none()).then_some((*leader, first.epoch))
    }

    /// What all of them say, for people.
    pub fn said(&self) -> String {
        let said = |place: usize| match self.latest(place) {
            None => format!("{}: nothing", name(place)),
            Some((_, a)) => {
                let leader = a.leader.as_deref().unwrap_or("none");
                let own = if a.yes { " (itself)" } else { "" };
                format!("{}: {leader}{own} leads in epoch {}", name(place), a.epoch)
            }
        };
        (0..self.n()).map(said).collect::<Vec<_>>().join("; ")
    }

    /// Says something with the time on the samples' clock and on the logs'.
    pub fn tell(&self, what: &str) {
        let wall = humantime::format_rfc3339_millis(SystemTime::now());
        println!("{wall} {:9.3} s {what}", self.now() as f64 / 1e9);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(child) = &mut node.child {
                child.kill().ok();
                child.wait().ok();
            }
            Command::new("umount").arg(&node.disk).status().ok();
        }
        if std::thread::panicking() {
            return self.keep_logs();
        }
        let table = documented();
        for node in &self.nodes {
            // A process that was killed may have written half a line, and its successor goes on in it.
            check(&fs::read_to_string(&node.log).unwrap_or_default(), &table);
        }
    }
}

impl Cluster {
    /// Shows how the logs end, and keeps all of them.
    fn keep_logs(&self) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{}", std::process::id()));
        fs::create_dir_all(&folder).ok();
        for (place, node) in self.nodes.iter().enumerate() {
            let kept = folder.join(format!("{}.log", name(place)));
            fs::copy(&node.log, &kept).ok();
            eprintln!("--- end of {} ---\n{}", kept.display(), self.log_end(place));
        }
    }

    /// How the log of a place ends.
    pub fn log_end(&self, place: usize) -> String {
        let log = fs::read(&self.nodes[place].log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_SHOWN)..]).into_owned()
    }
}

/// The name of the process of a place, as `--voters N` would have it.
pub fn name(place: usize) -> String {
    format!("p-{place}")
}

/// The status of one question to a process at this path; none: it does not answer.
fn status(door: &File, path: &str) -> Option<u16> {
    let ask = || {
        enter(door);
        let mut stream = TcpStream::connect_timeout(&HTTP, TIMEOUT).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut head = [0u8; 12];
        stream.read_exact(&mut head).ok()?;
        std::str::from_utf8(&head[9..]).ok()?.parse().ok()
    };
    // A thread of its own, since it stays in the namespace.
    std::thread::scope(|scope| scope.spawn(ask).join().unwrap())
}
