//! What a candidate asks voters, and what they answer (`--safety majority`).

use super::time::duration;
use crate::election::{Epoch, Incarnation, Moment};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Whether a voter is asked if it would vote, or to vote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// "Would you vote for me?" It binds neither side (clause 24; Raft's pre-vote).
    PreVote,
    /// "Vote for me."
    Vote,
}

impl Stage {
    /// Its name in logs and traces.
    pub fn name(self) -> &'static str {
        match self {
            Stage::PreVote => "pre-vote",
            Stage::Vote => "vote",
        }
    }
}

/// What a candidate asks for. A voter repeats it in its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Ballot {
    /// Would it vote, or does it vote?
    pub stage: Stage,
    /// The epoch that the candidate wants to lead in.
    pub epoch: Epoch,
    /// Which incarnation of the candidate asks.
    pub incarnation: Incarnation,
    /// When it first asked, on its own clock: an answer to an earlier question does not count.
    pub asked_at: Moment,
    /// How long it wants the voter's promise to last, in milliseconds; at most the lease of the configuration
    /// that it names.
    pub lease_ms: u32,
}

/// A voter's answer to a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum VoteOutcome {
    /// The voter would vote, or has voted: the vote is durable, and a promise for the lease from receipt.
    Granted,
    /// The voter does not vote.
    Denied(Denial),
}

impl From<Option<Denial>> for VoteOutcome {
    fn from(denial: Option<Denial>) -> VoteOutcome {
        denial.map_or(VoteOutcome::Granted, VoteOutcome::Denied)
    }
}

/// Why a voter does not vote for a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Denial {
    /// The epoch is not above the voter's own; the answer's own epoch says what it has to be above.
    Stale,
    /// The voter stores a later configuration than the request names. The answer has it.
    OlderConfig,
    /// The voter has promised its vote to another process.
    Promised {
        /// For so long from now, in milliseconds.
        for_ms: u32,
    },
    /// The voter was restarted and may have forgotten a promise.
    Grace {
        /// For so long from now, in milliseconds.
        for_ms: u32,
    },
    /// The voter knows of a candidate of higher rank that may win, perhaps itself.
    Outranked,
    /// The voter has no record, and so no vote yet.
    NoRecord,
    /// Neither the voter's configuration nor its `--voters` name the candidate.
    Unlisted,
}

impl Denial {
    /// Its name in logs and traces.
    pub fn name(self) -> &'static str {
        match self {
            Denial::Stale => "stale",
            Denial::OlderConfig => "older_config",
            Denial::Promised { .. } => "promised",
            Denial::Grace { .. } => "grace",
            Denial::Outranked => "outranked",
            Denial::NoRecord => "no_record",
            Denial::Unlisted => "unlisted",
        }
    }

    /// How long the voter keeps the candidate waiting, where it says so.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Denial::Promised { for_ms } | Denial::Grace { for_ms } => Some(duration(for_ms)),
            _ => None,
        }
    }
}
