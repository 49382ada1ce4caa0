//! What every part may use: the clocks, a budget of bytes, and a limit on how often a line is logged.

mod budget;
mod clock;
mod rate_limit;

pub use budget::{Budget, Holder, Share};
pub use clock::{Clock, Reading, boottime};
pub use rate_limit::RateLimit;
