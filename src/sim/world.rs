//! A world of machines in virtual time: it feeds them one event at a time and carries out their actions, as
//! the driver does (`node::driver`). Everything in it follows from the plan alone.

use super::checker::Checker;
use super::clock::{Clock, MS, Ns};
use super::disk::{CrashPoint, Written};
use super::fault_kind::Counts;
use super::hold::Applications;
use super::network::Network;
use super::node::{Busy, Input, Node, NodeInstance, Restart, Stall};
use super::operation_checker::begins_sick;
use super::plan::Plan;
use super::queue::{ITEMS_MAX, Item, Queue};
use super::rule::Rule;
use super::target::{Cue, Waiting};
use super::trace::Trace;
use crate::election::{
    Action, Body, Event, LEASE_MS_MAX, Machine, Notification, Now, Record, Role, Status, Timer,
};
use std::time::Duration;

/// Between two look-ups, and in a hurry.
const REFRESH: Ns = 5_000 * MS;
const REFRESH_HURRIED: Ns = 1_000 * MS;

/// The shortest lease that a round or a request asks for, in milliseconds.
const SHORTEST_LEASE_MS: u64 = 200;

/// The longest time between two look-ups.
pub(super) const REFRESH_LONGEST: Ns = REFRESH;

/// What a test breaks on purpose in how actions are carried out.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sabotage {
    /// Messages leave before what they depend on is durable.
    SendBeforePersist,
    /// Nothing is ever made durable.
    NeverPersist,
}

pub(super) struct World {
    pub(super) now: Ns,
    pub(super) queue: Queue,
    pub(super) random: fastrand::Rng,
    pub(super) nodes: Vec<Node>,
    pub(super) net: Network,
    pub(super) plan: Plan,
    pub(super) counts: Counts,
    pub(super) checker: Checker,
    pub(super) trace: Trace,
    /// Faults that wait for their cue.
    pub(super) waiting: Vec<Waiting>,
    /// In some runs, what uses the processes.
    pub(super) applications: Option<Applications>,
    /// The faults are over.
    pub(super) healed: bool,
    #[cfg(test)]
    pub(super) sabotage: Option<Sabotage>,
    #[cfg(test)]
    pub(super) mutation: Option<crate::election::Mutation>,
}

impl World {
    /// All places of the plan, none of them started yet.
    pub(super) fn new(plan: Plan, trace: Trace) -> World {
        let mut random = fastrand::Rng::with_seed(plan.seed ^ 0x6e65_7477_6f72_6b21);
        let mut queue = Queue::default();
        let mut nodes = Vec::with_capacity(plan.places.len());
        for (place, draft) in plan.places.iter().enumerate() {
            let clock = Clock::new(draft.clock_ns, draft.ppm).measures_whole_seconds(plan.whole_seconds);
            let mut process = Node::new(place, draft.settings.clone(), random.u32(..), clock);
            process.priority = draft.priority;
            process.revision.clone_from(&draft.revision);
            if let Some(at) = draft.starts_at {
                process.starting = true;
                queue.put(at, Item::Start(place));
            }
            nodes.push(process);
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            queue.put(fault.at, Item::Fault(number));
        }
        let net = Network::new(plan.places.len(), plan.delay, plan.jitter, plan.link_timeout);
        let checker = Checker::new(plan.majority(), plan.releases());
        let mut world = World {
            now: 0,
            queue,
            random,
            nodes,
            net,
            plan,
            counts: Counts::default(),
            checker,
            trace,
            waiting: Vec::new(),
            applications: None,
            healed: false,
            #[cfg(test)]
            sabotage: None,
            #[cfg(test)]
            mutation: None,
        };
        world.begin_applications();
        world
    }

    /// Lets time pass until then, or until a rule is broken.
    pub(super) fn run_until(&mut self, end: Ns) {
        while self.checker.violation.is_none() {
            let Some((at, item)) = self.queue.next(end) else {
                self.now = end;
                return;
            };
            self.now = at;
            self.step(item);
            if self.queue.items() > ITEMS_MAX {
                self.checker.broken(at, Rule::TooMuch, "more happens than the run has room for".to_owned());
            }
        }
    }

    fn step(&mut self, item: Item) {
        match item {
            Item::Fault(number) => self.due(number),
            Item::Cued { number, actor } => self.inject(number, actor),
            Item::FaultOver { number, pairs } => self.fault_over(number, *pairs),
            Item::Start(place) => self.start(place),
            Item::Deliver { from, to, link, message } => self.deliver(from, to, link, *message),
            Item::Closed { at, of, link, deliberate } => self.heard_closed(at, of, link, deliberate),
            Item::Evidence { at, of } => self.evidence(at, of),
            Item::Unacknowledged { at, of, token } => self.unacknowledged(at, of, token),
            Item::Dialled(instance, address) => self.dialled(instance, address),
            Item::Seek(instance) => {
                if self.nodes[instance.place].runs_as(instance) {
                    self.nodes[instance.place].seeks_at = None;
                    self.seek(instance.place);
                }
            }
            Item::Timer(instance, timer) => self.timer_due(instance, timer),
            Item::Turn(instance) => self.turn_due(instance),
            Item::Uncordon(instance) => self.uncordon(instance),
            Item::Heal(instance) => self.hears_of_application(instance, true),
            Item::Refresh(instance) => self.refresh(instance),
            Item::Resume(instance) => self.resume(instance),
        }
    }

    /// Starts a process with what its disk holds.
    fn start(&mut self, place: usize) {
        let process = &mut self.nodes[place];
        process.starting = false;
        if process.runs() || process.stays_down {
            return;
        }
        if process.clock.suspended(self.now) {
            process.starting = true;
            return self.queue.put(process.clock.wakes(), Item::Start(place));
        }
        process.vanished = false;
        self.change_evidence(place);
        let process = &mut self.nodes[place];
        process.fate = Restart::default();
        if process.disk.record.is_none() && process.starts > 0 {
            // Nothing was kept of the id either.
            process.disks += 1;
        }
        process.begin();
        let instance = process.instance();
        let record = process.disk.record.as_ref();
        let me = process.peer();
        assert!(record.is_none_or(|record| record.id == me.id), "an id is kept with its disk");
        let mut machine = Machine::new(process.settings.clone(), "sim".to_owned(), me, record);
        if let Some(known) = &process.disk.known {
            machine.ask_first(known);
        }
        #[cfg(test)]
        if let Some(clause) = self.mutation {
            machine.mutate(clause);
        }
        process.turn(self.now);
        process.turned = process.time;
        process.status = Some(machine.status());
        self.checker.started(self.now, process, machine.epoch());
        process.machine = Some(machine);
        if self.trace.on() {
            let disk = if self.nodes[place].disk.record.is_some() { "its record" } else { "no record" };
            self.trace
                .line(self.now, &format!("+ p-{place} starts with {disk}, instance {}", instance.start));
        }
        self.queue.put(self.now, Item::Refresh(instance));
        self.queue.put(self.now, Item::Turn(instance));
        self.cue(Cue::Started, place);
        self.feed(place, Event::Start);
    }

    /// The process ends with no word, at once.
    pub(super) fn crash(&mut self, place: usize, deliberate: bool) {
        let process = &mut self.nodes[place];
        let instance = process.instance();
        let fate = process.fate;
        let loses = fate.disk_lost && self.may_lose_disk(place);
        let process = &mut self.nodes[place];
        process.end();
        process.vanished = fate.host_gone;
        process.disk.crash = None;
        process.disk.failing = None;
        if loses {
            process.lose_disk();
            self.counts.disk_lost();
        }
        if fate.moves {
            process.addresses = process.addresses.wrapping_add(1);
        }
        if self.trace.on() {
            let how = if deliberate { "exits" } else { "crashes" };
            let host = if fate.host_gone { ", and its host is gone" } else { "" };
            let disk = if loses { ", and its disk is lost" } else { "" };
            self.trace.line(self.now, &format!("+ p-{place} {how}{host}{disk}"));
        }
        self.hang_up(instance, deliberate);
        let process = &mut self.nodes[place];
        if !process.stays_down && !std::mem::replace(&mut process.starting, true) {
            self.queue.put(self.now + fate.down, Item::Start(place));
        }
    }

    /// One turn of a process's driver.
    pub(super) fn feed(&mut self, place: usize, event: Event) {
        let process = &mut self.nodes[place];
        self.checker.operations.told(process.instance(), &event);
        let Some(machine) = &mut process.machine else { return };
        process.last = process.clock.reading(self.now);
        process.slept = process.clock.slept();
        process.time.turn(process.last);
        let time = process.time;
        if self.trace.on() {
            self.trace.event(self.now, place, &event);
        }
        if self.plan.short_leases && matches!(event, Event::Timer(_)) {
            let longest = process.settings.failure_timeout.as_millis() as u64;
            let short = self.random.u64(SHORTEST_LEASE_MS.min(longest)..=longest);
            machine.ask_for_lease(Duration::from_millis(if self.healed {
                u64::from(LEASE_MS_MAX)
            } else {
                short
            }));
        }
        let wall_ms = process.clock.wall_ms + self.now / MS;
        let now = Now { at: time.fast(), slow: time.slow(), suspends: time.suspends(), wall_ms };
        let beats = matches!(event, Event::Timer(Timer::Heartbeat));
        let mut actions = machine.handle(now, event);
        let led = process.status.as_ref().is_some_and(|status| status.role == Role::Leading);
        let noted = led || actions.iter().any(|action| matches!(action, Action::Notification(_)));
        let status = noted.then(|| machine.status());
        let record = match actions.first() {
            Some(Action::Persist(_)) => match actions.remove(0) {
                Action::Persist(record) => Some(record),
                _ => None,
            },
            _ => None,
        };
        #[cfg(test)]
        let (record, actions) = self.sabotaged(place, record, actions);
        let (mut takes, mut crash_after) = (0, None);
        if let Some(record) = &record {
            let Some(write) = self.write(place, record) else { return };
            (takes, crash_after) = write;
        }
        let stall = self.nodes[place].stall.take();
        let mut busy = Busy { until: self.now + takes, record, status, turned: Some(time), rest: actions };
        if let Some(actions) = crash_after {
            busy.rest.truncate(actions.into());
            self.finish(place, busy);
            if self.nodes[place].runs() {
                self.crash(place, false);
            }
        } else if takes == 0 && stall.is_none() {
            self.finish(place, busy);
        } else {
            self.finish_later(place, busy, stall);
        }
        if beats {
            self.application_asks(self.nodes[place].instance());
        }
    }

    /// Begins to write a turn's record. Returns how long that takes, and after how many of the turn's actions
    /// the process crashes, if it does. None: it has crashed already.
    fn write(&mut self, place: usize, record: &Record) -> Option<(Ns, Option<u8>)> {
        let process = &mut self.nodes[place];
        let crash_after = match process.disk.crash.take() {
            Some(CrashPoint::BeforeWrite) => {
                self.crash(place, false);
                return None;
            }
            Some(CrashPoint::AfterWrite(actions)) => Some(actions),
            None => None,
        };
        match process.disk.write(self.now, record) {
            Written::After(takes) => Some((takes, crash_after)),
            Written::Failed { damaged } => {
                process.fate.disk_lost |= damaged;
                self.crash(place, false);
                None
            }
        }
    }

    /// Leaves the rest of a turn for later: the disk takes its time, or the driver is held up.
    fn finish_later(&mut self, place: usize, mut busy: Busy, stall: Option<Stall>) {
        if let Some(stall) = stall {
            if !stall.before_status {
                let shown = Busy {
                    until: self.now,
                    record: busy.record.take(),
                    status: busy.status.take(),
                    turned: busy.turned.take(),
                    rest: Vec::new(),
                };
                self.finish(place, shown);
            }
            busy.until += stall.takes;
        }
        let process = &mut self.nodes[place];
        self.queue.put(busy.until, Item::Resume(process.instance()));
        process.busy = Some(busy);
    }

    #[cfg(test)]
    fn sabotaged(
        &mut self,
        place: usize,
        record: Option<Record>,
        actions: Vec<Action>,
    ) -> (Option<Record>, Vec<Action>) {
        match self.sabotage {
            Some(Sabotage::SendBeforePersist) if record.is_some() => {
                let (sends, rest) = actions.into_iter().partition(|a| matches!(a, Action::Send { .. }));
                self.carry_out(place, sends);
                (record, rest)
            }
            Some(Sabotage::NeverPersist) => (None, actions),
            _ => (record, actions),
        }
    }

    /// The rest of a turn: what was written is durable, HTTP sees the new status, and the actions are carried
    /// out.
    pub(super) fn finish(&mut self, place: usize, busy: Busy) {
        let process = &mut self.nodes[place];
        if let Some(record) = busy.record {
            self.checker.durable(self.now, process, &record);
            process.disk.finish(record);
        }
        if let Some(turned) = busy.turned {
            process.turned = turned;
            let shown = busy.status;
            self.publish(place, shown);
        }
        self.carry_out(place, busy.rest);
    }

    fn publish(&mut self, place: usize, status: Option<Status>) {
        let process = &mut self.nodes[place];
        let led = process.status.as_ref().is_some_and(|status| status.role == Role::Leading);
        if status.is_none() && !led {
            return;
        }
        let answered = process.leads(self.now);
        if let Some(status) = status {
            self.checker.published(self.now, &self.nodes, place, &status);
            let broken = begins_sick(&self.nodes[place], &status);
            self.checker.found(self.now, broken);
            self.nodes[place].status = Some(status);
            let broken = self.checker.operations.leads(&self.nodes[place]);
            self.checker.found(self.now, broken);
        }
        if !self.nodes[place].leads(self.now) {
            return;
        }
        self.check_holds(place);
        for other in 0..self.nodes.len() {
            if other != place && self.nodes[other].leads(self.now) {
                let (one, two) = (&self.nodes[place], &self.nodes[other]);
                self.checker.two_leaders(self.now, one, two, !answered);
            }
        }
    }

    fn carry_out(&mut self, place: usize, actions: Vec<Action>) {
        let mut election = None;
        for action in actions {
            match action {
                // Persist comes first in its batch, or never.
                Action::Persist(_) => {
                    let what = format!("p-{place} writes in the middle of a batch");
                    self.checker.broken(self.now, Rule::NotDurable, what);
                }
                Action::Remember(known) => self.nodes[place].disk.known = Some(known),
                Action::Send { to, address, message } => {
                    if message.body == Body::Election
                        && election.replace(message.epoch) != Some(message.epoch)
                    {
                        self.checker.election(self.now, &self.nodes[place], message.epoch);
                    }
                    self.checker.sent(self.now, &self.nodes[place], to, &message);
                    if self.trace.on() {
                        self.trace.sent(self.now, place, to, &message);
                    }
                    if !self.waiting.is_empty()
                        && let Some(cue) = Cue::of(&message)
                    {
                        self.cue(cue, place);
                    }
                    self.send(place, to, address, message);
                }
                Action::Seek(addresses) => self.sought(place, &addresses),
                Action::Arm { timer, after } => self.arm(place, timer, super::clock::ns(after)),
                Action::Disarm(timer) => self.nodes[place].timers[timer as usize] = None,
                Action::Notification(note) => {
                    if let Notification::Leader { me: true, .. } = note {
                        self.counts.elections += 1;
                        self.cue(Cue::Elected, place);
                    }
                    if self.trace.on() {
                        self.trace.noted(self.now, place, &note);
                    }
                }
                Action::Held(answer) => self.hold_answered(place, &answer),
                Action::Answer { number, outcome } => self.answered(place, number, &outcome),
                Action::Exit => return self.crash(place, true),
                // No cluster here is as large as a list may be.
                Action::Refuse(_) => {}
            }
        }
    }

    /// A process looks up its peers.
    fn refresh(&mut self, instance: NodeInstance) {
        let process = &self.nodes[instance.place];
        if !process.runs_as(instance) {
            return;
        }
        let hurried = process.machine.as_ref().is_some_and(Machine::hurries_discovery);
        self.queue.put(self.now + if hurried { REFRESH_HURRIED } else { REFRESH }, Item::Refresh(instance));
        if self.nodes[instance.place].paused() {
            return;
        }
        // A pod's address is published from its creation on, also while its process is down.
        let published: Vec<_> = self
            .nodes
            .iter()
            .filter(|p| p.runs() || p.starting && p.starts > 0 && !p.vanished)
            .map(|p| (p.place, p.address()))
            .collect();
        let addresses = self.nodes[instance.place].dns.look_up(self.now, &published);
        let complete = !addresses.is_empty();
        self.input(instance, Input::Event(Event::Discovered { addresses, complete }));
        if self.nodes[instance.place].runs_as(instance) {
            self.close_idle(instance.place);
        }
    }
}
