//! A world of machines in virtual time: clocks, timers, disks, crashes and pauses. `network` has the links.
//!
//! Everything happens in an order that follows from the calls and the seed alone. What must always hold is
//! asserted after every turn of every machine.

use super::network::{Cut, Links, NodeInstance, Rule};
use super::trace::{Detail, Trace};
use bellwether::election::{
    Action, Body, Epoch, Event, Incarnation, KnownPeers, Machine, Message, Moment, Now, Peer, Priority,
    ProcessId, Record, Role, Settings, Status, Timer,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// What the world is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// For the delays of messages, where `jitter` is not zero.
    pub seed: u64,
    /// Whether a crash is noticed at once, and a dial to a dead process refused.
    pub evidence: bool,
    /// One way, at least.
    pub delay: Duration,
    /// At most this much is added to the delay.
    pub jitter: Duration,
    /// How often a process tries to reach an address that it seeks.
    pub seek_every: Duration,
    /// How long a connection outlives a cut or a host that has vanished.
    pub link_timeout: Duration,
    /// How long a link that neither side seeks or uses stays open.
    pub idle_timeout: Duration,
    /// Whether a connection keeps what is sent during a cut until it heals, as TCP does, or loses it.
    pub hold: bool,
    /// Whether two that dial each other get two connections, of which they are told one by one.
    pub further_links: bool,
    /// How often discovery looks up the candidates.
    pub refresh: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            evidence: true,
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            seek_every: Duration::from_millis(200),
            link_timeout: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(10),
            hold: true,
            further_links: false,
            refresh: Duration::from_secs(5),
        }
    }
}

/// A place for a process: what stays over its restarts, and the process that runs there, if one does.
pub struct Node {
    pub priority: Priority,
    pub revision: String,
    pub address: SocketAddr,
    pub settings: Settings,
    /// How often a process has been started here: the incarnation of the latest.
    pub instance: u64,
    pub machine: Option<Machine>,
    pub stored: Option<Record>,
    pub known: Option<KnownPeers>,
    pub paused: bool,
    /// Whether a process that starts here does not know its own address before it has found it out.
    pub finds_its_address: bool,
    /// Whether the host is there to refuse a dial when the process is not.
    pub host_answers: bool,
    pub(super) seeking: BTreeSet<SocketAddr>,
    pub(super) dials: BTreeMap<SocketAddr, Vec<(ProcessId, Message)>>,
    inbox: VecDeque<Waiting>,
    timers: BTreeMap<Timer, u64>,
    elections: BTreeSet<Epoch>,
}

enum Waiting {
    Event(Event),
    Timer(Timer, u64),
}

/// Something that is due.
pub(super) enum Item {
    Event(NodeInstance, Event),
    Deliver { link: (NodeInstance, NodeInstance), to: NodeInstance, message: Message },
    Close { link: (NodeInstance, NodeInstance), side: NodeInstance, event: Event },
    Timer(NodeInstance, Timer, u64),
    Turn(NodeInstance),
    Seek(NodeInstance),
    Refresh(NodeInstance),
    Dialled(NodeInstance, SocketAddr),
    LinkTimeout((NodeInstance, NodeInstance), u64),
    Idle((NodeInstance, NodeInstance)),
}

pub struct World {
    pub now: Duration,
    pub options: Options,
    pub trace: Trace,
    /// How many messages were sent, by name.
    pub sent: BTreeMap<&'static str, u64>,
    /// What operators were told, the latest last.
    pub answers: Vec<String>,
    /// How often a process began to lead.
    pub leader_changes: u64,
    pub nodes: BTreeMap<usize, Node>,
    /// What discovery names; an empty set: the look-up is empty.
    pub listed: BTreeSet<SocketAddr>,
    pub(super) links: Links,
    pub(super) cuts: BTreeSet<Cut>,
    pub(super) rules: Vec<Rule>,
    pub(super) random: fastrand::Rng,
    queue: BTreeMap<(Duration, u64), Item>,
    sequence: u64,
}

/// The id of process k, whose last digits are k's: k is also its place in the order of ids.
pub fn id(k: usize) -> ProcessId {
    let (mut digits, mut rest, mut shift) = (0, k as u128, 0);
    while rest > 0 {
        digits |= (rest % 10) << shift;
        (rest, shift) = (rest / 10, shift + 4);
    }
    ProcessId(uuid::Uuid::from_u128(0x00000000_0000_4000_8000_000000000000 | digits))
}

/// The k of an id.
pub fn number(id: ProcessId) -> usize {
    let digits = id.0.as_u128() & 0xffff_ffff_ffff;
    (0..12).rev().fold(0, |k, place| k * 10 + (digits >> (4 * place) & 0xf) as usize)
}

/// The first address of process k.
pub fn address(k: usize) -> SocketAddr {
    SocketAddr::from(([198, 18, (k / 256) as u8, (k % 256) as u8], 4041))
}

/// What process k says of itself.
pub fn peer(k: usize) -> Peer {
    Peer {
        id: id(k),
        incarnation: Incarnation(1),
        name: format!("p{k}"),
        address: address(k),
        priority: Priority::DEFAULT,
        revision: String::new(),
    }
}

impl World {
    /// Places 1 to n, none of them started.
    pub fn new(n: usize, settings: &Settings, options: Options) -> World {
        let mut world = World {
            now: Duration::ZERO,
            random: fastrand::Rng::with_seed(options.seed),
            options,
            trace: Trace { detail: Detail::Off, lines: Vec::new() },
            sent: BTreeMap::new(),
            answers: Vec::new(),
            leader_changes: 0,
            nodes: BTreeMap::new(),
            listed: BTreeSet::new(),
            links: Links::new(),
            cuts: BTreeSet::new(),
            rules: Vec::new(),
            queue: BTreeMap::new(),
            sequence: 0,
        };
        for k in 1..=n {
            world.place(k, address(k), settings);
            world.listed.insert(address(k));
        }
        world
    }

    /// A place for process k at an address that may be another's, too; it is not listed by that.
    pub fn place(&mut self, k: usize, address: SocketAddr, settings: &Settings) {
        let node = Node {
            priority: Priority::DEFAULT,
            revision: String::new(),
            address,
            settings: settings.clone(),
            instance: 0,
            machine: None,
            stored: None,
            known: None,
            paused: false,
            finds_its_address: false,
            host_answers: true,
            seeking: BTreeSet::new(),
            dials: BTreeMap::new(),
            inbox: VecDeque::new(),
            timers: BTreeMap::new(),
            elections: BTreeSet::new(),
        };
        self.nodes.insert(k, node);
    }

    pub fn node(&self, k: usize) -> &Node {
        &self.nodes[&k]
    }

    pub fn node_mut(&mut self, k: usize) -> &mut Node {
        self.nodes.get_mut(&k).unwrap()
    }

    /// The places that run, paused or not.
    pub fn live(&self) -> Vec<usize> {
        self.nodes.iter().filter(|(_, n)| n.machine.is_some()).map(|(k, _)| *k).collect()
    }

    /// Starts process k, with or without what it kept.
    pub fn start(&mut self, k: usize, with_record: bool) {
        let now = self.now;
        let node = self.nodes.get_mut(&k).unwrap();
        assert!(node.machine.is_none(), "p{k} runs already");
        node.instance += 1;
        node.paused = false;
        node.host_answers = true;
        node.inbox.clear();
        node.timers.clear();
        node.seeking.clear();
        node.dials.clear();
        node.elections.clear();
        let (address, finds) = (node.address, node.finds_its_address);
        let me = Peer {
            incarnation: Incarnation(node.instance),
            address: if finds { SocketAddr::from(([0, 0, 0, 0], 4041)) } else { address },
            priority: node.priority,
            revision: node.revision.clone(),
            ..peer(k)
        };
        let record = node.stored.take().filter(|_| with_record);
        let mut machine = Machine::new(node.settings.clone(), "test".to_string(), me, record.as_ref());
        node.known = node.known.take().filter(|_| with_record);
        if let Some(known) = &node.known {
            machine.ask_first(known);
        }
        node.stored = record;
        node.machine = Some(machine);
        let instance = (k, node.instance);
        let turn = node.settings.failure_timeout / 4;
        self.trace.line(now, &format!("+ start p{k}"));
        self.feed(instance, Event::Start);
        self.at(now + turn, Item::Turn(instance));
        self.at(now + self.options.seek_every, Item::Seek(instance));
        self.at(now, Item::Refresh(instance));
        if finds {
            self.at(now + self.options.seek_every, Item::Event(instance, Event::Advertise(address)));
        }
    }

    /// The process ends with no word. Its connections close, and its host refuses a dial.
    pub fn crash(&mut self, k: usize) {
        self.trace.line(self.now, &format!("+ crash p{k}"));
        let instance = self.end(k, true);
        self.close_all(instance, self.options.evidence);
    }

    /// The host is gone: nothing closes and nothing refuses.
    pub fn vanish(&mut self, k: usize) {
        self.trace.line(self.now, &format!("+ vanish p{k}"));
        let instance = self.end(k, false);
        self.cut_off(instance);
    }

    fn end(&mut self, k: usize, host_answers: bool) -> NodeInstance {
        let node = self.nodes.get_mut(&k).unwrap();
        assert!(node.machine.take().is_some(), "p{k} runs");
        node.host_answers = host_answers;
        node.dials.clear();
        (k, node.instance)
    }

    /// Tells process k to stop.
    pub fn stop(&mut self, k: usize) {
        self.trace.line(self.now, &format!("+ stop p{k}"));
        let instance = (k, self.node(k).instance);
        self.feed(instance, Event::Stop);
    }

    pub fn pause(&mut self, k: usize) {
        self.trace.line(self.now, &format!("+ pause p{k}"));
        self.node_mut(k).paused = true;
    }

    /// The process gets everything that waited, in the order in which it came, all of it now.
    pub fn resume(&mut self, k: usize) {
        self.trace.line(self.now, &format!("+ resume p{k}"));
        let node = self.node_mut(k);
        node.paused = false;
        let instance = (k, node.instance);
        while let Some(waiting) = self.node_mut(k).inbox.pop_front() {
            match waiting {
                Waiting::Event(event) => self.feed(instance, event),
                Waiting::Timer(timer, token) => self.due(instance, timer, token),
            }
        }
    }

    /// Gives a process an event of the test's own.
    pub fn tell(&mut self, k: usize, event: Event) {
        let instance = (k, self.node(k).instance);
        self.feed(instance, event);
    }

    /// Discovery works now, at process k.
    pub fn look_up(&mut self, k: usize) {
        if !self.listed.is_empty() {
            self.tell(k, Event::Discovered { addresses: self.listed.clone(), complete: true });
        }
    }

    pub(super) fn at(&mut self, when: Duration, item: Item) {
        self.sequence += 1;
        self.queue.insert((when, self.sequence), item);
    }

    /// Lets this much time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Until the condition holds, looked at after every step; false if it does not within this time.
    pub fn run_until(&mut self, within: Duration, mut holds: impl FnMut(&World) -> bool) -> bool {
        let end = self.now + within;
        loop {
            if holds(self) {
                return true;
            }
            if !self.step(end) {
                self.now = end;
                return holds(self);
            }
        }
    }

    /// The next thing that is due, unless it is after `end`.
    fn step(&mut self, end: Duration) -> bool {
        let Some(entry) = self.queue.first_entry().filter(|e| e.key().0 <= end) else {
            return false;
        };
        self.now = entry.key().0;
        match entry.remove() {
            Item::Event(instance, event) => self.feed(instance, event),
            Item::Deliver { link, to, message } => self.deliver(link, to, message),
            Item::Close { link, side, event } => self.closed(link, side, event),
            Item::Timer(instance, timer, token) => self.due(instance, timer, token),
            Item::Turn(instance) => {
                if self.runs(instance) {
                    if !self.node(instance.0).paused {
                        self.feed(instance, Event::Turn);
                    }
                    let turn = self.node(instance.0).settings.failure_timeout / 4;
                    self.at(self.now + turn, Item::Turn(instance));
                }
            }
            Item::Seek(instance) => {
                if self.runs(instance) {
                    self.seek(instance);
                    self.at(self.now + self.options.seek_every, Item::Seek(instance));
                }
            }
            Item::Refresh(instance) => {
                if self.runs(instance) {
                    if !self.node(instance.0).paused {
                        self.look_up(instance.0);
                    }
                    self.at(self.now + self.options.refresh, Item::Refresh(instance));
                }
            }
            Item::Dialled(instance, address) => self.dialled(instance, address),
            Item::LinkTimeout(link, cut) => self.link_timed_out(link, cut),
            Item::Idle(link) => self.idle(link),
        }
        true
    }

    pub(super) fn runs(&self, instance: NodeInstance) -> bool {
        self.nodes.get(&instance.0).is_some_and(|n| n.instance == instance.1 && n.machine.is_some())
    }

    fn due(&mut self, instance: NodeInstance, timer: Timer, token: u64) {
        if !self.runs(instance) || self.node(instance.0).timers.get(&timer) != Some(&token) {
            return;
        }
        let node = self.node_mut(instance.0);
        if node.paused {
            node.inbox.push_back(Waiting::Timer(timer, token));
        } else {
            node.timers.remove(&timer);
            self.feed(instance, Event::Timer(timer));
        }
    }

    pub(super) fn feed(&mut self, instance: NodeInstance, event: Event) {
        if !self.runs(instance) {
            return;
        }
        let (k, now) = (instance.0, self.now);
        let node = self.nodes.get_mut(&k).unwrap();
        if node.paused {
            return node.inbox.push_back(Waiting::Event(event));
        }
        let machine = node.machine.as_mut().unwrap();
        let before = machine.epoch();
        // Every process has a clock of its own; only differences mean anything.
        let at = Moment(now + Duration::from_secs(1000 * k as u64));
        let wall_ms = 1_800_000_000_000 + now.as_millis() as u64;
        let actions = machine.handle(Now { wall_ms, ..Now::at(at) }, event);
        assert!(machine.epoch() >= before, "invariant 1: an epoch never goes back");
        self.carry_out(instance, actions);
    }

    fn carry_out(&mut self, instance: NodeInstance, actions: Vec<Action>) {
        let (k, now) = (instance.0, self.now);
        let mut elections = BTreeSet::new();
        for (place, action) in actions.into_iter().enumerate() {
            match action {
                Action::Persist(record) => {
                    assert!(place == 0, "invariant 2: Persist comes first in its batch");
                    let stored = self.node_mut(k).stored.replace(record);
                    let (old, new) = (stored.map_or(Epoch::ZERO, |r| r.epoch), self.durable_epoch(k));
                    assert!(old <= new, "invariant 1: nor over restarts with a record");
                }
                Action::Remember(known) => self.node_mut(k).known = Some(known),
                Action::Refuse(id) => panic!("{id} is refused in a small cluster"),
                Action::Send { to, address, message } => {
                    let record = self.node(k).stored.as_ref().expect("invariant 2: a record before a send");
                    assert!(message.epoch <= record.epoch, "invariant 2: the epoch of a send is durable");
                    let current = self.node(k).machine.as_ref().unwrap().record();
                    assert_eq!(*record, current, "invariant 2: the vote is durable");
                    if message.body == Body::Election {
                        elections.insert(message.epoch);
                    }
                    *self.sent.entry(message.body.name()).or_default() += 1;
                    self.send(instance, to, address, message);
                }
                Action::Seek(addresses) => {
                    self.node_mut(k).seeking = addresses;
                    self.seek(instance);
                }
                Action::Arm { timer, after } => {
                    let token = self.sequence;
                    self.node_mut(k).timers.insert(timer, token);
                    self.at(now + after, Item::Timer(instance, timer, token));
                }
                Action::Disarm(timer) => {
                    self.node_mut(k).timers.remove(&timer);
                }
                Action::Notification(note) => {
                    if let bellwether::election::Notification::Leader { me: true, .. } = note {
                        self.leader_changes += 1;
                    }
                    self.trace.noted(now, k, &note);
                }
                Action::Held(answer) => panic!("{answer:?}, and no application has asked"),
                Action::Answer { outcome, .. } => {
                    let text = match outcome {
                        Ok(_) => "done".to_owned(),
                        Err(refusal) => refusal.to_string(),
                    };
                    self.trace.line(now, &format!("p{k}        answers its operator: {text}"));
                    self.answers.push(text);
                }
                Action::Exit => {
                    self.trace.line(now, &format!("p{k}        exits"));
                    let instance = self.end(k, true);
                    self.close_all(instance, false);
                    return;
                }
            }
        }
        for epoch in elections {
            let new = self.node_mut(k).elections.insert(epoch);
            assert!(new, "invariant 6: p{k} began a second election in epoch {epoch}");
        }
    }

    fn durable_epoch(&self, k: usize) -> Epoch {
        self.node(k).stored.as_ref().map_or(Epoch::ZERO, |r| r.epoch)
    }

    /// What process k may be asked about.
    pub fn status(&self, k: usize) -> Status {
        self.node(k).machine.as_ref().unwrap_or_else(|| panic!("p{k} does not run")).status()
    }

    /// The one leader, and its epoch, that all processes agree on which run and are neither paused nor
    /// leaving.
    pub fn agreed(&self) -> Option<(usize, Epoch)> {
        let takes_part = |k: &usize| !self.node(*k).paused && self.status(*k).role != Role::Leaving;
        let awake: Vec<usize> = self.live().into_iter().filter(takes_part).collect();
        self.agreed_among(&awake)
    }

    /// The one leader, and its epoch, that these processes agree on. It is one of them.
    pub fn agreed_among(&self, ks: &[usize]) -> Option<(usize, Epoch)> {
        let mut agreed = None;
        for k in ks {
            let status = self.status(*k);
            let leader = number(status.leader.as_ref()?.peer.id);
            let role = if leader == *k { Role::Leading } else { Role::Following };
            if status.role != role || agreed.is_some_and(|a| a != (leader, status.epoch)) {
                return None;
            }
            agreed = Some((leader, status.epoch));
        }
        agreed.filter(|(leader, _)| ks.contains(leader))
    }

    /// The places that hold themselves to be the leader.
    pub fn leading(&self) -> Vec<usize> {
        self.live().into_iter().filter(|k| self.status(*k).role == Role::Leading).collect()
    }

    /// How many messages with one of these names were sent.
    pub fn sent_of(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.sent.get(name)).sum()
    }
}
