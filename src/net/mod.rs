//! The base under everything that uses the network: listening sockets, a bounded listener, a bounded pool of
//! threads.
//!
//! Everything here has a limit: connections, bytes received of each, the time that each may take, threads,
//! jobs that wait for one. Nothing here knows what is said over a connection.

mod connection;
mod listener;
mod listening_socket;
mod places;
mod service;
#[cfg(test)]
mod tests;
mod thread_pool;

pub use connection::{ANSWER_AGE_MAX, ANSWER_ATTEMPTS_MAX, DRAIN_BYTES_MAX, DRAIN_DEADLINE};
pub use listener::{Listener, TURN_AGE_MAX};
pub use listening_socket::{BACKLOG, ListenError, listen};
pub use places::{Place, Places, Taken};
pub use service::{Detached, Limits, Service, Step};
pub use thread_pool::{IDLE_AFTER, Pool, Saturated};
