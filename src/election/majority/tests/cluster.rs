//! Whole clusters by hand: machines and their disks, and a network. A test says of each message whether it
//! arrives, is still on its way, or is lost. This is for schedules that need more coincidences than a seed
//! finds.

use super::*;
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

/// Messages arrive within each of these groups only.
pub(super) fn within(groups: &[&[u8]], from: u8, to: u8) -> Way {
    let together = groups.iter().any(|group| group.contains(&from) && group.contains(&to));
    if together { Arrives } else { Lost }
}

/// The time between two steps, in milliseconds.
const STEP_MS: u64 = 10;
/// The longest that a test waits for something, in milliseconds.
const PATIENCE_MS: u64 = 60_000;

struct Node {
    machine: Option<Core<Majority>>,
    timers: BTreeMap<Timer, Duration>,
    disk: Option<Record>,
    me: Peer,
    settings: Settings,
    incarnations: u64,
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
    /// The processes that began to lead, and in which epoch, in that order.
    pub(super) led: Vec<(u8, u64)>,
    /// The processes that led together, and in which epochs.
    pub(super) together: Vec<Vec<(u8, u64)>>,
    leaves_out: Option<Mutation>,
}

impl Cluster {
    /// No process runs yet. Each has its settings, and its disk a record or none.
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
            incarnations: 0,
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

    /// These voters with records of epoch 4. The first has the best rank.
    pub(super) fn of(voters: &[u8], leaves_out: Option<Mutation>) -> Cluster {
        let disk = |k| Some(record(k, config(4, voters)));
        let mut cluster = Cluster::new(voters, leaves_out, |_| given(voters, 1500), disk);
        for (place, k) in voters.iter().enumerate() {
            cluster.rank(*k, 200 - place as u16);
        }
        cluster.start_all(voters);
        cluster
    }

    pub(super) fn rank(&mut self, k: u8, priority: u16) {
        self.node(k).me.priority = Priority(priority);
    }

    /// The next start of a process has other settings.
    pub(super) fn give(&mut self, k: u8, settings: Settings) {
        self.node(k).settings = settings;
    }

    fn node(&mut self, k: u8) -> &mut Node {
        self.nodes.get_mut(&k).unwrap()
    }

    /// A further incarnation; without a record it has a new id as well. It is connected with these.
    pub(super) fn start(&mut self, k: u8, with: &[u8]) {
        let leaves_out = self.leaves_out;
        let node = self.node(k);
        node.incarnations += 1;
        node.me.incarnation = Incarnation(u64::from(k) + 1000 * node.incarnations);
        if node.disk.is_none() {
            node.me.id = ProcessId(Uuid::from_u128(u128::from(k) + 1000 * u128::from(node.incarnations - 1)));
        }
        node.timers.clear();
        let (settings, me) = (node.settings.clone(), node.me.clone());
        let mut machine = Core::<Majority>::new(settings, "c".to_owned(), me, node.disk.as_ref());
        if let Some(clause) = leaves_out {
            machine.clauses.0 = Some(clause);
        }
        node.machine = Some(machine);
        self.feed(k, Event::Start);
        self.feed(k, Event::Discovered { addresses: BTreeSet::new(), complete: true });
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

    /// A process is killed and started at once.
    pub(super) fn restart(&mut self, k: u8, with: &[u8]) {
        self.crash(k, false, with);
        self.start(k, with);
    }

    pub(super) fn feed(&mut self, k: u8, event: Event) {
        let now = self.now;
        let node = self.node(k);
        let Some(machine) = &mut node.machine else { return };
        let actions = machine.handle(Now::at(Moment(now)), event);
        let sender = node.me.id;
        for action in actions {
            match action {
                Action::Persist(record) => self.node(k).disk = Some(record),
                Action::Send { to, message, .. } => self.mail.push(Mail { from: k, sender, to, message }),
                Action::Arm { timer, after } => drop(self.node(k).timers.insert(timer, now + after)),
                Action::Disarm(timer) => drop(self.node(k).timers.remove(&timer)),
                Action::Exit => self.node(k).machine = None,
                _ => {}
            }
        }
        self.look(k);
    }

    fn look(&mut self, k: u8) {
        // The status says the same, but takes longer to make.
        let leads = |machine: &Core<Majority>| {
            machine.phase.leading() && machine.valid_until().is_some_and(|until| Moment(self.now) < until)
        };
        let leaders: Vec<(u8, u64)> = self
            .nodes
            .iter()
            .filter_map(|(k, node)| Some((*k, node.machine.as_ref().filter(|m| leads(m))?.epoch.0)))
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
            let Some((to, _)) = self.nodes.iter().find(|(_, node)| node.me.id == mail.to) else {
                continue;
            };
            let to = *to;
            match way(mail.from, to, &mail.message) {
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

    /// Lets this number of milliseconds pass.
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
            self.feed(k, Event::Turn);
        }
    }

    fn due(&self, k: u8) -> Option<Timer> {
        let node = &self.nodes[&k];
        let due = node.timers.iter().filter(|(_, at)| **at <= self.now && node.machine.is_some());
        due.min_by_key(|(_, at)| **at).map(|(timer, _)| *timer)
    }

    /// Lets this number of milliseconds pass, in which each message takes the given time.
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

    /// Lets time pass until something is so; says how long that took, in milliseconds.
    pub(super) fn wait(
        &mut self,
        until: impl Fn(&Cluster) -> bool,
        way: impl Fn(u8, u8, &Message) -> Way,
    ) -> u64 {
        for step in 0..PATIENCE_MS / STEP_MS {
            if until(self) {
                return step * STEP_MS;
            }
            self.run(STEP_MS, &way);
        }
        panic!("it never comes to that; led: {:?}", self.led);
    }

    /// All that is on its way is lost.
    pub(super) fn lose_mail(&mut self) {
        self.mail.clear();
    }

    /// Sends a message in the name of another, as one that was under way for long.
    pub(super) fn late(&mut self, from: u8, to: u8, message: Message) {
        let sender = self.nodes[&from].me.id;
        self.feed(to, Event::Received { from: sender, message });
    }

    pub(super) fn machine(&mut self, k: u8) -> &mut Core<Majority> {
        self.node(k).machine.as_mut().unwrap()
    }

    /// The answers to requests that are on their way to a process.
    pub(super) fn answers_to(&self, k: u8) -> Vec<VoteOutcome> {
        let outcome = |mail: &Mail| match mail.message.body {
            Body::Vote { outcome, .. } if mail.to == self.nodes[&k].me.id => Some(outcome),
            _ => None,
        };
        self.mail.iter().filter_map(outcome).collect()
    }

    /// The process that leads at this moment, by its own status.
    pub(super) fn leader(&self) -> Option<u8> {
        let leads = |node: &Node| node.machine.as_ref().is_some_and(|machine| machine.phase.leading());
        self.nodes.iter().find(|(_, node)| leads(node)).map(|(k, _)| *k)
    }

    /// What a disk keeps of voting.
    pub(super) fn vote(&self, k: u8) -> Option<&VoteRecord> {
        self.nodes[&k].disk.as_ref()?.vote.as_ref()
    }

    /// Whether a disk keeps a configuration that names this voter.
    pub(super) fn names(&self, k: u8, name: &str) -> bool {
        self.vote(k).is_some_and(|vote| vote.config.voters.contains(name))
    }

    pub(super) fn epoch(&self, k: u8) -> u64 {
        self.nodes[&k].disk.as_ref().map_or(0, |record| record.epoch.0)
    }
}
