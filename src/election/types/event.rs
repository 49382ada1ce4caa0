//! What happens to a process: everything that the machine is ever told.

use crate::election::{HoldRequest, Incarnation, Message, Operation, Peer, ProcessId, Sign, Timer};
use core::net::SocketAddr;
use std::collections::BTreeSet;
use std::time::Duration;

/// One thing that happened. [`Machine::handle`](crate::election::Machine::handle) takes them one at a time.
#[derive(Clone, Debug)]
pub enum Event {
    /// The process starts. First, and once.
    Start,
    /// The first connection with a peer is open, and both sides have introduced themselves.
    LinkUp(Peer),
    /// The last connection with that incarnation of a peer closed, without evidence that it crashed.
    LinkDown {
        /// The peer.
        id: ProcessId,
        /// The incarnation that had the connection.
        incarnation: Incarnation,
    },
    /// Crash evidence: its connection closed unannounced, and a fresh dial at
    /// once was refused or answered by another incarnation. Its links are gone.
    Crashed {
        /// The peer.
        id: ProcessId,
        /// The incarnation that had the connection.
        incarnation: Incarnation,
    },
    /// A dial to this address was refused: no process listens there any more.
    Refused(SocketAddr),
    /// A peer has refused this process, since its list of members is full.
    TurnedAway,
    /// A message arrived over a connection whose other side is `from`. Once [`Event::LinkUp`] has named
    /// another incarnation of that process, no message of a former one arrives. Otherwise its Leave would
    /// count as the new one's.
    Received {
        /// The sender, as the handshake of the connection named it.
        from: ProcessId,
        /// Decoded, and within the limits of its fields.
        message: Message,
    },
    /// A timer that was armed and not disarmed is due.
    Timer(Timer),
    /// A look-up has ended, and names these addresses.
    Discovered {
        /// All addresses where peers may be. None: no peers are configured.
        addresses: BTreeSet<SocketAddr>,
        /// Whether every name has answered. Otherwise peers may be missing because of a name server.
        complete: bool,
    },
    /// A dial to this address reached this process itself.
    ReachedSelf(SocketAddr),
    /// The driver has found out where peers reach this process (from the route to one of them).
    Advertise(SocketAddr),
    /// The operator stops the process: it resigns, then comes
    /// [`Action::Exit`](crate::election::Action::Exit).
    Stop,
    /// An operator asks for something. [`Action::Answer`](crate::election::Action::Answer) says what came of
    /// it, once, and within this time.
    Operation {
        /// Repeated by the answer; the driver tells its answers apart by it.
        number: u64,
        /// What.
        operation: Operation,
        /// How long the operator waits at most.
        within: Duration,
    },
    /// An application of this pod asks for a hold, goes on with one, or has stopped.
    /// [`Action::Held`](crate::election::Action::Held) answers it in the same turn.
    Hold(HoldRequest),
    /// Something is heard of the application of this pod.
    Application(Sign),
    /// Nothing but the passing of time. The driver sends one often enough to notice a pause of its own.
    Turn,
}
