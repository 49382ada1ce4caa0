//! What processes say to each other.

use super::{Entry, Epoch, MembershipVersion, Peer, ProcessId};
use serde::{Deserialize, Serialize};

/// The leader of an epoch, as one process tells another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Incumbent {
    /// Who leads.
    pub peer: Peer,
    /// Since when, on the leader's wall clock, in milliseconds since 1970. Shown to people only.
    pub elected_at_ms: u64,
}

/// A message with the epoch of its sender. Sender and cluster are stamped on it by the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The sender's epoch (seed note 3).
    pub epoch: Epoch,
    /// What it says.
    pub body: Body,
}

/// The algorithm's three messages (seed, "message types"), and those of the implementation notes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// To every process that outranks the sender: an election of this epoch is on.
    Election,
    /// To the sender of an Election that this process outranks: leave it to me.
    Answer,
    /// To every other process: the sender leads in this epoch.
    Coordinator {
        /// The leader's wall clock at its election, milliseconds since 1970.
        elected_at_ms: u64,
    },
    /// From the leader: I lead in this epoch and am alive. At most 128 bytes in a frame, however many members.
    Heartbeat {
        /// Counts the rounds, for the round trip.
        sequence: u32,
        /// Which membership list the leader has.
        membership: MembershipVersion,
    },
    /// To the leader: heard you.
    HeartbeatAck {
        /// That of the heartbeat.
        sequence: u32,
        /// Which membership list the follower has; an older one is answered with the list.
        membership: MembershipVersion,
    },
    /// From the leader: the whole list.
    Membership {
        /// Its version.
        version: MembershipVersion,
        /// At most [`MEMBERS_MAX`](super::MEMBERS_MAX).
        entries: Vec<Entry>,
    },
    /// From the leader: one member is new or changed (seed note 7).
    Join {
        /// The list's version with this change. A follower whose list is not the one before it asks for all of it
        /// with its next acknowledgement.
        version: MembershipVersion,
        /// Who.
        entry: Entry,
    },
    /// One member is gone (seed note 7): from the leader with the list's new version, or from the one who goes, to
    /// everybody that it is connected with, without one.
    Leave {
        /// The list's version with this change, from a leader.
        version: Option<MembershipVersion>,
        /// Who.
        id: ProcessId,
    },
    /// A leader's farewell: it has stopped leading, durably, before this left.
    Resign {
        /// Who shall lead next: it announces at once, without an election.
        successor: Option<ProcessId>,
        /// Whether the sender also leaves the cluster.
        leaving: bool,
    },
    /// Who leads, and what is your epoch? ("Returning processes ask first.")
    Ask,
    /// The reply to [`Body::Ask`], and to any message of a lower epoch.
    Tell {
        /// Whom the sender follows, or itself.
        leader: Option<Incumbent>,
        /// Whom the sender knows, at most [`MEMBERS_MAX`](super::MEMBERS_MAX).
        entries: Vec<Entry>,
    },
}

impl Body {
    /// All names that [`Body::name`] gives, so that what counts by name can begin with all of them.
    pub const NAMES: [&'static str; 11] = [
        "election",
        "answer",
        "coordinator",
        "heartbeat",
        "heartbeat_ack",
        "membership",
        "join",
        "leave",
        "resign",
        "ask",
        "tell",
    ];

    /// The message's name in logs, metrics and traces.
    pub fn name(&self) -> &'static str {
        match self {
            Body::Election => "election",
            Body::Answer => "answer",
            Body::Coordinator { .. } => "coordinator",
            Body::Heartbeat { .. } => "heartbeat",
            Body::HeartbeatAck { .. } => "heartbeat_ack",
            Body::Membership { .. } => "membership",
            Body::Join { .. } => "join",
            Body::Leave { .. } => "leave",
            Body::Resign { .. } => "resign",
            Body::Ask => "ask",
            Body::Tell { .. } => "tell",
        }
    }
}
