//! One dial: a connection and the handshake over it.

use super::hello_check::{Introduction, Verdict, judge};
use super::{Inner, Report};
use crate::base::blocking_tcp::{connect_in_two_tries, left};
use crate::channel::{self, Channel, Got, PeerAuth};
use crate::election::Event;
use crate::wire::{self, Frame};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often one gathering of evidence dials.
const EVIDENCE_DIALS_MAX: u32 = 4;

/// Dials again at once, a few times, where a connection opened and broke in the handshake. A process that is
/// ending closes its sockets one by one, so its port may still have taken a connection that it will never
/// serve.
pub(super) fn dial_through(inner: &Inner, address: SocketAddr) -> io::Result<DialOutcome> {
    for _ in 1..EVIDENCE_DIALS_MAX {
        match dial(inner, address) {
            Err(error) if hung_up(&error) => {}
            answer => return answer,
        }
    }
    dial(inner, address)
}

/// What answered a dial.
pub(super) enum DialOutcome {
    Peer {
        peer: Box<Introduction>,
        channel: Channel,
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
        inner.report(Report::Event(Event::Advertise(own)));
    }
}

/// Connects and shakes hands: the dial timeout for the connection, and once more for the handshake.
pub(super) fn dial(inner: &Inner, address: SocketAddr) -> io::Result<DialOutcome> {
    let timeout = inner.settings.dial_timeout;
    // Zero stands for no dial.
    let token = Uuid::new_v4().as_u64_pair().0.max(1);
    inner.table().dial_begins(token, address);
    let asked = connect(inner, address, timeout)
        .and_then(|channel| ask_over(inner, channel, address, &inner.hello(token), timeout));
    inner.table().dial_ends(token);
    let (channel, answer) = asked?;
    let (frame, rest) = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let why = format!("{address} answered with no handshake: {error}");
            return Ok(DialOutcome::Refused { why, lasting: true });
        }
    };
    let own = SocketAddr::new(channel.stream().local_addr()?.ip().to_canonical(), inner.listen_port);
    let refused = |why, lasting| Ok(DialOutcome::Refused { why, lasting });
    let hello = match frame {
        Frame::Hello(hello) => hello,
        Frame::Refuse { why, text } => {
            let (me, cluster) = (&inner.settings.me, &inner.settings.cluster);
            let shown = format!("{:?} (id {}, election {cluster:?}): {text:?} ({why:?})", me.name, me.id);
            return refused(format!("{address} refuses {shown}"), why.is_lasting());
        }
        _ => return refused(format!("{address} answered with something that is no handshake"), true),
    };
    match judge(inner, &hello, address, channel.may_be_named(&hello.peer.name)) {
        Verdict::Welcome(peer) => {
            found_out(inner, own);
            Ok(DialOutcome::Peer { peer, channel, rest })
        }
        Verdict::Self_ => Ok(DialOutcome::Self_),
        Verdict::Refuse(why, text) => {
            let (peer, cluster) = (&hello.peer, &hello.cluster);
            let shown = format!("{:?} (id {}, election {cluster:?})", peer.name, peer.id);
            refused(format!("{shown} at {address} is refused: {text}"), why.is_lasting())
        }
    }
}

/// The first frame of an answer, and the bytes that came after it.
type Answer = Result<(Frame, Vec<u8>), wire::DecodeError>;

/// Says one frame over a new channel to an address, and reads the first frame of the answer.
pub(super) fn ask_over(
    inner: &Inner,
    channel: Channel,
    address: SocketAddr,
    first: &[u8],
    timeout: Duration,
) -> io::Result<(Channel, Answer)> {
    channel.send(first, || false)?;
    let deadline = Instant::now() + timeout;
    let mut received = Vec::new();
    loop {
        channel.stream().set_read_timeout(Some(left(deadline)?))?;
        let got = match channel.receive(&mut received) {
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(unproved(inner, address, error)),
        };
        // What follows the Hello at once is read with it, and is not part of the handshake's limit.
        match wire::decode(&received, wire::HELLO_BYTES_MAX) {
            Ok(None) if matches!(got, Got::Bytes) => {}
            Ok(None) => return Err(ErrorKind::UnexpectedEof.into()),
            // The answer and the end of the channel may come together.
            Ok(Some((frame, length))) => {
                let rest = received.split_off(length);
                return Ok((channel, Ok((frame, rest))));
            }
            Err(error) => return Ok((channel, Err(error))),
        }
    }
}

/// Opens a channel, with a proof where this process has one: a timeout for the connection, and the rest of it
/// for the channel's handshake.
pub(super) fn connect(inner: &Inner, address: SocketAddr, timeout: Duration) -> io::Result<Channel> {
    let credentials = &inner.settings.credentials;
    let deadline = Instant::now() + timeout;
    let stream = connect_in_clear(inner, address, timeout)?;
    let Some(keys) = credentials.keys() else { return Ok(Channel::clear(stream)) };
    match channel::open(stream, &keys, deadline) {
        // A process that knows no channel closes the connection at its first bytes.
        Err(error) if credentials.mode() == PeerAuth::Permissive && hung_up(&error) => {
            connect_in_clear(inner, address, timeout).map(Channel::clear)
        }
        opened => opened.map_err(|error| unproved(inner, address, error)),
    }
}

fn connect_in_clear(inner: &Inner, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = connect_in_two_tries(address, timeout)?;
    stream.set_nodelay(true)?;
    let own = SocketAddr::new(stream.local_addr()?.ip().to_canonical(), inner.listen_port);
    if !own.ip().is_loopback() {
        found_out(inner, own);
    }
    Ok(stream)
}

fn hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe)
}

/// Tells of a peer that did not prove itself, or to which this process did not.
fn unproved(inner: &Inner, address: SocketAddr, error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::InvalidData {
        inner.unauthenticated(address, &error);
    }
    error
}
