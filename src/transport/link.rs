//! One link: its thread reads, anybody writes.

use super::table::Dialled;
use super::{FRAME_DEADLINE, IDLE_AFTER, Inner, Report, dial};
use crate::election::Peer;
use crate::net::boottime;
use crate::wire::{self, Frame};
use rustix::net::SendFlags;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a reading thread looks up from a silent link.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What one read takes at most.
const READ_BYTES: usize = 4 * 1024;

/// An open connection with a peer whose Hello has been checked.
pub(super) struct Link {
    pub(super) peer: Peer,
    stream: TcpStream,
    /// Frames of two threads must not mix.
    writing: Mutex<()>,
    /// Its end is deliberate, on either side.
    closing: AtomicBool,
    /// When something was last said, in milliseconds of [`boottime`].
    spoken_ms: AtomicU64,
}

impl Link {
    pub(super) fn new(peer: Peer, stream: TcpStream) -> Link {
        let link = Link {
            peer,
            stream,
            writing: Mutex::new(()),
            closing: AtomicBool::new(false),
            spoken_ms: AtomicU64::new(0),
        };
        link.spoken();
        link
    }

    pub(super) fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn spoken(&self) {
        let now = u64::try_from(boottime().0.as_millis()).unwrap_or(u64::MAX);
        self.spoken_ms.store(now, Ordering::Relaxed);
    }

    fn idle(&self) -> Duration {
        let spoken = crate::election::Moment(Duration::from_millis(self.spoken_ms.load(Ordering::Relaxed)));
        boottime().since(spoken)
    }

    /// Writes a whole frame without waiting. A socket that does not take all of it belongs to a peer that has not
    /// read for long: the link is cut, since half a frame cannot be mended. False: it was not written.
    pub(super) fn write(&self, frame: &[u8]) -> bool {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closing() {
            return false;
        }
        self.spoken();
        match rustix::net::send(&self.stream, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) if sent == frame.len() => true,
            Ok(_) | Err(rustix::io::Errno::AGAIN) => {
                self.cut();
                false
            }
            // The link has failed; its reading thread finds that out for itself and gathers evidence.
            Err(_) => {
                let _ = self.stream.shutdown(Shutdown::Both);
                false
            }
        }
    }

    /// Ends the link without a word: this side's doing, so its end is no evidence.
    pub(super) fn cut(&self) {
        self.closing.store(true, Ordering::Release);
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Ends the connection as a fault in the network would.
    #[cfg(test)]
    pub(super) fn break_off(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Ends the link, announced.
    pub(super) fn say_bye(&self) {
        self.write(&wire::encode_bye());
        self.closing.store(true, Ordering::Release);
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// How reading a link ended.
enum End {
    /// Deliberately, on either side.
    Deliberate,
    /// Unannounced.
    Broken,
    /// The peer said something that it must not.
    Protocol(String),
}

/// Takes a checked connection into the table and reads it to its end, on a thread of the link pool. `received` holds
/// bytes that came after the peer's Hello.
pub(super) fn serve(inner: &Arc<Inner>, peer: Peer, stream: TcpStream, received: Vec<u8>) {
    let (id, incarnation, address) = (peer.id, peer.incarnation, peer.address);
    if prepare(inner, &stream).is_err() {
        return;
    }
    let link = Arc::new(Link::new(peer.clone(), stream));
    let (former, waiting) = {
        let mut table = inner.table();
        (table.former(id, incarnation), table.add(&link))
    };
    let Some(waiting) = waiting else {
        if !inner.table().closed() {
            let name = &peer.name;
            inner.warn(format_args!(
                "a connection with {name} ({id}, {address}) was given up: too many are open"
            ));
        }
        return link.say_bye();
    };
    // Another incarnation has come: the one before is gone, and that is this link's doing to report, in order.
    for old in former {
        old.cut();
        inner.report(Report::Closed { id, incarnation: old.peer.incarnation, crashed: true });
    }
    inner.report(Report::Opened(peer));
    for frame in waiting {
        link.write(&frame);
    }
    let end = read(inner, &link, received);
    let deliberate = link.closing() || matches!(end, End::Deliberate);
    inner.table().remove(&link);
    link.cut();
    let crashed = match end {
        End::Protocol(what) => {
            inner.warn(format_args!(
                "the connection with {} ({id}, {address}) was closed: {what}",
                link.peer.name
            ));
            false
        }
        _ if deliberate => false,
        _ => dial::evidence(inner, &link.peer),
    };
    inner.report(Report::Closed { id, incarnation, crashed });
    inner.seek_changed.notify_one();
}

/// Deadlines and limits of a socket that will be a link.
fn prepare(inner: &Inner, stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let socket = socket2::SockRef::from(stream);
    // Room for a whole membership list besides what is under way, so that a write never has to wait.
    socket.set_send_buffer_size(2 * wire::FRAME_BYTES_MAX)?;
    // Without this, a link over a cut network lives for a quarter of an hour and is slow for minutes after.
    socket.set_tcp_user_timeout(Some(inner.settings.unacknowledged_max))
}

fn read(inner: &Inner, link: &Link, mut received: Vec<u8>) -> End {
    let mut buffer = [0u8; READ_BYTES];
    let mut frame_began = (!received.is_empty()).then(boottime);
    loop {
        match frames(inner, link, &mut received) {
            Ok(true) => {}
            Ok(false) => return End::Deliberate,
            Err(what) => return End::Protocol(what),
        }
        if received.is_empty() {
            frame_began = None;
        } else if boottime().since(*frame_began.get_or_insert_with(boottime)) > FRAME_DEADLINE {
            return End::Protocol("it began a frame and did not finish it".to_owned());
        }
        match (&link.stream).read(&mut buffer) {
            Ok(0) => return End::Broken,
            Ok(count) => {
                link.spoken();
                received.extend_from_slice(&buffer[..count]);
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) && !link.closing() => {
                // A read timeout is WouldBlock; TimedOut is the kernel giving up on unacknowledged bytes.
                if e.kind() == ErrorKind::TimedOut {
                    return End::Broken;
                }
                if link.idle() > IDLE_AFTER && !inner.table().sought(&link.peer) {
                    link.say_bye();
                    return End::Deliberate;
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return End::Broken,
        }
    }
}

/// Takes whole frames off the front; false after a Bye.
fn frames(inner: &Inner, link: &Link, received: &mut Vec<u8>) -> Result<bool, String> {
    let mut done = 0;
    let mut open = true;
    while open {
        let decoded = wire::decode(&received[done..], wire::FRAME_BYTES_MAX).map_err(|e| e.to_string())?;
        let Some((frame, length)) = decoded else { break };
        done += length;
        match frame {
            Frame::Message { stamp, message } => {
                if stamp.cluster != inner.stamp.cluster || stamp.id != link.peer.id {
                    return Err(format!(
                        "it sent a message stamped with cluster \"{}\" and id {}, which are not those of its \
                         handshake",
                        stamp.cluster, stamp.id
                    ));
                }
                inner.counts.received(message.body.name());
                inner.report(Report::Received { from: stamp.id, message });
            }
            Frame::Bye => {
                link.closing.store(true, Ordering::Release);
                open = false;
            }
            Frame::Unknown { .. } => inner.counts.unknown_frame(),
            Frame::Hello(_) | Frame::Refuse { .. } => {
                return Err("it sent a handshake frame after the handshake".to_owned());
            }
        }
    }
    received.drain(..done);
    Ok(open)
}

impl Inner {
    /// Keeps the frame and dials for it, unless a dial is under way.
    pub(super) fn send_by_dialling(
        self: &Arc<Inner>,
        to: crate::election::ProcessId,
        address: std::net::SocketAddr,
        frame: Vec<u8>,
    ) {
        if self.table().wait(to, address, frame) {
            dial::begin(self, address);
        } else {
            // A link may have come up between the look for one and now; its own hand-over of what waits was then too
            // early for this frame.
            if let Some(link) = self.table().link(to) {
                for frame in self.table().take_waiting(to) {
                    link.write(&frame);
                }
            }
        }
    }

    pub(super) fn dial_over(&self, address: std::net::SocketAddr, outcome: Dialled) {
        self.table().dialled(address, outcome, boottime());
        self.seek_changed.notify_one();
    }
}
