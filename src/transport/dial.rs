//! One dial: a connection and the handshake over it.

use super::handshake::{Answered, judge_answer};
use super::{Inner, Report};
use crate::election::Peer;
use crate::wire::{self, Frame};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often one gathering of evidence dials.
const EVIDENCE_DIALS_MAX: u32 = 4;

/// Dials again at once, a few times, where a connection opened and broke in the handshake. A process that is
/// ending closes its sockets one by one, so its port may still have taken a connection that it will never
/// serve.
pub(super) fn dial_through(inner: &Inner, address: SocketAddr) -> io::Result<DialOutcome> {
    let broke =
        |kind| matches!(kind, ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe);
    for _ in 1..EVIDENCE_DIALS_MAX {
        match dial(inner, address) {
            Err(error) if broke(error.kind()) => {}
            answer => return answer,
        }
    }
    dial(inner, address)
}

/// What answered a dial.
pub(super) enum DialOutcome {
    Peer {
        peer: Box<Peer>,
        stream: TcpStream,
        rest: Vec<u8>,
    },
    Self_,
    /// `lasting`: another dial will have the same answer.
    Refused {
        why: String,
        lasting: bool,
    },
}

/// Takes down where peers reach this process, if that was not known. A loopback address says so only where a
/// peer is there too. A host's own name often leads to one, and no other host reaches a peer by it.
fn found_out(inner: &Inner, own: SocketAddr) {
    if inner.table().advertise(own) {
        inner.report(Report::Advertise(own));
    }
}

/// Connects and shakes hands: the dial timeout for the connection, and once more for the handshake.
pub(super) fn dial(inner: &Inner, address: SocketAddr) -> io::Result<DialOutcome> {
    let timeout = inner.settings.dial_timeout;
    // Zero stands for no dial.
    let token = Uuid::new_v4().as_u64_pair().0.max(1);
    inner.table().dial_begins(token, address);
    let asked = ask(inner, address, &inner.hello(token), timeout);
    inner.table().dial_ends(token);
    let (stream, answer) = asked?;
    let (frame, rest) = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let why = format!("{address} answered with no handshake: {error}");
            return Ok(DialOutcome::Refused { why, lasting: true });
        }
    };
    let own = SocketAddr::new(stream.local_addr()?.ip().to_canonical(), inner.listen_port);
    Ok(match judge_answer(inner, frame, address) {
        Answered::Peer(peer) => {
            found_out(inner, own);
            DialOutcome::Peer { peer, stream, rest }
        }
        Answered::Self_ => DialOutcome::Self_,
        Answered::Refused { why, lasting } => DialOutcome::Refused { why, lasting },
    })
}

/// The first frame of an answer, and the bytes that came after it.
type Answer = Result<(Frame, Vec<u8>), wire::DecodeError>;

/// Connects, says one frame, and reads the first frame of the answer: a timeout for the connection, and once
/// more for the answer.
pub(super) fn ask(
    inner: &Inner,
    address: SocketAddr,
    first: &[u8],
    timeout: Duration,
) -> io::Result<(TcpStream, Answer)> {
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    let own = SocketAddr::new(stream.local_addr()?.ip().to_canonical(), inner.listen_port);
    if !own.ip().is_loopback() {
        found_out(inner, own);
    }
    stream.set_write_timeout(Some(timeout))?;
    (&stream).write_all(first)?;
    let deadline = Instant::now() + timeout;
    let mut received = Vec::new();
    let mut buffer = [0u8; wire::HELLO_BYTES_MAX];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match (&stream).read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // What follows the Hello at once is read with it, and is not part of the handshake's limit.
        match wire::decode(&received, wire::HELLO_BYTES_MAX) {
            Ok(None) => {}
            Ok(Some((frame, length))) => {
                let rest = received.split_off(length);
                return Ok((stream, Ok((frame, rest))));
            }
            Err(error) => return Ok((stream, Err(error))),
        }
    }
}
