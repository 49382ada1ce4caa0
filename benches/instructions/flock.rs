//! Processes of one election without a network: what one sends has arrived at once, and time jumps to the
//! next timer. The virtual network of tests/support would be counted with them.

use bellwether::election::{
    Action, Event, Incarnation, Machine, Message, Moment, Now, Peer, Priority, ProcessId, Role, Safety,
    Settings, Status, Timer,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use uuid::Uuid;

/// Up to this size each has a link with each other one; above it, with the highest alone.
const MESH_MAX: usize = 31;
/// More turns than a start takes.
const TURNS_MAX: usize = 100_000;

pub struct Flock {
    machines: BTreeMap<ProcessId, Machine>,
    peers: BTreeMap<ProcessId, Peer>,
    queue: VecDeque<(ProcessId, ProcessId, Message)>,
    timers: BTreeMap<(ProcessId, Timer), Moment>,
    now: Moment,
}

/// The id of process k: it is also its rank.
pub fn id(k: usize) -> ProcessId {
    ProcessId(Uuid::from_u128(k as u128))
}

fn peer(k: usize) -> Peer {
    Peer {
        id: id(k),
        incarnation: Incarnation(1),
        name: format!("web-{k}"),
        address: SocketAddr::from((Ipv4Addr::from(0xc612_0000 + k as u32), 4041)),
        priority: Priority::DEFAULT,
        revision: String::new(),
    }
}

/// The safety level with n voters.
pub fn majority(n: usize) -> Safety {
    Safety::Majority { voters: (1..=n).map(|k| peer(k).name).collect() }
}

impl Flock {
    /// n processes that have elected the highest, and follow it.
    pub fn with_a_leader(n: usize, safety: Safety) -> Flock {
        let peers: BTreeMap<ProcessId, Peer> = (1..=n).map(|k| (id(k), peer(k))).collect();
        let settings = Settings { safety, ..Settings::default() };
        let machine = |peer: &Peer| Machine::new(settings.clone(), "bench".to_owned(), peer.clone(), None);
        let machines = peers.values().map(|peer| (peer.id, machine(peer))).collect();
        let now = Moment(Duration::from_secs(1000));
        let mut flock = Flock { machines, peers, queue: VecDeque::new(), timers: BTreeMap::new(), now };
        let linked = |a: usize, b: usize| a != b && (n <= MESH_MAX || a == n || b == n);
        for k in 1..=n {
            flock.feed(id(k), Event::Start);
            let others = (1..=n).filter(|other| linked(k, *other));
            let addresses = others.map(|other| flock.peers[&id(other)].address).collect();
            flock.feed(id(k), Event::Discovered { addresses, complete: true });
        }
        for k in 1..=n {
            for other in (1..=n).filter(|other| linked(k, *other)) {
                flock.feed(id(k), Event::LinkUp(flock.peers[&id(other)].clone()));
            }
        }
        flock.deliver();
        for _ in 0..TURNS_MAX {
            if flock.has_a_leader(n) {
                return flock;
            }
            flock.next_timer();
        }
        panic!("no leader of {n}");
    }

    fn has_a_leader(&self, n: usize) -> bool {
        let led = |machine: &Machine| {
            let status = machine.status();
            status.leader.is_some_and(|leader| leader.peer.id == id(n)) && status.members.len() == n
        };
        self.machines[&id(n)].status().role == Role::Leading && self.machines.values().all(led)
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    pub fn status(&self, k: usize) -> Status {
        self.machines[&id(k)].status()
    }

    /// All that happens until the leader has sent its next heartbeats and heard the answers.
    pub fn round(&mut self) {
        while self.next_timer() != Timer::Heartbeat {}
    }

    /// Fires the timer that is due next, delivers all messages, and says which timer it was.
    fn next_timer(&mut self) -> Timer {
        let next = self.timers.iter().min_by_key(|(of, due)| (**due, **of));
        let (&(of, timer), &due) = next.expect("a timer is armed");
        self.timers.remove(&(of, timer));
        self.now = self.now.max(due);
        self.feed(of, Event::Timer(timer));
        self.deliver();
        timer
    }

    fn deliver(&mut self) {
        while let Some((from, to, message)) = self.queue.pop_front() {
            self.feed(to, Event::Received { from, message });
        }
    }

    /// One turn of a process.
    fn feed(&mut self, of: ProcessId, event: Event) {
        let machine = self.machines.get_mut(&of).expect("one of them");
        for action in machine.handle(Now::at(self.now), event) {
            match action {
                Action::Send { to, message, .. } => self.queue.push_back((of, to, message)),
                Action::Arm { timer, after } => {
                    self.timers.insert((of, timer), self.now.plus(after));
                }
                Action::Disarm(timer) => {
                    self.timers.remove(&(of, timer));
                }
                _ => {}
            }
        }
    }
}
