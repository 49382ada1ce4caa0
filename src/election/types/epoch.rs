//! The epoch: the number of a leader's term.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The term of one leadership, stamped on every member and message (tests/bully-readme.txt, notes 3 and 4).
///
/// It does not change from a leader's election to its death or resignation; every new round takes the highest
/// seen plus one. It never goes back and never wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Before the first election.
    pub const ZERO: Epoch = Epoch(0);
    /// The highest epoch that a message may carry. Elections cannot reach it (a billion a second for a
    /// century falls short). So a message beyond it is damaged or hostile. A process drops it, since it would
    /// use the numbers up.
    pub const MAX: Epoch = Epoch(1 << 62);

    /// The highest epoch that a record may hold. A process that starts with it can still take one more and
    /// announce it. Above it no election can follow, so a process neither writes nor reads such a record.
    pub const RECORD_MAX: Epoch = Epoch(Epoch::MAX.0 - 1);

    /// Below this, an epoch is plausible whatever a clock says. Elections alone reach it in a century of one
    /// election a second.
    pub const ALWAYS_PLAUSIBLE: u64 = 1 << 32;

    /// How far ahead of this machine's clock another one's may have been when it raised an epoch, in
    /// milliseconds: a day.
    pub const CLOCK_LEAD_MAX_MS: u64 = 24 * 60 * 60 * 1000;

    /// The highest epoch that a record may hold at a start, at this time of the wall clock, in milliseconds
    /// since 1970. Peers believe no message of a much higher one ([`Epoch::plausible`]). This process could
    /// then neither join them nor lead them.
    pub fn record_max(wall_ms: u64) -> Epoch {
        let budget = Epoch::ALWAYS_PLAUSIBLE.saturating_add(wall_ms);
        Epoch(budget.saturating_add(Epoch::CLOCK_LEAD_MAX_MS)).min(Epoch::RECORD_MAX)
    }

    /// Whether a process that has seen `seen` may believe a message of this epoch, at this time of its wall
    /// clock, in milliseconds since 1970.
    ///
    /// Messages that a damaged or hostile process sends raise an epoch by one for each millisecond since
    /// 1970, and no further. All processes have this bound in common, so each can follow every other one.
    pub fn plausible(self, seen: Epoch, wall_ms: u64) -> bool {
        let budget = Epoch::ALWAYS_PLAUSIBLE.saturating_add(wall_ms);
        self <= seen || self <= Epoch::MAX && self.0 <= budget
    }

    /// The epoch of the next round. It cannot wrap: every epoch that enters a process, by a message or by its
    /// record, is at most [`Epoch::MAX`]. That leaves room for 3 × 2^62 rounds.
    pub fn next(self) -> Epoch {
        assert!(self.0 < u64::MAX, "invariant: an epoch never wraps");
        Epoch(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
