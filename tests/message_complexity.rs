//! How many messages an election costs: exactly the numbers of the algorithm's analysis, for every cluster of
//! 3 to 100.
//!
//! n processes, ranked 1 to n; the coordinator n has crashed unless a test says otherwise. Only Election,
//! Answer and Coordinator count. Messages arrive in the order in which they were sent, and a timeout passes
//! only when none is on its way: the system is synchronous.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{
    Action, Body, Entry, Epoch, Event, Incarnation, Machine, MembershipVersion, Message, Moment, Now,
    Preempt, Priority, ProcessId, Role, Settings, State, Timer, Variant,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use support::world::{Options, World, id, number, peer};

const SIZES: std::ops::RangeInclusive<usize> = 3..=100;

/// Machines that hear each other in the order of sending, and no clock.
#[derive(Clone)]
struct Flock {
    machines: BTreeMap<usize, Machine>,
    queue: VecDeque<(usize, ProcessId, Message)>,
    /// The processes that wait for an Answer, in the order of their Elections.
    unanswered: Vec<usize>,
    elections: u64,
    answers: u64,
    coordinators: u64,
}

impl Flock {
    /// n processes that know of each other. Either none has led yet, or all of them follow n, which is about
    /// to crash and does nothing.
    fn new(n: usize, variant: Variant, led: bool) -> Flock {
        let settings = Settings { variant, preempt: Preempt::Always, ..Settings::default() };
        let entries: Vec<Entry> = (1..=n).map(|k| Entry { peer: peer(k), state: State::Alive }).collect();
        let mut flock = Flock {
            machines: BTreeMap::new(),
            queue: VecDeque::new(),
            unanswered: Vec::new(),
            elections: 0,
            answers: 0,
            coordinators: 0,
        };
        for k in 1..=n {
            let machine = Machine::new(settings.clone(), "test".to_string(), peer(k), None);
            flock.machines.insert(k, machine);
            let friend = if k == n { 1 } else { n };
            let others: Vec<Entry> = entries.iter().filter(|e| e.peer.id != id(k)).cloned().collect();
            flock.feed(k, Event::Start);
            // Until discovery has named a process, no other one's list names any.
            let addresses = [peer(friend).address].into();
            flock.feed(k, Event::Discovered { addresses, complete: true });
            flock.feed(k, Event::LinkUp(peer(friend)));
            if !led {
                flock.hear(k, friend, 0, Body::LeaderInfo { leader: None, entries: others.into() });
            } else if k < n {
                flock.hear(k, n, 1, Body::Coordinator { elected_at_ms: 0 });
                let version = MembershipVersion { epoch: Epoch(1), version: 1 };
                flock.hear(k, n, 1, Body::Membership { version, entries: others.into() });
                assert_eq!(flock.machines[&k].status().members.len(), n);
            }
        }
        flock.queue.clear();
        flock
    }

    fn hear(&mut self, k: usize, from: usize, epoch: u64, body: Body) {
        self.feed(
            k,
            Event::Received {
                from: id(from),
                message: Message { epoch: Epoch(epoch), priority: Priority::DEFAULT, body },
            },
        );
    }

    fn feed(&mut self, k: usize, event: Event) {
        let now = Now::at(Moment(Duration::from_secs(1)));
        let machine = self.machines.get_mut(&k).unwrap();
        // The first event of all is the start, at a clock of this process's own.
        for action in machine.handle(now, event) {
            match action {
                Action::Send { to, message, .. } => self.queue.push_back((k, to, message)),
                Action::Arm { timer: Timer::Answer, .. } => self.unanswered.push(k),
                Action::Disarm(Timer::Answer) => self.unanswered.retain(|u| *u != k),
                _ => {}
            }
        }
    }

    fn crash(&mut self, k: usize) {
        self.machines.remove(&k);
    }

    /// The failure detector of process `k` reports the crash of `of`.
    fn report(&mut self, k: usize, of: usize) {
        self.feed(k, Event::Crashed { id: id(of), incarnation: Incarnation(1) });
    }

    /// Delivers everything, and lets the answer timeouts pass one by one, until nothing is left to do.
    fn settle(&mut self) {
        loop {
            if let Some((from, to, message)) = self.queue.pop_front() {
                match message.body {
                    Body::Election => self.elections += 1,
                    Body::Answer => self.answers += 1,
                    Body::Coordinator { .. } => self.coordinators += 1,
                    _ => {}
                }
                if self.machines.contains_key(&number(to)) {
                    self.feed(number(to), Event::Received { from: id(from), message });
                }
            } else if !self.unanswered.is_empty() {
                let k = self.unanswered.remove(0);
                self.feed(k, Event::Timer(Timer::Answer));
            } else {
                return;
            }
        }
    }

    fn all(&self) -> u64 {
        self.elections + self.answers + self.coordinators
    }

    /// All live processes follow process `leader`.
    fn assert_led_by(&self, leader: usize) {
        for (k, machine) in &self.machines {
            let status = machine.status();
            let role = if *k == leader { Role::Leading } else { Role::Following };
            assert_eq!((status.role, status.leader.map(|l| l.peer)), (role, Some(peer(leader))), "p{k}");
        }
    }
}

/// The paper's procedure, begun by the process of this rank.
fn paper(mut flock: Flock, initiator: usize) -> Flock {
    let n = flock.machines.len();
    flock.crash(n);
    flock.report(initiator, n);
    flock.settle();
    flock.assert_led_by(n - 1);
    flock
}

/// n² - n - 1 if the lowest starts, n - 1 if the runner-up does.
#[test]
fn paper_costs_what_the_table_says_for_the_lowest_and_for_the_runner_up() {
    for n in SIZES {
        let flock = Flock::new(n, Variant::Paper, true);
        assert_eq!(paper(flock.clone(), n - 1).all(), (n - 1) as u64, "n = {n}, the runner-up starts");
        assert_eq!(paper(flock, 1).all(), (n * n - n - 1) as u64, "n = {n}, the lowest starts");
    }
}

#[test]
fn paper_costs_each_kind_by_the_initiators_rank() {
    for n in [3, 4, 5, 7, 10, 20, 50, 100] {
        let ready = Flock::new(n, Variant::Paper, true);
        for r in [1, 2, n.div_ceil(3), n / 2, n - 2, n - 1] {
            let flock = paper(ready.clone(), r);
            let above = (n - r) as u64;
            let counted = (flock.elections, flock.answers, flock.coordinators);
            let expected = (above * (above + 1) / 2, above * (above - 1) / 2, n as u64 - 2);
            assert_eq!(counted, expected, "n = {n}, initiator {r}");
            assert_eq!(flock.all(), above * above + n as u64 - 2);
        }
    }
}

#[test]
fn paper_costs_n_squared_less_1_if_all_live_and_the_lowest_starts() {
    for n in SIZES {
        let mut flock = Flock::new(n, Variant::Paper, false);
        flock.feed(1, Event::Timer(Timer::Margin));
        flock.settle();
        assert_eq!(flock.all(), (n * n - 1) as u64, "n = {n}");
        flock.assert_led_by(n);
    }
}

#[test]
fn detector_costs_n_less_2() {
    for n in SIZES {
        let mut flock = Flock::new(n, Variant::Detector, true);
        flock.crash(n);
        for k in 1..n {
            flock.report(k, n);
        }
        flock.settle();
        assert_eq!(flock.all(), (n - 2) as u64, "n = {n}");
        assert_eq!(flock.coordinators, (n - 2) as u64);
        flock.assert_led_by(n - 1);
    }
}

/// Heartbeats go between the leader and its followers only: 2(n-1) an interval, never all-to-all.
#[test]
fn heartbeats_cost_2_times_n_less_1_an_interval() {
    for n in [1, 2, 3, 5, 10, 20] {
        for variant in [Variant::Detector, Variant::Paper] {
            let settings = Settings { variant, ..Settings::default() };
            let mut world = World::new(n, &settings, Options::default());
            for k in 1..=n {
                world.start(k, false);
            }
            assert!(world.run_until(Duration::from_secs(5), |w| w.agreed().is_some()));
            world.run(Duration::from_secs(2));
            let beats = |w: &World| w.sent_of(&["heartbeat", "heartbeat_ack"]);
            let others = |w: &World| w.sent.values().sum::<u64>() - beats(w);
            let (before, quiet) = (beats(&world), others(&world));
            world.run(settings.heartbeat * 20);
            assert_eq!(beats(&world) - before, 20 * 2 * (n as u64 - 1), "n = {n}, {variant:?}");
            assert_eq!(others(&world), quiet, "a settled cluster says nothing else");
        }
    }
}
