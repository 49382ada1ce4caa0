//! What an application asks of its own pod's leader, and what that leader promises: holds.

use crate::election::Epoch;
use std::time::Duration;

/// The most holds that are out at a time.
pub const HOLDS_MAX: usize = 64;

/// What an application asks for. A hold is named by its number, which this incarnation counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HoldRequest {
    /// Another hold.
    Take {
        /// For how long, from the turn on.
        lasts: Duration,
    },
    /// A hold goes on.
    Extend {
        /// Which.
        hold: u64,
        /// For how long, from the turn on.
        lasts: Duration,
    },
    /// The holder has stopped.
    End {
        /// Which.
        hold: u64,
    },
}

/// What came of it, and what a hold may be at best.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HoldAnswer {
    /// What came of it.
    pub outcome: HoldOutcome,
    /// The longest hold that this process promises while it leads; zero: it promises none.
    pub longest: Duration,
    /// For how long a resignation waits for holds that go on.
    pub stop_wait: Duration,
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HoldOutcome {
    /// The promise: no other member leads before this time is over, counted from the turn.
    Granted {
        /// Which hold.
        hold: u64,
        /// The epoch that this process leads.
        epoch: Epoch,
        /// For how long, in whole milliseconds. Zero: it is extended by nothing, and ends when it would have.
        lasts: Duration,
    },
    /// Nothing is promised: it does not lead, it resigns, or no majority has promised firmly.
    Nothing,
    /// [`HOLDS_MAX`] are out already.
    TooMany,
    /// There is no such hold any more.
    Unknown,
    /// Its holder has stopped.
    Ended,
}
