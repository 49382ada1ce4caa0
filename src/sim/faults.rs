//! What each fault of the plan does to the world, and which places it hits at that moment.

use super::clock::{Clock, MS, Ns};
use super::fault::Kind;
use super::link_faults::{Disturbance, PLACES_MAX, Pairs, Places};
use super::node::{Input, Node, Restart, Stall};
use super::queue::Item;
use super::target::{Between, Cue, Target, Waiting};
use super::world::World;
use crate::election::{Event, Role, Safety};
use std::time::Duration;

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
        let fate = Restart { down: fault.lasts, ..Restart::default() };
        match fault.kind {
            Kind::Crash { target, kept, disk_lost, moves, host_gone } => {
                let place = self.place_of(target, actor);
                self.crash_now(place, kept, Restart { disk_lost, moves, host_gone, ..fate });
            }
            Kind::CrashInWrite { target, point, disk_lost } => {
                let place = self.place_of(target, actor);
                self.doomed(place, Restart { disk_lost, ..fate });
                self.nodes[place].disk.crash = Some(point);
            }
            Kind::FailedWrite { target, leaves } => {
                let place = self.place_of(target, actor);
                self.doomed(place, fate);
                self.nodes[place].disk.failing = Some(leaves);
            }
            Kind::SlowDisk { target, takes } => self.node_of(target, actor).disk.slow = Some((takes, until)),
            Kind::Stall { target, before_status } => {
                self.node_of(target, actor).stall = Some(Stall { takes: fault.lasts, before_status });
            }
            Kind::Pause { target } => self.pause(self.place_of(target, actor), until),
            Kind::Leave { target, moves } => {
                let place = self.place_of(target, actor);
                self.doomed(place, Restart { moves, ..fate });
                self.input(self.nodes[place].instance(), Input::Event(Event::Stop));
            }
            Kind::Join { place } => self.join(number, place, until),
            Kind::Revote { place, voters } => self.revote(place, voters, fate),
            Kind::ChangeLease { in_error: true, .. } if !self.checker.voted() => {}
            Kind::ChangeLease { place, lease, .. } => self.change_lease(place, lease, fate),
            Kind::Cut { between, swallows, .. } => {
                self.cut(number, self.between(between, actor), swallows, until);
            }
            Kind::Disturb { between, classes, effect } => {
                let disturbance = Disturbance { effect, classes, until };
                for (from, to) in self.between(between, actor).among(self.nodes.len()) {
                    self.net.faults[from][to].disturb(self.now, disturbance);
                }
            }
            Kind::Reset { a, b } => self.reset(self.place_of(a, actor), self.place_of(b, actor)),
            Kind::Misjudge { target, of } => {
                self.misjudge(self.place_of(target, actor), self.place_of(of, actor))
            }
            Kind::Operate { target, asks } => self.operate(self.place_of(target, actor), asks, actor, until),
            Kind::Rate { target, ppm } => {
                self.set_clock(self.place_of(target, actor), |clock, now| clock.change_rate(now, ppm));
            }
            Kind::Slew { target, ppm } => {
                self.set_clock(self.place_of(target, actor), |clock, now| clock.slew(now, ppm));
            }
            Kind::Suspend { target } => self.suspend(self.place_of(target, actor), fault.lasts),
            Kind::WallJump { target, ahead_ms } => {
                let clock = &mut self.node_of(target, actor).clock;
                clock.wall_ms = clock.wall_ms.saturating_add_signed(ahead_ms);
            }
            Kind::Dns { target, fault } => self.node_of(target, actor).dns.fail(fault, until),
        }
    }

    /// Changes how a place's clock runs: its timers are due at other moments then.
    fn set_clock(&mut self, place: usize, change: impl FnOnce(&mut Clock, Ns)) {
        change(&mut self.nodes[place].clock, self.now);
        self.rearm(place);
    }

    /// The place that is meant now.
    pub(super) fn place_of(&self, target: Target, actor: usize) -> usize {
        match target {
            Target::Place(place) => place,
            Target::Actor => actor,
            Target::Leader => self.leading(),
            Target::Follower(number) => (self.leading() + 1 + number % (self.members() - 1)) % self.members(),
        }
    }

    /// How many places there are but those for further processes.
    fn members(&self) -> usize {
        self.plan.n
    }

    fn leading(&self) -> usize {
        let led = |p: &Node| {
            p.status
                .as_ref()
                .filter(|status| status.role == Role::Leading)
                .map(|status| (status.epoch, p.place))
        };
        self.nodes.iter().filter_map(led).max().map_or(0, |(_, place)| place).min(self.members() - 1)
    }

    /// The ways that are meant now.
    fn between(&self, between: Between, actor: usize) -> Pairs {
        match between {
            Between::Sides(side) => Pairs::split(side),
            Between::Away(target) => Pairs::split(1 << self.place_of(target, actor)),
            Between::From(target) => Pairs::from(self.place_of(target, actor)),
            Between::To(target) => Pairs::to(self.place_of(target, actor)),
            Between::Both(a, b) => Pairs::both(self.place_of(a, actor), self.place_of(b, actor)),
            Between::OneWay(a, b) => Pairs::one_way(self.place_of(a, actor), self.place_of(b, actor)),
            Between::Pairs(pairs) => pairs,
            Between::All => Pairs::ALL,
        }
    }

    /// The process that a fault is about.
    fn node_of(&mut self, target: Target, actor: usize) -> &mut Node {
        let place = self.place_of(target, actor);
        &mut self.nodes[place]
    }

    /// A process ends with no word. A write under way is durable, or not.
    fn crash_now(&mut self, place: usize, kept: bool, fate: Restart) {
        self.doomed(place, fate);
        if self.nodes[place].runs() {
            let under_way = self.nodes[place].busy.take().and_then(|busy| busy.record).filter(|_| kept);
            if let Some(record) = under_way {
                self.nodes[place].disk.finish(record);
            }
            self.crash(place, false);
        }
    }

    /// A process is stopped until then.
    fn pause(&mut self, place: usize, until: Ns) {
        let process = &mut self.nodes[place];
        if process.runs() {
            process.paused_until = process.paused_until.max(until);
            self.queue.put(until, Item::Resume(process.instance()));
        }
    }

    /// A further process starts, and leaves again then.
    fn join(&mut self, number: usize, place: usize, until: Ns) {
        if place < self.nodes.len() && !self.nodes[place].runs() && !self.nodes[place].starting {
            self.nodes[place].starting = true;
            self.queue.put(self.now, Item::Start(place));
            self.queue.put(until, Item::FaultOver { number, pairs: Box::default() });
        }
    }

    /// A process gets another `--lease`, which takes a restart.
    fn change_lease(&mut self, place: usize, lease: Duration, fate: Restart) {
        self.nodes[place].next_lease = Some(lease);
        if self.nodes[place].runs() {
            self.doomed(place, fate);
            self.input(self.nodes[place].instance(), Input::Event(Event::Stop));
        }
    }

    /// Nothing passes between these pairs until then.
    fn cut(&mut self, number: usize, pairs: Pairs, swallows: bool, until: Ns) {
        for (from, to) in pairs.among(self.nodes.len()) {
            let faults = &mut self.net.faults[from][to];
            *(if swallows { &mut faults.swallowing } else { &mut faults.holding }) += 1;
        }
        self.queue.put(until, Item::FaultOver { number, pairs: Box::new(pairs) });
    }

    /// A host is suspended, with all that runs there.
    pub(super) fn suspend(&mut self, place: usize, lasts: Ns) {
        let process = &mut self.nodes[place];
        if process.runs() && !process.clock.suspended(self.now) {
            let wakes = process.clock.suspend(self.now, lasts);
            process.paused_until = process.paused_until.max(wakes);
            self.queue.put(wakes, Item::Resume(process.instance()));
            self.rearm(place);
            self.uncordon(self.nodes[place].instance());
        }
    }

    /// A process gets other `--voters`, which takes a restart. At a first start all have to have the same
    /// ones.
    fn revote(&mut self, place: usize, voters: Places, fate: Restart) {
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
            self.input(self.nodes[place].instance(), Input::Event(Event::Stop));
        } else if !std::mem::replace(&mut process.starting, true) {
            self.queue.put(self.now, Item::Start(place));
        }
    }

    /// What follows the end of the process that runs there.
    fn doomed(&mut self, place: usize, fate: Restart) {
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
                self.input(self.nodes[place].instance(), Input::Event(Event::Stop));
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

    /// The faults are over: the network carries everything, and all but the dead minority run. Clocks
    /// go on drifting.
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
            process.fate = Restart { down: 100 * MS, ..Restart::default() };
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
                self.queue.put(self.now, Item::Resume(process.instance()));
            }
            if process.starts > 0 && !process.runs() && !process.stays_down {
                process.starting = true;
                self.queue.put(self.now + 100 * MS * place as Ns, Item::Start(place));
            }
            self.rearm(place);
        }
    }

    /// The processes that stay dead. None while a voter has no record: it waits for answers of them.
    fn dead_minority(&self) -> Places {
        let forgetful =
            |p: &Node| p.disk.record.as_ref().and_then(|r| r.vote.as_ref()).is_none_or(|vote| vote.founding);
        if self.plan.majority() && self.nodes.iter().filter(|p| p.starts > 0).any(forgetful) {
            0
        } else {
            self.plan.dead
        }
    }
}
