//! The state of the model: a few machines, what is on its way between them, and what may still go wrong.
//!
//! Time goes in ticks. A message takes one tick, and everything that a process has to do in a tick (what
//! arrives, what is due) it does in any order. Nothing that is sent in a tick arrives in it. So the order in
//! which different processes do their things makes no difference to them; they take turns. To an onlooker it
//! makes one, so a process that led at any moment of a tick counts as leading in all of it.
//!
//! Whatever else happens is a fault, and each kind of fault has a budget.

use super::digest::{BEATS_BEGIN, CLOCK_BEGINS, From, plain, relative};
use bellwether::election::{
    Action, Body, Epoch, Event, Incarnation, Machine, Message, Moment, NotReady, Now, Peer, Priority,
    ProcessId, Record, Role, Settings, Sign, Status, Timer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A tick, in seconds. So long that a hundredth of it is a whole number of seconds, and no lease is longer
/// than the longest that is allowed.
pub const TICK: u64 = 300;

/// What the processes are like. It never changes.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Of each process. All times are whole ticks.
    pub settings: Vec<Settings>,
    /// Whether messages of one process to another arrive in their order.
    pub in_order: bool,
    /// The `--lease` that a restart may come with instead of the one in its settings.
    pub other_lease: Duration,
    /// The lease that a process may ask for instead of the configuration's.
    pub short_lease: Duration,
    /// The clause that all processes leave out.
    #[cfg(feature = "mutations")]
    pub mutation: Option<bellwether::election::Mutation>,
}

/// Says which there are.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.crashes, "crash"),
            (self.wipes, "lost disk"),
            (self.losses, "loss"),
            (self.delays, "delay"),
            (self.cuts, "cut"),
            (self.pauses, "pause"),
            (self.stops, "stop"),
            (self.relets, "restart with another lease"),
            (self.shorts, "shorter rounds"),
            (self.sicks, "sick application"),
        ];
        let some: Vec<_> =
            all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        f.write_str(&some.join(", "))
    }
}

impl Rules {
    pub fn len(&self) -> usize {
        self.settings.len()
    }

    fn longest_lease(&self) -> u64 {
        let longest = self.settings.iter().map(|s| s.failure_timeout).max();
        longest.unwrap_or_default().max(self.other_lease).as_secs()
    }
}

/// What may still go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Faults {
    /// Crashes of a process.
    pub crashes: u8,
    /// Restarts of one that is down without its record: a lost disk.
    pub wipes: u8,
    /// Messages that are lost.
    pub losses: u8,
    /// Messages that take longer than a tick, for as long as may be.
    pub delays: u8,
    /// Times that all links of one process, or one link, are cut.
    pub cuts: u8,
    /// Times that a process is paused.
    pub pauses: u8,
    /// Times that a process is told to stop.
    pub stops: u8,
    /// Restarts at once with the record and another `--lease`.
    pub relets: u8,
    /// Times that a process begins to ask for a shorter lease than the configuration's.
    pub shorts: u8,
    /// Times that the application beside a process begins to be sick.
    pub sicks: u8,
}

/// A message under way.
#[derive(Debug)]
pub struct Flight {
    pub from: usize,
    pub to: usize,
    pub message: Message,
    sender: ProcessId,
    /// Which incarnation of the sender.
    life: u64,
    /// The tick of the arrival, unless it is late.
    at: u64,
    /// It was not on time: it comes at any tick from now on, or never.
    pub late: bool,
    digest: u64,
}

/// A place where a process may run.
#[derive(Clone, Debug)]
pub struct Node {
    pub machine: Option<Machine>,
    pub status: Option<Arc<Status>>,
    /// What it was last started with.
    settings: Arc<Settings>,
    /// Whether it asks for the shorter lease.
    pub short: bool,
    /// When the driver last turned.
    turned: Moment,
    /// When each armed timer is due.
    timers: BTreeMap<Timer, Moment>,
    pub record: Option<Arc<Record>>,
    pub paused: bool,
    pub life: u64,
    /// The tick of its start.
    started: u64,
    /// How many disks were lost here.
    disk: usize,
    /// The latest election that this incarnation began (invariant 6).
    round: Epoch,
    /// The latest heartbeat that it sent.
    beat: u32,
    digest: u64,
}

impl Node {
    /// Whether the application beside it is sick.
    pub fn is_sick(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.candidacy.complaints.any())
    }

    /// Whether it has lost its record and not recovered yet.
    fn recovers(&self) -> bool {
        let voting = self.status.as_ref().and_then(|status| status.voting.as_ref());
        let not_ready = voting.and_then(|voting| voting.not_ready.as_ref());
        matches!(not_ready, Some(NotReady::Recovery { .. } | NotReady::Founding { .. }))
    }
}

/// A state of the model.
#[derive(Clone, Debug)]
pub struct World {
    pub rules: Arc<Rules>,
    pub tick: u64,
    /// Whose turn it is in this tick; all have had theirs when it is the number of processes.
    pub turn: usize,
    pub nodes: Vec<Arc<Node>>,
    /// Sorted by receiver and sender, the late ones last; where they need not stay in order, by digest, so
    /// that equal ones are neighbours.
    pub flights: Vec<Arc<Flight>>,
    /// Pairs that cannot reach each other, the lower place first.
    pub cuts: Vec<(usize, usize)>,
    /// Between which incarnations of two processes there is a link, cut or not; the lower place first.
    links: BTreeMap<(usize, usize), (u64, u64)>,
    /// Whether each place was seen leading in this tick.
    leads: Vec<bool>,
    pub faults: Faults,
    /// Whether messages can be late in this search, and processes paused.
    pub delays: bool,
    pub pauses: bool,
    /// For how many ticks nothing has gone wrong. It counts up to `calm_max`, as no rule asks for more.
    pub calm: u64,
    pub calm_max: u64,
    /// Which process was elected in which epoch.
    pub elected: Vec<(Epoch, ProcessId, u64)>,
    /// Two were elected in the same epoch.
    pub twice: bool,
    /// An invariant that does not hold.
    pub broken: Option<Arc<str>>,
}

/// How many heartbeats one incarnation may send.
const BEATS_A_LIFE: u32 = 1 << 20;
/// How many ticks after it was sent a late message is lost.
pub const LATE_MAX: u64 = 12;
/// For how many ticks a process is paused at most.
pub const PAUSE_MAX: u64 = 8;

/// The id of the process at place k with its d-th disk: disks don't change which process outranks another.
fn id(k: usize, disk: usize) -> ProcessId {
    let digits = (k + 1) as u128 * 16 + disk as u128;
    ProcessId(uuid::Uuid::from_u128(0x00000000_0000_4000_8000_000000000000 | digits))
}

/// What is due between two ticks is due at the later one. States that differ in nothing but the part of a
/// tick are one.
fn next_tick(due: Moment) -> Moment {
    let begins = Duration::from_secs(CLOCK_BEGINS + (1 << 20));
    let ticks = due.0.saturating_sub(begins).as_nanos().div_ceil(u128::from(TICK) * 1_000_000_000);
    Moment(begins + Duration::from_secs(ticks as u64 * TICK))
}

/// The place of an id.
pub fn place(id: ProcessId) -> usize {
    (id.0.as_u128() & 0xffff) as usize / 16 - 1
}

/// What people call it.
pub fn name(id: ProcessId) -> String {
    let disk = id.0.as_u128() & 0xf;
    format!("p{}{}", place(id) + 1, "'".repeat(disk as usize))
}

impl World {
    /// No process runs.
    pub fn new(rules: Rules, faults: Faults) -> World {
        let down = |settings: &Settings| Node {
            machine: None,
            status: None,
            settings: Arc::new(settings.clone()),
            short: false,
            turned: Moment::default(),
            timers: BTreeMap::new(),
            record: None,
            paused: false,
            life: 0,
            started: 0,
            disk: 0,
            round: Epoch::ZERO,
            beat: BEATS_BEGIN,
            digest: 0,
        };
        let n = rules.len();
        World {
            nodes: rules.settings.iter().map(|settings| Arc::new(down(settings))).collect(),
            rules: Arc::new(rules),
            tick: 0,
            turn: n,
            flights: Vec::new(),
            cuts: Vec::new(),
            links: BTreeMap::new(),
            leads: vec![false; n],
            delays: faults.delays > 0,
            pauses: faults.pauses > 0,
            faults,
            calm: 0,
            calm_max: 0,
            elected: Vec::new(),
            twice: false,
            broken: None,
        }
    }

    /// What each process's clock says.
    pub fn clock(&self) -> Moment {
        Moment(Duration::from_secs(CLOCK_BEGINS + (1 << 20) + self.tick * TICK))
    }

    pub fn up(&self, k: usize) -> bool {
        self.nodes[k].machine.is_some()
    }

    pub fn runs(&self, k: usize) -> bool {
        self.up(k) && !self.nodes[k].paused
    }

    pub fn is_cut(&self, a: usize, b: usize) -> bool {
        self.cuts.contains(&(a.min(b), a.max(b)))
    }

    /// The processes that answered that they lead at a moment of this tick.
    pub fn leaders(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|k| self.leads[*k])
    }

    /// Whether this process answers now that it leads.
    pub fn leads_now(&self, k: usize) -> bool {
        let node = &self.nodes[k];
        node.status.as_ref().is_some_and(|status| status.leads(self.clock(), node.turned))
    }

    /// The process that this one holds to be the leader.
    pub fn leader(&self, k: usize) -> Option<ProcessId> {
        let node = &self.nodes[k];
        let status = node.status.as_ref()?;
        status.leader(self.clock(), node.turned).map(|l| l.peer.id)
    }

    pub fn due(&self, k: usize) -> impl Iterator<Item = Timer> {
        let now = self.clock();
        self.nodes[k].timers.iter().filter(move |(_, at)| **at <= now).map(|(timer, _)| *timer)
    }

    /// What has arrived at a place and waits for its turn there, by its place in the list; what is late may
    /// also stay.
    pub fn arrived(&self, k: usize) -> impl Iterator<Item = usize> {
        let flights = self.flights.iter().enumerate();
        let here = flights.filter(move |(_, f)| f.to == k && (f.late || f.at <= self.tick));
        let first_of_its_kind = here.filter(|(i, f)| {
            let before = i.checked_sub(1).map(|j| &self.flights[j]);
            !before.is_some_and(|b| {
                let same_queue = (b.to, b.from, b.late) == (f.to, f.from, f.late);
                same_queue && (self.rules.in_order && !f.late || (b.digest, b.at) == (f.digest, f.at))
            })
        });
        first_of_its_kind.map(|(i, _)| i)
    }

    /// Starts a process, with what is on its disk or a new one, and connects it with each one it can reach.
    pub fn start(&mut self, k: usize, new_disk: bool) {
        let node = Arc::make_mut(&mut self.nodes[k]);
        assert!(node.machine.is_none());
        if new_disk {
            node.record = None;
            node.disk += 1;
        }
        node.life += 1;
        node.started = self.tick;
        node.paused = false;
        node.short = false;
        node.timers.clear();
        node.round = Epoch::ZERO;
        node.beat = BEATS_BEGIN + (node.life as u32) * BEATS_A_LIFE;
        let incarnation = Incarnation(u64::from(node.beat) << 33 | node.life);
        let me = Peer {
            id: id(k, node.disk),
            incarnation,
            name: format!("p{}", k + 1),
            address: SocketAddr::from(([198, 18, 0, k as u8 + 1], 4041)),
            priority: Priority::DEFAULT,
            revision: String::new(),
        };
        let settings = Settings::clone(&node.settings);
        let before = node.record.as_ref().map(|r| r.epoch);
        #[allow(unused_mut)] // Without the feature nothing changes it.
        let mut machine = Machine::new(settings, "model".to_string(), me, node.record.as_deref());
        #[cfg(feature = "mutations")]
        if let Some(clause) = self.rules.mutation {
            machine.mutate(clause);
        }
        let epoch = machine.epoch();
        node.machine = Some(machine);
        if before.is_some_and(|before| epoch < before) {
            self.breaks("1: an epoch went back over a restart");
        }
        self.feed(k, Event::Start);
        // Discovery has answered: a cluster is not founded before it has. All are connected anyway.
        self.feed(k, Event::Discovered { addresses: BTreeSet::new(), complete: true });
        self.connect_all(k);
    }

    fn connect_all(&mut self, k: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != k) {
            self.connect(k, other);
        }
    }

    /// Opens a link between two processes that run and can reach each other, unless there is one. What former
    /// incarnations have sent does not arrive any more.
    fn connect(&mut self, a: usize, b: usize) {
        let (a, b) = (a.min(b), a.max(b));
        if !self.runs(a) || !self.runs(b) || self.is_cut(a, b) {
            return;
        }
        let lives = (self.nodes[a].life, self.nodes[b].life);
        if self.links.insert((a, b), lives) == Some(lives) {
            return;
        }
        self.flights.retain(|f| {
            let former = |from, to, life| f.from == from && f.to == to && f.life != life;
            !former(a, b, lives.0) && !former(b, a, lives.1)
        });
        for (one, other) in [(a, b), (b, a)] {
            let peer = self.nodes[other].machine.as_ref().map(|m| m.me().clone());
            if let Some(peer) = peer {
                self.feed(one, Event::LinkUp(peer));
            }
        }
    }

    /// A process ends with no word. What it has sent arrives all the same, or is lost with it.
    pub fn crash(&mut self, k: usize, silently: bool) {
        self.end(k);
        self.flights.retain(|f| !(silently && f.from == k));
    }

    fn end(&mut self, k: usize) -> Option<Peer> {
        let node = Arc::make_mut(&mut self.nodes[k]);
        let machine = node.machine.take()?;
        node.status = None;
        node.timers.clear();
        node.paused = false;
        self.flights.retain(|f| f.to != k);
        self.digest(k);
        Some(machine.me().clone())
    }

    fn tell_others(&mut self, k: usize, event: &Event) {
        for other in 0..self.nodes.len() {
            if self.runs(other) && !self.is_cut(k, other) {
                self.feed(other, event.clone());
            }
        }
    }

    /// What is between them is lost, and so is all that they send each other until it heals.
    pub fn cut(&mut self, a: usize, b: usize) {
        self.cuts.push((a.min(b), a.max(b)));
        self.cuts.sort();
        self.cuts.dedup();
        self.flights.retain(|f| (f.from.min(f.to), f.from.max(f.to)) != (a.min(b), a.max(b)));
    }

    /// All reach all again. A peer that was restarted since then is introduced.
    pub fn heal(&mut self) {
        for (a, b) in std::mem::take(&mut self.cuts) {
            self.connect(a, b);
        }
    }

    /// The next tick. Drivers turn at the end of each, so that none takes itself for having been paused.
    pub fn pass(&mut self) {
        for k in 0..self.nodes.len() {
            if self.runs(k) {
                self.feed(k, Event::Turn);
            }
        }
        let quiet = self.cuts.is_empty()
            && (0..self.nodes.len()).all(|k| !self.nodes[k].paused)
            && self.flights.iter().all(|f| !f.late);
        self.calm = if quiet { (self.calm + 1).min(self.calm_max) } else { 0 };
        self.tick += 1;
        self.turn = 0;
        self.flights.retain(|f| f.at + LATE_MAX > self.tick);
        for k in 0..self.nodes.len() {
            self.leads[k] = self.leads_now(k);
            self.digest(k);
        }
    }

    /// Takes a message off the network.
    pub fn take(&mut self, i: usize) -> Arc<Flight> {
        self.flights.remove(i)
    }

    /// It was not on time.
    pub fn make_late(&mut self, i: usize) {
        let f = self.flights.remove(i);
        let late = Flight { late: true, message: f.message.clone(), ..*f };
        self.put(late);
    }

    pub fn pause(&mut self, k: usize) {
        Arc::make_mut(&mut self.nodes[k]).paused = true;
        self.digest(k);
    }

    /// It runs again, and meets each peer that was restarted since.
    pub fn resume(&mut self, k: usize) {
        Arc::make_mut(&mut self.nodes[k]).paused = false;
        self.connect_all(k);
        self.digest(k);
    }

    /// The longest present pause of a process, in ticks.
    pub fn longest_pause(&self) -> u64 {
        let paused = (0..self.nodes.len()).filter(|k| self.nodes[*k].paused);
        let pause = |k: usize| self.clock().since(self.nodes[k].turned).as_secs() / TICK;
        paused.map(pause).max().unwrap_or_default()
    }

    /// The longest present recovery, in ticks, that has not succeeded yet.
    pub fn longest_recovery(&self) -> u64 {
        let recovering = self.nodes.iter().filter(|node| node.recovers());
        recovering.map(|node| self.tick - node.started).max().unwrap_or_default()
    }

    /// A process is replaced by one with another `--lease` and the same record.
    pub fn relet(&mut self, k: usize) {
        self.crash(k, false);
        let lease = self.rules.other_lease;
        let node = Arc::make_mut(&mut self.nodes[k]);
        Arc::make_mut(&mut node.settings).failure_timeout = lease;
        self.start(k, false);
    }

    /// Whether a process still has its first `--lease`.
    pub fn may_relet(&self, k: usize) -> bool {
        self.nodes[k].settings.failure_timeout != self.rules.other_lease
    }

    /// A process begins to ask for a shorter lease, or for the configuration's again.
    pub fn ask_for(&mut self, k: usize, short: bool) {
        let lease = if short { self.rules.short_lease } else { Duration::MAX };
        let node = Arc::make_mut(&mut self.nodes[k]);
        node.short = short;
        if let Some(machine) = node.machine.as_mut() {
            machine.ask_for_lease(lease);
        }
        self.digest(k);
    }

    /// The application beside a process begins to be sick, or healthy again.
    pub fn sicken(&mut self, k: usize, sick: bool) {
        self.feed(k, Event::Application(Sign::Probed { healthy: !sick }));
    }

    pub fn stop(&mut self, k: usize) {
        self.feed(k, Event::Stop);
    }

    pub fn fire(&mut self, k: usize, timer: Timer) {
        Arc::make_mut(&mut self.nodes[k]).timers.remove(&timer);
        self.feed(k, Event::Timer(timer));
    }

    pub fn deliver(&mut self, i: usize) {
        let flight = self.take(i);
        self.feed(flight.to, Event::Received { from: flight.sender, message: flight.message.clone() });
    }

    /// Gives a process an event, and carries out what it asks for.
    pub fn feed(&mut self, k: usize, event: Event) {
        let now = self.clock();
        let node = Arc::make_mut(&mut self.nodes[k]);
        let Some(machine) = node.machine.as_mut() else { return };
        let handled = catch_unwind(AssertUnwindSafe(|| machine.handle(Now::at(now), event)));
        let Ok(actions) = handled else {
            return self.breaks("the machine's own assertion");
        };
        let status = machine.status();
        node.turned = now;
        let leads = status.role == Role::Leading;
        let (epoch, me) = (status.epoch, (status.me.id, status.me.incarnation.0));
        node.status = Some(Arc::new(status));
        self.carry_out(k, actions);
        if leads {
            let others = self.elected.iter().filter(|(e, ..)| *e == epoch);
            let known: Vec<_> = others.map(|(_, id, life)| (*id, *life)).collect();
            self.twice |= known.iter().any(|other| *other != me);
            if !known.contains(&me) {
                if self.nodes[k].is_sick() {
                    self.breaks("30 (a clause): a process begins to lead whose application is sick");
                }
                self.elected.push((epoch, me.0, me.1));
                self.elected.sort();
            }
        }
        self.leads[k] |= self.leads_now(k);
        self.digest(k);
    }

    fn carry_out(&mut self, k: usize, actions: Vec<Action>) {
        let now = self.clock();
        let mut begun = None;
        for (i, action) in actions.into_iter().enumerate() {
            let node = Arc::make_mut(&mut self.nodes[k]);
            match action {
                Action::Persist(record) => {
                    let before = node.record.replace(Arc::new(record)).map_or(Epoch::ZERO, |r| r.epoch);
                    let back = node.record.as_ref().is_some_and(|r| r.epoch < before);
                    if i > 0 || back {
                        self.breaks("1 or 2: what is made durable comes first, and has no lower epoch");
                    }
                }
                Action::Send { to, message, .. } => {
                    let durable = node.record.as_ref().is_some_and(|r| r.epoch >= message.epoch);
                    match message.body {
                        Body::Election => begun = Some(message.epoch),
                        Body::Heartbeat { sequence, .. } | Body::Renew { sequence, .. } => {
                            node.beat = sequence
                        }
                        _ => {}
                    }
                    self.send(k, to, message);
                    if !durable {
                        self.breaks("2: a message of an epoch that is not durable");
                    }
                }
                Action::Arm { timer, after } => {
                    node.timers.insert(timer, next_tick(now.plus(after)));
                }
                Action::Disarm(timer) => {
                    node.timers.remove(&timer);
                }
                Action::Exit => {
                    if let Some(Peer { id, incarnation, .. }) = self.end(k) {
                        self.tell_others(k, &Event::LinkDown { id, incarnation });
                    }
                    return;
                }
                // All are connected anyway: where peers were makes no difference here.
                Action::Seek(_) | Action::Remember(_) | Action::Refuse(_) | Action::Notification(_) => {}
                Action::Held(_) => self.breaks("an answer that no application waits for"),
                Action::Answer { .. } => self.breaks("an answer that no operator waits for"),
            }
        }
        if let Some(epoch) = begun {
            let node = Arc::make_mut(&mut self.nodes[k]);
            let again = epoch <= node.round;
            node.round = epoch;
            if again {
                self.breaks("6: a second election of a process in one epoch");
            }
        }
    }

    fn send(&mut self, from: usize, to: ProcessId, message: Message) {
        let k = place(to);
        let there = self.nodes[k].machine.as_ref().is_some_and(|m| m.me().id == to);
        if there && !self.is_cut(from, k) {
            let node = &self.nodes[from];
            let (sender, life) = (id(from, node.disk), node.life);
            let digest = plain(&(life, &message));
            self.put(Flight { from, to: k, message, sender, life, at: self.tick + 1, late: false, digest });
        }
    }

    fn put(&mut self, flight: Flight) {
        let key = |f: &Flight| {
            let free = if self.rules.in_order && !f.late { (0, 0) } else { (f.digest, f.at) };
            (f.to, f.from, f.late, free)
        };
        let at = self.flights.partition_point(|f| key(f) <= key(&flight));
        self.flights.insert(at, Arc::new(flight));
    }

    pub fn breaks(&mut self, what: &str) {
        self.broken.get_or_insert_with(|| Arc::from(format!("invariant {what}")));
    }

    fn digest(&mut self, k: usize) {
        let from = self.measured_from(k);
        let recovers = self.nodes[k].recovers().then(|| self.tick - self.nodes[k].started);
        let node = Arc::make_mut(&mut self.nodes[k]);
        let flags = (
            node.turned,
            node.paused,
            node.life,
            node.disk,
            node.round,
            recovers,
            node.settings.failure_timeout,
        );
        node.digest = relative(&(&node.machine, &node.timers, &node.record, flags), from);
    }

    fn measured_from(&self, k: usize) -> From {
        From {
            now: self.clock().0.as_secs(),
            beat: self.nodes[k].beat,
            oldest: self.oldest(k),
            beats: self.beats(),
        }
    }

    /// How old a moment of a process is at most, for all that can be told from what it does. Nothing compares
    /// an age with more than the longest lease. But a recovering process compares two moments, and a late
    /// answer names the moment of its question.
    fn oldest(&self, k: usize) -> u64 {
        let lease = self.rules.longest_lease();
        let late = if self.delays { (LATE_MAX + 4) * TICK } else { 0 };
        let compared = if self.nodes[k].recovers() { 2 * lease } else { lease + TICK };
        compared.max(late)
    }

    /// How many heartbeats ago one was sent at most, likewise. What is under way is as old as a message may
    /// be late, and its answer once more, or as a pause lasts.
    fn beats(&self) -> u32 {
        let under_way = match (self.delays, self.pauses) {
            (true, _) => 2 * LATE_MAX + 2,
            (false, true) => PAUSE_MAX + 2,
            (false, false) => 2,
        };
        under_way as u32 + 1
    }

    /// A message as it counts: heartbeats by how long ago they were sent, which the leader knows.
    fn flight_digest(&self, f: &Flight) -> u64 {
        let leader = match f.message.body {
            Body::HeartbeatAck { .. } | Body::Renewed { .. } => f.to,
            _ => f.from,
        };
        let what = (f.from, f.to, f.life, f.late, f.at + LATE_MAX - self.tick, &f.message);
        relative(&what, self.measured_from(leader))
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.turn, self.faults, self.calm, self.twice).hash(state);
        (&self.cuts, &self.links, &self.leads, &self.elected, self.broken.is_some()).hash(state);
        for node in &self.nodes {
            state.write_u64(node.digest);
        }
        let flights = self.flights.iter().map(|f| self.flight_digest(f));
        if self.rules.in_order {
            flights.for_each(|digest| state.write_u64(digest));
        } else {
            // They have no order.
            state.write_u64(flights.fold(0, u64::wrapping_add));
        }
    }
}

impl PartialEq for World {
    fn eq(&self, other: &World) -> bool {
        plain(self) == plain(other)
    }
}
