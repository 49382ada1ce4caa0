//! Time as the machine sees it: an argument, never a clock. On the wire it is whole milliseconds.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point on one of the clocks of one process, neither of which goes back. Points of different processes, or
/// of different clocks, cannot be compared: one that travels is only ever echoed.
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

/// The time of one turn of the machine. The host has two clocks that measure a lease: one may be slewed, and
/// the other stands still while the host is suspended. The machine never uses one of them; it uses a bound on
/// both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// The careful clock of a leader: it never runs slower than either clock of the host. The leader's lease,
    /// all timers and the failure detector use it.
    pub at: Moment,
    /// The careful clock of a voter: it never runs faster than either clock of the host. What a voter owes to
    /// others uses it: promises and the waits after a restart or a lost disk.
    pub slow: Moment,
    /// How often the host is known to have been suspended. A suspend may have lasted longer than `at` says.
    pub suspends: u32,
    /// Wall clock in milliseconds since 1970; it may jump. People see it (`elected_at`), and it bounds the
    /// epochs of messages ([`Epoch::plausible`](crate::election::Epoch::plausible)). No lease depends on it.
    pub wall_ms: u64,
}

impl Now {
    /// This moment on both clocks of a host that was never suspended.
    pub fn at(at: Moment) -> Now {
        Now { at, slow: at, suspends: 0, wall_ms: 0 }
    }
}

/// A duration as the wire and the record have it: whole milliseconds, rounded up. So a promise is never
/// shorter than the requested time.
pub(in crate::election) fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// A duration that a message or a record names.
pub(in crate::election) fn duration(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}
