//! What is said over a listener's connections, and within which limits.

use crate::base::Share;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a listener allows. All deadlines are absolute: bytes that trickle in do not move them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many connections are open at a time. A further one takes the place of the one that has waited for
    /// bytes for longest.
    pub connections_max: usize,
    /// How many of them are from one address. A further one takes the place of the one of that address that
    /// has waited for longest.
    pub connections_per_host_max: usize,
    /// How many bytes of a connection are kept until its service has consumed them.
    pub receive_bytes_max: usize,
    /// How long a request may take to arrive: the first from the accept on, each further from its first byte
    /// on.
    pub receive_deadline: Duration,
    /// How long a connection may be silent between two requests.
    pub idle_deadline: Duration,
    /// How long the sending of one reply may take.
    pub write_deadline: Duration,
}

/// What is said over a listener's connections. All of it is called on the listener's one thread, and none of
/// it may block: all other connections wait meanwhile.
pub trait Service: Send + 'static {
    /// What it has found out of a connection that it takes over, so that nothing is looked at twice.
    type Admitted;
    /// What it keeps of one connection between two calls.
    type Session: Default + Send;

    /// What `received` asks for: all bytes of a connection that no reply has consumed yet, at least one. It
    /// is called whenever there are more. It is called again with the same bytes when its answer grew too old
    /// before it could be sent (see [`ANSWER_AGE_MAX`](super::ANSWER_AGE_MAX)). So it must be harmless to
    /// repeat.
    fn received(
        &mut self,
        session: &mut Self::Session,
        received: &[u8],
        remote: SocketAddr,
    ) -> Step<Self::Admitted>;

    /// What to say, if anything, before closing a connection that sent `received`, possibly nothing, and not
    /// the rest of it in time.
    fn overdue(&mut self, received: &[u8], remote: SocketAddr) -> Option<Vec<u8>>;

    /// What to say, if anything, before closing a connection that sent `received`, which is as much as is
    /// kept, and still waits to send more.
    fn overflow(&mut self, received: &[u8], remote: SocketAddr) -> Option<Vec<u8>>;

    /// Takes over a connection after [`Step::Detach`]. The listener does not count it any more.
    fn detached(&mut self, detached: Detached<Self::Admitted>);
}

/// A connection that a [`Service`] takes over.
pub struct Detached<A> {
    /// It is blocking, without timeouts, with TCP_NODELAY.
    pub stream: TcpStream,
    /// Where its client is.
    pub remote: SocketAddr,
    /// All bytes that were read and not consumed.
    pub received: Vec<u8>,
    /// What the latest long reply has of a budget: the kernel may still keep its bytes.
    pub held: Option<Share>,
    /// What the service has found out of it.
    pub admitted: A,
}

/// What a [`Service`] wants done with a connection. `A` is what it has found out of one that it takes over.
#[derive(Debug)]
pub enum Step<A> {
    /// Receive more.
    Wait,
    /// Send these bytes.
    Reply {
        /// What to send.
        bytes: Vec<u8>,
        /// How many of the received bytes this answers; the rest is looked at once the reply is sent. None at
        /// all closes the connection, or the same bytes would be answered again and again.
        consumed: usize,
        /// Whether the connection ends with this reply.
        close: bool,
        /// What the reply has of a budget, until it is sent.
        held: Option<Share>,
    },
    /// Send these bytes, which do not age and are made once, and receive more. All received bytes are
    /// consumed. The connection's deadline stays as it is.
    Say(Vec<u8>),
    /// Send these bytes, which do not age and are made once, and close.
    Last(Vec<u8>),
    /// Give the connection to [`Service::detached`], and this with it.
    Detach(A),
    /// Close it without a word.
    Close,
}
