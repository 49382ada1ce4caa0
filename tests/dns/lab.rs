//! A network namespace, a name server in it, and the process that looks names up.

use crate::namespace::{self as network, must};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes; only a failing test waits for it.
const DEADLINE: Duration = Duration::from_secs(30);
/// Between two looks at something that cannot be waited for otherwise.
const LOOK: Duration = Duration::from_millis(10);
/// Where the name server listens.
const SERVER: &str = "198.18.0.53";
/// Where the name server that [`Dnsmasq::servfail`] forwards to listens.
const UPSTREAM: &str = "198.18.0.54";
/// No zone is signed by a key of this digest.
const WRONG_TRUST_ANCHOR: &str =
    "--trust-anchor=.,1,8,2,0000000000000000000000000000000000000000000000000000000000000000";

/// A network namespace with nothing in it but its own loopback interface and resolver configuration. Dropping
/// it takes it away.
pub struct Namespace {
    network: network::Namespace,
}

impl Namespace {
    pub fn new(resolv_conf: &str) -> Namespace {
        let namespace = Namespace { network: network::Namespace::new("dns") };
        // `ip netns exec` mounts these over the machine's.
        fs::create_dir_all(namespace.etc()).unwrap();
        fs::write(namespace.etc().join("resolv.conf"), resolv_conf).unwrap();
        fs::write(namespace.etc().join("hosts"), "").unwrap();
        fs::write(namespace.etc().join("nsswitch.conf"), "hosts: files dns\n").unwrap();
        for address in [SERVER, UPSTREAM] {
            must(namespace.network.ip().args(["address", "add", address, "dev", "lo"]));
        }
        namespace
    }

    /// A command that runs `program` in it.
    pub fn run(&self, program: &Path) -> Command {
        self.network.run(program)
    }

    fn etc(&self) -> PathBuf {
        Path::new("/etc/netns").join(self.network.name())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        fs::remove_dir_all(self.etc()).ok();
    }
}

/// A running name server. Dropping it ends it.
pub struct Dnsmasq {
    children: Vec<Child>,
    files: TempDir,
}

impl Dnsmasq {
    /// Knows everything about `cluster.local`, which is what `hosts` says, and nothing else.
    pub fn authority(namespace: &Namespace, hosts: &str) -> Dnsmasq {
        Dnsmasq::start(namespace, hosts, SERVER, &["--local=/cluster.local/"])
    }

    /// Knows what `hosts` says, and refuses whatever else it would have to ask another server for.
    pub fn forwarder(namespace: &Namespace, hosts: &str) -> Dnsmasq {
        Dnsmasq::start(namespace, hosts, SERVER, &[])
    }

    /// Answers SERVFAIL to every question for what `hosts` has: another server has it, unsigned, and this one
    /// insists on signatures.
    pub fn servfail(namespace: &Namespace, hosts: &str) -> Dnsmasq {
        let mut upstream = Dnsmasq::start(namespace, hosts, UPSTREAM, &["--local=/cluster.local/"]);
        let forward = format!("--server={UPSTREAM}");
        let options = ["--dnssec", WRONG_TRUST_ANCHOR, &forward];
        let mut server = Dnsmasq::start(namespace, "", SERVER, &options);
        server.children.append(&mut upstream.children);
        server
    }

    fn start(namespace: &Namespace, hosts: &str, address: &str, options: &[&str]) -> Dnsmasq {
        let files = tempfile::tempdir().unwrap();
        fs::write(files.path().join("hosts"), hosts).unwrap();
        let mut command = namespace.run("dnsmasq".as_ref());
        command
            .args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root"])
            .args(["--no-hosts", "--no-resolv", "--bind-interfaces", "--log-queries"])
            .arg(format!("--listen-address={address}"))
            .arg(format!("--addn-hosts={}", files.path().join("hosts").display()))
            .arg(format!("--log-facility={}", files.path().join("log").display()))
            .args(options);
        let server = Dnsmasq {
            children: vec![command.spawn().expect("cannot run `ip netns exec`: install iproute2")],
            files,
        };
        server.wait_for_log("reads its hosts (is dnsmasq installed?)", |log| {
            log.contains("cleared cache") || log.contains("read ")
        });
        server
    }

    /// Serves these hosts from now on.
    pub fn serve(&self, hosts: &str) {
        fs::write(self.files.path().join("hosts"), hosts).unwrap();
        self.signal(Signal::HUP);
    }

    /// Makes it silent.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends [`pause`](Dnsmasq::pause).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// The names that were asked for with this record type, in order.
    pub fn questions(&self, record: &str) -> Vec<String> {
        let mark = format!("query[{record}] ");
        let log = self.log();
        let asked = log.lines().filter_map(|line| line.split_once(&mark)?.1.split(' ').next());
        asked.map(str::to_owned).collect()
    }

    /// Waits until it has been asked this often.
    pub fn wait_for_queries(&self, count: usize) {
        self.wait_for_log("is asked", |log| log.matches("query[").count() >= count);
    }

    fn wait_for_log(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !holds(&self.log()) {
            assert!(began.elapsed() < DEADLINE, "waited until dnsmasq {what}; its log:\n{}", self.log());
            std::thread::sleep(LOOK);
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.files.path().join("log")).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        // `ip netns exec` becomes the program that it runs: the child is dnsmasq.
        kill_process(Pid::from_child(&self.children[0]), signal).unwrap();
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(end);
    }
}

/// A running `examples/resolve.rs`. Dropping it ends it.
pub struct Resolve {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Resolve {
    pub fn start(mut command: Command, arguments: &[&str]) -> Resolve {
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Resolve { child, stdin, lines, seen: Vec::new() }
    }

    /// Waits for a look-up with this outcome, whether or not it is complete.
    pub fn wait_for(&mut self, outcome: &str) {
        let began = Instant::now();
        loop {
            let left = DEADLINE.saturating_sub(began.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("waited for `{outcome}`; came: {:#?}", self.seen);
            };
            let came = without_extent(&line);
            self.seen.push(line);
            if came == outcome {
                return;
            }
        }
    }

    /// The latest line that was waited for.
    pub fn last(&self) -> &str {
        self.seen.last().map_or("", String::as_str)
    }

    /// The outcomes that were seen while waiting, each once until another one came.
    pub fn changes(&self) -> Vec<String> {
        let mut changes: Vec<String> = self.seen.iter().map(|line| without_extent(line)).collect();
        changes.dedup();
        changes
    }

    /// Tells it to stop and waits until it has.
    pub fn stop(&mut self) {
        self.stdin.take();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        self.seen.extend(self.lines.iter());
    }
}

impl Drop for Resolve {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A line less its second word, "complete" or "partial".
fn without_extent(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    if words.len() > 1 {
        words.remove(1);
    }
    words.join(" ")
}

/// The example, built as the tests are. (`cargo test --test dns` alone does not build it.)
pub fn example() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        must(&mut cargo_build());
        target_dir().join("debug/examples/resolve")
    };
    BUILT.get_or_init(build).clone()
}

/// The example as a static binary, built as the image's is.
pub fn static_example() -> PathBuf {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // With --target the flags do not reach build scripts and macros, which cannot be static. The crates below
    // are those of the benchmarks.
    let mut build = cargo_build();
    must(
        build
            .args(["--profile", "bench", "--target", host])
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    );
    target_dir().join(host).join("release/examples/resolve")
}

fn cargo_build() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--quiet", "--locked", "--example", "resolve", "--target-dir"])
        .arg(target_dir());
    // Cargo describes this package to a test. A build script of a crate asks for the like, and would run
    // again.
    for (name, _) in std::env::vars() {
        if name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

fn target_dir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Also a paused one.
fn end(child: &mut Child) {
    child.kill().ok();
    child.wait().ok();
}
