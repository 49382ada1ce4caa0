//! What every part may use: the clocks, durations as text, URLs and what they stand for, connections, a
//! budget of bytes, a checksum, log lines, and a limit on how often one is written.

pub mod blocking_tcp;
mod buffer_budget;
mod checksum;
mod clock;
pub mod duration;
mod log_event;
mod rate_limit;
pub mod resolver;
mod trace_step;
pub mod url;
mod wall_clock;

pub use buffer_budget::{Budget, Holder, Share};
pub use checksum::checksum;
pub use clock::{Clock, Reading, boottime};
pub use log_event::{LogEvent, ms};
pub use rate_limit::RateLimit;
pub use trace_step::step;
pub use wall_clock::wall_ms;
