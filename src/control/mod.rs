//! The control path, the one way in for operators: they have a process resign, transfer leadership or stay a
//! follower. It is a Unix socket, since nothing that a network reaches changes the election.
//!
//! `socket` makes the socket and says which process is at its other end. `request` turns bytes into what is
//! asked, and `answer` words what came of it. `server` is the sidecar's side, `client` that of
//! `bellwether resign` and its like. A connection carries one line of JSON each way.

mod answer;
mod client;
pub mod request;
mod server;
mod socket;
#[cfg(test)]
mod tests;

pub use client::run;
pub use request::Request;
pub use server::{Operators, Unanswered, serve};
pub use socket::{Bound, SocketError, SocketFile, bind};
