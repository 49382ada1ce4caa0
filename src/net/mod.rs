//! The base under everything that uses the network: listening sockets, a bounded listener, a bounded pool of
//! threads.
//!
//! Everything here has a limit: connections, bytes received of each, the time that each may take, threads,
//! jobs that wait for one. Nothing here knows what is said over a connection.

mod connection;
mod listen;
mod listener;
mod places;
mod pool;
mod service;
#[cfg(test)]
mod tests;

pub use connection::{ANSWER_AGE_MAX, ANSWER_ATTEMPTS_MAX, DRAIN_BYTES_MAX, DRAIN_DEADLINE};
pub use listen::{BACKLOG, ListenError, listen};
pub use listener::{Listener, TURN_AGE_MAX};
pub use places::{Place, Places, Taken};
pub use pool::{IDLE_AFTER, Pool, Saturated};
pub use service::{Detached, Limits, Service, Step};
