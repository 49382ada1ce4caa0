//! One connection of a [`Listener`](super::Listener): what has been received of it, what is still to be sent,
//! and until when.

use super::service::{Detached, Limits, Service, Step};
use crate::base::{Share, boottime};
use crate::election::Moment;
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How old an answer may be when it is last looked at, just before the first byte of its reply is written. An
/// older one is thrown away and the [`Service`] asked again: the process was stopped in between, and the
/// answer may be false by now.
///
/// What holds is that the answer was true at one instant between question and answer. Between the last look
/// and write(2) a stop of the process (SIGSTOP, no CPU time, a suspend) can still send an old one.
pub const ANSWER_AGE_MAX: Duration = Duration::from_millis(10);
/// How often the same bytes are answered until one answer is young enough; then the connection is closed
/// without one.
pub const ANSWER_ATTEMPTS_MAX: u32 = 8;
/// How long a connection is read on after its last reply. A client that is still sending must not lose the
/// reply to a reset.
pub const DRAIN_DEADLINE: Duration = Duration::from_millis(500);
/// How many bytes are read and thrown away in that time.
pub const DRAIN_BYTES_MAX: usize = 256 * 1024;

/// How many bytes the kernel keeps for a client to take. Many clients that take nothing must cost little;
/// Linux counts its own overhead against twice as much.
pub(super) const SEND_BUFFER_BYTES: usize = 8 * 1024;
/// How many bytes the kernel keeps for this process to read. TCP stalls where this is far less than a
/// segment, which has 64 KiB on loopback.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 32 * 1024;
/// How many bytes of a long reply it takes at one go.
const LONG_REPLY_BYTES: usize = 256 * 1024;

/// What becomes of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate<A> {
    /// It goes on.
    Keep,
    /// It ends.
    Close,
    /// It ends, and the kernel forgets what it has not sent yet.
    Reset,
    /// The service takes it over.
    Detach(A),
}

#[derive(Debug)]
enum Phase {
    /// Waits for bytes; or, when `unseen`, for its turn.
    Receiving,
    /// Holds a complete request, but the socket takes no bytes. The answer is made once it does, and is young
    /// then.
    Blocked,
    /// Sends.
    Writing { reply: Vec<u8>, written: usize, then: Then },
    /// Has sent everything and said so; throws away what still comes, at most so many bytes.
    Draining { bytes_left: usize },
}

/// What follows on the last byte of a reply.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The next request.
    Next,
    /// The rest of this one, until the same deadline.
    Rest,
    /// The end.
    Close,
}

/// A connection that is being served. `T` is what its service keeps of it.
pub(super) struct Connection<T> {
    stream: TcpStream,
    remote: SocketAddr,
    session: T,
    /// All bytes that no reply has consumed; at most `receive_bytes_max`.
    received: Vec<u8>,
    phase: Phase,
    /// Whether the service has not seen all of `received` yet.
    unseen: bool,
    /// Whether it is kept alive between two requests.
    idle: bool,
    /// Since when it waits: since it was accepted, or its last reply was sent.
    since: Moment,
    /// Until when the present phase may last.
    deadline: Moment,
    /// How many bytes the kernel keeps for its client to take.
    room: usize,
    /// What the latest long reply has of a budget. The kernel keeps its bytes until the client has taken
    /// them, and that is known once there is room again.
    held: Option<Share>,
}

impl<T: Default> Connection<T> {
    /// Takes a non-blocking stream.
    pub(super) fn new(stream: TcpStream, remote: SocketAddr, now: Moment, limits: &Limits) -> Connection<T> {
        Connection {
            stream,
            remote,
            session: T::default(),
            received: Vec::new(),
            phase: Phase::Receiving,
            unseen: false,
            idle: false,
            since: now,
            deadline: now.plus(limits.receive_deadline),
            room: SEND_BUFFER_BYTES,
            held: None,
        }
    }

    /// Where its client is.
    pub(super) fn host(&self) -> IpAddr {
        self.remote.ip()
    }

    /// Its socket.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What to poll its socket for. Nothing is read while a reply is due or on its way.
    pub(super) fn interest(&self) -> PollFlags {
        match self.phase {
            Phase::Receiving if self.unseen => PollFlags::empty(),
            Phase::Receiving if self.held.is_some() => PollFlags::IN | PollFlags::OUT,
            Phase::Receiving | Phase::Draining { .. } => PollFlags::IN,
            Phase::Blocked | Phase::Writing { .. } => PollFlags::OUT,
        }
    }

    /// Whether [`Connection::answer`] has something to do.
    pub(super) fn due(&self) -> bool {
        self.unseen
    }

    /// Until when it may go on as it is.
    pub(super) fn deadline(&self) -> Moment {
        self.deadline
    }

    /// How it compares with others when one must go. Those that wait for bytes go before those that have work
    /// under way, and among them the one that has waited longest.
    pub(super) fn eviction_order(&self) -> (bool, Moment) {
        let waits = matches!(self.phase, Phase::Receiving | Phase::Draining { .. }) && !self.unseen;
        (!waits, self.since)
    }

    /// How it goes when it must. A kept-alive connection is closed in good order, so that its client dials
    /// anew; the kernel forgets all others at once.
    pub(super) fn evicted<A>(&self) -> Fate<A> {
        if self.idle { Fate::Close } else { Fate::Reset }
    }

    /// Goes on after poll(2) has reported `events`.
    pub(super) fn advance<A>(
        &mut self,
        events: PollFlags,
        scratch: &mut [u8],
        now: Moment,
        limits: &Limits,
    ) -> Fate<A> {
        if events.is_empty() {
            return Fate::Keep;
        }
        match &mut self.phase {
            Phase::Receiving if !self.unseen => {
                if events.contains(PollFlags::OUT) {
                    self.held = None;
                }
                if events == PollFlags::OUT { Fate::Keep } else { self.receive(scratch, now, limits) }
            }
            // Only an error or a hang-up in both directions is reported then: no client is left to answer.
            Phase::Receiving => Fate::Close,
            Phase::Blocked | Phase::Writing { .. }
                if events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) =>
            {
                Fate::Close
            }
            Phase::Blocked => {
                self.unseen = true;
                Fate::Keep
            }
            Phase::Writing { .. } => self.write(now, limits),
            Phase::Draining { bytes_left } => match self.stream.read(scratch) {
                Ok(0) => Fate::Close,
                Ok(bytes) if bytes < *bytes_left => {
                    *bytes_left -= bytes;
                    Fate::Keep
                }
                Ok(_) => Fate::Close,
                Err(error) => fate_of(&error),
            },
        }
    }

    fn receive<A>(&mut self, scratch: &mut [u8], now: Moment, limits: &Limits) -> Fate<A> {
        // There is room: a full buffer has ended the connection in `answer`.
        let room = limits.receive_bytes_max.saturating_sub(self.received.len()).clamp(1, scratch.len());
        match self.stream.read(&mut scratch[..room]) {
            Ok(0) => Fate::Close,
            Ok(bytes) => {
                if std::mem::take(&mut self.idle) {
                    self.deadline = now.plus(limits.receive_deadline);
                }
                self.received.extend_from_slice(&scratch[..bytes]);
                self.unseen = true;
                Fate::Keep
            }
            Err(error) => fate_of(&error),
        }
    }

    /// Asks the service what the received bytes want, and begins to carry it out.
    pub(super) fn answer<S: Service<Session = T>>(
        &mut self,
        service: &mut S,
        limits: &Limits,
    ) -> Fate<S::Admitted> {
        self.unseen = false;
        for _ in 0..ANSWER_ATTEMPTS_MAX {
            let asked = boottime();
            let (reply, consumed, close, held) =
                match service.received(&mut self.session, &self.received, self.remote) {
                    Step::Wait if self.received.len() >= limits.receive_bytes_max => {
                        let last = service.overflow(&self.received, self.remote);
                        return self.finish(last, asked, limits);
                    }
                    Step::Wait => {
                        self.phase = Phase::Receiving;
                        return Fate::Keep;
                    }
                    Step::Last(reply) => return self.finish(Some(reply), asked, limits),
                    Step::Detach(admitted) => return Fate::Detach(admitted),
                    Step::Close => return Fate::Close,
                    Step::Say(reply) => {
                        self.received.clear();
                        self.phase = Phase::Writing { reply, written: 0, then: Then::Rest };
                        return self.write(asked, limits);
                    }
                    Step::Reply { bytes, consumed, close, held } => {
                        (bytes, consumed, close || consumed == 0, held)
                    }
                };
            let now = boottime();
            if now.since(asked) > ANSWER_AGE_MAX {
                continue;
            }
            self.make_room(if held.is_some() { reply.len() } else { 0 });
            let written = match self.write_some(&reply) {
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !matches!(self.phase, Phase::Blocked) {
                        self.phase = Phase::Blocked;
                        self.deadline = now.plus(limits.write_deadline);
                    }
                    return Fate::Keep;
                }
                Err(_) => return Fate::Close,
            };
            self.held = held;
            self.received.drain(..consumed.min(self.received.len()));
            let then = if close { Then::Close } else { Then::Next };
            self.phase = Phase::Writing { reply, written, then };
            self.deadline = now.plus(limits.write_deadline);
            return self.write(now, limits);
        }
        Fate::Close
    }

    /// Has the kernel take a reply of so many bytes at one go, or no more than usual. A long one that does
    /// not fit waits for its first part to be acknowledged, which takes the client 40 ms.
    fn make_room(&mut self, bytes: usize) {
        let room = bytes.clamp(SEND_BUFFER_BYTES, LONG_REPLY_BYTES);
        if room != self.room {
            self.room = room;
            // A socket that takes no option is at its end, which the next write shows.
            let _ = socket2::SockRef::from(&self.stream).set_send_buffer_size(room);
        }
    }

    /// Says the last words, if any, and closes.
    fn finish<A>(&mut self, last: Option<Vec<u8>>, now: Moment, limits: &Limits) -> Fate<A> {
        let Some(reply) = last else {
            return Fate::Close;
        };
        self.unseen = false;
        self.phase = Phase::Writing { reply, written: 0, then: Then::Close };
        self.deadline = now.plus(limits.write_deadline);
        self.write(now, limits)
    }

    /// Ends what has lasted too long.
    pub(super) fn expire<S: Service>(
        &mut self,
        service: &mut S,
        now: Moment,
        limits: &Limits,
    ) -> Fate<S::Admitted> {
        match self.phase {
            Phase::Receiving => {
                let last = service.overdue(&self.received, self.remote);
                self.finish(last, now, limits)
            }
            Phase::Blocked | Phase::Writing { .. } => Fate::Reset,
            Phase::Draining { .. } => Fate::Close,
        }
    }

    /// One write(2), repeated where a signal interrupted it.
    fn write_some(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Writes as much of the reply as the socket takes.
    fn write<A>(&mut self, now: Moment, limits: &Limits) -> Fate<A> {
        let Phase::Writing { reply, mut written, then } =
            std::mem::replace(&mut self.phase, Phase::Receiving)
        else {
            return Fate::Keep;
        };
        while written < reply.len() {
            match self.write_some(&reply[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.phase = Phase::Writing { reply, written, then };
                    return Fate::Keep;
                }
                Err(_) => return Fate::Close,
            }
        }
        if matches!(then, Then::Rest) {
            return Fate::Keep;
        }
        self.since = now;
        if matches!(then, Then::Close) {
            if self.stream.shutdown(Shutdown::Write).is_err() {
                return Fate::Close;
            }
            self.received = Vec::new();
            self.phase = Phase::Draining { bytes_left: DRAIN_BYTES_MAX };
            self.deadline = now.plus(DRAIN_DEADLINE);
            return Fate::Keep;
        }
        if self.held.is_some() {
            // From now on there is room only once the client has taken most of the reply.
            self.make_room(0);
        }
        self.unseen = !self.received.is_empty();
        self.idle = self.received.is_empty();
        self.deadline = now.plus(if self.idle { limits.idle_deadline } else { limits.receive_deadline });
        Fate::Keep
    }

    /// Carries out a fate other than [`Fate::Keep`].
    pub(super) fn end<S: Service>(mut self, fate: Fate<S::Admitted>, service: &mut S) {
        match fate {
            Fate::Keep | Fate::Close => {}
            Fate::Reset => {
                // Best effort: if it fails, the kernel gives the unsent bytes up later by itself.
                let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
            }
            Fate::Detach(admitted) => {
                // A listening socket's timeouts are inherited, and these matter now that it blocks.
                let blocking = self
                    .stream
                    .set_nonblocking(false)
                    .and_then(|()| self.stream.set_read_timeout(None))
                    .and_then(|()| self.stream.set_write_timeout(None));
                // A long reply may have enlarged it.
                self.make_room(0);
                if blocking.is_ok() {
                    let Connection { stream, remote, received, held, .. } = self;
                    service.detached(Detached { stream, remote, received, held, admitted });
                }
            }
        }
    }
}

fn fate_of<A>(error: &std::io::Error) -> Fate<A> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Fate::Keep,
        _ => Fate::Close,
    }
}
