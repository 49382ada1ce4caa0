//! A place for a process: what stays over its restarts, and the process that runs there, if one does.

use super::clock::{Clock, Ns, ns};
use super::disk::Disk;
use super::dns::Dns;
use super::link_faults::PLACES_MAX;
use crate::base::{self, Reading};
use crate::election::{
    Action, Event, Incarnation, Machine, Message, Moment, Peer, Priority, ProcessId, Record, Role, Settings,
    Status, Timer,
};
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

/// The most inputs that wait for a process that is paused or busy. Further messages are lost, as on
/// connections that end because a full queue stops the transport's threads.
pub(super) const INBOX_MAX: usize = 1024;

const PEER_PORT: u16 = 4041;

/// One incarnation of a process: its place, and which start of that place it is, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct NodeInstance {
    pub(super) place: usize,
    pub(super) start: u32,
}

impl NodeInstance {
    pub(super) fn incarnation(self) -> Incarnation {
        Incarnation(self.start.into())
    }
}

/// What waits for a process's driver.
#[derive(Debug)]
pub(super) enum Input {
    /// Something that is no message.
    Event(Event),
    /// A message and the incarnation that sent it.
    Message(NodeInstance, Message),
}

/// What the driver has not done yet of a turn: it waits for the disk, or is held up.
#[derive(Debug)]
pub(super) struct Busy {
    pub(super) until: Ns,
    /// What will be durable then.
    pub(super) record: Option<Record>,
    /// What is shown to HTTP then, if it changes.
    pub(super) status: Option<Status>,
    /// The driver's clock when the turn began; none: it has been shown already.
    pub(super) turned: Option<base::Clock>,
    /// What is carried out then.
    pub(super) rest: Vec<Action>,
}

/// A driver that is held up in the middle of its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stall {
    pub(super) takes: Ns,
    /// Before the status is shown, or after that and before anything is sent.
    pub(super) before_status: bool,
}

/// What follows the end of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Restart {
    /// It is started again after this long.
    pub(super) down: Ns,
    /// Its disk is lost.
    pub(super) disk_lost: bool,
    /// It comes back under another address.
    pub(super) moves: bool,
    /// Its host is gone with it, and answers nothing until it is back.
    pub(super) host_gone: bool,
}

impl Default for Restart {
    fn default() -> Restart {
        Restart { down: 500 * super::clock::MS, disk_lost: false, moves: false, host_gone: false }
    }
}

/// An address that the machine wants to be linked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sought {
    pub(super) address: SocketAddr,
    pub(super) failures: u32,
    pub(super) not_before: Ns,
}

/// A dial under way, and what waits for it.
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) address: SocketAddr,
    pub(super) waiting: Vec<(ProcessId, Message)>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: usize,
    pub(super) name: String,
    pub(super) priority: Priority,
    pub(super) revision: String,
    pub(super) settings: Settings,
    /// The `--lease` from the next start on, if it is another one.
    pub(super) next_lease: Option<Duration>,
    pub(super) clock: Clock,
    pub(super) disk: Disk,
    pub(super) dns: Dns,
    /// Drawn from the seed: places the ids of this place among the others'.
    pub(super) order: u32,
    /// How many disks it has had: each has an id of its own.
    pub(super) disks: u32,
    /// How often it got a new address.
    pub(super) addresses: u8,
    /// How often a process was started here.
    pub(super) starts: u32,
    /// The id and the address of each of them.
    identities: Vec<(ProcessId, SocketAddr)>,
    /// What happens when the process that runs now ends.
    pub(super) fate: Restart,
    /// It is not started again.
    pub(super) stays_down: bool,
    /// Whether a start is on its way.
    pub(super) starting: bool,
    pub(super) machine: Option<Machine>,
    /// The whole host is gone: nothing refuses a dial.
    pub(super) vanished: bool,
    /// Stopped until then; 0: it isn't.
    pub(super) paused_until: Ns,
    pub(super) busy: Option<Busy>,
    pub(super) stall: Option<Stall>,
    pub(super) inbox: VecDeque<Input>,
    /// When each timer is due, on its fast clock.
    pub(super) timers: [Option<Ns>; Timer::ALL.len()],
    /// The driver's clock at its last turn. It goes on over restarts: the machine must not mind where its
    /// clocks begin.
    pub(super) time: base::Clock,
    /// What the host's clocks showed then.
    pub(super) last: Reading,
    /// For how long the host had slept then.
    pub(super) slept: Ns,
    /// The driver's clock at its last turn, as its HTTP thread knows it.
    pub(super) turned: base::Clock,
    /// What its HTTP thread answers from.
    pub(super) status: Option<Status>,
    pub(super) sought: Vec<Sought>,
    /// When it will look at `sought` again.
    pub(super) seeks_at: Option<Ns>,
    pub(super) dials: Vec<Dial>,
}

impl Node {
    pub(super) fn new(place: usize, settings: Settings, order: u32, clock: Clock) -> Node {
        Node {
            time: base::Clock::new(clock.reading(0)),
            last: clock.reading(0),
            slept: clock.slept(),
            turned: base::Clock::new(clock.reading(0)),
            place,
            name: format!("p-{place}"),
            priority: Priority::DEFAULT,
            revision: String::new(),
            settings,
            next_lease: None,
            clock,
            disk: Disk::default(),
            dns: Dns::default(),
            order,
            disks: 0,
            addresses: 0,
            starts: 0,
            identities: Vec::new(),
            fate: Restart::default(),
            stays_down: false,
            starting: false,
            machine: None,
            vanished: false,
            paused_until: 0,
            busy: None,
            stall: None,
            inbox: VecDeque::new(),
            timers: [None; Timer::ALL.len()],
            status: None,
            sought: Vec::new(),
            seeks_at: None,
            dials: Vec::new(),
        }
    }

    pub(super) fn instance(&self) -> NodeInstance {
        NodeInstance { place: self.place, start: self.starts }
    }

    pub(super) fn runs(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether this incarnation still runs.
    pub(super) fn runs_as(&self, instance: NodeInstance) -> bool {
        self.runs() && self.starts == instance.start
    }

    /// Whether its driver takes no input now.
    pub(super) fn held_up(&self) -> bool {
        self.paused_until != 0 || self.busy.is_some()
    }

    /// Whether it is stopped altogether: not even its transport answers.
    pub(super) fn paused(&self) -> bool {
        self.paused_until != 0
    }

    /// Its id is that of its disk.
    pub(super) fn id(&self) -> ProcessId {
        let version_4 = 0x4 << 76 | 0x8 << 60;
        let digits = u128::from(self.disks) << 16 | self.place as u128;
        ProcessId(Uuid::from_u128(
            u128::from(self.order.rotate_left(7 * self.disks)) << 96 | version_4 | digits,
        ))
    }

    pub(super) fn address(&self) -> SocketAddr {
        // A place is below PLACES_MAX.
        SocketAddr::from(([198, 18, self.place as u8, self.addresses], PEER_PORT))
    }

    /// Begins another incarnation.
    pub(super) fn begin(&mut self) {
        if let Some(lease) = self.next_lease.take() {
            self.settings.failure_timeout = lease;
        }
        self.starts += 1;
        self.identities.push((self.id(), self.address()));
    }

    /// The id that an incarnation had. The place must have had that incarnation.
    pub(super) fn id_at(&self, start: u32) -> ProcessId {
        self.identities[start as usize - 1].0
    }

    /// Whether nothing is left at the address that an incarnation had.
    pub(super) fn moved(&self, start: u32) -> bool {
        self.identities[start as usize - 1].1 != self.address()
    }

    /// What it says of itself.
    pub(super) fn peer(&self) -> Peer {
        Peer {
            id: self.id(),
            incarnation: self.instance().incarnation(),
            name: self.name.clone(),
            address: self.address(),
            priority: self.priority,
            revision: self.revision.clone(),
        }
    }

    /// Its driver looks at the time.
    pub(super) fn turn(&mut self, now: Ns) {
        self.last = self.clock.reading(now);
        self.time.turn(self.last);
    }

    /// When its driver last turned, on its fast clock.
    pub(super) fn fed(&self) -> Ns {
        ns(self.time.fast().0)
    }

    /// Whether it is this late now on its fast clock.
    pub(super) fn is_due(&self, now: Ns, due: Ns) -> bool {
        due <= ns(self.time.fast_at(&self.clock.reading(now)).0)
    }

    /// When its fast clock shows that.
    pub(super) fn when(&self, now: Ns, due: Ns) -> Ns {
        self.clock.when_either(now, &self.last, due.saturating_sub(self.fed()))
    }

    /// When its driver last turned on its slow clock.
    pub(super) fn fed_slow(&self) -> Ns {
        ns(self.time.slow().0)
    }

    /// The time of an answer of its HTTP thread, and of the turn that it is from (see
    /// `node::published_state`).
    pub(super) fn asked(&self, now: Ns) -> (Moment, Moment) {
        let reading = self.clock.reading(now);
        let turned = if self.turned.suspended(&reading) { Moment::default() } else { self.turned.fast() };
        (self.turned.fast_at(&reading), turned)
    }

    /// Whether its HTTP thread would answer now that it leads. A suspended host answers nothing.
    pub(super) fn leads(&self, now: Ns) -> bool {
        let (asked, turned) = self.asked(now);
        self.runs()
            && !self.clock.suspended(now)
            && self
                .status
                .as_ref()
                .is_some_and(|status| status.role == Role::Leading && status.leads(asked, turned))
    }

    /// The process is gone; its disk stays.
    pub(super) fn end(&mut self) {
        self.machine = None;
        self.status = None;
        self.busy = None;
        self.stall = None;
        self.paused_until = 0;
        self.inbox.clear();
        self.timers = [None; Timer::ALL.len()];
        self.sought.clear();
        self.seeks_at = None;
        self.dials.clear();
    }

    /// Its disk is lost: what starts here next is a new process.
    pub(super) fn lose_disk(&mut self) {
        self.disk.record = None;
        self.disk.known = None;
    }
}

/// The place of the process with this id.
pub(super) fn place_of(id: ProcessId) -> usize {
    (id.0.as_u128() & 0xffff) as usize
}

/// The place whose address this is, now or formerly.
pub(super) fn place_at(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) => Some(usize::from(ip.octets()[2])).filter(|place| *place < PLACES_MAX),
        IpAddr::V6(_) => None,
    }
}
