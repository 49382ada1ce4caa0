//! What people and their tools see of a process: its log, its metrics, and the event log that turns the
//! election's notes into both.

pub mod escape;
pub mod event_log;
pub mod log;
mod log_writer;
pub mod metrics;
mod not_ready;
mod notification_text;

pub use event_log::EventLog;
pub use metrics::Metrics;
pub use not_ready::no_vote_yet;
