//! `bellwether sim --compare-variants`: what an election costs in each variant of `classic`.
//!
//! The processes know each other and follow the highest-ranked one, which crashes or resigns. Each message
//! takes [`DELAY`], and none is lost. What counts is sent from then on, until all survivors follow one leader
//! and no message is on its way.

use crate::election::{
    Action, Body, Entry, Epoch, Event, Incarnation, Machine, MembershipVersion, Message, Moment,
    Notification, Now, Peer, Preempt, Priority, ProcessId, Settings, State, Timer, Variant,
};
use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use uuid::Uuid;

/// How long each message takes.
const DELAY: Duration = Duration::from_millis(1);
/// When the leader crashes.
const CRASH: Duration = Duration::from_secs(1);
/// A process has a turn at least this often.
const TURN_EVERY: Duration = Duration::from_millis(200);
/// An election that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(30);
/// The most members that all machines at hand know together. It bounds memory.
const KNOWN_MAX: usize = 2_000_000;
/// An election with more messages is not run: all of them may be on their way at once.
const MESSAGES_MAX: u64 = 5_000_000;

/// Which survivors learn of the crash, and what else is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// All learn of it at the same moment, as by crash evidence.
    All,
    /// The lowest alone: the paper's worst case.
    Lowest,
    /// The best survivor alone: the paper's best case.
    Best,
    /// All, and the best survivor hangs: it answers nothing.
    BestHangs,
    /// The leader does not crash. It hands over to the best survivor, and tells all.
    Resigns,
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Case::All => "all know",
            Case::Lowest => "lowest knows",
            Case::Best => "best knows",
            Case::BestHangs => "best hangs",
            Case::Resigns => "hear Resign",
        }
    }
}

/// What one election cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cost {
    elections: u64,
    answers: u64,
    declares: u64,
    coordinators: u64,
    took: Duration,
}

impl Cost {
    fn all(&self) -> u64 {
        self.elections + self.answers + self.declares + self.coordinators
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { elections, answers, declares, coordinators, took } = self;
        let all = self.all();
        write!(
            f,
            "{all:>10}{elections:>11}{answers:>9}{declares:>10}{coordinators:>14}{:>14}",
            took.as_millis()
        )
    }
}

/// One kind of row: the variant, the case, and the number of messages that the analysis gives for n.
type Row = (Variant, Case, &'static str, fn(u64) -> u64);

/// Each has its formula from the analysis of the algorithm. Overviews give the orders of the paper's: n²
/// where the lowest begins, and n where the best survivor does. Where the best survivor hangs it sends
/// nothing, and the detector's others ask each other then.
const ROWS: [Row; 11] = [
    (Variant::Paper, Case::Best, "n - 1", |n| n - 1),
    (Variant::Paper, Case::Lowest, "n² - n - 1", |n| n * n - n - 1),
    (Variant::Paper, Case::All, "n² - n - 1", |n| n * n - n - 1),
    (Variant::Detector, Case::All, "n - 2", |n| n - 2),
    (Variant::Optimized, Case::All, "3(n - 2)", |n| 3 * (n - 2)),
    (Variant::Announcer, Case::All, "n - 1 + 2 min(3, n - 2)", |n| n - 1 + 2 * (n - 2).min(3)),
    (Variant::Paper, Case::BestHangs, "n² - 2n - 1", |n| n * n - 2 * n - 1),
    (Variant::Detector, Case::BestHangs, "n² - 3n + 1", |n| n * n - 3 * n + 1),
    (Variant::Optimized, Case::BestHangs, "5n - 14", |n| 5 * n - 14),
    (Variant::Announcer, Case::BestHangs, "n - 2 + 2 min(3, n - 2), 1 of 3", |n| match n {
        3 => 1,
        n => n - 2 + 2 * (n - 2).min(3),
    }),
    // The successor answers the leader, too. What the leader sends is not counted.
    (Variant::Detector, Case::Resigns, "n - 1", |n| n - 1),
];

/// What comes to a process.
enum Coming {
    Message(ProcessId, Message),
    Timer(Timer),
}

/// The time at which something comes, the place that it comes to, and the order of sending.
type Key = (Duration, usize, u64);

/// Machines in virtual time: process k of 1 to n at place k - 1.
///
/// Each knows all others, so n machines need memory for n² members. A machine is pure: it can be forgotten,
/// and made again of what came to it.
struct Cluster {
    n: usize,
    /// What the leader's list has: all processes.
    listed: Arc<[Entry]>,
    variant: Variant,
    /// The most members that all machines at hand know together. One machine may always be at hand.
    known_max: usize,
    /// The machines that are at hand, by place.
    machines: BTreeMap<usize, Machine>,
    /// What came to each place since the crash.
    came: Vec<Vec<(Now, Event)>>,
    /// The leader that each follows, and in which epoch.
    leaders: Vec<Option<(ProcessId, Epoch)>>,
    /// What comes, by its [`Key`]. So a machine is made once for all that comes to its place at one time.
    queue: BTreeMap<Key, Coming>,
    /// The key of each timer in the queue.
    timers: BTreeMap<(usize, Timer), Key>,
    sequence: u64,
    messages: usize,
    now: Duration,
    /// The places that hear nothing.
    silent: Vec<usize>,
    cost: Cost,
}

fn id(k: usize) -> ProcessId {
    ProcessId(Uuid::from_u128(0x4000_8000_0000_0000_0000 | k as u128))
}

fn place(id: ProcessId) -> usize {
    (id.0.as_u128() & 0xffff_ffff) as usize - 1
}

fn peer(k: usize) -> Peer {
    let address = SocketAddr::from(([198, 18, (k / 256) as u8, (k % 256) as u8], 4041));
    let (incarnation, priority) = (Incarnation(1), Priority::DEFAULT);
    Peer { id: id(k), incarnation, name: format!("p{k}"), address, priority, revision: String::new() }
}

/// Process k, which knows all that are listed and follows the last one, and what it wants done.
fn follower(listed: &Arc<[Entry]>, variant: Variant, k: usize) -> (Machine, Vec<Action>) {
    let n = listed.len();
    let settings = Settings { variant, preempt: Preempt::Always, members_max: n, ..Settings::default() };
    let mut machine = Machine::new(settings, "compared".to_owned(), peer(k), None);
    let hear = |body| {
        let message = Message { epoch: Epoch(1), priority: Priority::DEFAULT, body };
        Event::Received { from: id(n), message }
    };
    let version = MembershipVersion { epoch: Epoch(1), version: 1 };
    let events = [
        Event::Start,
        Event::Discovered { addresses: [peer(n).address].into(), complete: true },
        Event::LinkUp(peer(n)),
        hear(Body::Coordinator { elected_at_ms: 0 }),
        hear(Body::Membership { version, entries: listed.clone() }),
    ];
    let actions = events.map(|event| machine.handle(Now::at(Moment(CRASH)), event));
    (machine, actions.into_iter().flatten().collect())
}

impl Cluster {
    /// n processes that know each other and follow process n.
    fn new(n: usize, variant: Variant, known_max: usize) -> Cluster {
        let cost = Cost { elections: 0, answers: 0, declares: 0, coordinators: 0, took: Duration::ZERO };
        let listed = (1..=n).map(|k| Entry { peer: peer(k), state: State::Alive }).collect();
        let mut cluster = Cluster {
            n,
            listed,
            variant,
            known_max,
            machines: BTreeMap::new(),
            came: vec![Vec::new(); n],
            leaders: vec![None; n],
            queue: BTreeMap::new(),
            timers: BTreeMap::new(),
            sequence: 0,
            messages: 0,
            now: CRASH,
            silent: vec![n - 1],
            cost,
        };
        // All followers want the same. What they send before the crash does not count.
        let (_, mut actions) = follower(&cluster.listed, variant, 1);
        actions.retain(|action| !matches!(action, Action::Send { .. }));
        for at in 0..n - 1 {
            cluster.act(at, actions.clone());
        }
        cluster
    }

    /// Keeps a machine at hand. Without room, all others are forgotten.
    fn keep(&mut self, at: usize, machine: Machine) {
        if self.machines.len() * self.n >= self.known_max {
            self.machines.clear();
        }
        self.machines.insert(at, machine);
    }

    fn feed(&mut self, at: usize, event: Event) {
        let now = Now::at(Moment(self.now));
        let mut machine = self.machines.remove(&at).unwrap_or_else(|| {
            let (mut machine, _) = follower(&self.listed, self.variant, at + 1);
            for (then, event) in &self.came[at] {
                machine.handle(*then, event.clone());
            }
            machine
        });
        let actions = machine.handle(now, event.clone());
        self.came[at].push((now, event));
        self.keep(at, machine);
        self.act(at, actions);
    }

    fn act(&mut self, at: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, message, .. } => self.send(at, to, message),
                Action::Arm { timer, after } => {
                    let key = self.put(after, at, Coming::Timer(timer));
                    if let Some(former) = self.timers.insert((at, timer), key) {
                        self.queue.remove(&former);
                    }
                }
                Action::Disarm(timer) => {
                    if let Some(former) = self.timers.remove(&(at, timer)) {
                        self.queue.remove(&former);
                    }
                }
                Action::Notification(Notification::Leader { peer, epoch, .. }) => {
                    self.leaders[at] = Some((peer.id, epoch));
                }
                Action::Notification(Notification::Leaderless { .. }) => self.leaders[at] = None,
                _ => {}
            }
        }
    }

    fn send(&mut self, from: usize, to: ProcessId, message: Message) {
        match message.body {
            Body::Election => self.cost.elections += 1,
            Body::Answer => self.cost.answers += 1,
            Body::Declare => self.cost.declares += 1,
            Body::Coordinator { .. } => self.cost.coordinators += 1,
            _ => {}
        }
        self.messages += 1;
        self.put(DELAY, place(to), Coming::Message(id(from + 1), message));
    }

    fn put(&mut self, after: Duration, at: usize, coming: Coming) -> Key {
        let key = (self.now + after, at, self.sequence);
        self.sequence += 1;
        self.queue.insert(key, coming);
        key
    }

    fn deliver(&mut self, at: usize, coming: Coming) {
        let silent = self.silent.contains(&at);
        match coming {
            Coming::Message(from, message) => {
                self.messages -= 1;
                if !silent {
                    self.feed(at, Event::Received { from, message });
                }
            }
            Coming::Timer(timer) => {
                self.timers.remove(&(at, timer));
                if !silent {
                    self.feed(at, Event::Timer(timer));
                }
            }
        }
    }

    /// Time passes. A process that has no turn for long would count as paused. A turn alone does nothing, so
    /// a machine that is not at hand is not made again for it.
    fn pass_time(&mut self, until: Duration) {
        while until - self.now > TURN_EVERY {
            self.now += TURN_EVERY;
            for at in 0..self.n - 1 {
                if self.machines.contains_key(&at) {
                    self.feed(at, Event::Turn);
                } else {
                    self.came[at].push((Now::at(Moment(self.now)), Event::Turn));
                }
            }
        }
        self.now = until;
    }

    /// Whether all survivors follow one leader that is one of them.
    fn agreed(&self) -> bool {
        let mut live = (0..self.leaders.len()).filter(|at| !self.silent.contains(at));
        let first = live.next().and_then(|at| self.leaders[at]);
        first.is_some_and(|(leader, _)| !self.silent.contains(&place(leader)))
            && live.all(|at| self.leaders[at] == first)
    }

    /// The crash of process n, and the election that follows. None: it does not end within [`LIMIT`].
    fn elect(mut self, case: Case) -> Option<Cost> {
        let n = self.n;
        let told = match case {
            Case::All => 0..n - 1,
            Case::Lowest => 0..1,
            Case::Best => n - 2..n - 1,
            Case::BestHangs => {
                self.silent.push(n - 2);
                0..n - 2
            }
            Case::Resigns => {
                for at in 0..n - 1 {
                    let body = Body::Resign { successor: Some(id(n - 1)), leaving: true };
                    let message = Message { epoch: Epoch(1), priority: Priority::DEFAULT, body };
                    self.messages += 1;
                    self.put(DELAY, at, Coming::Message(id(n), message));
                }
                0..0
            }
        };
        for at in told {
            self.feed(at, Event::Crashed { id: id(n), incarnation: Incarnation(1) });
        }
        let mut agreed_at = None;
        while let Some(((at, to, _), coming)) = self.queue.pop_first() {
            if at > self.now {
                let agreed = self.agreed();
                agreed_at = agreed_at.filter(|_| agreed).or(agreed.then_some(self.now));
                if agreed && self.messages == 0 || at > CRASH + LIMIT {
                    break;
                }
                self.pass_time(at);
            }
            self.deliver(to, coming);
        }
        agreed_at.map(|agreed_at| Cost { took: agreed_at.saturating_sub(CRASH), ..self.cost })
    }
}

fn name(variant: Variant) -> &'static str {
    Variant::NAMED.into_iter().find(|(_, named)| *named == variant).map_or("", |(name, _)| name)
}

/// Prints the table. Each line is one election.
pub(super) fn compare(sizes: &[usize], out: &mut impl Write) -> io::Result<()> {
    let counted = "messages  elections  answers  declares  coordinators  milliseconds";
    writeln!(out, "{:<10} {:<12} {:>5}  {counted}  by the analysis", "variant", "survivors", "n")?;
    let lines: Vec<(&Row, usize)> =
        ROWS.iter().flat_map(|row| sizes.iter().map(move |n| (row, *n))).collect();
    // Each election takes one processor, and a processor that is done takes the next election.
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        Some((at, lines.get(at)?))
    };
    let (tell, told) = mpsc::sync_channel(lines.len());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let tell = tell.clone();
            scope.spawn(move || {
                while let Some((at, (row, n))) = take() {
                    if tell.send((at, line(row, *n))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let (mut ready, mut printed) = (BTreeMap::new(), 0);
        for (at, text) in told {
            ready.insert(at, text);
            while let Some(text) = ready.remove(&printed) {
                writeln!(out, "{text}")?;
                printed += 1;
            }
        }
        Ok(())
    })
}

/// One election, and what the analysis says of it.
fn line((variant, case, formula, analysis): &Row, n: usize) -> String {
    let messages = analysis(n as u64);
    let cost = match (messages <= MESSAGES_MAX).then(|| Cluster::new(n, *variant, KNOWN_MAX).elect(*case)) {
        Some(Some(cost)) => cost.to_string(),
        Some(None) => format!("  no leader within {LIMIT:?}"),
        None => format!("{:>68}", "not run: too many messages at once"),
    };
    format!("{:<10} {:<12} {n:>5}{cost}  {messages} = {formula}", name(*variant), case.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_election_ends_and_takes_the_hops_of_its_variant() {
        for (variant, case, ..) in ROWS {
            assert!(Cluster::new(7, variant, KNOWN_MAX).elect(case).is_some(), "{variant:?}, {case:?}");
        }
        for (variant, hops) in [(Variant::Detector, 1), (Variant::Optimized, 1), (Variant::Announcer, 4)] {
            let took = Cluster::new(7, variant, KNOWN_MAX).elect(Case::All).map(|cost| cost.took);
            assert_eq!(took, Some(DELAY * hops), "{variant:?}");
        }
    }

    #[test]
    fn all_followers_want_the_same() {
        let listed: Arc<[Entry]> = (1..=30).map(|k| Entry { peer: peer(k), state: State::Alive }).collect();
        for (variant, ..) in ROWS {
            // What is sent before the crash does not count.
            let wanted = |k| {
                let (_, actions) = follower(&listed, variant, k);
                let told = actions.into_iter().filter(|action| match action {
                    Action::Notification(notification) => {
                        matches!(notification, Notification::Leader { .. } | Notification::Leaderless { .. })
                    }
                    action => matches!(action, Action::Arm { .. } | Action::Disarm(_)),
                });
                told.map(|action| format!("{action:?}")).collect::<Vec<_>>()
            };
            (2..30).for_each(|k| assert_eq!(wanted(k), wanted(1), "{variant:?}, process {k}"));
        }
    }

    #[test]
    fn there_may_be_more_processes_than_an_election_has_members() {
        let n = crate::election::MEMBERS_MAX + 1;
        let cost = Cluster::new(n, Variant::Detector, KNOWN_MAX).elect(Case::All);
        assert_eq!(cost.map(|cost| cost.all()), Some(n as u64 - 2));
    }

    #[test]
    fn a_machine_that_was_forgotten_goes_on_as_before() {
        for (variant, case, ..) in ROWS {
            let [all, one] = [KNOWN_MAX, 1].map(|known_max| Cluster::new(9, variant, known_max).elect(case));
            assert_eq!(one, all, "{variant:?}, {case:?}");
        }
    }

    #[test]
    fn each_variant_costs_what_the_analysis_says() {
        for (variant, case, formula, analysis) in ROWS {
            for n in (3..=30).chain([100]) {
                let cost = Cluster::new(n, variant, KNOWN_MAX).elect(case).map(|cost| cost.all());
                assert_eq!(cost, Some(analysis(n as u64)), "{variant:?}, {case:?}, n = {n}: {formula}");
            }
        }
    }
}
