//! The clients of `/watch` and `/sse` that wait: one thread and one poll(2) for all of them.
//!
//! They have places of their own, so that they cost no other request its place. The thread starts with the
//! first watcher. What is kept of a watcher is one event at most: the feed has the changes that it has not
//! been told of yet.

use super::response::{encode_head, encode_last, events};
use super::watch::{Mode, Telling, Waiting, event, expiry, told};
use super::{Observed, Source};
use crate::base::{LogEvent, RateLimit, Share, boottime};
use crate::election::{Moment, Sign};
use crate::net::{self, ANSWER_AGE_MAX, ANSWER_ATTEMPTS_MAX, Detached, Places, Taken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// How often the driver hears that applications act on validities. Leases stay long for longer than that.
const SIGN_EVERY: Duration = Duration::from_secs(2);
/// How long nothing is polled after poll(2) failed.
const POLL_PAUSE: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 256 * 1024;
/// Watchers that are cut off are logged, but not one by one.
const LOG_LINES: u32 = 4;
const LOG_LINE_EVERY: Duration = Duration::from_secs(30);
/// A browser that has lost its stream asks again after this number of milliseconds.
const STREAM_BEGINS: &[u8] = b"retry: 1000\n\n";
const COMMENT: &[u8] = b":\n\n";

/// All that wait. When this is dropped, each has been told what holds then, and its connection is closed.
pub(super) struct Watchers<S: Source> {
    source: Arc<S>,
    most: usize,
    places: Places,
    worker: Option<Worker<S>>,
}

/// A place of one watcher, which is free again when this is dropped.
pub(super) struct Place<S: Source> {
    _place: net::Place,
    /// It goes last: a client that sees the place free gets it.
    _counted: Counted<S>,
}

/// One watcher of the metric.
struct Counted<S: Source>(Arc<S>);

impl<S: Source> Drop for Counted<S> {
    fn drop(&mut self) {
        self.0.watchers(-1);
    }
}

/// The thread, as others see it.
struct Worker<S: Source> {
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
    /// `most` clients, and [`LOOPBACK_WATCHERS`] more of this host.
    pub(super) fn new(source: Arc<S>, most: usize) -> Watchers<S> {
        Watchers { source, most, places: Places::default(), worker: None }
    }

    /// A place for a client of this host, if one is free.
    pub(super) fn place(&self, host: IpAddr) -> Option<Place<S>> {
        let fits = |taken: &Taken| {
            if host.is_loopback() {
                return taken.all() < self.most + LOOPBACK_WATCHERS;
            }
            // No host has all that there are, as at the status port itself.
            taken.all() < self.most && taken.of_host(host) < (self.most * 3 / 4).max(1)
        };
        let place = self.places.take(host, false, fits)?;
        self.source.watchers(1);
        Some(Place { _place: place, _counted: Counted(Arc::clone(&self.source)) })
    }

    /// Serves this client from now on.
    ///
    /// # Errors
    /// The operating system refuses a thread, a pipe or an option of the socket: the connection is closed.
    pub(super) fn add(&mut self, detached: Detached<(Waiting, Place<S>)>) -> io::Result<()> {
        detached.stream.set_nonblocking(true)?;
        // Also for bytes that only the kernel still keeps.
        socket2::SockRef::from(&detached.stream).set_tcp_user_timeout(Some(STALL_MAX))?;
        let watcher = Watcher::new(detached, boottime());
        let worker = match &mut self.worker {
            Some(worker) => worker,
            none => none.insert(Worker::open(&self.source)?),
        };
        worker.shared.arrived.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
        worker.wake();
        Ok(())
    }
}

impl<S: Source> Worker<S> {
    fn open(source: &Arc<S>) -> io::Result<Worker<S>> {
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (wake, shared) = (
            Arc::new(wake),
            Arc::new(Shared { stopping: AtomicBool::new(false), arrived: Mutex::default() }),
        );
        let served = Loop {
            source: Arc::clone(source),
            shared: Arc::clone(&shared),
            woken,
            watchers: Vec::new(),
            reported: Vec::new(),
            log: RateLimit::new(LOG_LINES, LOG_LINE_EVERY),
            told: (Moment::default(), Duration::ZERO),
        };
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || served.run())?;
        source.feed().wake(Arc::clone(&wake));
        Ok(Worker { shared, wake, thread: Some(thread) })
    }

    fn wake(&self) {
        // A full pipe wakes just as well.
        let _ = rustix::io::write(&*self.wake, &[0]);
    }
}

impl<S: Source> Drop for Worker<S> {
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
    /// When the driver heard last that applications act on validities, and how long those are to be.
    told: (Moment, Duration),
}

/// What the watchers of one turn are told.
struct Turn {
    /// The state.
    latest: Observed,
    /// A moment before it was looked at.
    at: Moment,
    /// Whether this turn is the last.
    stopping: bool,
}

impl Turn {
    /// Whether the state is too old to be told as that of now: this thread was held up since.
    fn is_old(&self) -> bool {
        boottime().since(self.at) > ANSWER_AGE_MAX
    }
}

impl<S: Source> Loop<S> {
    fn run(mut self) {
        let (mut expires, mut held_up, mut last_turns) = (None, false, 0);
        loop {
            // A turn that was held up goes on at once.
            self.wait(if held_up { Some(boottime()) } else { expires });
            // Before the state is looked at: what it is to be told last is there by then.
            let stopping = self.shared.stopping.load(Ordering::Acquire);
            let arrived = &self.shared.arrived;
            self.watchers.append(&mut arrived.lock().unwrap_or_else(PoisonError::into_inner));
            self.reported.resize(self.watchers.len(), PollFlags::empty());
            let at = boottime();
            let turn = Turn { latest: self.source.observe(), at, stopping };
            self.tell_of_validities(at);
            held_up = !self.turn(&turn);
            last_turns += u32::from(stopping);
            if stopping && (!held_up || last_turns >= ANSWER_ATTEMPTS_MAX) {
                return;
            }
            expires = expiry(&turn.latest).map(|left| at.plus(left));
        }
    }

    /// Tells each watcher what is due. False: the state has become too old meanwhile, and those that were not
    /// told are the first next time.
    fn turn(&mut self, turn: &Turn) -> bool {
        for index in (0..self.watchers.len()).rev() {
            let reported = std::mem::replace(&mut self.reported[index], PollFlags::empty());
            match self.watchers[index].turn(&*self.source, reported, turn) {
                Ok(true) => {}
                Ok(false) => {
                    self.watchers.rotate_left(index + 1);
                    self.reported.rotate_left(index + 1);
                    return false;
                }
                Err(end) => {
                    self.reported.swap_remove(index);
                    let watcher = self.watchers.swap_remove(index);
                    self.end(&watcher, end);
                }
            }
        }
        true
    }

    /// Has leases last as long as the applications here want.
    fn tell_of_validities(&mut self, now: Moment) {
        let wanted = self.watchers.iter().filter_map(|watcher| watcher.waiting.valid_for);
        let Some(valid_for) = wanted.max() else { return };
        let (at, former) = self.told;
        let due = valid_for > former || now.since(at) >= SIGN_EVERY;
        // A driver without room hears of it in the next turn.
        if due && self.source.sign(Sign::Watches { valid_for }).is_ok() {
            self.told = (now, valid_for);
        }
    }

    /// Waits until a watcher comes or a socket has something, the state changes, or a deadline passes.
    fn wait(&mut self, expires: Option<Moment>) {
        let now = boottime();
        let deadlines = self.watchers.iter().filter_map(Watcher::deadline);
        // The end of a lease concerns none while none watches.
        let first = deadlines.chain(expires.filter(|_| !self.watchers.is_empty())).min();
        let timeout = first.map(|first| {
            // At most COMMENT_EVERY, so neither can overflow. A millisecond more, since a clock that is a
            // little behind must not make it turn in vain.
            let left = first.since(now).min(COMMENT_EVERY) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        let mut sockets = Vec::with_capacity(1 + self.watchers.len());
        sockets.push(PollFd::new(&self.woken, PollFlags::IN));
        sockets.extend(self.watchers.iter().map(|w| PollFd::new(&w.stream, w.interest())));
        let polled = poll(&mut sockets, timeout.as_ref());
        self.reported.clear();
        match polled {
            Ok(_) => self.reported.extend(sockets[1..].iter().map(PollFd::revents)),
            Err(Errno::INTR) => {}
            // The kernel is out of memory for a moment.
            Err(_) => thread::sleep(POLL_PAUSE),
        }
        let mut bytes = [0; 64];
        while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }

    fn end(&mut self, watcher: &Watcher<S>, end: End) {
        if end == End::Over {
            return;
        }
        // Best effort: if it fails, the kernel gives the unsent bytes up later by itself.
        let _ = socket2::SockRef::from(&watcher.stream).set_linger(Some(Duration::ZERO));
        self.source.watcher_cut();
        let text = "a watcher takes nothing that it is told, so it is cut off; it may ask again";
        let event = LogEvent::warn("watcher_cut").with("address", watcher.remote.to_string());
        event.say_within(&mut self.log, text);
    }
}

/// Why a watcher is watched no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It has hung up, or has been told all that it asked for.
    Over,
    /// It does not take what it is told.
    Cut,
}

impl End {
    fn by(error: &io::Error) -> End {
        // The kernel has waited for STALL_MAX.
        if error.kind() == ErrorKind::TimedOut { End::Cut } else { End::Over }
    }
}

struct Watcher<S: Source> {
    stream: TcpStream,
    remote: SocketAddr,
    waiting: Waiting,
    /// The rest of what it has begun to take: of an answer or one event at most.
    out: Vec<u8>,
    /// Whether something is due, and the socket takes nothing. It is made anew once the socket does.
    owed: bool,
    /// Until when a long poll waits, or when a stream has its next comment.
    until: Moment,
    /// When a stream repeats the state.
    repeats: Option<Moment>,
    /// Whether nothing follows on what is being sent.
    last: bool,
    ignored: usize,
    /// What a long reply of before has of a budget.
    held: Option<Share>,
    _place: Place<S>,
}

/// What is to be sent next, and what holds once its first byte is.
struct Due {
    bytes: Vec<u8>,
    waiting: Waiting,
    until: Moment,
    repeats: Option<Moment>,
    last: bool,
}

impl<S: Source> Watcher<S> {
    fn new(detached: Detached<(Waiting, Place<S>)>, now: Moment) -> Watcher<S> {
        let Detached { stream, remote, held, admitted: (waiting, place), .. } = detached;
        let pause = waiting.pause.map(|pause| now.plus(pause));
        let (out, until, repeats) = match waiting.mode {
            Mode::LongPoll { .. } => (Vec::new(), pause.unwrap_or(now), None),
            Mode::Events { .. } => {
                ([&encode_head(events()), STREAM_BEGINS].concat(), now.plus(COMMENT_EVERY), pause)
            }
        };
        Watcher {
            stream,
            remote,
            waiting,
            out,
            owed: false,
            until,
            repeats,
            last: false,
            ignored: 0,
            held,
            _place: place,
        }
    }

    /// Whether it waits for its client.
    fn is_blocked(&self) -> bool {
        self.owed || !self.out.is_empty()
    }

    fn interest(&self) -> PollFlags {
        if self.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// When something is due. None: the socket says when it takes more, or that its client is gone.
    fn deadline(&self) -> Option<Moment> {
        let due = self.repeats.map_or(self.until, |repeats| repeats.min(self.until));
        (!self.is_blocked()).then_some(due)
    }

    /// Sends what is due and can be sent. False: the state is too old for that.
    fn turn(&mut self, source: &S, reported: PollFlags, turn: &Turn) -> Result<bool, End> {
        if reported.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP) {
            self.ignore()?;
        }
        loop {
            let rest = std::mem::take(&mut self.out);
            let written = self.write(&rest)?;
            if written < rest.len() {
                self.out = rest[written..].to_vec();
                return if turn.stopping { Err(End::Over) } else { Ok(true) };
            }
            if self.last {
                return Err(End::Over);
            }
            let Some(due) = self.due(source, turn)? else {
                return if turn.stopping { Err(End::Over) } else { Ok(true) };
            };
            if turn.is_old() {
                return Ok(false);
            }
            // What the socket takes no byte of is made again: it would be old by then.
            let written = self.write(&due.bytes)?;
            self.owed = written == 0;
            if self.owed {
                return if turn.stopping { Err(End::Over) } else { Ok(true) };
            }
            // There was room, so the client has taken the long reply.
            self.held = None;
            self.out = due.bytes[written..].to_vec();
            (self.waiting, self.until, self.repeats) = (due.waiting, due.until, due.repeats);
            self.last = due.last;
        }
    }

    /// What is to be sent now, if anything.
    fn due(&self, source: &S, turn: &Turn) -> Result<Option<Due>, End> {
        let Waiting { mode, next, telling, .. } = self.waiting;
        let latest = &turn.latest;
        let changed = next <= latest.change.number;
        let change = if changed { source.feed().change(next) } else { None };
        let (until, repeats) = (turn.at.plus(COMMENT_EVERY), self.repeats);
        match mode {
            Mode::LongPoll { .. } if !changed && turn.at < self.until && !turn.stopping => Ok(None),
            Mode::LongPoll { .. } => {
                // More changes came at once than are kept.
                let missed = telling.missed || (changed && change.is_none());
                let change = change.as_ref().unwrap_or(&latest.change);
                let bytes = encode_last(told(change, latest, Telling { missed, ..telling }));
                Ok(Some(Due { bytes, waiting: self.waiting, until, repeats, last: true }))
            }
            // It is more changes behind than are kept.
            Mode::Events { .. } if changed && change.is_none() => Err(End::Cut),
            Mode::Events { .. } => {
                let repeated = repeats.is_some_and(|repeats| turn.at >= repeats);
                if let Some(change) = change.or_else(|| repeated.then(|| Arc::clone(&latest.change))) {
                    let bytes = event(&change, latest, telling);
                    let telling = Telling { missed: false, ..telling };
                    let next = change.number + 1;
                    let waiting = Waiting { next, telling, ..self.waiting.after(latest) };
                    let repeats = waiting.pause.map(|pause| turn.at.plus(pause));
                    return Ok(Some(Due { bytes, waiting, until, repeats, last: false }));
                }
                let comment =
                    || Due { bytes: COMMENT.to_vec(), waiting: self.waiting, until, repeats, last: false };
                Ok((turn.at >= self.until).then(comment))
            }
        }
    }

    /// How many of these bytes the socket takes.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, End> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(End::Over),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(End::by(&error)),
            }
        }
        Ok(written)
    }

    /// Throws away what it sends, unless that is more than a client that waits has to say.
    fn ignore(&mut self) -> Result<(), End> {
        let mut scratch = [0; 512];
        while self.ignored <= IGNORED_BYTES_MAX {
            match self.stream.read(&mut scratch) {
                Ok(0) => return Err(End::Over),
                Ok(bytes) => self.ignored += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(End::by(&error)),
            }
        }
        Err(End::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Feed, Snapshot};
    use super::*;
    use crate::election::Incarnation;

    struct Nothing(Feed);

    impl Source for Nothing {
        fn snapshot(&self) -> Snapshot {
            unreachable!("no client waits here")
        }
        fn feed(&self) -> &Feed {
            &self.0
        }
        fn metrics(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn strangers_take_neither_the_places_of_this_host_nor_all_others() {
        let watchers = Watchers::new(Arc::new(Nothing(Feed::new(Incarnation(1)))), 8);
        let places = |host: &str, wanted: usize| -> Vec<_> {
            (0..wanted).map_while(|_| watchers.place(host.parse().unwrap())).collect()
        };
        let (one, two) = (places("198.18.0.1", 9), places("198.18.0.2", 9));
        assert_eq!((one.len(), two.len()), (6, 2));
        let own = places("127.0.0.1", 99);
        assert_eq!((own.len(), places("::1", 1).len()), (LOOPBACK_WATCHERS, 0));
        drop((one, own));
        assert_eq!(places("198.18.0.2", 9).len(), 4);
        drop(two);
        assert_eq!(places("::1", 99).len(), 8 + LOOPBACK_WATCHERS);
    }
}
