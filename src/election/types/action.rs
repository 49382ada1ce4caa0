//! What the machine wants done: everything that it ever asks for.

use crate::election::{
    HoldAnswer, KnownPeers, Message, Notification, OperationOutcome, ProcessId, Record, Timer,
};
use core::net::SocketAddr;
use std::collections::BTreeSet;
use std::time::Duration;

/// One thing to do. The driver carries out a batch in order, and before the next event is handled.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Make this durable. It comes first in its batch: everything that follows may depend on it and must not
    /// leave before it is on disk (invariant 2). If it cannot be made durable the process ends (fail-stop).
    Persist(Record),
    /// Keep this for the next start if that is possible. Nothing waits for it, and nothing depends on it.
    Remember(KnownPeers),
    /// Send, without waiting: over the link if there is one, else over one dialled to `address` for it. A
    /// message that cannot be delivered within the dial timeout is dropped; the machine never counts on
    /// delivery.
    Send {
        /// The receiver.
        to: ProcessId,
        /// Where the receiver listens.
        address: SocketAddr,
        /// What this process says.
        message: Message,
    },
    /// Keep trying to have a link with the process at each of these addresses. The next `Seek` replaces this
    /// one. The driver may close a link that neither side seeks or uses, and announces that as deliberate.
    Seek(BTreeSet<SocketAddr>),
    /// Refuse this process, whose connection is open, and tell it that the list of members is full.
    Refuse(ProcessId),
    /// Deliver [`Event::Timer`](crate::election::Event::Timer) once, this long from now. An armed timer
    /// starts anew.
    Arm {
        /// The machine has at most one of each kind.
        timer: Timer,
        /// From the moment of the event that is handled, on the fast clock.
        after: Duration,
    },
    /// Deliver no event of this timer until it is armed again.
    Disarm(Timer),
    /// Tell the operator what came of the operation with this number.
    Answer {
        /// The event's.
        number: u64,
        /// What came of it.
        outcome: OperationOutcome,
    },
    /// Tell the application what came of its request for a hold. Its time counts from this turn's.
    Held(HoldAnswer),
    /// News for a person, a log or a metric. It changes nothing.
    Notification(Notification),
    /// The resignation is over: close the links, announced as deliberate, and end with exit code 0.
    Exit,
}
