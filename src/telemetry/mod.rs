//! What people and their tools see of a process: its log, its metrics, and the chronicle that turns the election's
//! notes into both.

pub mod chronicle;
mod founding;
mod line_queue;
pub mod log;
pub mod metrics;
pub mod printable;

pub use chronicle::Chronicle;
pub use founding::founding_refused;
pub use metrics::{Direction, Metrics};
