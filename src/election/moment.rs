//! Time as the machine sees it: an argument, never a clock.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point on a clock that never goes back and also runs while the machine is suspended (CLOCK_BOOTTIME), as the time
/// since that clock's start. Points of different processes cannot be compared: one that travels is only ever echoed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash, Serialize, Deserialize)]
pub struct Moment(pub Duration);

impl Moment {
    /// How long ago `earlier` was; zero if it lies ahead.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `after` this one.
    pub fn plus(self, after: Duration) -> Moment {
        Moment(self.0.saturating_add(after))
    }
}

/// The time of one turn of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// What every decision uses.
    pub at: Moment,
    /// Wall clock in milliseconds since 1970, only ever shown to people (`elected_at`); it may jump.
    pub wall_ms: u64,
}
