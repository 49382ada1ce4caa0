//! The lease that a round of heartbeats asks for, and what it is learnt from.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a leader has learnt of delays. Each round says it, so that a new leader goes on from there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Learnt {
    /// The worst delay that it remembers, in milliseconds; zero: it has learnt nothing yet.
    pub worst_ms: u32,
    /// For how many eighths of its memory it still remembers that.
    pub eighths: u8,
}

/// How heartbeats go on from one of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Pace {
    /// For how long the leader may be silent, in milliseconds; zero: as long as the follower's own flags say.
    pub lease_ms: u32,
    /// What the leader has learnt of delays.
    pub learnt: Learnt,
}

named! {
    /// Why the lease is as long as it is that a leader asks for.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum LeaseReason {
        /// Leases are fixed.
        Fixed = "fixed",
        /// The leader has learnt for less than two seconds.
        Learning = "learning",
        /// `majority`: the voters that are connected could not elect another leader.
        Voters = "voters",
        /// Delays are so small that it is the shortest one.
        Shortest = "shortest",
        /// The worst delay of the last minutes.
        Delay = "delay",
        /// Answers to the latest rounds are missing.
        Unanswered = "unanswered",
        /// Applications hold the leadership, or ask for answers that hold for so long.
        Application = "application",
    }
}

/// Where delays are small, heartbeats are up to this far apart, or a fifth of a lease where that is longer.
pub(in crate::election) const REST_INTERVAL: Duration = Duration::from_millis(120);

/// The lease of which nine tenths are still this long when the next round comes. Delays come on top.
pub(in crate::election) fn lease_for(lasts: Duration) -> Duration {
    (lasts.saturating_mul(3) / 2).max(lasts.saturating_mul(6) / 5 + REST_INTERVAL)
}
