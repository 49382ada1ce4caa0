//! The identity of a process: id, incarnation, priority, rank.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// The id of a process: a version-4 UUID, compared bytewise (tests/bully-readme.txt, notes 1 and 2).
///
/// With a state directory a process keeps it over restarts. Without one a restart is a new process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId(pub Uuid);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A number drawn at every start of a process. It tells a restart under the same [`ProcessId`] from the
/// process that was there before. Only equality counts: a greater number is not a newer one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

/// One incarnation of a process: a voter makes its promise to it. A restart is another instance, even with
/// the same name and id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Its id, which a restart with the record keeps.
    pub id: ProcessId,
    /// Which start of that process.
    pub incarnation: Incarnation,
}

/// An operator's number, 0 to 1000: the higher is preferred, 0 takes part but never leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Priority(pub u16);

impl Priority {
    /// "Takes part, never leads."
    pub const NEVER: Priority = Priority(0);
    /// The greatest that the command line accepts.
    pub const MAX: Priority = Priority(1000);
    /// What a process has unless told otherwise; with equal priorities the id decides, as in the seed.
    pub const DEFAULT: Priority = Priority(100);
}

/// What the Bully algorithm compares: priority first, then id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Rank {
    /// Compared first.
    pub priority: Priority,
    /// Compared between equal priorities.
    pub id: ProcessId,
}

impl Rank {
    /// Whether a process of this rank may lead at all.
    pub fn eligible(self) -> bool {
        self.priority > Priority::NEVER
    }

    /// Whether a process of this rank bullies one of `other`: it may lead, and ranks higher. A process that
    /// never leads outranks none, or an election that it wins by rank would end with no leader.
    pub fn outranks(self, other: Rank) -> bool {
        self.eligible() && self > other
    }
}
