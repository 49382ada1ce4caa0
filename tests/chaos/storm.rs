//! Faults one upon another, drawn from a seed, with calms in which the cluster has to agree.

use super::cluster::{Cluster, PATIENCE, State, name};
use super::history::{self, Nanos, Seconds};
use super::network::{Path, Paths};
use super::workers::EXEC_STOPPED;
use crate::wait::within;
use fastrand::Rng;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

/// Between two faults, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 100..2_500;
/// How long a process is stopped, down or without room. The default lease is 1,500 ms.
const STOPPED_MS: std::ops::Range<u64> = 50..5_000;
const DOWN_MS: std::ops::Range<u64> = 0..6_000;
const FULL_MS: std::ops::Range<u64> = 500..6_000;
/// So many faults, and then a calm.
const FAULTS_A_CALM: u32 = 10;
/// How many times longer than it should a run may take.
const LONGER_MAX: u32 = 4;
/// In how many faults one comes with the SIGKILL of an exec or its command.
const WORKERS_FAULTS: u8 = 4;
/// How a log tells of a full disk.
const NO_ROOM: &str = "os error 28";
/// How long a calm goes on once all agree.
const CALM: Duration = Duration::from_millis(700);

/// A fault. Each is drawn with the same likelihood.
const FAULTS: [Fault; 18] = [
    Fault::Isolate,
    Fault::Split,
    Fault::Deaf,
    Fault::Mute,
    Fault::Pair,
    Fault::OneWay,
    Fault::Hub,
    Fault::Chain,
    Fault::Anyhow,
    Fault::Loss,
    Fault::Heal,
    Fault::Heal,
    Fault::Stop,
    Fault::Kill,
    Fault::Terminate,
    Fault::Delete,
    Fault::Lose,
    Fault::Fill,
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// One cut off from all others.
    Isolate,
    /// Two sides.
    Split,
    /// Nothing gets to one, all that it sends arrives.
    Deaf,
    /// The other way round.
    Mute,
    /// Two cut off from each other.
    Pair,
    /// The same in one direction.
    OneWay,
    /// All connected with one only.
    Hub,
    /// All in a row.
    Chain,
    /// Each direction of each pair cut or not.
    Anyhow,
    /// Packets lost everywhere.
    Loss,
    /// Everything open again.
    Heal,
    /// SIGSTOP, and SIGCONT later.
    Stop,
    /// SIGKILL, and a restart later.
    Kill,
    /// SIGTERM, and a restart later.
    Terminate,
    /// SIGTERM to the exec beside it, then to the process, and a restart of both later.
    Delete,
    /// SIGKILL, and a restart with an empty state folder.
    Lose,
    /// No room on the disk for a while.
    Fill,
    /// What comes of it when something has to be stored.
    NoRoom,
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Fault::Isolate => "isolated one",
            Fault::Split => "split in two",
            Fault::Deaf => "one hears no other",
            Fault::Mute => "one is heard by no other",
            Fault::Pair => "a pair cut",
            Fault::OneWay => "a direction cut",
            Fault::Hub => "one connects all",
            Fault::Chain => "a chain",
            Fault::Anyhow => "cuts anyhow",
            Fault::Loss => "lost packets",
            Fault::Heal => "healed",
            Fault::Stop => "SIGSTOP",
            Fault::Kill => "SIGKILL",
            Fault::Terminate => "SIGTERM",
            Fault::Delete => "pod deleted",
            Fault::Lose => "state folder lost",
            Fault::Fill => "disk full",
            Fault::NoRoom => "fail-stop for the full disk",
        }
    }
}

/// What ends a fault of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Wake,
    Start,
    Free,
}

/// What came of it.
pub struct StormOutcome {
    pub faults: BTreeMap<&'static str, u32>,
    pub calms: u32,
    /// The longest time from the end of all faults until all agreed.
    pub longest_agreeing: Duration,
}

/// The faults of one run.
pub struct Storm<'a> {
    cluster: &'a mut Cluster,
    random: Rng,
    /// When a process's fault ends.
    ends: Vec<(Nanos, usize, End)>,
    outcome: StormOutcome,
}

impl<'a> Storm<'a> {
    pub fn new(cluster: &'a mut Cluster, seed: u64) -> Storm<'a> {
        let outcome = StormOutcome { faults: BTreeMap::new(), calms: 0, longest_agreeing: Duration::ZERO };
        Storm { cluster, random: Rng::with_seed(seed), ends: Vec::new(), outcome }
    }

    /// Goes on for this long; ends with a calm. Where a database has refused no write by then, as on a busy
    /// machine, it goes on until one is refused, for [`LONGER_MAX`] times as long at most.
    pub fn rage(mut self, length: Duration) -> StormOutcome {
        let began = self.cluster.now();
        let (end, latest) = (began + nanos(length), began + nanos(LONGER_MAX * length));
        let over = |cluster: &Cluster| {
            let now = cluster.now();
            now >= latest || now >= end && !cluster.awaits_refusal()
        };
        while !over(self.cluster) {
            for _ in 0..FAULTS_A_CALM {
                if over(self.cluster) {
                    break;
                }
                let fault = FAULTS[self.random.usize(..FAULTS.len())];
                self.strike(fault);
                self.strike_worker();
                let pause = self.random.u64(PAUSE_MS);
                self.wait(Duration::from_millis(pause));
            }
            self.calm();
        }
        self.outcome
    }

    fn strike(&mut self, fault: Fault) {
        let n = self.cluster.n();
        let place = self.place();
        let mut others: Vec<usize> = (0..n).filter(|other| *other != place).collect();
        self.random.shuffle(&mut others);
        let other = others[0];
        match fault {
            Fault::Isolate => self.cut(fault, &|a, b| a == place || b == place),
            Fault::Split => {
                let side = &others[..self.random.usize(..others.len())];
                self.cut(fault, &|a, b| side.contains(&a) != side.contains(&b));
            }
            Fault::Deaf => self.cut(fault, &|_, to| to == place),
            Fault::Mute => self.cut(fault, &|from, _| from == place),
            Fault::Pair => {
                self.cut(fault, &|a, b| (a.min(b), a.max(b)) == (place.min(other), place.max(other)))
            }
            Fault::OneWay => self.cut(fault, &|from, to| (from, to) == (place, other)),
            Fault::Hub => self.cut(fault, &|a, b| a != other && b != other),
            Fault::Chain => {
                others.insert(self.random.usize(..=others.len()), place);
                let at = |place| others.iter().position(|p| *p == place).unwrap();
                self.cut(fault, &|a, b| at(a).abs_diff(at(b)) != 1);
            }
            Fault::Anyhow => {
                let seed = self.random.u64(..);
                let drawn = |a, b| Rng::with_seed(seed ^ (a * n + b) as u64).u8(..10) < 4;
                self.cut(fault, &drawn);
            }
            Fault::Loss => {
                let percent = self.random.u8(5..40);
                self.set(fault, Paths::cut_all(n, Path::Loss(percent), |_, _| true));
            }
            Fault::Heal => self.set(fault, Paths::open(n)),
            Fault::Stop => self.stop(place),
            Fault::Kill => self.end(fault, place, Signal::KILL),
            Fault::Terminate => self.end(fault, place, Signal::TERM),
            Fault::Delete => {
                self.cluster.terminate_worker(place);
                self.end(fault, place, Signal::TERM);
            }
            Fault::Lose if self.cluster.any_blank() => {}
            Fault::Lose => self.end(fault, place, Signal::KILL),
            Fault::Fill => self.fill(place),
            Fault::NoRoom => unreachable!("it is not drawn"),
        }
    }

    /// Sometimes what runs beside the processes is killed as well.
    fn strike_worker(&mut self) {
        if self.random.u8(..WORKERS_FAULTS) > 0 {
            return;
        }
        if let Some((what, place)) = self.cluster.strike_worker(&mut self.random) {
            *self.outcome.faults.entry(what).or_default() += 1;
            self.cluster.tell(what);
            // Without its process, leadership goes elsewhere while the command goes on.
            if what == EXEC_STOPPED {
                self.end(Fault::Kill, place, Signal::KILL);
            }
        }
    }

    /// Often the leader.
    fn place(&mut self) -> usize {
        let any = self.random.usize(..self.cluster.n());
        // Drawn in any case, so that the same seed draws the same, whichever place leads.
        let the_leader = self.random.bool();
        self.cluster.leader().filter(|_| the_leader).unwrap_or(any)
    }

    fn count(&mut self, fault: Fault, what: &str) {
        *self.outcome.faults.entry(fault.name()).or_default() += 1;
        self.cluster.tell(&format!("{}: {what}", fault.name()));
    }

    fn cut(&mut self, fault: Fault, cut: &dyn Fn(usize, usize) -> bool) {
        let mut paths = Paths::open(self.cluster.n());
        paths.cut(&mut self.random, cut);
        self.set(fault, paths);
    }

    fn set(&mut self, fault: Fault, paths: Paths) {
        self.count(fault, &format!("cut are{paths}"));
        self.cluster.set_paths(paths);
    }

    fn stop(&mut self, place: usize) {
        let length = self.random.u64(STOPPED_MS);
        if self.cluster.state(place) == State::Running {
            self.count(Fault::Stop, &format!("{} for {length} ms", name(place)));
            self.cluster.signal(place, Signal::STOP);
            self.later(length, place, End::Wake);
        }
    }

    fn end(&mut self, fault: Fault, place: usize, signal: Signal) {
        let length = self.random.u64(DOWN_MS);
        // SIGTERM would wait for SIGCONT, and then for room on the disk.
        let fit = self.cluster.state(place) == State::Running && !self.cluster.is_full(place);
        if !fit {
            return;
        }
        self.count(fault, &format!("{} for {length} ms", name(place)));
        let status = self.cluster.end(place, signal);
        if signal == Signal::TERM {
            // It may not have come as far as to listen for it.
            let early = status.signal() == Some(Signal::TERM.as_raw());
            assert!(early || status.code() == Some(0), "SIGTERM ended {} with {status}", name(place));
        }
        if fault == Fault::Lose {
            self.cluster.empty(place);
        }
        self.later(length, place, End::Start);
    }

    fn fill(&mut self, place: usize) {
        let length = self.random.u64(FULL_MS);
        if self.cluster.state(place) == State::Running && !self.cluster.is_full(place) {
            self.count(Fault::Fill, &format!("{} for {length} ms", name(place)));
            self.cluster.fill(place);
            self.later(length, place, End::Free);
        }
    }

    fn later(&mut self, ms: u64, place: usize, end: End) {
        self.ends.push((self.cluster.now() + ms * 1_000_000, place, end));
    }

    /// Lets time pass, and ends what is due.
    fn wait(&mut self, length: Duration) {
        let until = self.cluster.now() + nanos(length);
        while self.cluster.now() < until {
            self.look();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn look(&mut self) {
        for place in 0..self.cluster.n() {
            self.look_at(place);
        }
        self.cluster.look_at_blank();
        self.cluster.look_at_workers();
        let now = self.cluster.now();
        while let Some(at) = self.ends.iter().position(|(when, _, _)| *when <= now) {
            let (_, place, end) = self.ends.swap_remove(at);
            self.finish(place, end);
        }
    }

    /// A process ends by itself only for want of room on its disk, and then as documented: with 1, or 2 when
    /// it starts.
    fn look_at(&mut self, place: usize) {
        let Some(status) = self.cluster.try_wait(place) else { return };
        let no_room = self.cluster.log_end(place).contains(NO_ROOM);
        assert!(no_room && matches!(status.code(), Some(1 | 2)), "{} ended by itself: {status}", name(place));
        self.count(Fault::NoRoom, &format!("{} has ended", name(place)));
        // The disk may have been full for less time than the process needs to end.
        if !self.cluster.is_full(place) {
            self.start(place);
        }
    }

    fn finish(&mut self, place: usize, end: End) {
        match end {
            End::Wake => {
                // It may have been about to end, for the full disk, when it was stopped.
                if self.cluster.state(place) == State::Stopped {
                    self.cluster.tell(&format!("{} goes on", name(place)));
                    self.cluster.signal(place, Signal::CONT);
                }
            }
            End::Start => self.start(place),
            End::Free => {
                self.cluster.tell(&format!("{} has room again", name(place)));
                self.cluster.free(place);
                if self.cluster.state(place) == State::Ended {
                    self.start(place);
                }
            }
        }
    }

    fn start(&mut self, place: usize) {
        self.cluster.tell(&format!("{} starts", name(place)));
        self.cluster.start(place);
    }

    /// Ends all faults and waits until all agree on one leader, which stays.
    fn calm(&mut self) {
        self.cluster.tell("calm");
        self.cluster.heal();
        for (_, place, end) in std::mem::take(&mut self.ends) {
            self.finish(place, end);
        }
        let began = self.cluster.now();
        let all: Vec<usize> = (0..self.cluster.n()).collect();
        let agreed = within(PATIENCE, || {
            // One may have been about to end, for the full disk, when it had room again.
            self.look();
            self.cluster.agreed(&all, began)
        });
        let (leader, epoch) =
            agreed.unwrap_or_else(|| panic!("no agreement within {PATIENCE:?}: {}", self.cluster.said()));
        let took = Duration::from_nanos(self.cluster.now() - began);
        self.cluster.tell(&format!("{} leads in epoch {epoch} after {took:?}", name(leader)));
        self.outcome.longest_agreeing = self.outcome.longest_agreeing.max(took);
        self.outcome.calms += 1;
        self.wait(CALM);
        self.fail_early();
    }

    /// A violation that no safety level allows fails the test at once, while it is clear which fault it was.
    fn fail_early(&self) {
        let observers = self.cluster.observers();
        let wrong: Vec<String> =
            observers.iter().flat_map(|o| o.own_violations()).map(history::Violation::to_string).collect();
        assert!(wrong.is_empty(), "before {}:\n{}", Seconds(self.cluster.now()), wrong.join("\n"));
    }
}

fn nanos(length: Duration) -> Nanos {
    u64::try_from(length.as_nanos()).unwrap()
}
