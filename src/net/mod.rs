//! The base under everything that uses the network: the clock, listening sockets, a bounded listener, a
//! bounded pool of threads. A further bound limits what strangers can make this process log.
//!
//! Everything here has a limit: connections, bytes received of each, the time that each may take, threads,
//! jobs that wait for one. Nothing here knows what is said over a connection.

mod clock;
mod connection;
mod line_limit;
mod listen;
mod listener;
mod pool;
mod service;
#[cfg(test)]
mod tests;

pub use clock::{Clock, Reading, boottime};
pub use connection::{ANSWER_AGE_MAX, ANSWER_ATTEMPTS_MAX, DRAIN_BYTES_MAX, DRAIN_DEADLINE};
pub use line_limit::LineLimit;
pub use listen::{BACKLOG, ListenError, listen};
pub use listener::{Listener, TURN_AGE_MAX};
pub use pool::{IDLE_AFTER, Pool, Saturated};
pub use service::{Limits, Service, Step};
