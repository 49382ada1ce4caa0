//! What happens to a process: everything that the machine is ever told.

use super::{Incarnation, Message, Peer, ProcessId, Timer};
use core::net::SocketAddr;
use std::collections::BTreeSet;

/// One thing that happened. [`Machine::handle`](super::Machine::handle) takes them one at a time.
#[derive(Clone, Debug)]
pub enum Event {
    /// The process starts. First, and once.
    Start,
    /// The first connection with a peer is open, and both sides have introduced themselves.
    LinkUp(Peer),
    /// The last connection with that life of a peer closed, without evidence that it crashed.
    LinkDown {
        /// The peer.
        id: ProcessId,
        /// The life that had the connection.
        incarnation: Incarnation,
    },
    /// Crash evidence (design, "Failure detection" 2): its connection closed unannounced, and a fresh dial at once was
    /// refused or answered by another incarnation. Its links are gone.
    Crashed {
        /// The peer.
        id: ProcessId,
        /// The life that had the connection.
        incarnation: Incarnation,
    },
    /// A dial to this address was refused: no process listens there any more.
    Refused(SocketAddr),
    /// A message arrived over a connection whose other side is `from`. Messages of a former life of that process are
    /// not delivered any more once [`Event::LinkUp`] has named another one: its Leave would be taken for the new one's.
    Received {
        /// The sender, as the handshake of the connection named it.
        from: ProcessId,
        /// Decoded, and within the limits of its fields.
        message: Message,
    },
    /// A timer that was armed and not disarmed is due.
    Timer(Timer),
    /// A look-up named addresses. One that failed, or named none, is no event.
    Candidates {
        /// All addresses where peers may be. None: no peers are configured.
        addresses: BTreeSet<SocketAddr>,
        /// Whether every name has answered. Otherwise peers may be missing because of a name server.
        complete: bool,
    },
    /// A dial to this address reached this process itself.
    ReachedSelf(SocketAddr),
    /// Where peers reach this process has been found out (from the route to one of them).
    Advertise(SocketAddr),
    /// The process is told to stop: farewell, then [`Action::Exit`](super::Action::Exit).
    Stop,
    /// Nothing but the passing of time. The driver sends one often enough to notice a pause of its own.
    Turn,
}
