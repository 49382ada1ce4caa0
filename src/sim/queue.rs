//! What is due when: the one place where time passes.

use super::clock::Ns;
use super::link_faults::Pairs;
use super::node::NodeInstance;
use crate::election::{Message, Timer};
use core::net::SocketAddr;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that is due.
#[derive(Debug)]
pub(super) enum Item {
    /// A fault of the plan begins.
    Fault(usize),
    /// A fault begins that had waited for its cue.
    Cued {
        /// Which of the plan.
        number: usize,
        /// The place that gave the cue.
        actor: usize,
    },
    /// The time of a fault is over.
    FaultOver {
        /// Which of the plan.
        number: usize,
        /// What it has cut.
        pairs: Box<Pairs>,
    },
    /// A process is started (again), with what its disk holds.
    Start(usize),
    /// A message arrives.
    Deliver {
        /// The sender.
        from: NodeInstance,
        /// The receiver.
        to: NodeInstance,
        /// On which connection.
        link: u64,
        /// What.
        message: Box<Message>,
    },
    /// An end of a connection learns that it is closed, on purpose or not.
    Closed {
        /// The end that learns it.
        at: NodeInstance,
        /// The other end.
        of: NodeInstance,
        /// Which of their connections.
        link: u64,
        /// Announced (Bye), or else evidence is gathered.
        deliberate: bool,
    },
    /// The fresh dial after an unannounced close has come to its end.
    Evidence {
        /// The process that dialled.
        at: NodeInstance,
        /// The peer whose connection had closed.
        of: NodeInstance,
    },
    /// What an end sent has not been acknowledged for too long.
    Unacknowledged {
        /// The sender.
        at: NodeInstance,
        /// The receiver.
        of: NodeInstance,
        /// Which span of silence.
        token: u32,
    },
    /// A dial has come to its end.
    Dialled(NodeInstance, SocketAddr),
    /// A process looks for addresses to dial again.
    Seek(NodeInstance),
    /// A timer of a process may be due.
    Timer(NodeInstance, Timer),
    /// A process may not have turned for too long.
    Turn(NodeInstance),
    /// An operator lets a process lead again.
    Uncordon(NodeInstance),
    /// An application is healthy again.
    Heal(NodeInstance),
    /// A process looks up its peers.
    Refresh(NodeInstance),
    /// A pause, or a slow step of the driver, may be over.
    Resume(NodeInstance),
}

#[derive(Debug)]
struct Due {
    at: Ns,
    sequence: u64,
    item: Item,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// All items that are due, the earliest first; those of one moment in the order in which they were put in.
/// The length of a run bounds them: a run with more than [`ITEMS_MAX`] ends as a violation.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Due>>,
    sequence: u64,
}

/// The most items of one run. A run of seven processes has some 20,000.
pub(super) const ITEMS_MAX: u64 = 2_000_000;

impl Queue {
    pub(super) fn put(&mut self, at: Ns, item: Item) {
        self.sequence += 1;
        self.heap.push(Reverse(Due { at, sequence: self.sequence, item }));
    }

    /// The next item, unless it is due after `end`.
    pub(super) fn next(&mut self, end: Ns) -> Option<(Ns, Item)> {
        if self.heap.peek()?.0.at > end {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| (due.at, due.item))
    }

    /// How many items there have been.
    pub(super) fn items(&self) -> u64 {
        self.sequence
    }
}
