//! A network namespace for each process, on one bridge that is in a namespace of its own, and what is cut
//! between them.

use crate::namespace::{Namespace, must};
use fastrand::Rng;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What happens to TCP packets on the way from one process to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// They arrive.
    Open,
    /// They vanish.
    Drop,
    /// They are answered with a reset, as by a firewall.
    Reject,
    /// So many in a hundred vanish.
    Loss(u8),
}

/// The paths between all processes: `paths.0[from][to]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths(Vec<Vec<Path>>);

impl Paths {
    /// All open.
    pub fn open(n: usize) -> Paths {
        Paths(vec![vec![Path::Open; n]; n])
    }

    /// Cuts some paths, each in a way that is drawn.
    pub fn cut(&mut self, random: &mut Rng, cut: impl Fn(usize, usize) -> bool) {
        let drawn = |random: &mut Rng| if random.u8(..4) == 0 { Path::Reject } else { Path::Drop };
        for from in 0..self.0.len() {
            for to in (0..self.0.len()).filter(|to| *to != from) {
                if cut(from, to) {
                    self.0[from][to] = drawn(random);
                }
            }
        }
    }

    /// Cuts in one way.
    pub fn cut_all(n: usize, how: Path, cut: impl Fn(usize, usize) -> bool) -> Paths {
        let mut paths = Paths::open(n);
        for (from, row) in paths.0.iter_mut().enumerate() {
            for (to, path) in row.iter_mut().enumerate() {
                if from != to && cut(from, to) {
                    *path = how;
                }
            }
        }
        paths
    }

    /// Whether everything that is sent arrives.
    pub fn reaches(&self) -> Vec<Vec<bool>> {
        self.0.iter().map(|row| row.iter().map(|path| *path == Path::Open).collect()).collect()
    }

    /// What a place's kernel is told to do with what comes in, for `iptables-restore`.
    fn rules(&self, to: usize) -> String {
        let mut rules = String::from("*filter\n");
        for (from, row) in self.0.iter().enumerate() {
            let packets = format!("-A INPUT -s {} -p tcp", address(from));
            match row[to] {
                Path::Open => {}
                Path::Drop => rules += &format!("{packets} -j DROP\n"),
                Path::Reject => rules += &format!("{packets} -j REJECT --reject-with tcp-reset\n"),
                Path::Loss(percent) => {
                    let share = f64::from(percent) / 100.0;
                    rules += &format!("{packets} -m statistic --mode random --probability {share} -j DROP\n");
                }
            }
        }
        rules + "COMMIT\n"
    }
}

impl fmt::Display for Paths {
    /// What is not open.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut any = false;
        for (from, row) in self.0.iter().enumerate() {
            for (to, path) in row.iter().enumerate() {
                match path {
                    Path::Open => continue,
                    Path::Drop => write!(f, " {from}>{to}")?,
                    Path::Reject => write!(f, " {from}>{to} reset")?,
                    Path::Loss(percent) => write!(f, " {from}>{to} {percent} %")?,
                }
                any = true;
            }
        }
        if any { Ok(()) } else { write!(f, " nothing") }
    }
}

/// Where the process of a place is.
pub fn address(place: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 0, 1 + u8::try_from(place).unwrap())
}

/// The namespaces. Dropping it takes them away.
pub struct Network {
    places: Vec<Namespace>,
    _switch: Namespace,
    now: Paths,
}

impl Network {
    pub fn new(n: usize) -> Network {
        let switch = Namespace::new("chaos");
        must(switch.ip().args(["link", "add", "bridge", "type", "bridge"]));
        must(switch.ip().args(["link", "set", "bridge", "up"]));
        let places: Vec<Namespace> = (0..n).map(|_| Namespace::new("chaos")).collect();
        for (place, namespace) in places.iter().enumerate() {
            let port = format!("port{place}");
            must(
                switch
                    .ip()
                    .args(["link", "add", &port, "type", "veth", "peer", "name", "eth0"])
                    .args(["netns", namespace.name()]),
            );
            must(switch.ip().args(["link", "set", &port, "master", "bridge", "up"]));
            let own = format!("{}/24", address(place));
            must(namespace.ip().args(["address", "add", &own, "dev", "eth0"]));
            must(namespace.ip().args(["link", "set", "eth0", "up"]));
        }
        Network { places, _switch: switch, now: Paths::open(n) }
    }

    pub fn n(&self) -> usize {
        self.places.len()
    }

    pub fn namespace(&self, place: usize) -> &Namespace {
        &self.places[place]
    }

    /// What is cut.
    pub fn paths(&self) -> &Paths {
        &self.now
    }

    /// From its return on the paths are these, also for connections that are open. Each place's rules change
    /// at one blow, but not all places' at the same time.
    pub fn set(&mut self, paths: Paths) {
        let changed: Vec<usize> =
            (0..self.n()).filter(|place| paths.rules(*place) != self.now.rules(*place)).collect();
        std::thread::scope(|scope| {
            for place in changed {
                let (door, rules) = (self.door(place), paths.rules(place));
                scope.spawn(move || {
                    enter(&door);
                    restore(&rules);
                });
            }
        });
        self.now = paths;
    }

    /// The namespace of a place, for [`enter`].
    pub fn door(&self, place: usize) -> File {
        File::open(format!("/run/netns/{}", self.places[place].name())).unwrap()
    }
}

/// Changes the rules of the namespace that the calling thread is in.
fn restore(rules: &str) {
    let mut child = Command::new(tool()).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{}: {status}", tool());
}

/// Which `iptables-restore`. Where it works with nftables, taking rules away waits for the kernel's grace
/// periods, which are seconds long on a busy machine. A kernel may be without the other one.
fn tool() -> &'static str {
    static TOOL: OnceLock<&str> = OnceLock::new();
    let legacy = "iptables-legacy-restore";
    let works = || {
        let mut command = Command::new(legacy);
        command.arg("--test").stdin(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    TOOL.get_or_init(|| if works() { legacy } else { "iptables-restore" })
}

/// Moves the calling thread, and it alone, into a namespace: what it opens from now on is in there. Its
/// loopback is not subject to what is cut.
pub fn enter(door: &File) {
    move_into_link_name_space(door.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

/// Whether the kernel lets a process have a boot clock of its own.
pub fn own_clocks() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--time", "--boottime", "1", "true"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
