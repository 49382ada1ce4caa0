//! Properties of the machine over random schedules of crashes, restarts, partitions, loss, duplicates and
//! pauses: what must always hold is asserted by `support`, and after the last fault the processes agree on
//! one leader within a bound that the settings give, and stay so.
//!
//! A schedule follows from its seed alone. A failure prints it;
//! `BELLWETHER_SEED=<seed> cargo test --test random_schedules one` runs that one and prints its trace.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{Body, CrashEvidence, Epoch, Preempt, Priority, Settings, Variant};
use std::time::Duration;
use support::network::{Effect, Rule};
use support::trace::Detail;
use support::world::{Options, World, address};

/// The processes of one schedule: at most this many at a time.
const PROCESSES_MAX: usize = 7;
/// No leader may change for this long at the end.
const STABLE: Duration = Duration::from_secs(10);
/// Schedules in each of the four tests; `BELLWETHER_SCHEDULES` makes it more.
const SCHEDULES: u64 = 500;
/// Faults in one schedule.
const FAULTS_MAX: usize = 14;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

struct Schedule {
    random: fastrand::Rng,
    world: World,
    settings: Settings,
    n: usize,
    /// The place whose process takes over the address of a dead one next.
    newcomer: usize,
}

impl Schedule {
    fn new(seed: u64) -> Schedule {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.usize(1..=PROCESSES_MAX);
        let settings = Settings {
            variant: random.choice(Variant::NAMED).unwrap().1,
            preempt: match random.u8(0..4) {
                0 => Preempt::Always,
                1 => Preempt::Never,
                2 => Preempt::After(ms(500)),
                _ => Preempt::After(ms(5000)),
            },
            crash_evidence: if random.u8(0..4) > 0 { CrashEvidence::Suspect } else { CrashEvidence::Off },
            heartbeat: ms(375),
            start_timeout: ms(3000),
            expect: if random.u8(0..3) == 0 { random.usize(0..=n) } else { 0 },
            ..Settings::default()
        };
        let options = Options {
            seed: random.u64(..),
            evidence: random.bool(),
            delay: ms(1),
            jitter: ms(if random.u8(0..4) > 0 { random.u64(0..30) } else { random.u64(0..140) }),
            hold: random.bool(),
            further_links: random.bool(),
            idle_timeout: ms(random.u64(1000..10_000)),
            seek_every: ms(250),
            ..Options::default()
        };
        let mut world = World::new(n, &settings, options);
        for k in 1..=n {
            world.node_mut(k).finds_its_address = random.u8(0..6) == 0;
            world.node_mut(k).priority = match random.u8(0..8) {
                0 | 1 => Priority::NEVER,
                2 => Priority(50),
                3 => Priority(200),
                _ => Priority::DEFAULT,
            };
        }
        Schedule { random, world, settings, n, newcomer: 10 }
    }

    fn any(&mut self, of: &[usize]) -> Option<usize> {
        if of.is_empty() { None } else { Some(of[self.random.usize(..of.len())]) }
    }

    fn dead(&self) -> Vec<usize> {
        let live = self.world.live();
        let taken: Vec<_> = live.iter().map(|k| self.world.node(*k).address).collect();
        let free = |k: &usize| !live.contains(k) && !taken.contains(&self.world.node(*k).address);
        self.world.nodes.keys().copied().filter(free).collect()
    }

    fn fault(&mut self) {
        let live = self.world.live();
        let awake: Vec<usize> = live.iter().copied().filter(|k| !self.world.node(*k).paused).collect();
        let paused: Vec<usize> = live.iter().copied().filter(|k| self.world.node(*k).paused).collect();
        let dead = self.dead();
        match self.random.u8(0..26) {
            0..=2 => {
                if let Some(k) = self.any(&live) {
                    self.world.crash(k);
                }
            }
            3 => {
                if let Some(k) = self.any(&live) {
                    self.world.vanish(k);
                }
            }
            4..=8 => {
                if let Some(k) = self.any(&dead) {
                    let keeps = self.random.bool();
                    self.world.start(k, keeps);
                }
            }
            9 => {
                if let Some(k) = self.any(&dead) {
                    self.take_over(k);
                }
            }
            10 => {
                if let Some(k) = self.any(&dead) {
                    self.move_and_start(k);
                }
            }
            11 => {
                if let Some(k) = self.any(&awake) {
                    self.world.stop(k);
                }
            }
            12 | 13 => {
                if let Some(k) = self.any(&awake) {
                    self.world.pause(k);
                }
            }
            14 | 15 => {
                if let Some(k) = self.any(&paused) {
                    self.world.resume(k);
                }
            }
            16 | 17 => self.part(),
            18 => {
                if let (Some(a), Some(b)) = (self.any(&live), self.any(&live))
                    && a != b
                {
                    self.world.cut(a, b);
                }
            }
            19 => self.world.heal(),
            20 | 21 => {
                if let (Some(one), Some(other)) = (self.any(&awake), self.any(&live))
                    && one != other
                {
                    self.world.misjudge(one, other);
                }
            }
            _ => {
                if let (Some(from), Some(to)) = (self.any(&live), self.any(&live)) {
                    self.meddle(from, to);
                }
            }
        }
    }

    /// A new process starts at the address of a dead one.
    fn take_over(&mut self, k: usize) {
        let (new, address) = (self.newcomer, self.world.node(k).address);
        self.newcomer += 1;
        self.world.place(new, address, &self.settings);
        self.world.node_mut(new).priority = self.world.node(k).priority;
        self.world.start(new, false);
    }

    /// A dead process starts again, with its record, at another address.
    fn move_and_start(&mut self, k: usize) {
        let moved = address(100 + self.newcomer);
        self.newcomer += 1;
        let old = std::mem::replace(&mut self.world.node_mut(k).address, moved);
        self.world.listed.remove(&old);
        self.world.listed.insert(moved);
        self.world.start(k, true);
    }

    /// Partitions all processes into two groups, by lot.
    fn part(&mut self) {
        let mut groups = vec![Vec::new(), Vec::new()];
        for k in self.world.nodes.keys() {
            groups[self.random.usize(..2)].push(*k);
        }
        self.world.partition(&groups);
    }

    /// Loses, doubles or delays the next message of some kind from one process to another.
    fn meddle(&mut self, from: usize, to: usize) {
        let name = Body::NAMES[self.random.usize(..Body::NAMES.len())].to_string();
        let effect = match self.random.u8(0..3) {
            0 => Effect::Drop,
            1 => Effect::Duplicate,
            _ => Effect::Delay(ms(self.random.u64(0..3000))),
        };
        self.world.next(Rule { from, to, name, effect });
    }

    /// Faults, then none.
    fn run(&mut self) {
        for k in 1..=self.n {
            if self.random.u8(0..6) > 0 {
                self.world.start(k, false);
                let wait = ms(self.random.u64(0..400));
                self.world.run(wait);
            }
        }
        for _ in 0..self.random.usize(0..=FAULTS_MAX) {
            let wait = match self.random.u8(0..4) {
                0 => ms(self.random.u64(0..10)),
                1 => ms(self.random.u64(0..4000)),
                _ => ms(self.random.u64(0..700)),
            };
            self.world.run(wait);
            self.fault();
        }
        self.world.heal();
        for k in self.world.live() {
            if self.world.node(k).paused {
                self.world.resume(k);
            }
        }
        for (k, node) in &self.world.nodes {
            if *k < 10 {
                self.world.listed.insert(node.address);
            }
        }
        let dead = self.dead();
        if self.world.live().is_empty() {
            let keeps = self.random.bool();
            self.world.start(dead[0], keeps);
        }
        if self.random.bool() {
            for k in dead {
                if self.dead().contains(&k) {
                    let keeps = self.random.bool();
                    self.world.start(k, keeps);
                }
            }
        }
        self.world.trace.line(self.world.now, "+ no more faults");
    }

    /// How long an agreement may take after the last fault: see the terms.
    fn bound(&self) -> Duration {
        let Settings {
            failure_timeout,
            answer_timeout,
            coordinator_timeout,
            start_timeout,
            stable_margin,
            ..
        } = self.settings;
        // A connection to a host that is gone stands in the way until it times out; a dead leader is noticed.
        let noticed = self.world.options.link_timeout + failure_timeout;
        // A process that has just started, or was paused, asks first.
        let asked = start_timeout + stable_margin;
        // A contest, and one that had to be repeated.
        let contests = (answer_timeout * 2 + coordinator_timeout) * 2;
        noticed + asked + contests
    }

    fn agreed(&self) -> Option<(usize, Epoch)> {
        self.world.agreed()
    }

    fn check(&mut self) -> Duration {
        self.run();
        // A process that was told to stop is gone after this.
        self.world.run(self.settings.answer_timeout * 2);
        if self.world.live().is_empty() {
            return Duration::ZERO;
        }
        let healed = self.world.now;
        let live = self.world.live();
        let may_lead: Vec<usize> =
            live.iter().copied().filter(|k| self.world.node(*k).priority > Priority::NEVER).collect();
        if may_lead.is_empty() {
            // It may take a silence until a leader that does not live any more is given up.
            self.world.run(self.bound());
            assert!(self.world.leading().is_empty(), "priority 0 never leads");
            assert!(live.iter().all(|k| self.world.status(*k).leader.is_none()), "no process is followed");
            return Duration::ZERO;
        }
        let mut agreed = None;
        while agreed.is_none() && self.world.now < healed + self.bound() {
            self.world.run(ms(50));
            agreed = self.agreed();
        }
        assert!(agreed.is_some(), "agreement within {:?}: {}", self.bound(), self.states());
        let took = self.world.now - healed;
        if let Preempt::After(delay) = self.settings.preempt {
            // A better process takes over by and by; a transfer that failed before is tried again later.
            let best = may_lead.iter().map(|k| self.world.node(*k).priority).max();
            let due = self.world.now + delay * 65 + self.bound();
            let settled = |s: &Schedule| {
                s.agreed().is_some_and(|(leader, _)| Some(s.world.node(leader).priority) == best)
            };
            // No message of the time before is on its way any more after this.
            self.world.run(ms(4000));
            while !settled(self) && self.world.now < due {
                self.world.run(ms(250));
            }
            assert!(settled(self), "the best priority leads: {}", self.states());
        } else {
            let done = healed + self.bound();
            self.world.run(done.saturating_sub(self.world.now));
        }
        let (before, changes) = (self.agreed(), self.world.leader_changes);
        assert!(before.is_some(), "they agree still: {}", self.states());
        self.world.run(STABLE);
        assert_eq!(self.agreed(), before, "stable: {}", self.states());
        assert_eq!(self.world.leader_changes, changes, "no process was elected meanwhile: {}", self.states());
        if self.settings.preempt == Preempt::Always {
            let ranks = |k: &&usize| (self.world.node(**k).priority, **k);
            assert_eq!(before.map(|b| b.0), may_lead.iter().max_by_key(ranks).copied(), "the highest leads");
        }
        took
    }

    fn states(&self) -> String {
        let each = self.world.live().into_iter().map(|k| {
            let status = self.world.status(k);
            let leader = status.leader.map_or_else(String::new, |l| l.peer.name);
            format!("p{k} {} {leader} {}", status.role.name(), status.epoch)
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

fn check(seed: u64) -> Duration {
    let verdict = std::panic::catch_unwind(|| Schedule::new(seed).check());
    verdict.unwrap_or_else(|_| panic!("the schedule of BELLWETHER_SEED={seed} failed"))
}

/// A fixed list, so that a run says the same as the last one.
fn check_all(first: u64) {
    let count = std::env::var("BELLWETHER_SCHEDULES").ok().and_then(|c| c.parse().ok()).unwrap_or(SCHEDULES);
    let mut failed = Vec::new();
    let mut longest = Duration::ZERO;
    for seed in first..first + count {
        match std::panic::catch_unwind(|| check(seed)) {
            Ok(took) => longest = longest.max(took),
            Err(_) => failed.push(seed),
        }
    }
    println!("the longest took {longest:?} to agree");
    assert!(failed.is_empty(), "{} of {count} failed, seeds {failed:?}", failed.len());
}

// Four tests, so that they run side by side.

#[test]
fn random_schedules_end_in_agreement_1() {
    check_all(1_000_000);
}

#[test]
fn random_schedules_end_in_agreement_2() {
    check_all(2_000_000);
}

#[test]
fn random_schedules_end_in_agreement_3() {
    check_all(3_000_000);
}

#[test]
fn random_schedules_end_in_agreement_4() {
    check_all(4_000_000);
}

/// One schedule, with its trace.
#[test]
fn one() {
    let Some(seed) = std::env::var("BELLWETHER_SEED").ok().and_then(|s| s.parse().ok()) else {
        return;
    };
    let mut schedule = Schedule::new(seed);
    schedule.world.trace.detail = Detail::On;
    println!("{:?}\n{:?}", schedule.settings, schedule.world.options);
    for (k, node) in &schedule.world.nodes {
        println!("p{k} priority {:?}", node.priority);
    }
    let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| schedule.check()));
    println!("{}", schedule.world.trace.lines.join("\n"));
    println!("{verdict:?}");
    assert!(verdict.is_ok());
}
