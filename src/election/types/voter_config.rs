//! The configuration that voters share: which they are, and for how long a promise may last.

use super::time::duration;
use crate::election::Epoch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most voters that a configuration may have. A vote costs a durable write at each of a majority of them.
pub const VOTERS_MAX: usize = 31;

/// The longest lease and the longest bound, in milliseconds: one hour.
pub const LEASE_MS_MAX: u32 = 3_600_000;

/// Orders the configurations of all leaders: by the epoch of the leader that wrote it, then by that leader's
/// counter (clause 18). The counter alone would let an old leader's change win over a newer leader's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ConfigVersion {
    /// The epoch of the leader that wrote it; zero: it comes from the flags of the first start.
    pub epoch: Epoch,
    /// Counts that leader's changes.
    pub version: u32,
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

/// What a process was started with, as far as all have to agree on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Flags {
    /// A fingerprint of its `--voters`.
    pub voters: u64,
    /// Its `--lease`, in milliseconds.
    pub lease_ms: u32,
}

/// Names a set of voters in a few bytes (FNV-1a, which is the same in every build). It shows whether two
/// processes were started with the same `--voters`.
pub(in crate::election) fn fingerprint(voters: &BTreeSet<String>) -> u64 {
    let bytes = voters.iter().flat_map(|name| name.bytes().chain(std::iter::once(0)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
