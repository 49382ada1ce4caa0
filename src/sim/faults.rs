//! The faults, as data, and what each does to the world.

use super::air::{Pairs, Until};
use super::clock::{MS, Ns};
use super::disk::{CrashPoint, Leaves};
use super::dns::DnsFault;
use super::process::{Fate, Input, Stall};
use super::queue::Item;
use super::world::World;
use crate::election::Event;
use std::fmt;

/// One fault of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// When it begins.
    pub(super) at: Ns,
    /// For how long: a window, a pause, or the time until a process is started again.
    pub(super) lasts: Ns,
    pub(super) kind: Kind,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A process ends with no word. A write under way is durable, or not.
    Crash { place: usize, kept: bool, disk_lost: bool, moves: bool, host_gone: bool },
    /// A process ends in the middle of the next batch that begins with a write.
    CrashInWrite { place: usize, point: CrashPoint, disk_lost: bool },
    /// The next write fails, and so the process stops itself.
    FailedWrite { place: usize, leaves: Leaves },
    /// Writes take so long.
    SlowDisk { place: usize, takes: Ns },
    /// The driver is held up in the middle of its next turn.
    Stall { place: usize, before_view: bool },
    /// A process is stopped and goes on later.
    Pause { place: usize },
    /// A process is told to stop, and is started again later: a rollout, or a pod that moves.
    Leave { place: usize, moves: bool },
    /// A further process, which leaves again.
    Join { place: usize },
    /// Between these places nothing passes.
    Cut { pairs: Pairs, shape: Shape, swallows: bool },
    /// Messages are lost.
    Loss { pairs: Pairs, permille: u16 },
    /// Messages arrive twice, the second one up to so much later.
    Duplicate { pairs: Pairs, permille: u16, later: Ns },
    /// Messages are late by up to so much, whatever their order was.
    Reorder { pairs: Pairs, late: Ns },
    /// Messages are late by so much.
    Slow { pairs: Pairs, late: Ns },
    /// A connection breaks.
    Reset { a: usize, b: usize },
    /// A connection breaks, and something on the path refuses a dial in the name of a live process.
    Misjudge { who: usize, whom: usize },
    /// A clock runs at another rate.
    Rate { place: usize, ppm: i32 },
    /// The wall clock jumps.
    WallJump { place: usize, ahead_ms: i64 },
    /// Look-ups go wrong.
    Dns { place: usize, fault: DnsFault },
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

impl Kind {
    /// Their names, in the order of [`Kind::number`].
    pub(super) const NAMES: [&'static str; 21] = [
        "crash",
        "host_gone",
        "crash_in_write",
        "failed_write",
        "torn_write",
        "slow_disk",
        "stall",
        "pause",
        "leave",
        "join",
        "partition",
        "partial_partition",
        "one_way_partition",
        "loss",
        "duplication",
        "reordering",
        "delay",
        "reset",
        "clock_rate",
        "wall_jump",
        "dns",
    ];

    /// Its place among the names.
    pub(super) fn number(&self) -> usize {
        match self {
            Kind::Crash { host_gone: false, .. } => 0,
            Kind::Crash { host_gone: true, .. } => 1,
            Kind::CrashInWrite { .. } => 2,
            Kind::FailedWrite { leaves: Leaves::Old, .. } => 3,
            Kind::FailedWrite { .. } => 4,
            Kind::SlowDisk { .. } => 5,
            Kind::Stall { .. } => 6,
            Kind::Pause { .. } => 7,
            Kind::Leave { .. } => 8,
            Kind::Join { .. } => 9,
            Kind::Cut { shape: Shape::Split, .. } => 10,
            Kind::Cut { shape: Shape::Partial, .. } => 11,
            Kind::Cut { shape: Shape::OneWay, .. } => 12,
            Kind::Loss { .. } => 13,
            Kind::Duplicate { .. } => 14,
            Kind::Reorder { .. } => 15,
            Kind::Slow { .. } => 16,
            Kind::Reset { .. } | Kind::Misjudge { .. } => 17,
            Kind::Rate { .. } => 18,
            Kind::WallJump { .. } => 19,
            Kind::Dns { .. } => 20,
        }
    }
}

/// What happened in runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By [`Kind::number`].
    pub(super) faults: [u64; Kind::NAMES.len()],
    /// Disks that were lost.
    pub(super) disks_lost: u64,
    /// Leaders elected.
    pub(super) elections: u64,
}

impl Counts {
    pub(super) fn disk_lost(&mut self) {
        self.disks_lost += 1;
    }

    pub(super) fn add(&mut self, other: &Counts) {
        for (sum, more) in self.faults.iter_mut().zip(other.faults) {
            *sum += more;
        }
        self.disks_lost += other.disks_lost;
        self.elections += other.elections;
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {} ms", self.kind, self.lasts / MS)
    }
}

impl World {
    /// A fault of the plan begins.
    pub(super) fn inject(&mut self, number: usize) {
        if self.healed {
            return;
        }
        let fault = self.plan.faults[number];
        if self.trace.on() {
            self.trace.line(self.now, &format!("! fault {number}: {fault}"));
        }
        self.counts.faults[fault.kind.number()] += 1;
        let until = self.now + fault.lasts;
        let fate = Fate { down: fault.lasts, ..Fate::default() };
        match fault.kind {
            Kind::Crash { place, kept, disk_lost, moves, host_gone } => {
                self.doomed(place, Fate { disk_lost, moves, host_gone, ..fate });
                if self.procs[place].runs() {
                    let under_way =
                        self.procs[place].busy.take().and_then(|busy| busy.record).filter(|_| kept);
                    if let Some(record) = under_way {
                        self.procs[place].disk.finish(record);
                    }
                    self.crash(place, false);
                }
            }
            Kind::CrashInWrite { place, point, disk_lost } => {
                self.doomed(place, Fate { disk_lost, ..fate });
                self.procs[place].disk.crash = Some(point);
            }
            Kind::FailedWrite { place, leaves } => {
                self.doomed(place, fate);
                self.procs[place].disk.failing = Some(leaves);
            }
            Kind::SlowDisk { place, takes } => self.procs[place].disk.slow = Some((takes, until)),
            Kind::Stall { place, before_view } => {
                self.procs[place].stall = Some(Stall { takes: fault.lasts, before_view });
            }
            Kind::Pause { place } => {
                let process = &mut self.procs[place];
                if process.runs() {
                    process.paused_until = process.paused_until.max(until);
                    self.queue.put(until, Item::Resume(process.life()));
                }
            }
            Kind::Leave { place, moves } => {
                self.doomed(place, Fate { moves, ..fate });
                self.input(self.procs[place].life(), Input::Event(Event::Stop));
            }
            Kind::Join { place } => {
                if !self.procs[place].runs() && !self.procs[place].starting {
                    self.procs[place].starting = true;
                    self.queue.put(self.now, Item::Start(place));
                    self.queue.put(until, Item::FaultOver(number));
                }
            }
            Kind::Cut { pairs, swallows, .. } => {
                for (from, to) in pairs.iter() {
                    let air = &mut self.net.air[from][to];
                    *(if swallows { &mut air.swallowing } else { &mut air.holding }) += 1;
                }
                self.queue.put(until, Item::FaultOver(number));
            }
            Kind::Loss { pairs, permille: what } => {
                pairs.iter().for_each(|(a, b)| self.net.air[a][b].loss = Until { what, until });
            }
            Kind::Duplicate { pairs, permille, later } => {
                let what = (permille, later);
                pairs.iter().for_each(|(a, b)| self.net.air[a][b].duplicate = Until { what, until });
            }
            Kind::Reorder { pairs, late: what } => {
                pairs.iter().for_each(|(a, b)| self.net.air[a][b].reorder = Until { what, until });
            }
            Kind::Slow { pairs, late: what } => {
                pairs.iter().for_each(|(a, b)| self.net.air[a][b].slow = Until { what, until });
            }
            Kind::Reset { a, b } => self.reset(a, b),
            Kind::Misjudge { who, whom } => self.misjudge(who, whom),
            Kind::Rate { place, ppm } => {
                let now = self.now;
                self.procs[place].clock.change_rate(now, ppm);
                self.rearm(place);
            }
            Kind::WallJump { place, ahead_ms } => {
                let clock = &mut self.procs[place].clock;
                clock.wall_ms = clock.wall_ms.saturating_add_signed(ahead_ms);
            }
            Kind::Dns { place, fault } => self.procs[place].dns.fail(fault, until),
        }
    }

    /// What follows the end of the process that runs there.
    fn doomed(&mut self, place: usize, fate: Fate) {
        self.procs[place].fate = fate;
    }

    /// The time of a fault is over.
    pub(super) fn fault_over(&mut self, number: usize) {
        if self.healed {
            return;
        }
        match self.plan.faults[number].kind {
            Kind::Cut { pairs, swallows, .. } => self.uncut(number, pairs, swallows),
            Kind::Join { place } => {
                self.procs[place].stays_down = true;
                self.input(self.procs[place].life(), Input::Event(Event::Stop));
            }
            _ => {}
        }
    }

    fn uncut(&mut self, number: usize, pairs: Pairs, swallows: bool) {
        if self.trace.on() {
            self.trace.line(self.now, &format!("! the cut of fault {number} is over"));
        }
        for (from, to) in pairs.iter() {
            let air = &mut self.net.air[from][to];
            *(if swallows { &mut air.swallowing } else { &mut air.holding }) -= 1;
        }
        for (from, to) in pairs.iter() {
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
        for from in 0..self.procs.len() {
            for to in 0..self.procs.len() {
                self.net.air[from][to] = super::air::Air::default();
            }
        }
        for place in 0..self.procs.len() {
            (0..self.procs.len()).for_each(|to| self.release(place, to));
            let process = &mut self.procs[place];
            process.disk.heal();
            process.dns.heal();
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
        }
    }

    /// Who stays dead. Nobody while a voter has no record: it waits for answers of them.
    fn dead_minority(&self) -> u8 {
        let forgetful = |p: &super::process::Process| p.disk.record.as_ref().is_none_or(|r| r.vote.is_none());
        if self.plan.majority() && self.procs.iter().any(forgetful) { 0 } else { self.plan.dead }
    }
}
