//! `bellwether demo`: real sidecars on loopback, whose leaders are killed, and what the failover took.

mod parent_death;
mod poller;
mod ports;
pub mod process_cluster;
mod script;

pub use parent_death::{attach, hold};
pub use ports::Ports;
pub use script::run;
