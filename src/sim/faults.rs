//! What each fault of the plan does to the world, and which places it hits at that moment.

use super::clock::{MS, Ns};
use super::fault::Kind;
use super::link_faults::{Disturbance, PLACES_MAX, Pairs, Places};
use super::node::{Fate, Input, Node, Stall};
use super::queue::Item;
use super::target::{Between, Cue, Waiting, Who};
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
        let fate = Fate { down: fault.lasts, ..Fate::default() };
        match fault.kind {
            Kind::Crash { who, kept, disk_lost, moves, host_gone } => {
                let place = self.who(who, actor);
                self.crash_now(place, kept, Fate { disk_lost, moves, host_gone, ..fate });
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
            Kind::SlowDisk { who, takes } => self.target(who, actor).disk.slow = Some((takes, until)),
            Kind::Stall { who, before_view } => {
                self.target(who, actor).stall = Some(Stall { takes: fault.lasts, before_view });
            }
            Kind::Pause { who } => self.pause(self.who(who, actor), until),
            Kind::Leave { who, moves } => {
                let place = self.who(who, actor);
                self.doomed(place, Fate { moves, ..fate });
                self.input(self.nodes[place].life(), Input::Event(Event::Stop));
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
            Kind::Reset { a, b } => self.reset(self.who(a, actor), self.who(b, actor)),
            Kind::Misjudge { who, whom } => self.misjudge(self.who(who, actor), self.who(whom, actor)),
            Kind::Rate { who, ppm } => {
                let (place, now) = (self.who(who, actor), self.now);
                self.nodes[place].clock.change_rate(now, ppm);
                self.rearm(place);
            }
            Kind::Slew { who, ppm } => {
                let (place, now) = (self.who(who, actor), self.now);
                self.nodes[place].clock.slew(now, ppm);
                self.rearm(place);
            }
            Kind::Suspend { who } => self.suspend(self.who(who, actor), fault.lasts),
            Kind::WallJump { who, ahead_ms } => {
                let clock = &mut self.target(who, actor).clock;
                clock.wall_ms = clock.wall_ms.saturating_add_signed(ahead_ms);
            }
            Kind::Dns { who, fault } => self.target(who, actor).dns.fail(fault, until),
        }
    }

    /// The place that is meant now.
    fn who(&self, who: Who, actor: usize) -> usize {
        match who {
            Who::Place(place) => place,
            Who::Actor => actor,
            Who::Leader => self.leading(),
            Who::Follower(number) => (self.leading() + 1 + number % (self.members() - 1)) % self.members(),
        }
    }

    /// How many places there are but those for further processes.
    fn members(&self) -> usize {
        self.plan.n
    }

    fn leading(&self) -> usize {
        let led = |p: &Node| {
            p.view.as_ref().filter(|view| view.role == Role::Leading).map(|view| (view.epoch, p.place))
        };
        self.nodes.iter().filter_map(led).max().map_or(0, |(_, place)| place).min(self.members() - 1)
    }

    /// The ways that are meant now.
    fn between(&self, between: Between, actor: usize) -> Pairs {
        match between {
            Between::Sides(side) => Pairs::split(side),
            Between::Away(who) => Pairs::split(1 << self.who(who, actor)),
            Between::From(who) => Pairs::from(self.who(who, actor)),
            Between::To(who) => Pairs::to(self.who(who, actor)),
            Between::Both(a, b) => Pairs::both(self.who(a, actor), self.who(b, actor)),
            Between::OneWay(a, b) => Pairs::one_way(self.who(a, actor), self.who(b, actor)),
            Between::Pairs(pairs) => pairs,
            Between::All => Pairs::ALL,
        }
    }

    /// The process that a fault is about.
    fn target(&mut self, who: Who, actor: usize) -> &mut Node {
        let place = self.who(who, actor);
        &mut self.nodes[place]
    }

    /// A process ends with no word. A write under way is durable, or not.
    fn crash_now(&mut self, place: usize, kept: bool, fate: Fate) {
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
            self.queue.put(until, Item::Resume(process.life()));
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
    fn change_lease(&mut self, place: usize, lease: Duration, fate: Fate) {
        self.nodes[place].next_lease = Some(lease);
        if self.nodes[place].runs() {
            self.doomed(place, fate);
            self.input(self.nodes[place].life(), Input::Event(Event::Stop));
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
            self.queue.put(wakes, Item::Resume(process.life()));
            self.rearm(place);
        }
    }

    /// A process gets other `--voters`, which takes a restart. At a first start all have to have the same
    /// ones.
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

    /// The faults are over: the network carries everything, and everybody but the dead minority runs. Clocks
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
        let forgetful =
            |p: &Node| p.disk.record.as_ref().and_then(|r| r.vote.as_ref()).is_none_or(|vote| vote.founding);
        if self.plan.majority() && self.nodes.iter().filter(|p| p.starts > 0).any(forgetful) {
            0
        } else {
            self.plan.dead
        }
    }
}
