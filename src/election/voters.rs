//! Voters: who they are, and what they say to a contestant (`--safety majority`).

use super::{Epoch, Incarnation, Moment, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most voters that a view may have. A grant costs a durable write at each of a majority of them.
pub const VOTERS_MAX: usize = 31;

/// A life of a process: what a grant is given to. A voter whose disk was lost, or that was restarted, is another one,
/// whatever its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Who.
    pub id: ProcessId,
    /// Which life.
    pub incarnation: Incarnation,
}

/// Orders the views of all leaders: by the epoch of the leader that wrote it, then by that leader's counter
/// (design, "Majority mode" 9). The version alone would let an old leader's change win over a newer leader's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ViewStamp {
    /// The epoch of the leader that wrote it; zero: it comes from the flags of a first start.
    pub epoch: Epoch,
    /// Counts that leader's changes.
    pub version: u32,
}

/// Who votes. A majority is counted in one of these.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct VoterView {
    /// Which view.
    pub stamp: ViewStamp,
    /// The names of the voters, from one to [`VOTERS_MAX`].
    pub voters: BTreeSet<String>,
}

impl VoterView {
    /// How many of its voters are more than half of them.
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Whether these names hold more than half of its voters; names outside it do not count.
    pub fn has_majority<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let of_the_view: BTreeSet<&str> = names.into_iter().filter(|n| self.voters.contains(*n)).collect();
        of_the_view.len() >= self.majority()
    }
}

/// What a contestant asks the voters for: to sound them, or to claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Ballot {
    /// The epoch it wants to lead in.
    pub epoch: Epoch,
    /// Which life of the contestant asks.
    pub incarnation: Incarnation,
    /// When it asked, on its own clock: a reply to an earlier sounding says nothing any more.
    pub asked_at: Moment,
    /// For how long it wants the voter's promise, in milliseconds: its own `--lease`.
    pub lease_ms: u32,
}

/// Whether a voter was sounded or asked for a grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Question {
    /// "Would you grant?" Nothing changes, whatever the answer (rule 2).
    Sounding,
    /// "Grant." (rule 3)
    Claim,
}

/// A voter's answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Yes: for a claim a durable grant, and a promise for one lease from receipt.
    Yes,
    /// Yes, from a voter that may have forgotten a promise: it counts only together with all other voters (rule 7).
    Conditional,
    /// No.
    No(Refusal),
}

/// Why a voter refuses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// The epoch is not above the voter's own, and was not granted to this same process; the answer's own epoch says
    /// which it has to be above.
    Stale,
    /// It has promised another process not to, for so long from now, in milliseconds.
    Promised {
        /// How long the promise still holds.
        for_ms: u32,
    },
    /// It outranks the contestant and contests itself.
    Outranked,
    /// It has no record and has not recovered yet (rule 8).
    Recovering,
    /// It is no voter of the view that it knows, or the contestant isn't.
    NoVoter,
    /// The claim was withdrawn before it came.
    Withdrawn,
}

impl Refusal {
    /// Its name in logs and traces.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Stale => "stale",
            Refusal::Promised { .. } => "promised",
            Refusal::Outranked => "outranked",
            Refusal::Recovering => "recovering",
            Refusal::NoVoter => "no_voter",
            Refusal::Withdrawn => "withdrawn",
        }
    }
}

/// What a voter with a record tells one that has lost its own (rule 8).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Recollection {
    /// The view that it stores. Its epoch is the message's.
    pub view: VoterView,
    /// The longest lease that it ever promised, in milliseconds.
    pub lease_longest_ms: u32,
}

/// What a voter keeps over a restart, besides what every process keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct VoteRecord {
    /// Its name: a folder that was copied from another voter names that one.
    pub name: String,
    /// Whom it granted its epoch to, or heard leading in it.
    pub granted_to: Option<Process>,
    /// The view that it uses.
    pub view: VoterView,
    /// The longest lease that it ever promised, in milliseconds: a restart waits this long (rule 7).
    pub lease_longest_ms: u32,
}

/// A lease as the wire and the record have it: whole milliseconds, rounded up, so that a promise is never shorter than
/// what was asked for.
pub(super) fn lease_ms(lease: Duration) -> u32 {
    u32::try_from(lease.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// Names a set of voters in a few bytes (FNV-1a, which is the same in every build): whether two processes were given
/// the same `--voters`.
pub(super) fn fingerprint(voters: &BTreeSet<String>) -> u64 {
    let bytes = voters.iter().flat_map(|name| name.bytes().chain(std::iter::once(0)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
