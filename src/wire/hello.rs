//! The first frame on a connection: the sender's identity and versions, or why it refuses the other.

use crate::election::{AnnouncedValues, Instance, Peer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// The safety level of a process, as the other side has to know it: in one cluster all have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "u8", into = "u8")]
pub enum SafetyCode {
    /// `--safety classic`; also a process that names none, as the first version did.
    Classic,
    /// `--safety majority`.
    Majority,
    /// One that a newer version has and this one doesn't, by its number.
    Other(u8),
}

impl From<u8> for SafetyCode {
    fn from(number: u8) -> SafetyCode {
        match number {
            0 => SafetyCode::Classic,
            1 => SafetyCode::Majority,
            other => SafetyCode::Other(other),
        }
    }
}

impl From<SafetyCode> for u8 {
    fn from(level: SafetyCode) -> u8 {
        match level {
            SafetyCode::Classic => 0,
            SafetyCode::Majority => 1,
            SafetyCode::Other(number) => number,
        }
    }
}

impl fmt::Display for SafetyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SafetyCode::Classic => f.write_str("classic"),
            SafetyCode::Majority => f.write_str("majority"),
            SafetyCode::Other(number) => write!(f, "of a newer version (number {number})"),
        }
    }
}

/// The sender's identity, and what it speaks. Both sides of a new connection send one first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hello {
    /// The oldest version of the protocol that the sender speaks.
    pub version_min: u16,
    /// The newest version that it speaks.
    pub version_max: u16,
    /// The name of its cluster.
    pub cluster: String,
    /// The sender.
    pub peer: Peer,
    /// What it was given as `--safety`.
    pub safety: SafetyCode,
    /// The number of the dial that brought it, drawn at random; zero in an answer. The sender confirms it to
    /// a [`Confirm`].
    pub token: u64,
    /// What the sender announces to applications.
    pub announce: AnnouncedValues,
}

/// The other first frame of a connection: asks the process at an address whether a Hello that names it is
/// its own. The connection ends with the answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Confirm {
    /// The process that the Hello names.
    pub instance: Instance,
    /// The Hello's token.
    pub token: u64,
    /// Where the Hello arrived: the process has dialled one of these addresses. The first is that of the
    /// asking side's end of the connection, the second the one that it advertises.
    pub reached: (SocketAddr, SocketAddr),
}

/// The answer to a [`Confirm`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Confirmed {
    /// The receiver is that process, and the Hello is its own.
    Own,
    /// The receiver is that process, and the Hello is another's.
    Foreign,
    /// The receiver is another process.
    Another,
}

impl Hello {
    /// The version that both sides speak on this connection: the newest that the sender of this Hello and we
    /// have in common, `ours` being our oldest and newest. None: they have none in common, which is
    /// [`Refusal::Version`].
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
    /// The sender has another safety level.
    Safety,
    /// `majority`: another live process has the sender's name, and with it its vote.
    Name,
    /// The process at the address that the sender advertises does not confirm the connection.
    Identity,
    /// The address that the sender advertises is not its own, as far as the receiver can tell.
    Address,
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
            6 => Refusal::Safety,
            7 => Refusal::Name,
            8 => Refusal::Identity,
            9 => Refusal::Address,
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
            Refusal::Safety => 6,
            Refusal::Name => 7,
            Refusal::Identity => 8,
            Refusal::Address => 9,
            Refusal::Other(number) => number,
        }
    }
}
