//! Dialling: for links that are sought, for messages that wait, and for evidence.

use super::door::{Answered, judge_answer};
use super::table::Dialled;
use super::{Inner, Report, link};
use crate::election::Peer;
use crate::net::boottime;
use crate::wire;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How long the seeking thread sleeps at most.
const SEEK_EVERY: Duration = Duration::from_secs(1);
/// How often one gathering of evidence dials.
const EVIDENCE_DIALS_MAX: u32 = 4;

/// Dials what is sought, until the transport is closed.
pub(super) fn seek(inner: &Arc<Inner>) {
    loop {
        let mut table = inner.table();
        if table.closed() {
            return;
        }
        let now = boottime();
        let (due, next) = table.due(now);
        if due.is_empty() {
            let wait = next.map_or(SEEK_EVERY, |next| next.since(now)).min(SEEK_EVERY);
            drop(
                inner
                    .seek_changed
                    .wait_timeout(table, wait.max(Duration::from_millis(1)))
                    .unwrap_or_else(PoisonError::into_inner),
            );
            continue;
        }
        drop(table);
        for address in due {
            begin(inner, address);
        }
    }
}

/// Dials an address, already marked as being dialled, on a thread of the pool.
pub(super) fn begin(inner: &Arc<Inner>, address: SocketAddr) {
    let job = Arc::clone(inner);
    let begun = inner.dials.run(move || {
        let outcome = match dial(&job, address) {
            Ok(Answer::Peer { peer, stream, rest }) => match twin(&job, &peer) {
                None => hand_over(&job, *peer, stream, rest),
                Some(known) => {
                    job.warn(format_args!("{}", two_of_one_id(&known, &peer)));
                    say_bye(&stream);
                    Dialled::Hopeless
                }
            },
            Ok(Answer::Self_) => {
                job.report(Report::ReachedSelf(address));
                Dialled::Hopeless
            }
            Ok(Answer::Refused(why)) => {
                job.warn(format_args!("{why}"));
                Dialled::Hopeless
            }
            Err(error) => {
                if error.kind() == ErrorKind::ConnectionRefused {
                    job.report(Report::Refused(address));
                }
                Dialled::Failed
            }
        };
        job.dial_over(address, outcome);
    });
    if begun.is_err() {
        inner.dial_over(address, Dialled::Failed);
    }
}

/// Gives a checked connection to a thread that reads it.
fn hand_over(inner: &Arc<Inner>, peer: Peer, stream: TcpStream, rest: Vec<u8>) -> Dialled {
    let job = Arc::clone(inner);
    match inner.links.run(move || link::serve(&job, peer, stream, rest)) {
        Ok(()) => Dialled::Linked,
        Err(saturated) => {
            inner.warn(format_args!("a connection was given up: {saturated}"));
            Dialled::Failed
        }
    }
}

/// Gathers evidence about a peer whose link ended unannounced: whether it crashed. A fresh dial at once tells: 150 ms
/// later, in a pod that is being deleted, nothing would be left to refuse it.
///
/// Refused: it is gone. Answered by another incarnation: it is gone, and that is a new link. Answered by the same one:
/// a blip, and a new link. Silence: nothing is known.
pub(super) fn evidence(inner: &Arc<Inner>, peer: &Peer) -> bool {
    if !inner.table().probe(peer.id, peer.incarnation) {
        return false;
    }
    let crashed = match dial_through(inner, peer.address) {
        Ok(Answer::Peer { peer: found, stream, rest }) => {
            let same_life = found.id == peer.id && found.incarnation == peer.incarnation;
            hand_over(inner, *found, stream, rest);
            !same_life
        }
        Ok(Answer::Self_) => true,
        Ok(Answer::Refused(_)) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    };
    inner.table().probed(peer.id, peer.incarnation);
    crashed
}

/// Another life of this newcomer that is alive elsewhere: two processes have one id, as when a state folder was copied.
/// Then the newer one is refused, or each would push out the other for ever. A life that is connected still and does not
/// answer a fresh dial is over; so is one whose address the newcomer has.
pub(super) fn twin(inner: &Inner, newcomer: &Peer) -> Option<Peer> {
    let former = inner.table().former(newcomer.id, newcomer.incarnation);
    let lives = |known: &Peer| match dial(inner, known.address) {
        Ok(Answer::Peer { peer: found, stream, .. }) => {
            say_bye(&stream);
            found.id == known.id && found.incarnation == known.incarnation
        }
        _ => false,
    };
    former.iter().map(|link| &link.peer).find(|p| p.address != newcomer.address && lives(p)).cloned()
}

/// What is said of [`twin`]s.
pub(super) fn two_of_one_id(known: &Peer, newcomer: &Peer) -> String {
    format!(
        "{} at {} is refused: {} at {} is alive and has this id too: {}; give each process a state folder of its own",
        newcomer.name, newcomer.address, known.name, known.address, known.id
    )
}

/// Closes a connection of which nothing is wanted: deliberately, so that the peer gathers no evidence.
fn say_bye(stream: &TcpStream) {
    // Who does not hear it finds out by a dial that this process lives.
    let _ = (&*stream).write_all(&wire::encode_bye());
}

/// Dials again at once, a few times, where a connection opened and broke in the handshake: a process that is ending
/// closes its sockets one by one, so its port may still have taken a connection that nobody will ever serve.
fn dial_through(inner: &Inner, address: SocketAddr) -> io::Result<Answer> {
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

enum Answer {
    Peer { peer: Box<Peer>, stream: TcpStream, rest: Vec<u8> },
    Self_,
    Refused(String),
}

/// Connects and shakes hands: the dial timeout for the connection, and once more for the handshake.
fn dial(inner: &Inner, address: SocketAddr) -> io::Result<Answer> {
    let timeout = inner.settings.dial_timeout;
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    let own = SocketAddr::new(stream.local_addr()?.ip().to_canonical(), inner.listen_port);
    if inner.table().advertise(own) {
        inner.report(Report::Advertise(own));
    }
    stream.set_write_timeout(Some(timeout))?;
    (&stream).write_all(&inner.hello())?;
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
                return Ok(match judge_answer(inner, frame, address) {
                    Answered::Peer(peer) => Answer::Peer { peer, stream, rest },
                    Answered::Self_ => Answer::Self_,
                    Answered::Refused(why) => Answer::Refused(why),
                });
            }
            Err(error) => {
                return Ok(Answer::Refused(format!("{address} answered with no handshake: {error}")));
            }
        }
    }
}
