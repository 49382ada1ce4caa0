//! One link: its own thread reads, any thread writes.

use super::{FRAME_DEADLINE, IDLE_AFTER, Inner, Report};
use crate::base::{Holder, LogEvent, RateLimit, Share, boottime, step};
use crate::channel::{Channel, Got};
use crate::election::{Body, Entry, Event, Message, Moment, Peer};
use crate::wire::{self, Frame, Refusal};
use std::io::ErrorKind;
use std::mem::size_of;
use std::net::{IpAddr, Shutdown};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many messages a peer may send at once, and how often one more after that. A leader tells a newcomer of
/// each member, and sends a few a second otherwise.
const MESSAGES_BURST: u32 = 4096;
const MESSAGES_EVERY: Duration = Duration::from_millis(1);
/// How long a reading thread waits for the rest of a frame, or for the first one over a link that it has
/// dialled: the timeout of its reads.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it looks up from a silent link otherwise. Each look wakes a thread, and there are many links.
const LOOK_SELDOM: Duration = Duration::from_secs(5);

/// How many bytes of an unfinished frame a link keeps without a share of the budget.
const FREE_BYTES: usize = 1024;
/// A message of so many bytes needs no share of the budget while it waits for the driver.
const SMALL_MESSAGE_BYTES: usize = 1024;
/// How messages name the budget.
const BUFFERS: &str = "--buffers-max";
/// How many bytes the kernel keeps for a peer to take; Linux counts its own overhead against twice as much.
pub(super) const SEND_BUFFER_BYTES: usize = 8 * 1024;
/// How many bytes it keeps for this process to read. TCP stalls where this is far less than a segment, which
/// has 64 KiB on loopback.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 32 * 1024;

/// How far that may grow where a peer is slow to take what it was sent.
const SEND_BUFFER_BYTES_MAX: usize = 2 * wire::FRAME_BYTES_MAX;

/// What the kernel may keep of what a peer has not taken yet.
struct Room {
    /// As the socket option counts.
    bytes: usize,
    /// What is above [`SEND_BUFFER_BYTES`] counts against the budget.
    held: Share,
    /// When it grew.
    since: Moment,
}

/// An open connection with a peer whose Hello has been checked.
pub(super) struct Link {
    pub(super) peer: Peer,
    /// Where the connection comes from or leads to.
    pub(super) host: IpAddr,
    pub(super) channel: Channel,
    room: Mutex<Room>,
    /// Its end is deliberate, on either side.
    closing: AtomicBool,
    /// Writing to it failed. Its reading thread finds out for itself, and gathers evidence.
    broken: AtomicBool,
    /// When something was last said, in milliseconds of [`boottime`].
    spoken_ms: AtomicU64,
    told: Mutex<Told>,
}

/// What the driver has been told of a link. Its own thread tells, and that of a link that takes its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Opened,
    /// Or that it has ended before it was told of: then it is not told of any more.
    Closed,
}

impl Link {
    /// `held`: an empty share, of the kind that `host` may have.
    pub(super) fn new(peer: Peer, host: IpAddr, channel: Channel, held: Share) -> Link {
        let room = Room { bytes: SEND_BUFFER_BYTES, held, since: Moment::default() };
        let link = Link {
            peer,
            host,
            channel,
            room: Mutex::new(room),
            closing: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            spoken_ms: AtomicU64::new(0),
            told: Mutex::new(Told::Nothing),
        };
        link.spoken();
        link
    }

    /// Tells of this link, unless its end has come before.
    pub(super) fn tell_opened(&self, inner: &Inner) {
        let mut told = self.told();
        if *told == Told::Nothing {
            *told = Told::Opened;
            inner.report(Report::Opened(self.peer.clone()));
        }
    }

    /// Tells of its end once, and of a crash in any case. A link that was told of twice, or late, would take
    /// the place of the one that came after it.
    pub(super) fn tell_closed(&self, inner: &Inner, crashed: bool) {
        let Peer { id, incarnation, .. } = self.peer;
        let mut told = self.told();
        if std::mem::replace(&mut *told, Told::Closed) == Told::Opened {
            inner.report(Report::Closed { id, incarnation, crashed });
        } else if crashed {
            inner.report(Report::Event(Event::Crashed { id, incarnation }));
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        // It is one word.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether there is any use in writing to it.
    pub(super) fn usable(&self) -> bool {
        !self.closing() && !self.broken.load(Ordering::Acquire)
    }

    fn spoken(&self) {
        let now = u64::try_from(boottime().0.as_millis()).unwrap_or(u64::MAX);
        self.spoken_ms.store(now, Ordering::Relaxed);
    }

    fn idle(&self) -> Duration {
        let spoken = crate::election::Moment(Duration::from_millis(self.spoken_ms.load(Ordering::Relaxed)));
        boottime().since(spoken)
    }

    /// Writes a whole frame without waiting. A socket that does not take all of it belongs to a peer that has
    /// not read for long. The link is cut then, since half a frame cannot be mended. False: it was not
    /// written.
    pub(super) fn write(&self, frame: &[u8]) -> bool {
        if !self.usable() {
            return false;
        }
        self.spoken();
        match self.channel.send(frame, || self.grow()) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.cut();
                false
            }
            Err(_) => {
                self.broken.store(true, Ordering::Release);
                let _ = self.channel.stream().shutdown(Shutdown::Both);
                false
            }
        }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        // It is valid at every unlock, and a panicking thread ends the process in the sidecar.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the kernel keep twice as much for a peer that has not taken yet what it was sent. False: it keeps
    /// as much as it may.
    fn grow(&self) -> bool {
        let mut room = self.room();
        let bytes = 2 * room.bytes;
        // Twice, as Linux counts its own overhead.
        if bytes > SEND_BUFFER_BYTES_MAX || !room.held.resize(2 * (bytes - SEND_BUFFER_BYTES)) {
            return false;
        }
        room.bytes = bytes;
        room.since = boottime();
        socket2::SockRef::from(self.channel.stream()).set_send_buffer_size(bytes).is_ok()
    }

    /// Takes the room back once the peer must have taken what it was sent: its kernel acknowledges within
    /// `unacknowledged_max`, or the link ends.
    fn shrink(&self, unacknowledged_max: Duration) {
        let mut room = self.room();
        if room.bytes > SEND_BUFFER_BYTES && boottime().since(room.since) > unacknowledged_max {
            room.bytes = SEND_BUFFER_BYTES;
            room.held.resize(0);
            // A socket that takes no option is at its end.
            let _ = socket2::SockRef::from(self.channel.stream()).set_send_buffer_size(SEND_BUFFER_BYTES);
        }
    }

    /// Ends the link without a word: this side's doing, so its end is no evidence.
    pub(super) fn cut(&self) {
        self.closing.store(true, Ordering::Release);
        let _ = self.channel.stream().shutdown(Shutdown::Both);
    }

    /// Nothing has been said for long.
    #[cfg(test)]
    pub(super) fn fall_silent(&self) {
        self.spoken_ms.store(0, Ordering::Relaxed);
    }

    /// Ends the connection as a fault in the network would.
    #[cfg(test)]
    pub(super) fn break_off(&self) {
        let _ = self.channel.stream().shutdown(Shutdown::Both);
    }

    /// Ends the link, announced.
    pub(super) fn say_bye(&self) {
        self.end_with(&wire::encode_bye());
    }

    /// Ends the link, since there is no room for its peer.
    pub(super) fn refuse(&self) {
        let text = "the cluster is full; start fewer processes in it, or give this one another --election";
        self.end_with(&wire::encode_refuse(Refusal::Full, text));
    }

    fn end_with(&self, last: &[u8]) {
        self.write(last);
        self.closing.store(true, Ordering::Release);
        let _ = self.channel.stream().shutdown(Shutdown::Write);
    }
}

/// How reading a link ended.
pub(super) enum End {
    /// Deliberately, on either side.
    Deliberate,
    /// Unannounced.
    Broken,
    /// The peer said something that it must not.
    Protocol(String),
}

/// Reads a link to its end. `received` holds bytes that came after the peer's Hello. `dialled`: this process
/// has dialled. The link then takes the place of those with former credentials, once the peer has taken it
/// in: when a frame has come over it, or a second has passed.
pub(super) fn read(inner: &Inner, link: &Link, mut received: Vec<u8>, mut dialled: bool) -> End {
    let dialler = dialled;
    let mut look = LOOK_EVERY;
    let mut frame_began = (!received.is_empty()).then(boottime);
    let mut rate = RateLimit::new(MESSAGES_BURST, MESSAGES_EVERY);
    let holder = inner.holder(link.host);
    let mut held = inner.settings.budget.share(holder);
    loop {
        link.shrink(inner.settings.unacknowledged_max);
        let arrived = received.len();
        match frames(inner, link, holder, &mut received, &mut rate) {
            Ok(true) => {}
            Ok(false) => return End::Deliberate,
            Err(what) => return End::Protocol(what),
        }
        if received.len() < arrived {
            // What is left, if anything, is of another frame, and how long this side took for the former ones
            // is not that one's fault.
            frame_began = (!received.is_empty()).then(boottime);
            received.shrink_to(FREE_BYTES);
        } else if !received.is_empty()
            && boottime().since(*frame_began.get_or_insert_with(boottime)) > FRAME_DEADLINE
        {
            return End::Protocol("it began a frame and did not finish it".to_owned());
        }
        if !held.resize(received.capacity().saturating_sub(FREE_BYTES)) {
            return End::Protocol(format!("what it began is longer than what is left of {BUFFERS}"));
        }
        let got = link.channel.receive(&mut received);
        let stands = matches!(&got, Ok(Got::Bytes)) && !received.is_empty()
            || matches!(&got, Err(error) if error.kind() == ErrorKind::WouldBlock);
        if stands && std::mem::take(&mut dialled) {
            for old in inner.table().links(link.peer.id).iter().filter(|old| inner.is_former(old)) {
                old.say_bye();
            }
        }
        let next_look = if received.is_empty() && !dialled { LOOK_SELDOM } else { LOOK_EVERY };
        if std::mem::replace(&mut look, next_look) != next_look {
            // A socket that takes no option is at its end.
            let _ = link.channel.stream().set_read_timeout(Some(next_look));
        }
        match got {
            Ok(Got::Broken) => return End::Broken,
            Ok(Got::Closed) => {
                return match frames(inner, link, holder, &mut received, &mut rate) {
                    Ok(_) => End::Deliberate,
                    Err(what) => End::Protocol(what),
                };
            }
            Ok(Got::Bytes) => link.spoken(),
            Err(e) if e.kind() == ErrorKind::InvalidData => return End::Protocol(e.to_string()),
            // A read timeout; TimedOut would be the kernel giving up on unacknowledged bytes.
            Err(e) if e.kind() == ErrorKind::WouldBlock && !link.closing() => {
                if dialler && link.idle() > IDLE_AFTER && is_spare(inner, link) {
                    link.say_bye();
                    return End::Deliberate;
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return End::Broken,
        }
    }
}

/// Whether the process that has dialled a link can do without it: it does not seek the peer, or has another
/// link with it. Only that process ends the link, since it cannot know whether the other one seeks it, and
/// would dial at once. Where each side has dialled, the lower id gives up its own link.
pub(super) fn is_spare(inner: &Inner, link: &Link) -> bool {
    let table = inner.table();
    !table.sought(&link.peer) || inner.settings.me.id < link.peer.id && !table.others(link).is_empty()
}

/// Takes whole frames off the front; false after a Bye.
fn frames(
    inner: &Inner,
    link: &Link,
    holder: Holder,
    received: &mut Vec<u8>,
    rate: &mut RateLimit,
) -> Result<bool, String> {
    let mut done = 0;
    let mut open = true;
    while open {
        let decoded = wire::decode(&received[done..], wire::FRAME_BYTES_MAX).map_err(|e| e.to_string())?;
        let Some((frame, length)) = decoded else { break };
        done += length;
        if rate.allow(boottime()).is_none() {
            return Err("it sends far more messages than any election takes".to_owned());
        }
        match frame {
            Frame::Message { stamp, message } => {
                if stamp.cluster != inner.stamp.cluster || stamp.id != link.peer.id {
                    return Err(format!(
                        "it sent a message stamped with cluster {:?} and id {}, which are not those of its \
                         handshake",
                        stamp.cluster, stamp.id
                    ));
                }
                inner.counts.received(message.body.name());
                step("received", message.body.name(), Some(stamp.id));
                let incarnation = link.peer.incarnation;
                let leaves = says_that_it_leaves(&message.body);
                match inner.settings.budget.take(holder, waiting_bytes(length, &message)) {
                    Some(held) => {
                        inner.report(Report::Received { from: stamp.id, incarnation, message, _held: held });
                        if leaves {
                            end_others(inner, link);
                        }
                    }
                    // Messages may be lost, and this peer sends more than this process can look at.
                    None => {
                        let event = LogEvent::warn("message_dropped")
                            .peer(&link.peer)
                            .with("message", message.body.name());
                        let text = format_args!("a message was dropped: nothing is left of {BUFFERS}");
                        inner.warn_of(link.host, event, text);
                    }
                }
            }
            Frame::Bye => {
                link.closing.store(true, Ordering::Release);
                open = false;
            }
            Frame::Unknown { .. } => inner.counts.unknown_frame(),
            Frame::Refuse { why: Refusal::Full, text } => {
                let event = LogEvent::warn("dial_refused").peer(&link.peer);
                inner.warn_of(link.host, event, format_args!("a peer refuses this process: {text:?}"));
                inner.table().turned_away(link.peer.address, boottime());
                inner.report(Report::Event(Event::TurnedAway));
                link.closing.store(true, Ordering::Release);
                open = false;
            }
            Frame::Hello(_) | Frame::Refuse { .. } | Frame::Confirm(_) | Frame::Confirmed(_) => {
                return Err("it sent a handshake frame after the handshake".to_owned());
            }
        }
    }
    received.drain(..done);
    Ok(open)
}

/// Whether its sender is no member from now on.
fn says_that_it_leaves(body: &Body) -> bool {
    matches!(body, Body::Leave { version: None, .. } | Body::Resign { leaving: true, .. })
}

/// The election forgets a process that leaves. If another process has said so in its name, its own links
/// would stay open without use: no message of a process that is no member counts, and no side dials.
fn end_others(inner: &Inner, link: &Link) {
    let others = inner.table().others(link);
    others.iter().for_each(|other| other.say_bye());
}

/// What a message counts for while it waits: its frame, and what decoding made of a list.
fn waiting_bytes(length: usize, message: &Message) -> usize {
    let entries = match &message.body {
        Body::LeaderInfo { entries, .. } | Body::Membership { entries, .. } => entries.len(),
        _ => 0,
    };
    let bytes = length + entries * size_of::<Entry>();
    if bytes > SMALL_MESSAGE_BYTES { bytes } else { 0 }
}
