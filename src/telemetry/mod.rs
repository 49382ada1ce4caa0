//! What people and their tools see of a process: its log, its metrics, and the event log that turns the
//! election's notes into both.

pub mod escape;
pub mod event_log;
mod lines;
pub mod log;
mod log_writer;
pub mod metrics;
mod no_vote;

pub use event_log::EventLog;
pub use metrics::{Direction, Metrics};
pub use no_vote::{founding_refused, no_vote_yet};
