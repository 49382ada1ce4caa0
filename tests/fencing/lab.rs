//! Three hosts with a sidecar and a worker each, and a fourth one with the database. Each is a network
//! namespace.

use crate::database::{Database, OWNER, PATIENCE, WORKER, example};
use crate::network::{Network, Path as Way, Paths, address};
use crate::wait::within;
use rustix::fs::{Mode, OFlags, mkfifoat};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The hosts that can lead.
pub const PLACES: [usize; 3] = [0, 1, 2];
/// The database's host.
const DATABASE: usize = 3;
/// The guard of the example is for this one.
const ELECTION: &str = "jobs";
/// So long that a worker's yes outlasts what a busy machine adds.
const LEASE: &str = "3s";
/// Debian's, since its package has psycopg2.
const PYTHON: &str = "/usr/bin/python3";

/// A guard that checks nothing.
const DISARM: &str = "
    create or replace function fencing.enter(of_resource text, by_election text, with_epoch bigint)
        returns void language sql as '';
    alter table journal disable trigger fenced;";

/// Whether the database checks epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    Armed,
    Disarmed,
}

/// What a worker has said, and when.
type Line = (String, Instant);

/// The hosts. Dropping it ends what runs there.
pub struct Lab {
    sidecars: Vec<Child>,
    workers: Vec<Child>,
    lines: Receiver<(usize, Line)>,
    unread: [VecDeque<Line>; PLACES.len()],
    database: Database,
    network: Network,
    files: TempDir,
}

impl Lab {
    /// Starts everything.
    pub fn start(guard: Guard) -> Lab {
        let network = Network::new(PLACES.len() + 1);
        let database = Database::start(Some((network.namespace(DATABASE), address(DATABASE))));
        if guard == Guard::Disarmed {
            database.run(OWNER, DISARM).unwrap();
        }
        let (sender, lines) = channel();
        let (sidecars, workers) = (Vec::new(), Vec::new());
        let (unread, files) = (Default::default(), tempfile::tempdir().unwrap());
        let mut lab = Lab { sidecars, workers, lines, unread, database, network, files };
        for place in PLACES {
            let sidecar = lab.sidecar(place);
            lab.sidecars.push(sidecar);
            let worker = lab.worker(place, sender.clone());
            lab.workers.push(worker);
        }
        lab
    }

    fn sidecar(&self, place: usize) -> Child {
        let peers = PLACES.map(|place| format!("{}:4041", address(place)));
        let names = PLACES.map(|place| format!("p-{place}"));
        let state = self.files.path().join(&names[place]);
        fs::create_dir(&state).unwrap();
        let log = File::create(self.files.path().join(format!("p-{place}.log"))).unwrap();
        self.command(place)
            .args([env!("CARGO_BIN_EXE_bellwether"), "run", "--safety", "majority", "--preempt", "never"])
            .args(["--election", ELECTION, "--lease", LEASE, "--name", &names[place]])
            .args(["--voters", &names.join(","), "--peers", &peers.join(",")])
            .args(["--listen", &peers[place], "--advertise", &peers[place], "--http", "127.0.0.1:4040"])
            .arg("--state-dir")
            .arg(state)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// A worker whose work is to wait until [`Lab::end_unit`].
    fn worker(&self, place: usize, said: Sender<(usize, Line)>) -> Child {
        mkfifoat(rustix::fs::CWD, self.gate(place), Mode::RUSR | Mode::WUSR).unwrap();
        self.set_clock(place, Duration::ZERO);
        let mut child = self
            .command(place)
            .arg("env")
            .arg(format!("LD_PRELOAD={}", faketime().display()))
            .arg(PYTHON)
            .arg(example("worker.py"))
            // It ends with the worker.
            .args(["setpriv", "--pdeathsig", "KILL", "cat"])
            .arg(self.gate(place))
            .env("BELLWETHER_ELECTION", ELECTION)
            .env("FAKETIME_TIMESTAMP_FILE", self.clock(place))
            .env("FAKETIME_NO_CACHE", "1")
            .env("PGHOST", address(DATABASE).to_string())
            .envs([("PGUSER", WORKER), ("PGDATABASE", "postgres")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        thread::spawn(move || {
            let mut lines = lines;
            lines.try_for_each(|line| said.send((place, (line, Instant::now()))))
        });
        child
    }

    /// The rest of this command on a host. The program does not outlive the thread that starts it.
    fn command(&self, place: usize) -> Command {
        let mut command = self.network.namespace(place).run("setpriv".as_ref());
        command.args(["--pdeathsig", "KILL"]).stdin(Stdio::null()).process_group(0);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("BELLWETHER_") {
                command.env_remove(variable);
            }
        }
        command
    }

    fn gate(&self, place: usize) -> PathBuf {
        self.files.path().join(format!("gate-{place}"))
    }

    fn clock(&self, place: usize) -> PathBuf {
        self.files.path().join(format!("clock-{place}"))
    }

    /// The next line of a worker.
    pub fn next(&mut self, place: usize) -> String {
        self.next_line(place).0
    }

    fn next_line(&mut self, place: usize) -> Line {
        while self.unread[place].is_empty() {
            self.listen(&format!("the worker of place {place}"));
        }
        self.unread[place].pop_front().unwrap()
    }

    /// Waits for a line of any worker.
    fn listen(&mut self, wanted: &str) {
        match self.lines.recv_timeout(PATIENCE) {
            Ok((place, line)) => self.unread[place].push_back(line),
            Err(_) => panic!("{wanted} says nothing; unread: {:?}\n{}", self.unread, self.logs()),
        }
    }

    /// Waits for the next line of a worker, which is this one. Says when it came.
    pub fn expect(&mut self, place: usize, wanted: &str) -> Instant {
        let (line, at) = self.next_line(place);
        assert!(line.starts_with(wanted), "place {place} should say {wanted:?}: {line:?}\n{}", self.logs());
        at
    }

    /// Waits until the worker of one of these works, and so leads.
    pub fn leader(&mut self, places: &[usize]) -> usize {
        loop {
            match places.iter().find(|place| !self.unread[**place].is_empty()) {
                Some(place) => return *place,
                None => self.listen("a new leader"),
            }
        }
    }

    /// Lets the program end that a worker waits for.
    pub fn end_unit(&self, place: usize) {
        let open = || {
            // It fails as long as the program does not read.
            let flags = OFlags::WRONLY | OFlags::NONBLOCK;
            rustix::fs::open(self.gate(place), flags, Mode::empty()).ok().map(File::from)
        };
        within(PATIENCE, open).expect("the worker does not work").write_all(b"done\n").unwrap();
    }

    /// Lets a worker work until it writes, and says in which epoch. On a busy machine a yes can run out
    /// first.
    pub fn send_write(&mut self, place: usize) -> u64 {
        loop {
            let line = self.next(place);
            match line.split_once(" epoch=").unwrap() {
                ("works", _) => self.end_unit(place),
                ("stops", _) => {}
                ("writes", epoch) => return epoch.parse().unwrap(),
                _ => panic!("place {place} should write: {line:?}\n{}", self.logs()),
            }
        }
    }

    /// Lets a worker write, and waits until it has. Says in which epoch.
    pub fn write(&mut self, place: usize) -> u64 {
        let epoch = self.send_write(place);
        self.expect(place, &format!("wrote epoch={epoch}"));
        epoch
    }

    /// The epochs of the journal's rows, in the order of the writes.
    pub fn written(&self) -> Vec<u64> {
        let rows = self.database.run(OWNER, "select epoch from journal order by id").unwrap();
        rows.lines().map(|epoch| epoch.parse().unwrap()).collect()
    }

    pub fn cut_from_database(&mut self, place: usize) {
        self.cut(|from, to| [(place, DATABASE), (DATABASE, place)].contains(&(from, to)));
    }

    pub fn cut_from_peers(&mut self, place: usize) {
        self.cut(|from, to| (from == place || to == place) && from != DATABASE && to != DATABASE);
    }

    pub fn cut_from_all(&mut self, place: usize) {
        self.cut(|from, to| from == place || to == place);
    }

    pub fn heal(&mut self) {
        self.cut(|_, _| false);
    }

    fn cut(&mut self, cut: impl Fn(usize, usize) -> bool) {
        let paths = Paths::cut_all(self.network.n(), Way::Drop, cut);
        self.network.set(paths);
    }

    /// Stops a host's sidecar and worker.
    pub fn stop(&self, place: usize) {
        self.signal(place, Signal::STOP);
    }

    pub fn resume(&self, place: usize) {
        self.signal(place, Signal::CONT);
    }

    fn signal(&self, place: usize, signal: Signal) {
        for child in [&self.sidecars[place], &self.workers[place]] {
            kill_process(Pid::from_child(child), signal).unwrap();
        }
    }

    /// Sets the clocks of a worker back.
    pub fn step_back(&self, place: usize, by: Duration) {
        self.set_clock(place, by);
    }

    /// libfaketime puts the wall clock and an offset in the place of every clock. This offset makes it the
    /// boot clock, by which the worker counts, or one that lags behind it.
    fn set_clock(&self, place: usize, behind: Duration) {
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot = boot.tv_sec as f64 + boot.tv_nsec as f64 / 1e9;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let next = self.files.path().join("clock");
        fs::write(&next, format!("{:+.6}\n", boot - wall - behind.as_secs_f64())).unwrap();
        fs::rename(next, self.clock(place)).unwrap();
    }

    fn logs(&self) -> String {
        let log = |place| fs::read_to_string(self.files.path().join(format!("p-{place}.log")));
        PLACES.map(|place| log(place).unwrap_or_default()).join("---\n")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in self.workers.iter_mut().chain(&mut self.sidecars) {
            // The worker's program is in its group.
            kill_process_group(Pid::from_child(child), Signal::KILL).ok();
            child.wait().ok();
        }
    }
}

/// The library of Debian's package.
fn faketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().map(|folder| folder.unwrap().path());
    let mut libraries = folders.map(|folder| folder.join(Path::new("faketime/libfaketimeMT.so.1")));
    libraries.find(|library| library.is_file()).expect("faketime is not installed")
}
