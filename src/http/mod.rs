//! The status API: the leader and the members, over HTTP, as a pure function of a snapshot.
//!
//! A [`net::Listener`](crate::net::Listener) owns the connections, and [`request`] reads requests with
//! httparse. [`routes`] turns a request and a [`Source`] into a response; `response` has tiny_http encode it.
//! tiny_http never sees a connection: its own listener can be brought down by one request. No request here
//! has a body or changes anything.

mod json;
mod readiness;
pub mod request;
mod response;
pub mod routes;

use crate::base::{Budget, Holder};
use crate::election::{Moment, Status};
use crate::net::{Limits, Listener, Service, Step};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use request::{HEAD_BYTES_MAX, HEADERS_MAX, Request};

/// A reply of so many bytes needs no share of the budget.
const SMALL_REPLY_BYTES: usize = 4 * 1024;

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

/// Where answers come from. Both are called on the status port's one thread and must not block.
pub trait Source: Send + 'static {
    /// The state of the process at this moment.
    fn snapshot(&self) -> Snapshot;
    /// All metrics, as Prometheus text.
    fn metrics(&self) -> String;
    /// The fingerprints of the keys that this process accepts from other members; it sends the first. Empty:
    /// members do not prove themselves.
    fn peer_keys(&self) -> Vec<String> {
        Vec::new()
    }
    /// Takes down that a request was answered with this status, so long after its head was there. `path` is
    /// one of [`routes::PATHS`], or `other`.
    fn answered(&self, _path: &'static str, _status: u16, _took: Duration) {}
}

/// The state of the process when a question is asked.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the machine last made known.
    pub status: Arc<Status>,
    /// The moment of asking.
    pub now: Moment,
    /// When the driver last turned; long ago, if the host was suspended since.
    pub turned: Moment,
    /// Whether the process is healthy, else what is wrong, for `/healthz`.
    pub health: Result<(), String>,
    /// Whether it has taken part in the election since it started, for `/readyz`.
    pub took_part: bool,
}

/// The status port. When it is dropped the port is closed and its thread has ended.
pub struct Server {
    listener: Listener,
}

/// Answers on `listener` from now on, on one thread, within [`LIMITS`]. Long replies that clients have not
/// taken yet count against `budget`.
pub fn start(listener: TcpListener, source: impl Source, budget: Budget) -> io::Result<Server> {
    start_with(listener, source, LIMITS, budget)
}

/// As [`start`], within other limits.
pub fn start_with(
    listener: TcpListener,
    source: impl Source,
    limits: Limits,
    budget: Budget,
) -> io::Result<Server> {
    let listener = Listener::spawn("http", listener, limits, Api { source, budget })?;
    Ok(Server { listener })
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

struct Api<S> {
    source: S,
    budget: Budget,
}

/// The last reply of a connection.
fn last(status: u16, message: &str) -> Step<Infallible> {
    Step::Last(response::encode_last(routes::error(status, message)))
}

impl<S: Source> Service for Api<S> {
    /// No connection is taken over.
    type Admitted = Infallible;
    type Session = ();

    fn received(&mut self, _: &mut (), received: &[u8], _: SocketAddr) -> Step<Infallible> {
        match request::parse(received) {
            Ok(None) => Step::Wait,
            Ok(Some((request, consumed))) => {
                let begun = Instant::now();
                let response = routes::route(&request, &self.source);
                let status = response.status_code().0;
                let bytes = response::encode(response, &request);
                self.source.answered(routes::known_path(request.path), status, begun.elapsed());
                let long = bytes.len() > SMALL_REPLY_BYTES;
                let held = if long { self.budget.take(Holder::Client, bytes.len()) } else { None };
                if long && held.is_none() {
                    return last(503, "too many clients are slow to take long replies; ask again");
                }
                Step::Reply { bytes, consumed, close: !request.keep_alive, held }
            }
            Err(refusal) => last(refusal.status, &refusal.message),
        }
    }

    fn overdue(&mut self, received: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        // A client that has not begun a request has none that could be late.
        let begun = received.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        begun.then(|| {
            let message = "the request did not arrive in time; send its head at once, ended by an empty line";
            response::encode_last(routes::error(408, message))
        })
    }

    fn overflow(&mut self, received: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        let refusal = request::too_large(received);
        Some(response::encode_last(routes::error(refusal.status, &refusal.message)))
    }

    fn detached(&mut self, _: TcpStream, _: SocketAddr, _: Vec<u8>, admitted: Infallible) {
        match admitted {}
    }
}
