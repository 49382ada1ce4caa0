//! Voters: the configuration that they share, and what they say to a candidate (`--safety majority`).

use crate::election::{Epoch, Incarnation, Moment, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most voters that a configuration may have. A vote costs a durable write at each of a majority of them.
pub const VOTERS_MAX: usize = 31;

/// The longest lease and the longest bound, in milliseconds: one hour.
pub const LEASE_MS_MAX: u32 = 3_600_000;

/// One incarnation of a process: a voter makes its promise to it. A restart is another instance, even with
/// the same name and id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Its id, which a restart with the record keeps.
    pub id: ProcessId,
    /// Which start of that process.
    pub incarnation: Incarnation,
}

/// Orders the configurations of all leaders: by the epoch of the leader that wrote it, then by that leader's
/// counter (clause 18). The counter alone would let an old leader's change win over a newer leader's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ConfigVersion {
    /// The epoch of the leader that wrote it; zero: it comes from the flags of the first start.
    pub epoch: Epoch,
    /// Counts that leader's changes.
    pub version: u32,
}

/// What a leader has learnt of delays. Each round says it, so that a new leader goes on from there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Learnt {
    /// The worst delay that it remembers, in milliseconds; zero: it has learnt nothing yet.
    pub worst_ms: u32,
    /// For how many eighths of its memory it still remembers that.
    pub eighths: u8,
}

/// How a heartbeat of `classic` goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Pace {
    /// For how long the leader may be silent, in milliseconds; zero: as long as the follower's own flags say.
    pub lease_ms: u32,
    /// What the leader has learnt of delays.
    pub learnt: Learnt,
}

/// Which processes vote, and for how long a promise may last. A majority is counted in one of these.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct VoterConfig {
    /// Which configuration.
    pub version: ConfigVersion,
    /// The names of the voters, from one to [`VOTERS_MAX`].
    pub voters: BTreeSet<String>,
    /// The longest lease that a request or a round may ask for, in milliseconds.
    pub lease_ms: u32,
    /// How long a restart or a recovery waits, in milliseconds: no promise that may still count lasts longer.
    /// It differs from the lease only while a leader changes the lease.
    pub bound_ms: u32,
}

impl VoterConfig {
    /// The configuration of a first start with these flags.
    pub fn first(voters: BTreeSet<String>, lease_ms: u32) -> VoterConfig {
        VoterConfig { version: ConfigVersion::default(), voters, lease_ms, bound_ms: lease_ms }
    }

    /// How many of its voters are more than half of them.
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Whether these names hold more than half of its voters; other names and repetitions do not count.
    pub fn has_majority<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let counted: BTreeSet<&str> = names.into_iter().filter(|n| self.voters.contains(*n)).collect();
        counted.len() >= self.majority()
    }

    /// The lease.
    pub fn lease(&self) -> Duration {
        duration(self.lease_ms)
    }

    /// The bound.
    pub fn bound(&self) -> Duration {
        duration(self.bound_ms)
    }

    /// The next lease and bound on the way to a lease of `target`, in milliseconds (clause 21); none: nothing
    /// changes yet.
    ///
    /// A longer lease is asked for only once a majority stores the longer bound. A shorter bound is stored
    /// only once a majority has promised the leader a shorter lease, which is then all that it counts on.
    pub(in crate::election) fn next_lease(&self, target: u32) -> Option<(u32, u32)> {
        let present = (self.lease_ms, self.bound_ms);
        let between = (self.lease_ms.min(target), self.bound_ms.max(target));
        match present {
            _ if present == (target, target) => None,
            _ if present == between => Some((target, target)),
            _ => Some(between),
        }
    }
}

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

/// What a process knows from its record, as it tells a voter without one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum RecoveredState {
    /// It has no record either.
    #[default]
    Empty,
    /// It has stored that it takes part in a first start, with this configuration. It has never voted.
    Founding(VoterConfig),
    /// It may have voted. This is the configuration that it stores.
    Founded(VoterConfig),
}

impl RecoveredState {
    /// What a record says to a process that was started with this list and lease. A first start that was not
    /// finished goes on with another lease, if the list is the same: that process has never voted.
    pub(in crate::election) fn of(
        record: Option<&VoteRecord>,
        list: &BTreeSet<String>,
        lease_ms: u32,
    ) -> RecoveredState {
        match record {
            None => RecoveredState::Empty,
            Some(VoteRecord { founding: false, config, .. }) => RecoveredState::Founded(config.clone()),
            Some(VoteRecord { config, .. }) if config.voters == *list => {
                RecoveredState::Founding(VoterConfig::first(list.clone(), lease_ms))
            }
            Some(VoteRecord { config, .. }) => RecoveredState::Founding(config.clone()),
        }
    }

    /// The configuration of a process that may vote.
    pub fn founded(&self) -> Option<&VoterConfig> {
        match self {
            RecoveredState::Founded(config) => Some(config),
            RecoveredState::Empty | RecoveredState::Founding(_) => None,
        }
    }
}

/// What a process was started with, as far as all have to agree on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Flags {
    /// A fingerprint of its `--voters`.
    pub voters: u64,
    /// Its `--lease`, in milliseconds.
    pub lease_ms: u32,
}

/// What a voter keeps over a restart, besides its id and epoch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct VoteRecord {
    /// Its name: a folder that was copied from another voter names that one.
    pub name: String,
    /// Whether it still takes part in its first start: it has never voted then.
    pub founding: bool,
    /// Whether a promise may be out that no crash evidence frees (rule 2 of docs/safety/holds.md). A record
    /// of an older version does not say, so it may be.
    #[serde(default = "unsaid")]
    pub firm: bool,
    /// The configuration that it stores.
    pub config: VoterConfig,
}

fn unsaid() -> bool {
    true
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

/// Names a set of voters in a few bytes (FNV-1a, which is the same in every build). It shows whether two
/// processes were started with the same `--voters`.
pub(in crate::election) fn fingerprint(voters: &BTreeSet<String>) -> u64 {
    let bytes = voters.iter().flat_map(|name| name.bytes().chain(std::iter::once(0)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
