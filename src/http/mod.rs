//! The status API: the leader and the members, over HTTP, as a pure function of a snapshot.
//!
//! A [`net::Listener`](crate::net::Listener) owns the connections, and [`request`] reads requests with
//! httparse. [`routes`] turns a request and a [`Source`] into a response; `response` has tiny_http encode it.
//! tiny_http never sees a connection: its own listener can be brought down by one request. No request here
//! has a body. `holds` and `lifelines` change something: `applications` of the pod ask the driver there.
//!
//! `feed` has the last changes of the state. The clients of `/watch` that wait for the next one leave the
//! listener, and `watchers` serves them.

mod app_clients;
mod applications;
#[cfg(test)]
#[path = "tests/asks.rs"]
mod asks;
mod feed;
mod holds;
mod json;
mod lifelines;
mod query;
mod readiness;
mod redirect;
pub mod request;
mod response;
pub mod routes;
mod watch;
mod watchers;

use crate::base::{Budget, Holder, LogEvent, RateLimit, Reading};
use crate::election::{AnnouncedValues, HoldRequest, Incumbent, Moment, ProcessId, Role, Sign, Status};
use crate::net::{Detached, Limits, Listener, Service, Step};
use app_clients::{Asked, Look as Looked};
use applications::Applications;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tiny_http::Method;
use watch::Look;
use watchers::Watchers;

pub use app_clients::{Held, Unheld};
pub use feed::{CHANGES_MAX, Feed, Observed};
pub use request::{HEAD_BYTES_MAX, HEADERS_MAX, Request};
pub use watchers::LOOPBACK_WATCHERS;

/// A reply of so many bytes needs no share of the budget.
const SMALL_REPLY_BYTES: usize = 4 * 1024;

/// Clients that cannot wait are logged, but not one by one.
const LOG_LINES: u32 = 2;
const LOG_LINE_EVERY: Duration = Duration::from_secs(30);

/// What the status port allows: 256 connections, 192 of one address, and heads of [`HEAD_BYTES_MAX`] that
/// arrive within 5 s. A client has to take a reply within 5 s. Two requests may be 75 s apart (scrapers come
/// every 60 s at the slowest).
pub const LIMITS: Limits = Limits {
    connections_max: 256,
    connections_per_host_max: 192,
    receive_bytes_max: HEAD_BYTES_MAX,
    receive_deadline: Duration::from_secs(5),
    idle_deadline: Duration::from_secs(75),
    write_deadline: Duration::from_secs(5),
};

/// By which members prove themselves.
#[derive(Default)]
pub struct PeerKeys {
    /// The fingerprints of the keys that this process accepts; it sends the first. Empty: members do not
    /// prove themselves.
    pub accepted: Vec<String>,
    /// Why the files cannot be used now, though keys from before count; none: they can.
    pub unusable: Option<String>,
}

/// Where answers come from. All of it is called on the status port's thread and on the watchers' thread, and
/// must not block.
pub trait Source: Send + Sync + 'static {
    /// The state of the process at this moment.
    fn snapshot(&self) -> Snapshot;
    /// The last changes of the state.
    fn feed(&self) -> &Feed;
    /// The state at this moment, with the change that has led to it.
    fn observe(&self) -> Observed {
        self.feed().observe(|| self.snapshot())
    }
    /// All metrics, as Prometheus text.
    fn metrics(&self) -> String;
    /// The election's name (`--election`).
    fn election(&self) -> &str {
        ""
    }
    /// Whether applications of this pod may ask for holds.
    fn serves_applications(&self) -> bool {
        true
    }
    /// Asks the driver for a hold, and waits for its answer: this is called on a thread of its own.
    fn hold(&self, _request: HoldRequest) -> Result<Held, Unheld> {
        Err(Unheld::Busy)
    }
    /// Hands a sign of the application to the driver, as soon as it has room: this is called on threads of
    /// its own. [`Sign::Watches`] does not wait for room, since the watchers' thread hands it on.
    fn sign(&self, _sign: Sign) -> Result<(), Unheld> {
        Err(Unheld::Busy)
    }
    /// By which this process and the other members prove themselves.
    fn peer_keys(&self) -> PeerKeys {
        PeerKeys::default()
    }
    /// Which process did not prove itself, or did not take this one's proof, and why; none: none lately.
    fn unproved(&self) -> Option<String> {
        None
    }
    /// What discovery warns of; none: nothing.
    fn discovery_warning(&self) -> Option<String> {
        None
    }
    /// Takes down that a request was answered with this status, so long after its head was there. `path` is
    /// one of [`routes::PATHS`], or `other`.
    fn answered(&self, _path: &'static str, _status: u16, _took: Duration) {}
    /// This number of clients has begun to watch; below zero: has stopped.
    fn watchers(&self, _more: i64) {}
    /// A watcher was cut off, since it did not take what it was told.
    fn watcher_cut(&self) {}
}

/// The state of the process when a question is asked.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the machine last made known.
    pub status: Arc<Status>,
    /// The moment of asking.
    pub now: Moment,
    /// The kernel's clocks at that moment.
    pub reading: Reading,
    /// When the driver last turned; long ago, if the host was suspended since.
    pub turned: Moment,
    /// Whether the process is healthy, else what is wrong, for `/healthz`.
    pub health: Result<(), String>,
    /// Whether it has taken part in the election since it started, for `/readyz`.
    pub took_part: bool,
    /// What processes announce, as far as they have been connected. A process without values is not in it.
    pub announced: Arc<BTreeMap<ProcessId, AnnouncedValues>>,
}

impl Snapshot {
    /// The process that this one holds to be the leader at the moment of asking. All answers go by this.
    fn leader(&self) -> Option<&Incumbent> {
        self.status.leader(self.now, self.turned)
    }

    /// What the leader announces at the moment of asking; none: nothing, or there is no leader.
    fn leader_announces(&self) -> Option<&AnnouncedValues> {
        self.announced.get(&self.leader()?.peer.id)
    }

    /// Whether this process leads at the moment of asking. All answers go by this.
    fn leads(&self) -> bool {
        self.status.leads(self.now, self.turned)
    }

    /// Whether this process is to resign, and waits for holds. All answers go by this.
    fn resigning(&self) -> bool {
        self.status.role == Role::Resigning
    }

    /// Whether another member is known to lead at the moment of asking.
    fn follows(&self) -> bool {
        self.leader().is_some_and(|leader| leader.peer.id != self.status.me.id)
    }
}

/// The status port. When it is dropped the port is closed and its thread has ended.
pub struct Server {
    listener: Listener,
}

/// What the status port allows beside [`Limits`].
#[derive(Clone)]
pub struct Room {
    /// What long replies count against that clients have not taken yet.
    pub budget: Budget,
    /// How many clients watch at a time (`--watchers-max`). There are [`LOOPBACK_WATCHERS`] places more for
    /// those of this host.
    pub watchers_max: usize,
}

/// Answers on `listener` from now on, on one thread, within [`LIMITS`]. With the first client that watches
/// comes another thread.
pub fn start(listener: TcpListener, source: impl Source, room: Room) -> io::Result<Server> {
    start_with(listener, source, LIMITS, room)
}

/// As [`start`], within other limits.
pub fn start_with(
    listener: TcpListener,
    source: impl Source,
    limits: Limits,
    room: Room,
) -> io::Result<Server> {
    let source = Arc::new(source);
    let watchers = Watchers::new(Arc::clone(&source), room.watchers_max);
    let applications = Applications::new(Arc::clone(&source));
    let api = Api {
        source,
        budget: room.budget,
        watchers,
        applications,
        log: RateLimit::new(LOG_LINES, LOG_LINE_EVERY),
    };
    Ok(Server { listener: Listener::spawn("http", listener, limits, api)? })
}

impl Server {
    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    /// Whether it answers: see [`Listener::alive`].
    pub fn alive(&self) -> bool {
        self.listener.alive()
    }

    /// Closes the port and waits for the thread to end.
    pub fn stop(self) {
        self.listener.stop();
    }
}

struct Api<S: Source> {
    source: Arc<S>,
    budget: Budget,
    watchers: Watchers<S>,
    applications: Applications<S>,
    log: RateLimit,
}

/// The last reply of a connection.
fn last<A>(status: u16, message: &str) -> Step<A> {
    Step::Last(response::encode_last(response::error(status, message)))
}

impl<S: Source> Api<S> {
    /// Answers a request, or has its client wait.
    fn answer(&mut self, request: &Request<'_>, consumed: usize, remote: SocketAddr) -> Step<Admitted<S>> {
        let begun = Instant::now();
        let answered = |status| {
            self.source.answered(routes::known_path(request.path), status, begun.elapsed());
        };
        let from = remote.ip();
        let look = holds::look(request, from, &*self.source);
        if let Some(look) = look.or_else(|| lifelines::look(request, from, &*self.source)) {
            match look {
                Looked::Asks(asked) => return Step::Detach(Admitted::Asks(asked)),
                Looked::Answered(response) => {
                    answered(response.status_code().0);
                    return Step::Last(response::encode_last_to(response, request));
                }
            }
        }
        let watches = request.method == Method::Get && watch::PATHS.contains(&request.path);
        let look = watches.then(|| watch::look(request, from, &*self.source));
        let response = match look {
            Some(Look::Waits(waiting)) => match self.watchers.place(remote.ip()) {
                Some(place) => {
                    answered(200);
                    return Step::Detach(Admitted::Watches(waiting, place));
                }
                None => response::too_many_watchers(),
            },
            Some(Look::Answered(response)) => response,
            None => routes::route(request, &*self.source),
        };
        answered(response.status_code().0);
        let bytes = response::encode(response, request);
        let long = bytes.len() > SMALL_REPLY_BYTES;
        let held = if long { self.budget.take(Holder::Client, bytes.len()) } else { None };
        if long && held.is_none() {
            return last(503, "too many clients are slow to take long replies; ask again");
        }
        Step::Reply { bytes, consumed, close: !request.keep_alive, held }
    }
}

/// What a client waits for that leaves the listener.
enum Admitted<S: Source> {
    /// For changes, in its place.
    Watches(watch::Waiting, watchers::Place<S>),
    /// For the driver.
    Asks(Asked),
}

impl<S: Source> Service for Api<S> {
    type Admitted = Admitted<S>;
    type Session = ();

    fn received(&mut self, _: &mut (), received: &[u8], remote: SocketAddr) -> Step<Admitted<S>> {
        match request::parse(received) {
            Ok(None) => Step::Wait,
            Ok(Some((request, consumed))) => self.answer(&request, consumed, remote),
            Err(refusal) => last(refusal.status, &refusal.message),
        }
    }

    fn overdue(&mut self, received: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        // A client that has not begun a request has none that could be late.
        let begun = received.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        begun.then(|| {
            let message = "the request did not arrive in time; send its head at once, ended by an empty line";
            response::encode_last(response::error(408, message))
        })
    }

    fn overflow(&mut self, received: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        let refusal = request::too_large(received);
        Some(response::encode_last(response::error(refusal.status, &refusal.message)))
    }

    /// A client that waits sends nothing more that counts.
    fn detached(&mut self, detached: Detached<Admitted<S>>) {
        let remote = detached.remote;
        let Detached { stream, received, held, .. } = detached;
        let added = match detached.admitted {
            Admitted::Watches(waiting, place) => {
                self.watchers.add(Detached { stream, remote, received, held, admitted: (waiting, place) })
            }
            Admitted::Asks(asked) => self.applications.ask(stream, asked),
        };
        if let Err(error) = added {
            LogEvent::warn("watcher_refused").with("address", remote.to_string()).say_within(
                &mut self.log,
                format_args!("the system refuses what a client that waits takes: {error}; raise its limits"),
            );
        }
    }
}
