//! The faults, as data, and what each does to the world.

use super::clock::{MS, Ns};
use super::disk::{CrashPoint, Leaves};
use super::dns::DnsFault;
use super::link_faults::{Classes, Disturbance, Effect, Pairs, Places};
use super::node::{Fate, Input, PLACES_MAX, Stall};
use super::queue::Item;
use super::target::{Between, Cue, Waiting, Who};
use super::world::World;
use crate::election::{Event, Safety};
use std::fmt;
use std::time::Duration;

/// One fault of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// When it begins, or begins to wait for its cue.
    pub(super) at: Ns,
    /// What it waits for, and how long after that it begins.
    pub(super) cue: Option<(Cue, Ns)>,
    /// For how long: a window, a pause, or the time until a process is started again.
    pub(super) lasts: Ns,
    pub(super) kind: Kind,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A process ends with no word. A write under way is durable, or not.
    Crash { who: Who, kept: bool, disk_lost: bool, moves: bool, host_gone: bool },
    /// A process ends in the middle of the next batch that begins with a write.
    CrashInWrite { who: Who, point: CrashPoint, disk_lost: bool },
    /// The next write fails, and so the process stops itself.
    FailedWrite { who: Who, leaves: Leaves },
    /// Writes take so long.
    SlowDisk { who: Who, takes: Ns },
    /// The driver is held up in the middle of its next turn.
    Stall { who: Who, before_view: bool },
    /// A process is stopped and goes on later.
    Pause { who: Who },
    /// A process is told to stop, and is started again later: a rollout, or a pod that moves.
    Leave { who: Who, moves: bool },
    /// A further process, which leaves again.
    Join { place: usize },
    /// A process is started, or started again, with these places as its `--voters`, by bits.
    Revote { place: usize, voters: Places },
    /// A process has another `--lease` from its next start on. If it runs, it is started again. In error: no other process
    /// gets that lease, which a first start does not have to survive.
    ChangeLease { place: usize, lease: Duration, in_error: bool },
    /// Nothing passes.
    Cut { between: Between, shape: Shape, swallows: bool },
    /// Something happens to messages of some kinds.
    Disturb { between: Between, classes: Classes, effect: Effect },
    /// A connection breaks.
    Reset { a: Who, b: Who },
    /// A connection breaks, and something on the path refuses a dial in the name of a live process.
    Misjudge { who: Who, whom: Who },
    /// A clock runs at another rate.
    Rate { who: Who, ppm: i32 },
    /// CLOCK_BOOTTIME is slewed by so much from now on.
    Slew { who: Who, ppm: i32 },
    /// The host is suspended.
    Suspend { who: Who },
    /// The wall clock jumps.
    WallJump { who: Who, ahead_ms: i64 },
    /// Look-ups go wrong.
    Dns { who: Who, fault: DnsFault },
}

/// Which connections a cut is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Two sides.
    Split,
    /// Some pairs.
    Partial,
    /// One direction of a pair.
    OneWay,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {} ms", self.kind, self.lasts / MS)
    }
}

impl World {
    /// The moment of a fault has come: it begins, or waits for its cue.
    pub(super) fn due(&mut self, number: usize) {
        match self.plan.faults[number].cue {
            _ if self.healed => {}
            None => self.inject(number, 0),
            Some((cue, delay)) => self.waiting.push(Waiting { cue, number, delay }),
        }
    }

    /// Something has happened that faults may wait for.
    pub(super) fn cue(&mut self, cue: Cue, actor: usize) {
        let mut at = 0;
        while at < self.waiting.len() {
            let Waiting { cue: wanted, number, delay } = self.waiting[at];
            if wanted == cue {
                self.waiting.swap_remove(at);
                self.queue.put(self.now + delay, Item::Cued { number, actor });
            } else {
                at += 1;
            }
        }
    }

    /// A fault begins.
    pub(super) fn inject(&mut self, number: usize, actor: usize) {
        if self.healed {
            return;
        }
        let fault = self.plan.faults[number];
        if self.trace.on() {
            self.trace.line(self.now, &format!("! fault {number}: {fault}"));
        }
        self.counts.fault(fault.kind.sort());
        let until = self.now + fault.lasts;
        let fate = Fate { down: fault.lasts, ..Fate::default() };
        match fault.kind {
            Kind::Crash { who, kept, disk_lost, moves, host_gone } => {
                let place = self.who(who, actor);
                self.doomed(place, Fate { disk_lost, moves, host_gone, ..fate });
                if self.nodes[place].runs() {
                    let under_way =
                        self.nodes[place].busy.take().and_then(|busy| busy.record).filter(|_| kept);
                    if let Some(record) = under_way {
                        self.nodes[place].disk.finish(record);
                    }
                    self.crash(place, false);
                }
            }
            Kind::CrashInWrite { who, point, disk_lost } => {
                let place = self.who(who, actor);
                self.doomed(place, Fate { disk_lost, ..fate });
                self.nodes[place].disk.crash = Some(point);
            }
            Kind::FailedWrite { who, leaves } => {
                let place = self.who(who, actor);
                self.doomed(place, fate);
                self.nodes[place].disk.failing = Some(leaves);
            }
            Kind::SlowDisk { who, takes } => {
                let place = self.who(who, actor);
                self.nodes[place].disk.slow = Some((takes, until));
            }
            Kind::Stall { who, before_view } => {
                let place = self.who(who, actor);
                self.nodes[place].stall = Some(Stall { takes: fault.lasts, before_view });
            }
            Kind::Pause { who } => {
                let place = self.who(who, actor);
                let process = &mut self.nodes[place];
                if process.runs() {
                    process.paused_until = process.paused_until.max(until);
                    self.queue.put(until, Item::Resume(process.life()));
                }
            }
            Kind::Leave { who, moves } => {
                let place = self.who(who, actor);
                self.doomed(place, Fate { moves, ..fate });
                self.input(self.nodes[place].life(), Input::Event(Event::Stop));
            }
            Kind::Join { place } => {
                if place < self.nodes.len() && !self.nodes[place].runs() && !self.nodes[place].starting {
                    self.nodes[place].starting = true;
                    self.queue.put(self.now, Item::Start(place));
                    self.queue.put(until, Item::FaultOver { number, pairs: Box::default() });
                }
            }
            Kind::Revote { place, voters } => self.revote(place, voters, fate),
            Kind::ChangeLease { in_error: true, .. } if !self.checker.voted() => {}
            Kind::ChangeLease { place, lease, .. } => {
                self.nodes[place].next_lease = Some(lease);
                if self.nodes[place].runs() {
                    self.doomed(place, fate);
                    self.input(self.nodes[place].life(), Input::Event(Event::Stop));
                }
            }
            Kind::Cut { between, swallows, .. } => {
                let pairs = self.between(between, actor);
                for (from, to) in pairs.among(self.nodes.len()) {
                    let faults = &mut self.net.faults[from][to];
                    *(if swallows { &mut faults.swallowing } else { &mut faults.holding }) += 1;
                }
                self.queue.put(until, Item::FaultOver { number, pairs: Box::new(pairs) });
            }
            Kind::Disturb { between, classes, effect } => {
                let disturbance = Disturbance { effect, classes, until };
                for (from, to) in self.between(between, actor).among(self.nodes.len()) {
                    self.net.faults[from][to].disturb(self.now, disturbance);
                }
            }
            Kind::Reset { a, b } => self.reset(self.who(a, actor), self.who(b, actor)),
            Kind::Misjudge { who, whom } => self.misjudge(self.who(who, actor), self.who(whom, actor)),
            Kind::Rate { who, ppm } => {
                let place = self.who(who, actor);
                let now = self.now;
                self.nodes[place].clock.change_rate(now, ppm);
                self.rearm(place);
            }
            Kind::Slew { who, ppm } => {
                let place = self.who(who, actor);
                let now = self.now;
                self.nodes[place].clock.slew(now, ppm);
                self.rearm(place);
            }
            Kind::Suspend { who } => self.suspend(self.who(who, actor), fault.lasts),
            Kind::WallJump { who, ahead_ms } => {
                let place = self.who(who, actor);
                let clock = &mut self.nodes[place].clock;
                clock.wall_ms = clock.wall_ms.saturating_add_signed(ahead_ms);
            }
            Kind::Dns { who, fault } => {
                let place = self.who(who, actor);
                self.nodes[place].dns.fail(fault, until);
            }
        }
    }

    /// A host is suspended, with all that runs there.
    pub(super) fn suspend(&mut self, place: usize, lasts: Ns) {
        let process = &mut self.nodes[place];
        if process.runs() && !process.clock.suspended(self.now) {
            let wakes = process.clock.suspend(self.now, lasts);
            process.paused_until = process.paused_until.max(wakes);
            self.queue.put(wakes, Item::Resume(process.life()));
            self.rearm(place);
        }
    }

    /// A process gets other `--voters`, which takes a restart. At a first start all have to have the same ones.
    fn revote(&mut self, place: usize, voters: Places, fate: Fate) {
        let names = (0..PLACES_MAX).filter(|p| voters >> p & 1 == 1).map(|p| format!("p-{p}")).collect();
        if !self.checker.voted() || !self.known_to(&names, None) {
            return;
        }
        let process = &mut self.nodes[place];
        if let Safety::Majority { voters } = &mut process.settings.safety {
            *voters = names;
        }
        if process.runs() {
            self.doomed(place, fate);
            self.input(self.nodes[place].life(), Input::Event(Event::Stop));
        } else if !std::mem::replace(&mut process.starting, true) {
            self.queue.put(self.now, Item::Start(place));
        }
    }

    /// What follows the end of the process that runs there.
    fn doomed(&mut self, place: usize, fate: Fate) {
        self.nodes[place].fate = fate;
    }

    /// The time of a fault is over.
    pub(super) fn fault_over(&mut self, number: usize, pairs: Pairs) {
        if self.healed {
            return;
        }
        match self.plan.faults[number].kind {
            Kind::Cut { swallows, .. } => self.uncut(number, pairs, swallows),
            Kind::Join { place } => {
                self.nodes[place].stays_down = true;
                self.input(self.nodes[place].life(), Input::Event(Event::Stop));
            }
            _ => {}
        }
    }

    fn uncut(&mut self, number: usize, pairs: Pairs, swallows: bool) {
        if self.trace.on() {
            self.trace.line(self.now, &format!("! the cut of fault {number} is over"));
        }
        for (from, to) in pairs.among(self.nodes.len()) {
            let faults = &mut self.net.faults[from][to];
            *(if swallows { &mut faults.swallowing } else { &mut faults.holding }) -= 1;
        }
        for (from, to) in pairs.among(self.nodes.len()) {
            self.release(from, to);
        }
    }

    /// The faults are over: the network carries everything, and everybody but the dead minority runs. Clocks go on
    /// drifting.
    pub(super) fn heal(&mut self) {
        self.healed = true;
        if self.trace.on() {
            self.trace.line(self.now, "! the faults are over");
        }
        let dead = self.dead_minority();
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                self.net.faults[from][to] = super::link_faults::LinkFaults::default();
            }
        }
        for place in 0..self.nodes.len() {
            let now = self.now;
            (0..self.nodes.len()).for_each(|to| self.release(place, to));
            let process = &mut self.nodes[place];
            process.disk.heal();
            process.dns.heal();
            process.clock.wake(now);
            process.stall = None;
            process.fate = Fate { down: 100 * MS, ..Fate::default() };
            process.vanished = false;
            if dead >> place & 1 == 1 {
                process.stays_down = true;
                if process.runs() {
                    self.crash(place, false);
                }
                continue;
            }
            if process.paused_until != 0 {
                process.paused_until = self.now;
                self.queue.put(self.now, Item::Resume(process.life()));
            }
            if process.starts > 0 && !process.runs() && !process.stays_down {
                process.starting = true;
                self.queue.put(self.now + 100 * MS * place as Ns, Item::Start(place));
            }
            self.rearm(place);
        }
    }

    /// Who stays dead. Nobody while a voter has no record: it waits for answers of them.
    fn dead_minority(&self) -> Places {
        let forgetful = |p: &super::node::Node| {
            p.disk.record.as_ref().and_then(|r| r.vote.as_ref()).is_none_or(|vote| vote.founding)
        };
        if self.plan.majority() && self.nodes.iter().filter(|p| p.starts > 0).any(forgetful) {
            0
        } else {
            self.plan.dead
        }
    }
}
