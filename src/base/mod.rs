//! What every part may use: the clocks, and a limit on how often a line is logged.

mod clock;
mod rate_limit;

pub use clock::{Clock, Reading, boottime};
pub use rate_limit::RateLimit;
