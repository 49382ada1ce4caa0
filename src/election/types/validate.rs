//! What may enter a process: the same limits for messages of peers and for the record on disk.

use crate::election::{
    ANNOUNCE_KEY_BYTES_MAX, ANNOUNCE_MAX, ANNOUNCE_VALUE_BYTES_MAX, AnnouncedValues, Ballot,
    CLUSTER_BYTES_MAX, ConfigVersion, Denial, Entry, Epoch, Flags, Incarnation, Incumbent, LEASE_MS_MAX,
    Learnt, ListWanted, MEMBERS_MAX, MembershipVersion, Message, NAME_BYTES_MAX, Pace, Peer, Priority,
    ProcessId, REVISION_BYTES_MAX, RecoveredState, VOTERS_MAX, VoteOutcome, VoteRequest, VoterConfig,
};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Why a value may not enter a process: what was seen, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LimitError {
    /// A text is too long.
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The most allowed.
        bytes_max: usize,
    },
    /// A text has a control character in it, which could forge a line of a log or a header.
    ControlCharacter {
        /// Which text.
        what: &'static str,
        /// The character.
        character: char,
        /// Where it stands, in bytes.
        position: usize,
    },
    /// A priority is above [`Priority::MAX`].
    Priority(Priority),
    /// An epoch is above [`Epoch::MAX`].
    Epoch(Epoch),
    /// An epoch of a record is above [`Epoch::RECORD_MAX`].
    RecordEpoch(Epoch),
    /// A list names more than [`MEMBERS_MAX`] members.
    Members(u64),
    /// A process announces more than [`ANNOUNCE_MAX`] values.
    Announced(usize),
    /// A key of an announced value is empty, too long, or has other characters than a key may have.
    AnnouncedKey {
        /// Its length.
        bytes: usize,
    },
    /// A configuration has none, or more than [`VOTERS_MAX`] voters.
    Voters(usize),
    /// A lease, or a wait for one, is longer than [`LEASE_MS_MAX`].
    Wait {
        /// Which lease or wait.
        what: &'static str,
        /// Its length, in milliseconds.
        ms: u32,
    },
    /// A configuration's lease is zero, or longer than its bound, or the bound is longer than
    /// [`LEASE_MS_MAX`].
    Lease {
        /// The lease, in milliseconds.
        lease_ms: u32,
        /// The bound, in milliseconds.
        bound_ms: u32,
    },
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::TooLong { what, bytes, bytes_max } => {
                write!(f, "{what} has {bytes} bytes; at most {bytes_max} are allowed")
            }
            LimitError::ControlCharacter { what, character, position } => {
                let character = character.escape_unicode();
                write!(f, "{what} has the control character {character} at byte {position}; none is allowed")
            }
            LimitError::Priority(seen) => {
                write!(f, "the priority is {}; at most {} is allowed", seen.0, Priority::MAX.0)
            }
            LimitError::Epoch(seen) => write!(f, "the epoch is {seen}; at most {} is allowed", Epoch::MAX),
            LimitError::RecordEpoch(seen) => {
                write!(f, "the epoch is {seen}; at most {} is allowed in a record", Epoch::RECORD_MAX)
            }
            LimitError::Members(seen) => {
                write!(f, "the list names {seen} members; at most {MEMBERS_MAX} are allowed")
            }
            LimitError::Announced(seen) => {
                write!(f, "{seen} values are announced; at most {ANNOUNCE_MAX} are allowed")
            }
            LimitError::AnnouncedKey { bytes } => write!(
                f,
                "the key of an announced value has {bytes} bytes; it has 1 to {ANNOUNCE_KEY_BYTES_MAX} \
                 characters of a-z, 0-9, dot, underscore and hyphen"
            ),
            LimitError::Voters(seen) => {
                write!(f, "the configuration has {seen} voters; from 1 to {VOTERS_MAX} are allowed")
            }
            LimitError::Wait { what, ms } => {
                write!(f, "{what} is {ms} ms; at most {LEASE_MS_MAX} ms are allowed")
            }
            LimitError::Lease { lease_ms, bound_ms } => write!(
                f,
                "the configuration has a lease of {lease_ms} ms and a bound of {bound_ms} ms; allowed are 1 \
                 <= lease <= bound <= {LEASE_MS_MAX}"
            ),
        }
    }
}

impl std::error::Error for LimitError {}

/// An error where a value is not within its limit.
fn limit(within: bool, error: LimitError) -> Result<(), LimitError> {
    if within { Ok(()) } else { Err(error) }
}

/// Checks the length of a text for people, and that it has no control characters. `what` names it in the
/// error.
pub fn check_text(what: &'static str, text: &str, bytes_max: usize) -> Result<(), LimitError> {
    limit(text.len() <= bytes_max, LimitError::TooLong { what, bytes: text.len(), bytes_max })?;
    // Most texts are plain, and a list of members has hundreds of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    match text.char_indices().find(|(_, character)| character.is_control()) {
        None => Ok(()),
        Some((position, character)) => Err(LimitError::ControlCharacter { what, character, position }),
    }
}

/// Checks the name of a cluster.
pub fn check_cluster(cluster: &str) -> Result<(), LimitError> {
    check_text("the cluster's name", cluster, CLUSTER_BYTES_MAX)
}

fn check_wait(what: &'static str, ms: u32) -> Result<(), LimitError> {
    limit(ms <= LEASE_MS_MAX, LimitError::Wait { what, ms })
}

/// Checks a list of members: their number, and each of them.
pub fn check_entries(entries: &[Entry]) -> Result<(), LimitError> {
    limit(entries.len() <= MEMBERS_MAX, LimitError::Members(entries.len() as u64))?;
    entries.iter().try_for_each(|entry| entry.peer.check())
}

/// Checks the names of voters: how many they are, and each of them.
pub fn check_voters(voters: &BTreeSet<String>) -> Result<(), LimitError> {
    limit((1..=VOTERS_MAX).contains(&voters.len()), LimitError::Voters(voters.len()))?;
    voters.iter().try_for_each(|name| check_text("a voter's name", name, NAME_BYTES_MAX))
}

impl Priority {
    /// Whether it is at most [`Priority::MAX`].
    pub fn check(self) -> Result<(), LimitError> {
        limit(self <= Priority::MAX, LimitError::Priority(self))
    }
}

impl Epoch {
    /// Whether it is at most [`Epoch::MAX`].
    pub fn check(self) -> Result<(), LimitError> {
        limit(self <= Epoch::MAX, LimitError::Epoch(self))
    }

    /// Whether it is at most [`Epoch::RECORD_MAX`].
    pub fn check_in_record(self) -> Result<(), LimitError> {
        limit(self <= Epoch::RECORD_MAX, LimitError::RecordEpoch(self))
    }
}

impl Peer {
    /// Whether its texts and its priority are within their limits.
    pub fn check(&self) -> Result<(), LimitError> {
        check_text("a process's name", &self.name, NAME_BYTES_MAX)?;
        check_text("a process's revision", &self.revision, REVISION_BYTES_MAX)?;
        self.priority.check()
    }
}

impl AnnouncedValues {
    /// Whether the number of its values, and each key and value, are within their limits.
    pub fn check(&self) -> Result<(), LimitError> {
        limit(self.0.len() <= ANNOUNCE_MAX, LimitError::Announced(self.0.len()))?;
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        self.0.iter().try_for_each(|(key, value)| {
            let right = (1..=ANNOUNCE_KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(allowed);
            limit(right, LimitError::AnnouncedKey { bytes: key.len() })?;
            check_text("an announced value", value, ANNOUNCE_VALUE_BYTES_MAX)
        })
    }
}

impl VoterConfig {
    /// Whether its voters, its lease and its bound are within their limits.
    pub fn check(&self) -> Result<(), LimitError> {
        self.version.epoch.check()?;
        let VoterConfig { lease_ms, bound_ms, .. } = *self;
        let ordered = (1..=bound_ms).contains(&lease_ms) && bound_ms <= LEASE_MS_MAX;
        limit(ordered, LimitError::Lease { lease_ms, bound_ms })?;
        check_voters(&self.voters)
    }
}

/// A field of a message, and what it may hold.
pub(crate) trait Bounded {
    /// Whether it is within its limits. What has none is right.
    fn check(&self) -> Result<(), LimitError> {
        Ok(())
    }
}

/// Fields that have no limits beside those of their type.
macro_rules! unbounded {
    ($($field:ty),*) => { $(impl Bounded for $field {})* };
}
unbounded!(bool, u32, u64, Incarnation, Learnt, ListWanted, Pace, ProcessId);

/// Fields that have the limits of a part of them.
macro_rules! bounded_by {
    ($($field:ty: |$value:ident| $check:expr;)*) => {
        $(impl Bounded for $field {
            fn check(&self) -> Result<(), LimitError> {
                let $value = self;
                $check
            }
        })*
    };
}
bounded_by! {
    Epoch: |epoch| Epoch::check(*epoch);
    MembershipVersion: |version| version.epoch.check();
    ConfigVersion: |version| version.epoch.check();
    Ballot: |ballot| {
        ballot.epoch.check()?;
        check_wait("a request's lease", ballot.lease_ms)
    };
    Flags: |flags| check_wait("a process's --lease", flags.lease_ms);
    VoteOutcome: |outcome| match outcome {
        VoteOutcome::Denied(Denial::Promised { for_ms } | Denial::Grace { for_ms }) => {
            check_wait("a voter's wait", *for_ms)
        }
        _ => Ok(()),
    };
    Entry: |entry| entry.peer.check();
    Incumbent: |leader| leader.peer.check();
    Arc<[Entry]>: |entries| check_entries(entries);
    VoterConfig: |config| VoterConfig::check(config);
    RecoveredState: |state| match state {
        RecoveredState::Empty => Ok(()),
        RecoveredState::Founding(config) | RecoveredState::Founded(config) => config.check(),
    };
    VoteRequest: |request| {
        request.ballot.check()?;
        Bounded::check(&request.transfer)?;
        request.config.check()
    };
}

impl<T: Bounded> Bounded for Option<T> {
    fn check(&self) -> Result<(), LimitError> {
        self.as_ref().map_or(Ok(()), T::check)
    }
}

impl Message {
    /// Whether everything in it is within its limits.
    pub fn check(&self) -> Result<(), LimitError> {
        self.epoch.check()?;
        self.priority.check()?;
        self.body.check()
    }
}
