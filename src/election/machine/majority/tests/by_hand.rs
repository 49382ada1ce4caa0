//! Whole clusters by hand: machines and their disks, and a network in which a test says of each message whether it arrives,
//! is still on its way, or is lost. For schedules that need so many coincidences that no seed finds them.

use super::*;
use crate::election::Preempt;
use std::collections::BTreeMap;

/// What becomes of a message, as of now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Arrives,
    /// It is looked at again in the next step.
    Slow,
    Lost,
}
pub(super) use Way::*;

/// Everything arrives.
pub(super) fn all(_: u8, _: u8, _: &Message) -> Way {
    Arrives
}

/// The time between two steps, in milliseconds.
const STEP_MS: u64 = 10;
/// The longest that a test waits for something, in milliseconds.
const PATIENCE_MS: u64 = 60_000;

struct Node {
    machine: Option<Machine>,
    timers: BTreeMap<Timer, Duration>,
    disk: Option<Record>,
    me: Peer,
    settings: Settings,
    lives: u64,
    paused: bool,
}

struct Mail {
    from: u8,
    sender: ProcessId,
    to: ProcessId,
    message: Message,
}

/// The cluster.
pub(super) struct Cluster {
    nodes: BTreeMap<u8, Node>,
    now: Duration,
    mail: Vec<Mail>,
    /// Who began to lead, and in which epoch, in that order.
    pub(super) led: Vec<(u8, u64)>,
    /// Who led together, and in which epochs.
    pub(super) together: Vec<Vec<(u8, u64)>>,
    leaves_out: Option<Mutation>,
}

/// The settings of one that was given these voters and this lease.
pub(super) fn given(voters: &[u8], lease_ms: u64) -> Settings {
    Settings {
        safety: Safety::Majority { voters: names(voters) },
        failure_timeout: Duration::from_millis(lease_ms),
        preempt: Preempt::Never,
        ..Settings::default()
    }
}

pub(super) fn names(of: &[u8]) -> BTreeSet<String> {
    of.iter().map(|k| format!("p{k}")).collect()
}

/// The record of epoch 4, in which these vote.
pub(super) fn record(k: u8, voters: &[u8]) -> Record {
    let vote = VoteRecord {
        name: format!("p{k}"),
        granted_to: None,
        view: view(4, names(voters)),
        lease_longest_ms: 1500,
    };
    Record {
        cluster: "c".to_owned(),
        id: peer(k).id,
        epoch: Epoch(4),
        leader: None,
        members: Vec::new(),
        vote: Some(vote),
    }
}

/// Whether a message tells voters of a view that names this one.
pub(super) fn tells_of(message: &Message, name: &str) -> bool {
    matches!(&message.body, Body::Voters { view } if view.voters.contains(name))
}

pub(super) fn contests(message: &Message) -> bool {
    matches!(message.body, Body::Contest { .. })
}

impl Cluster {
    /// Nobody runs yet. Each has its settings, and its disk a record or none.
    pub(super) fn new(
        of: &[u8],
        leaves_out: Option<Mutation>,
        settings: impl Fn(u8) -> Settings,
        disk: impl Fn(u8) -> Option<Record>,
    ) -> Cluster {
        let node = |k| Node {
            machine: None,
            timers: BTreeMap::new(),
            disk: disk(k),
            me: peer(k),
            settings: settings(k),
            lives: 0,
            paused: false,
        };
        Cluster {
            nodes: of.iter().map(|k| (*k, node(*k))).collect(),
            now: Duration::from_secs(100),
            mail: Vec::new(),
            led: Vec::new(),
            together: Vec::new(),
            leaves_out,
        }
    }

    pub(super) fn rank(&mut self, k: u8, priority: u16) {
        self.node(k).me.priority = Priority(priority);
    }

    fn node(&mut self, k: u8) -> &mut Node {
        self.nodes.get_mut(&k).unwrap()
    }

    /// A further life; without a record it has a new id as well. It is connected with these.
    pub(super) fn start(&mut self, k: u8, with: &[u8]) {
        let leaves_out = self.leaves_out;
        let node = self.node(k);
        node.lives += 1;
        node.me.incarnation = Incarnation(u64::from(k) + 1000 * node.lives);
        if node.disk.is_none() {
            node.me.id = ProcessId(Uuid::from_u128(u128::from(k) + 1000 * u128::from(node.lives - 1)));
        }
        node.timers.clear();
        let (settings, me) = (node.settings.clone(), node.me.clone());
        let mut machine = Machine::new(settings, "c".to_owned(), me, node.disk.as_ref());
        if let Some(clause) = leaves_out {
            machine.mutate(clause);
        }
        node.machine = Some(machine);
        self.feed(k, Event::Start);
        with.iter().for_each(|other| self.connect(k, *other));
    }

    /// All of them, connected with each other.
    pub(super) fn start_all(&mut self, of: &[u8]) {
        for (count, k) in of.iter().enumerate() {
            self.start(*k, &of[..count]);
        }
    }

    pub(super) fn connect(&mut self, a: u8, b: u8) {
        let (at_a, at_b) = (self.nodes[&b].me.clone(), self.nodes[&a].me.clone());
        self.feed(a, Event::LinkUp(at_a));
        self.feed(b, Event::LinkUp(at_b));
    }

    /// A process ends, and these notice that its connections are closed. The disk is lost or not.
    pub(super) fn crash(&mut self, k: u8, disk_lost: bool, noticed_by: &[u8]) {
        let node = self.node(k);
        node.machine = None;
        if disk_lost {
            node.disk = None;
        }
        let Peer { id, incarnation, .. } = node.me;
        noticed_by.iter().for_each(|by| self.feed(*by, Event::LinkDown { id, incarnation }));
    }

    /// From now on it takes nothing in and does nothing, or goes on.
    pub(super) fn pause(&mut self, k: u8, paused: bool) {
        self.node(k).paused = paused;
    }

    pub(super) fn feed(&mut self, k: u8, event: Event) {
        let now = self.now;
        let node = self.node(k);
        let Some(machine) = &mut node.machine else { return };
        let actions = machine.handle(Now { at: Moment(now), wall_ms: 0 }, event);
        let sender = node.me.id;
        for action in actions {
            match action {
                Action::Persist(record) => self.node(k).disk = Some(record),
                Action::Send { to, message, .. } => self.mail.push(Mail { from: k, sender, to, message }),
                Action::Arm { timer, after } => drop(self.node(k).timers.insert(timer, now + after)),
                Action::Disarm(timer) => drop(self.node(k).timers.remove(&timer)),
                _ => {}
            }
        }
        self.look(k);
    }

    fn look(&mut self, k: u8) {
        let leads = |machine: &Machine| machine.view().leads(Moment(self.now), Moment(self.now));
        let leaders: Vec<(u8, u64)> = self
            .nodes
            .iter()
            .filter_map(|(k, node)| Some((*k, node.machine.as_ref().filter(|m| leads(m))?.epoch().0)))
            .collect();
        let new = leaders.iter().find(|leader| leader.0 == k && !self.led.contains(leader));
        self.led.extend(new);
        if leaders.len() > 1 && !self.together.contains(&leaders) {
            self.together.push(leaders);
        }
    }

    /// Delivers what was sent so far; whether anything arrived.
    fn deliver(&mut self, way: &impl Fn(u8, u8, &Message) -> Way) -> bool {
        let mut arrived = false;
        for mail in std::mem::take(&mut self.mail) {
            let Some((to, node)) = self.nodes.iter().find(|(_, node)| node.me.id == mail.to) else {
                continue;
            };
            let to = *to;
            match if node.paused { Slow } else { way(mail.from, to, &mail.message) } {
                Slow => self.mail.push(mail),
                Lost => {}
                Arrives => {
                    arrived = true;
                    self.feed(to, Event::Received { from: mail.sender, message: mail.message });
                }
            }
        }
        arrived
    }

    /// Lets so many milliseconds pass.
    pub(super) fn run(&mut self, ms: u64, way: impl Fn(u8, u8, &Message) -> Way) {
        for _ in 0..ms / STEP_MS {
            while self.deliver(&way) {}
            self.tick();
        }
    }

    fn tick(&mut self) {
        self.now += Duration::from_millis(STEP_MS);
        for k in self.nodes.keys().copied().collect::<Vec<_>>() {
            while let Some(timer) = self.due(k) {
                self.node(k).timers.remove(&timer);
                self.feed(k, Event::Timer(timer));
            }
            if !self.nodes[&k].paused {
                self.feed(k, Event::Turn);
            }
        }
    }

    fn due(&self, k: u8) -> Option<Timer> {
        let node = &self.nodes[&k];
        let due =
            node.timers.iter().filter(|(_, at)| **at <= self.now && !node.paused && node.machine.is_some());
        due.min_by_key(|(_, at)| **at).map(|(timer, _)| *timer)
    }

    /// Lets so many milliseconds pass, in which each message takes so long.
    pub(super) fn run_slowly(&mut self, ms: u64, delay_ms: u64) {
        let mut under_way: Vec<(Duration, Mail)> = Vec::new();
        for _ in 0..ms / STEP_MS {
            let sent = std::mem::take(&mut self.mail);
            under_way.extend(sent.into_iter().map(|mail| (self.now + Duration::from_millis(delay_ms), mail)));
            let (due, later): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|(at, _)| *at <= self.now);
            under_way = later;
            self.mail = due.into_iter().map(|(_, mail)| mail).collect();
            self.deliver(&all);
            self.tick();
        }
    }

    /// Lets time pass until something is so.
    pub(super) fn wait(&mut self, until: impl Fn(&Cluster) -> bool, way: impl Fn(u8, u8, &Message) -> Way) {
        for _ in 0..PATIENCE_MS / STEP_MS {
            if until(self) {
                return;
            }
            self.run(STEP_MS, &way);
        }
        panic!("it never comes to that; led: {:?}", self.led);
    }

    /// All that is on its way is lost.
    pub(super) fn lose_mail(&mut self) {
        self.mail.clear();
    }

    /// The latest round of heartbeats that is on its way.
    pub(super) fn latest_round(&self) -> Option<u32> {
        let round = |mail: &Mail| match mail.message.body {
            Body::Renew { sequence, .. } => Some(sequence),
            _ => None,
        };
        self.mail.iter().filter_map(round).max()
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    pub(super) fn machine(&self, k: u8) -> &Machine {
        self.nodes[&k].machine.as_ref().unwrap()
    }

    pub(super) fn leads(&self) -> bool {
        self.nodes.values().filter_map(|node| node.machine.as_ref()).any(|machine| machine.phase.leading())
    }

    /// What a disk keeps of voting.
    pub(super) fn vote(&self, k: u8) -> Option<&VoteRecord> {
        self.nodes[&k].disk.as_ref()?.vote.as_ref()
    }

    /// Whether a disk keeps a view that names this one.
    pub(super) fn names(&self, k: u8, name: &str) -> bool {
        self.vote(k).is_some_and(|vote| vote.view.voters.contains(name))
    }

    pub(super) fn life(&self, k: u8) -> (ProcessId, Incarnation) {
        (self.nodes[&k].me.id, self.nodes[&k].me.incarnation)
    }
}
