//! The clients of `/watch` and `/sse` that wait: one thread and one poll(2) for all of them.
//!
//! They have places of their own, so that they cost no other request its place. The thread starts with the
//! first watcher. What is kept of a watcher is one event at most: the feed has the changes that it has not
//! been told of yet.

use super::response::{encode_head, encode_last, events};
use super::watch::{Mode, Telling, Waiting, event, told};
use super::{Observed, Source};
use crate::base::{LogEvent, RateLimit, boottime};
use crate::election::Moment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How many places there are for clients of this host alone: strangers cannot take them.
pub const LOOPBACK_WATCHERS: usize = 32;
/// For how long a watcher may take nothing while bytes wait for it.
const STALL_MAX: Duration = Duration::from_secs(5);
/// How often a stream without events has a comment, so that a dead client is noticed.
const COMMENT_EVERY: Duration = Duration::from_secs(10);
/// How many bytes a client may send that waits. It has nothing to say.
const IGNORED_BYTES_MAX: usize = 8 * 1024;
/// How long nothing is polled after poll(2) failed.
const POLL_PAUSE: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 256 * 1024;
/// Watchers that are cut off are logged, but not one by one.
const LOG_LINES: u32 = 4;
const LOG_LINE_EVERY: Duration = Duration::from_secs(30);
/// A browser that has lost its stream asks again after so many milliseconds.
const STREAM_BEGINS: &[u8] = b"retry: 1000\n\n";
const COMMENT: &[u8] = b":\n\n";

/// All that wait. When this is dropped, each has been told what holds then, and its connection is closed.
pub(super) struct Watchers<S: Source> {
    places: Arc<Places<S>>,
    room: Option<Room<S>>,
}

struct Places<S: Source> {
    source: Arc<S>,
    most: usize,
    taken: AtomicUsize,
}

/// A place of one watcher, which is free again when this is dropped.
pub(super) struct Place<S: Source>(Arc<Places<S>>);

impl<S: Source> Drop for Place<S> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.source.watchers(-1);
    }
}

/// The thread, as others see it.
struct Room<S: Source> {
    shared: Arc<Shared<S>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<S: Source> {
    stopping: AtomicBool,
    /// Those that the thread has not seen yet; each has a place.
    arrived: Mutex<Vec<Watcher<S>>>,
}

impl<S: Source> Watchers<S> {
    /// At most so many, and [`LOOPBACK_WATCHERS`] more of this host.
    pub(super) fn new(source: Arc<S>, most: usize) -> Watchers<S> {
        Watchers { places: Arc::new(Places { source, most, taken: AtomicUsize::new(0) }), room: None }
    }

    /// A place for a client of this host, if one is free.
    pub(super) fn place(&self, host: IpAddr) -> Option<Place<S>> {
        let places = &self.places;
        let most = places.most + if host.is_loopback() { LOOPBACK_WATCHERS } else { 0 };
        let one_more = |taken| (taken < most).then_some(taken + 1);
        places.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        places.source.watchers(1);
        Some(Place(Arc::clone(places)))
    }

    /// Serves this client from now on.
    ///
    /// # Errors
    /// The operating system refuses a thread, a pipe or the socket: the connection is closed.
    pub(super) fn add(
        &mut self,
        stream: TcpStream,
        remote: SocketAddr,
        waiting: Waiting,
        place: Place<S>,
    ) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let watcher = Watcher::new(stream, remote, waiting, place, boottime());
        let room = match &mut self.room {
            Some(room) => room,
            none => none.insert(Room::open(&self.places)?),
        };
        room.shared.arrived.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
        room.wake();
        Ok(())
    }
}

impl<S: Source> Room<S> {
    fn open(places: &Arc<Places<S>>) -> io::Result<Room<S>> {
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (wake, shared) = (
            Arc::new(wake),
            Arc::new(Shared { stopping: AtomicBool::new(false), arrived: Mutex::default() }),
        );
        let served = Loop {
            source: Arc::clone(&places.source),
            shared: Arc::clone(&shared),
            woken,
            watchers: Vec::new(),
            reported: Vec::new(),
            log: RateLimit::new(LOG_LINES, LOG_LINE_EVERY),
        };
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || served.run())?;
        places.source.feed().wake(Arc::clone(&wake));
        Ok(Room { shared, wake, thread: Some(thread) })
    }

    fn wake(&self) {
        // A full pipe wakes just as well.
        let _ = rustix::io::write(&*self.wake, &[0]);
    }
}

impl<S: Source> Drop for Room<S> {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // Its panic, if there was one, has been reported.
            let _ = thread.join();
        }
    }
}

struct Loop<S: Source> {
    source: Arc<S>,
    shared: Arc<Shared<S>>,
    woken: OwnedFd,
    watchers: Vec<Watcher<S>>,
    /// What poll(2) reported of each watcher, in their order.
    reported: Vec<PollFlags>,
    log: RateLimit,
}

impl<S: Source> Loop<S> {
    fn run(mut self) {
        let mut expires = None;
        loop {
            self.wait(expires);
            // Before the state is looked at: what it is to be told last is there by then.
            let stopping = self.shared.stopping.load(Ordering::Acquire);
            let arrived = &self.shared.arrived;
            self.watchers.append(&mut arrived.lock().unwrap_or_else(PoisonError::into_inner));
            self.reported.resize(self.watchers.len(), PollFlags::empty());
            let latest = self.source.observe();
            let now = boottime();
            for index in (0..self.watchers.len()).rev() {
                let watcher = &mut self.watchers[index];
                let reported = self.reported[index];
                if let Some(end) = watcher.turn(&*self.source, reported, now, &latest, stopping) {
                    self.reported.swap_remove(index);
                    let watcher = self.watchers.swap_remove(index);
                    self.end(watcher, end, now);
                }
            }
            if stopping {
                return;
            }
            expires = expiry(&latest).map(|left| now.plus(left));
        }
    }

    /// Waits until a watcher comes or a socket has something, the state changes, or a deadline passes.
    fn wait(&mut self, expires: Option<Moment>) {
        let now = boottime();
        let deadlines = self.watchers.iter().map(Watcher::deadline);
        // The end of a lease concerns none while none watches.
        let first = deadlines.chain(expires.filter(|_| !self.watchers.is_empty())).min();
        let timeout = first.map(|first| {
            let left = first.since(now).min(COMMENT_EVERY);
            // At most COMMENT_EVERY, so neither can overflow. A millisecond more, since a clock that is a
            // little behind must not make it turn in vain.
            let left = left + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        let mut sockets = Vec::with_capacity(1 + self.watchers.len());
        sockets.push(PollFd::new(&self.woken, PollFlags::IN));
        sockets.extend(self.watchers.iter().map(|w| PollFd::new(&w.stream, w.interest())));
        let polled = poll(&mut sockets, timeout.as_ref());
        self.reported.clear();
        if polled.is_ok() {
            self.reported.extend(sockets[1..].iter().map(PollFd::revents));
        } else {
            // Interrupted by a signal, or the kernel is out of memory for a moment.
            thread::sleep(POLL_PAUSE);
        }
        let mut bytes = [0; 64];
        while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }

    fn end(&mut self, watcher: Watcher<S>, end: End, now: Moment) {
        match end {
            End::Gone => {}
            End::Told => {
                // What it has been sent and not taken is the kernel's now.
                let _ = watcher.stream.shutdown(Shutdown::Write);
            }
            End::Cut => {
                // Best effort: if it fails, the kernel gives the unsent bytes up later by itself.
                let _ = socket2::SockRef::from(&watcher.stream).set_linger(Some(Duration::ZERO));
                self.source.watcher_cut();
                if let Some(held_back) = self.log.allow(now) {
                    LogEvent::warn("watcher_cut")
                        .with("address", watcher.remote)
                        .not_shown(held_back)
                        .say("a watcher takes nothing that it is told, so it is cut off; it may ask again");
                }
            }
        }
    }
}

/// In what time the leader of this state is none any more, unless the driver turns.
fn expiry(latest: &Observed) -> Option<Duration> {
    let snapshot = &latest.snapshot;
    snapshot.leader()?;
    let stale = snapshot.turned.plus(snapshot.status.answer_ttl);
    let until = snapshot.status.valid_until.map_or(stale, |until| until.min(stale));
    Some(until.since(snapshot.now))
}

/// Why a watcher is watched no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It has hung up.
    Gone,
    /// It has been told all that it asked for.
    Told,
    /// It does not take what it is told.
    Cut,
}

struct Watcher<S: Source> {
    stream: TcpStream,
    remote: SocketAddr,
    waiting: Waiting,
    /// What is being sent: of an answer or one event at most.
    out: Vec<u8>,
    written: usize,
    /// Since when it has taken none of those bytes.
    stalled: Option<Moment>,
    /// Until when a long poll waits, or when a stream has its next comment.
    until: Moment,
    /// When a stream repeats the state.
    repeats: Option<Moment>,
    /// Whether nothing follows on what is being sent.
    last: bool,
    ignored: usize,
    _place: Place<S>,
}

impl<S: Source> Watcher<S> {
    fn new(
        stream: TcpStream,
        remote: SocketAddr,
        waiting: Waiting,
        place: Place<S>,
        now: Moment,
    ) -> Watcher<S> {
        let (out, until, repeats) = match waiting.mode {
            Mode::LongPoll { timeout } => (Vec::new(), now.plus(timeout), None),
            Mode::Events { every } => {
                let begin = [&encode_head(events()), STREAM_BEGINS].concat();
                (begin, now.plus(COMMENT_EVERY), every.map(|every| now.plus(every)))
            }
        };
        Watcher {
            stream,
            remote,
            waiting,
            out,
            written: 0,
            stalled: None,
            until,
            repeats,
            last: false,
            ignored: 0,
            _place: place,
        }
    }

    fn interest(&self) -> PollFlags {
        if self.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    }

    fn deadline(&self) -> Moment {
        let due = self.repeats.map_or(self.until, |repeats| repeats.min(self.until));
        self.stalled.map_or(due, |stalled| stalled.plus(STALL_MAX))
    }

    /// Sends what is due and can be sent.
    fn turn(
        &mut self,
        source: &S,
        reported: PollFlags,
        now: Moment,
        latest: &Observed,
        stopping: bool,
    ) -> Option<End> {
        if reported.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP) && self.hung_up() {
            return Some(End::Gone);
        }
        loop {
            if !self.out.is_empty() {
                match self.write(now) {
                    Ok(true) => {}
                    Ok(false) if stopping => return Some(End::Told),
                    Ok(false) => {
                        return self.stalled.filter(|s| now.since(*s) >= STALL_MAX).map(|_| End::Cut);
                    }
                    Err(_) => return Some(End::Gone),
                }
            }
            if self.last {
                return Some(End::Told);
            }
            match self.next(source, now, latest, stopping) {
                Some(Ok(out)) => (self.out, self.written) = (out, 0),
                Some(Err(end)) => return Some(end),
                None if stopping => return Some(End::Told),
                None => return None,
            }
        }
    }

    /// What is to be sent now, if anything.
    fn next(
        &mut self,
        source: &S,
        now: Moment,
        latest: &Observed,
        stopping: bool,
    ) -> Option<Result<Vec<u8>, End>> {
        let Waiting { mode, next, telling } = self.waiting;
        let due = next <= latest.change.number;
        let change = if due { source.feed().change(next) } else { None };
        match mode {
            Mode::LongPoll { .. } => {
                if !due && now < self.until && !stopping {
                    return None;
                }
                self.last = true;
                let change = change.unwrap_or_else(|| Arc::clone(&latest.change));
                // More changes came at once than are kept.
                let missed = due && change.number != next;
                let telling = Telling { missed, ..telling };
                Some(Ok(encode_last(told(&change, latest, telling))))
            }
            Mode::Events { every } => {
                let change = match change {
                    Some(change) => change,
                    // It is more changes behind than are kept.
                    None if due => return Some(Err(End::Cut)),
                    None if self.repeats.is_some_and(|repeats| now >= repeats) => Arc::clone(&latest.change),
                    None if now >= self.until => {
                        self.until = now.plus(COMMENT_EVERY);
                        return Some(Ok(COMMENT.to_vec()));
                    }
                    None => return None,
                };
                self.waiting.next = change.number + 1;
                self.waiting.telling.missed = false;
                self.until = now.plus(COMMENT_EVERY);
                self.repeats = every.map(|every| now.plus(every));
                Some(Ok(event(&change, latest, telling)))
            }
        }
    }

    /// Writes what the socket takes. Whether that was all.
    fn write(&mut self, now: Moment) -> io::Result<bool> {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.written += bytes;
                    self.stalled = None;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stalled.get_or_insert(now);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.out = Vec::new();
        Ok(true)
    }

    /// Throws away what it sends. Whether it has hung up, or says more than a client that waits has to.
    fn hung_up(&mut self) -> bool {
        let mut scratch = [0; 512];
        loop {
            match self.stream.read(&mut scratch) {
                Ok(0) => return true,
                Ok(bytes) => {
                    self.ignored += bytes;
                    if self.ignored > IGNORED_BYTES_MAX {
                        return true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }
}
