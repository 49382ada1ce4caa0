//! A bounded listener: one thread, one poll(2), a limited number of connections.

use super::connection::{Connection, Fate, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES};
use super::service::{Limits, Service};
use crate::base::{LogEvent, RateLimit, boottime};
use crate::election::Moment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread turns at least this often.
const TURN_EVERY: Duration = Duration::from_secs(1);
/// A listener whose thread has not turned for this long is not [`alive`](Listener::alive).
pub const TURN_AGE_MAX: Duration = Duration::from_secs(5);
/// How many connections are accepted in one turn at most. The readable ones are read in between, so that a
/// flood does not push out a client before its request is read.
const ACCEPT_BURST_MAX: usize = 64;
/// How long nothing is accepted after accept(2) failed for a reason that does not go away by itself.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// What one read takes at most, over all connections the only buffer of its kind.
const SCRATCH_BYTES: usize = 16 * 1024;
const STACK_BYTES: usize = 512 * 1024;
/// Failing accepts are logged, but not one by one.
const LOG_LINES: u32 = 2;
const LOG_LINE_EVERY: Duration = Duration::from_secs(30);

/// A listening port and the thread that serves it. When this is dropped the thread ends, and the port and the
/// connections are closed.
pub struct Listener {
    local_address: SocketAddr,
    shared: Arc<Shared>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stopping: AtomicBool,
    /// Cleared when the listening socket turns out to be unusable.
    listening: AtomicBool,
    /// When the thread last turned, in milliseconds of [`boottime`].
    turned_ms: AtomicU64,
}

impl Listener {
    /// Serves `listener` on a new thread called `name`, until [`Listener::stop`].
    pub fn spawn(
        name: &str,
        listener: TcpListener,
        limits: Limits,
        service: impl Service,
    ) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        let local_address = listener.local_addr()?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let shared = Arc::new(Shared {
            stopping: AtomicBool::new(false),
            listening: AtomicBool::new(true),
            turned_ms: AtomicU64::new(milliseconds(boottime())),
        });
        let served = Loop {
            name: name.to_owned(),
            listener,
            woken,
            limits,
            service,
            shared: Arc::clone(&shared),
            connections: Vec::new(),
            events: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            accept_after: Moment::default(),
            log: RateLimit::new(LOG_LINES, LOG_LINE_EVERY),
        };
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || served.run())?;
        Ok(Listener { local_address, shared, wake, thread: Some(thread) })
    }

    /// Where it listens, with the port that was taken if any was asked for.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Whether its thread turns (it has within [`TURN_AGE_MAX`]) and its port accepts. After a pause of the
    /// whole process it may be false for the instant until the thread has turned again.
    pub fn alive(&self) -> bool {
        let turned = Moment(Duration::from_millis(self.shared.turned_ms.load(Ordering::Acquire)));
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && self.shared.listening.load(Ordering::Acquire)
            && boottime().since(turned) <= TURN_AGE_MAX
    }

    /// Closes the port and the connections and waits for the thread to end; at most as long as its service
    /// takes for one answer.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // A full pipe wakes it just as well.
        let _ = rustix::io::write(&self.wake, &[0]);
        if let Some(thread) = self.thread.take() {
            // Its panic, if there was one, has been reported.
            let _ = thread.join();
        }
    }
}

fn milliseconds(moment: Moment) -> u64 {
    u64::try_from(moment.0.as_millis()).unwrap_or(u64::MAX)
}

struct Loop<S: Service> {
    name: String,
    listener: TcpListener,
    woken: OwnedFd,
    limits: Limits,
    service: S,
    shared: Arc<Shared>,
    connections: Vec<Connection<S::Session>>,
    /// What poll(2) reported of each connection, in their order.
    events: Vec<PollFlags>,
    scratch: Vec<u8>,
    /// Nothing is accepted before.
    accept_after: Moment,
    log: RateLimit,
}

impl<S: Service> Loop<S> {
    fn run(mut self) {
        while !self.shared.stopping.load(Ordering::Acquire) {
            let acceptable = self.wait();
            let now = boottime();
            self.shared.turned_ms.store(milliseconds(now), Ordering::Release);
            // What has arrived counts as in time, even if this thread comes late to it.
            self.each(|connection, events, scratch, limits, service| {
                match connection.advance(events, scratch, now, limits) {
                    Fate::Keep if connection.due() => connection.answer(service, limits),
                    fate => fate,
                }
            });
            self.each(|connection, _, _, limits, service| {
                if connection.due() || connection.deadline() > now {
                    return Fate::Keep;
                }
                connection.expire(service, now, limits)
            });
            if acceptable {
                self.accept();
            }
        }
    }

    /// Waits until a socket has something, a deadline passes, or it is time to turn. Whether there is a
    /// connection to accept.
    fn wait(&mut self) -> bool {
        let now = boottime();
        let accepting = now >= self.accept_after;
        let mut timeout = TURN_EVERY;
        if !accepting {
            timeout = timeout.min(self.accept_after.since(now));
        }
        for connection in &self.connections {
            let left = if connection.due() { Duration::ZERO } else { connection.deadline().since(now) };
            timeout = timeout.min(left);
        }
        let mut sockets = Vec::with_capacity(2 + self.connections.len());
        sockets.push(PollFd::new(&self.woken, PollFlags::IN));
        let listener_events = if accepting { PollFlags::IN } else { PollFlags::empty() };
        sockets.push(PollFd::new(&self.listener, listener_events));
        sockets.extend(
            self.connections.iter().map(|connection| PollFd::new(connection.stream(), connection.interest())),
        );
        let timeout = Timespec {
            // At most TURN_EVERY, so neither can overflow.
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let polled = poll(&mut sockets, Some(&timeout));
        self.events.clear();
        if let Err(error) = polled {
            // Interrupted by a signal, or the kernel is out of memory for a moment: nothing is known to be
            // ready.
            self.events.resize(self.connections.len(), PollFlags::empty());
            if error != Errno::INTR {
                thread::sleep(ACCEPT_PAUSE);
            }
            return false;
        }
        self.events.extend(sockets[2..].iter().map(PollFd::revents));
        accepting && !sockets[1].revents().is_empty()
    }

    /// Calls `work` with each connection and what poll(2) reported of it, and ends the connections for which
    /// `work` says so.
    fn each(
        &mut self,
        mut work: impl FnMut(
            &mut Connection<S::Session>,
            PollFlags,
            &mut [u8],
            &Limits,
            &mut S,
        ) -> Fate<S::Admitted>,
    ) {
        // From the last to the first: a connection that takes an ended one's place has had its turn.
        for index in (0..self.connections.len()).rev() {
            let fate = work(
                &mut self.connections[index],
                self.events[index],
                &mut self.scratch,
                &self.limits,
                &mut self.service,
            );
            if !matches!(fate, Fate::Keep) {
                self.events.swap_remove(index);
                self.connections.swap_remove(index).end(fate, &mut self.service);
            }
        }
    }

    /// Accepts what waits, a few at a time.
    fn accept(&mut self) {
        let burst = (self.limits.connections_max / 4).clamp(1, ACCEPT_BURST_MAX);
        let mut out_of_descriptors = false;
        for _ in 0..burst {
            match self.listener.accept() {
                Ok((stream, remote)) => {
                    self.admit(stream, remote);
                    if out_of_descriptors {
                        // It took the place of a closed connection. The waiting ones get their places in the
                        // next turn.
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => match Errno::from_io_error(&error) {
                    // The connection is gone, or the network was in trouble: the next one may be well.
                    Some(
                        Errno::INTR
                        | Errno::CONNABORTED
                        | Errno::PROTO
                        | Errno::PERM
                        | Errno::NETDOWN
                        | Errno::NETUNREACH
                        | Errno::HOSTDOWN
                        | Errno::HOSTUNREACH
                        | Errno::NOPROTOOPT
                        | Errno::NONET,
                    ) => {}
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
                        if !out_of_descriptors && self.evict(None) =>
                    {
                        out_of_descriptors = true;
                    }
                    errno => {
                        if matches!(errno, Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK)) {
                            self.shared.listening.store(false, Ordering::Release);
                        }
                        self.pause_accepting(&error);
                        return;
                    }
                },
            }
        }
    }

    /// Begins to serve a connection.
    fn admit(&mut self, stream: TcpStream, remote: SocketAddr) {
        // Without delay, or replies wait for the acknowledgement of their first part (Nagle's algorithm).
        // All can only fail for a connection that is gone already, which reading it will show.
        let _ = stream.set_nodelay(true);
        let socket = socket2::SockRef::from(&stream);
        let _ = socket.set_send_buffer_size(SEND_BUFFER_BYTES);
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let of_host = self.connections.iter().filter(|connection| connection.host() == remote.ip()).count();
        if of_host >= self.limits.connections_per_host_max.max(1) {
            self.evict(Some(remote.ip()));
        }
        while self.connections.len() >= self.limits.connections_max.max(1) {
            self.evict(None);
        }
        self.connections.push(Connection::new(stream, remote, boottime(), &self.limits));
    }

    /// Ends the connection that has waited for bytes for longest, of all or of one host. False when there is
    /// none at all.
    fn evict(&mut self, host: Option<IpAddr>) -> bool {
        let candidates = (0..self.connections.len())
            .filter(|&index| host.is_none_or(|host| self.connections[index].host() == host));
        let Some(index) = candidates.min_by_key(|&index| self.connections[index].eviction_order()) else {
            return false;
        };
        // Nothing after this in the same turn looks at the events, which `each` keeps in step.
        let connection = self.connections.swap_remove(index);
        let fate = connection.evicted();
        connection.end(fate, &mut self.service);
        true
    }

    fn pause_accepting(&mut self, error: &io::Error) {
        self.accept_after = boottime().plus(ACCEPT_PAUSE);
        let name = self.name.as_str();
        LogEvent::warn("accept_failed").with("listener", name).say_within(
            &mut self.log,
            format_args!("{name}: cannot accept connections: {error}; trying again"),
        );
    }
}
