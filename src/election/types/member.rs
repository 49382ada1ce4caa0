//! The members of a cluster as one process knows them, and the version that names a state of the list.

use crate::election::{Epoch, Incarnation, Moment, Priority, ProcessId, Rank};
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most members that a cluster may have; a further one is refused and logged. The transport's threads and
/// the largest frame follow from it.
pub const MEMBERS_MAX: usize = 256;
/// The longest name of a process, in bytes (a Kubernetes pod's name is at most this long).
pub const NAME_BYTES_MAX: usize = 253;
/// The longest name of a cluster, in bytes (a Kubernetes Service's name is at most this long).
pub const CLUSTER_BYTES_MAX: usize = 63;
/// The longest revision, in bytes (a Kubernetes label's value is at most this long).
pub const REVISION_BYTES_MAX: usize = 63;

/// What a process says of itself, and what others pass on of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// Its id.
    pub id: ProcessId,
    /// Which incarnation of that id.
    pub incarnation: Incarnation,
    /// A name for people; at most [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// Where its peer port is reached. The unspecified address (`0.0.0.0` or `::`) says "not known to itself
    /// yet": the receiver puts the remote address of the connection in its place.
    pub address: SocketAddr,
    /// The first part of its rank.
    pub priority: Priority,
    /// What its pod was made from (a pod-template hash), empty when unknown. A leader that is told to stop
    /// prefers a successor of another revision than its own. That successor has already been restarted in the
    /// rollout under way.
    pub revision: String,
}

impl Peer {
    /// Its priority in an election; 0 while it is no candidate.
    pub fn rank(&self) -> Rank {
        Rank { priority: self.priority, id: self.id }
    }
}

/// What the failure detector holds of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum State {
    /// It answers, or there is no evidence against it.
    Alive,
    /// It crashed, or was silent for the failure timeout.
    Failed,
}

/// A line of the membership list as it is broadcast and kept durably.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The member.
    pub peer: Peer,
    /// Whether it is alive, for the process that wrote the entry.
    pub state: State,
}

/// Names one state of a leader's membership list, so that a heartbeat can say "you are up to date" in a few
/// bytes. Ordered by the writer's epoch, then by its counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct MembershipVersion {
    /// The epoch of the leader that wrote it.
    pub epoch: Epoch,
    /// Counts that leader's changes.
    pub version: u32,
}

/// A member as the machine keeps it: the entry, and what only this process knows.
#[derive(Clone, Hash, Debug)]
pub struct Member {
    /// What is broadcast.
    pub peer: Peer,
    /// What the failure detector holds.
    pub state: State,
    /// Whether a connection to it is open.
    pub linked: bool,
    /// When a message of it last arrived here.
    pub last_heard: Option<Moment>,
    /// The latest heartbeat's round trip, known to a leader only.
    pub round_trip: Option<Duration>,
    /// When it became alive, for the preemption delay.
    pub alive_since: Moment,
    /// When it last said that it has another priority, for the preemption delay too.
    pub ranked_since: Moment,
    /// Whether this leader has yet to tell the others of that priority.
    pub rank_untold: bool,
    /// Since when discovery, while it works, no longer names its address.
    pub unlisted_since: Option<Moment>,
}

impl Member {
    /// What is broadcast of it.
    pub fn entry(&self) -> Entry {
        Entry { peer: self.peer.clone(), state: self.state }
    }

    /// Its priority in an election; 0 while it is no candidate.
    pub fn rank(&self) -> Rank {
        self.peer.rank()
    }

    /// Alive and allowed to lead.
    pub fn can_lead(&self) -> bool {
        self.state == State::Alive && self.peer.rank().eligible()
    }
}
