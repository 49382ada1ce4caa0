//! The rules that must hold, and a broken one as data.

use super::clock::{MS, Ns};
use std::fmt;

/// Which rule was broken. The numbers are those of ARCHITECTURE.md ("What always holds").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// 3: two processes answer at one instant that they lead.
    TwoLeaders,
    /// 4: two processes lead in one epoch.
    EpochTwice,
    /// 1: an epoch went back.
    EpochBack,
    /// 2: a message left that depends on a record that is not durable.
    NotDurable,
    /// 6: a second election in one epoch.
    SecondElection,
    /// Clause 17: a resigned or lapsed epoch is led again.
    LedAgain,
    /// Clause 24: a request for votes without a pre-vote.
    NoPreVote,
    /// Clause 3: a voter votes for two processes in one epoch.
    VotedTwice,
    /// Clauses 4, 8 and 13: a voter votes while it has promised itself to another process.
    PromiseBroken,
    /// Clauses 14 and 16: a leader counts on time that no majority has promised to it.
    NotPromised,
    /// Clauses 19 to 21: a configuration that does not follow from a committed one in one step.
    ConfigChange,
    /// Clause 28: a transfer to a process that has not said that a majority would vote for it.
    Unprepared,
    /// Clause 30: a process leads that has told its operator that it does not stand.
    CordonedLeads,
    /// Clause 30: a process begins to lead whose application is not healthy.
    SickBegins,
    /// A process leads while an application of another place has a hold.
    HoldBroken,
    /// An operator gets no answer, or two.
    Unanswered,
    /// The machine found its own state broken.
    Assertion,
    /// 7: within the bound the processes do not agree on a leader and on the live members, or not for long.
    NoAgreement,
    /// More happens than a run has room for.
    TooMuch,
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// When, in nanoseconds of global time.
    pub(super) at: Ns,
    /// Which.
    pub rule: Rule,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}.{:03} s: {}", self.rule, self.at / (1000 * MS), self.at / MS % 1000, self.what)
    }
}
