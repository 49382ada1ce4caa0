//! What people and their tools see of a process: its log, its metrics, and the event log that turns the
//! election's notes into both.

pub mod escape;
pub mod event_log;
mod founding;
mod lines;
pub mod log;
mod log_writer;
pub mod metrics;

pub use event_log::EventLog;
pub use founding::founding_refused;
pub use metrics::{Direction, Metrics};
