//! `bellwether demo`: real sidecars on loopback, whose leaders are killed, and what the failover took.

pub mod fleet;
mod lifeline;
mod ports;
mod show;
mod sightings;

pub use lifeline::{attach, hold};
pub use ports::Ports;
pub use show::run;
