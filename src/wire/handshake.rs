//! The first frame on a connection: who one is and which versions one speaks, or why one won't talk.

use crate::election::Peer;
use serde::{Deserialize, Serialize};

/// Who this is, and what it speaks. Both sides of a new connection send one first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version of the protocol that the sender speaks.
    pub version_min: u16,
    /// The newest version that it speaks.
    pub version_max: u16,
    /// The name of its cluster.
    pub cluster: String,
    /// The sender.
    pub peer: Peer,
}

impl Hello {
    /// The version that both sides speak on this connection: the newest that the sender of this Hello and we have in
    /// common, `ours` being our oldest and newest. None: they have none in common, which is [`Refusal::Version`].
    pub fn negotiate(&self, ours: (u16, u16)) -> Option<u16> {
        let (oldest, newest) = ours;
        let version = self.version_max.min(newest);
        (version >= self.version_min && version >= oldest).then_some(version)
    }
}

/// Why a Hello was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "u16", into = "u16")]
pub enum Refusal {
    /// The sender is of another cluster.
    Cluster,
    /// The sender has the receiver's own id: it dialled itself, or two processes have one id.
    OwnId,
    /// They have no version in common.
    Version,
    /// The receiver has as many connections, or members, as it may have.
    Full,
    /// What arrived was not a Hello.
    Malformed,
    /// A reason that a newer version has and this one doesn't, by its number. Its text says more.
    Other(u16),
}

impl From<u16> for Refusal {
    fn from(number: u16) -> Refusal {
        match number {
            1 => Refusal::Cluster,
            2 => Refusal::OwnId,
            3 => Refusal::Version,
            4 => Refusal::Full,
            5 => Refusal::Malformed,
            other => Refusal::Other(other),
        }
    }
}

impl From<Refusal> for u16 {
    fn from(why: Refusal) -> u16 {
        match why {
            Refusal::Cluster => 1,
            Refusal::OwnId => 2,
            Refusal::Version => 3,
            Refusal::Full => 4,
            Refusal::Malformed => 5,
            Refusal::Other(number) => number,
        }
    }
}
