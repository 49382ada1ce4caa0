//! What processes say to each other.

use super::{
    Ballot, ConfigVersion, Entry, Epoch, Flags, Incarnation, MembershipVersion, Peer, ProcessId,
    RecoveredState, VoteOutcome, VoterConfig,
};
use serde::{Deserialize, Serialize};

/// The leader of an epoch, as one process tells another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Incumbent {
    /// The leader.
    pub peer: Peer,
    /// Since when, on the leader's wall clock, in milliseconds since 1970. Shown to people only.
    pub elected_at_ms: u64,
}

/// A message with the epoch of its sender. Sender and cluster are stamped on it by the wire.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// The sender's epoch (seed note 3).
    pub epoch: Epoch,
    /// What it says.
    pub body: Body,
}

/// The algorithm's three messages (seed, "message types"), and those of the implementation notes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
        /// The member, and whether the leader holds it alive.
        entry: Entry,
    },
    /// One member is gone (seed note 7). The leader says so with the list's new version. The member that goes says so
    /// without one, to every process that it is connected with.
    Leave {
        /// The list's version with this change, from a leader.
        version: Option<MembershipVersion>,
        /// The member.
        id: ProcessId,
    },
    /// A leader's farewell: it has stopped leading, durably, before this left.
    Resign {
        /// The next leader: it announces at once, without an election.
        successor: Option<ProcessId>,
        /// Whether the sender also leaves the cluster.
        leaving: bool,
    },
    /// Asks for the receiver's leader and epoch ("Returning processes ask first.").
    Ask,
    /// The reply to [`Body::Ask`], and to any message of a lower epoch.
    Tell {
        /// The leader that the sender follows, or the sender itself.
        leader: Option<Incumbent>,
        /// The members that the sender knows, at most [`MEMBERS_MAX`](super::MEMBERS_MAX).
        entries: Vec<Entry>,
    },
    /// `majority`: a candidate asks a voter.
    VoteRequest(VoteRequest),
    /// `majority`: the reply. It repeats the ballot, so that it is never taken for the reply to another request.
    Vote {
        /// The request's.
        ballot: Ballot,
        /// What the voter says.
        outcome: VoteOutcome,
        /// The configuration that the voter stores, where that is later than the request's (clause 24).
        config: Option<VoterConfig>,
    },
    /// `majority`: the leader's heartbeat, which asks for another lease (clause 16). At most 128 bytes in a frame.
    Renew {
        /// Counts the rounds.
        sequence: u32,
        /// Which membership list the leader has.
        membership: MembershipVersion,
        /// How long it wants the promise to last, from receipt, in milliseconds; at most the configuration's lease.
        lease_ms: u32,
        /// Which configuration the leader uses.
        config: ConfigVersion,
    },
    /// `majority`: to the leader: the round was heard, and perhaps acknowledged.
    Renewed {
        /// That of the heartbeat.
        sequence: u32,
        /// Which membership list the follower has.
        membership: MembershipVersion,
        /// Whether this is an acknowledgement: epoch and configuration are stored, and the promise is made.
        promised: bool,
        /// Which configuration the follower stores.
        config: ConfigVersion,
        /// What the follower was started with.
        flags: Flags,
    },
    /// `majority`: store and use this configuration.
    Configuration {
        /// Which.
        config: VoterConfig,
    },
    /// `majority`: the sender has no record, or has not finished its first start, and asks what others know.
    Recover {
        /// Counts the sender's rounds of asking, so that it knows when an answer was given.
        round: u32,
        /// Which incarnation asks.
        incarnation: Incarnation,
    },
    /// `majority`: the reply. Its message's epoch is the sender's.
    Recovered {
        /// That of the question.
        round: u32,
        /// That of the question: an answer to a former incarnation does not count.
        incarnation: Incarnation,
        /// What the sender knows from its record.
        state: RecoveredState,
        /// What the sender was started with: at a first start all have to agree.
        flags: Flags,
    },
    /// `majority`: from the leader to a better process: find out whether a majority would vote for you (clause 28).
    ProposeTransfer,
    /// `majority`: the reply.
    TransferReady {
        /// Whether a majority would.
        majority: bool,
    },
}

/// What a candidate sends to each voter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VoteRequest {
    /// What it asks for.
    pub ballot: Ballot,
    /// Whether it may still win, as far as it knows (the contest rule, clause 25).
    pub contender: bool,
    /// The leader's epoch, if that leader wants to hand over to the candidate: a pre-vote then does not look at ranks, nor
    /// at the promise to that leader.
    pub transfer: Option<Epoch>,
    /// The candidate's configuration: a majority of its voters elects.
    pub config: VoterConfig,
}

impl Body {
    /// The highest epoch in what it says.
    pub(super) fn highest_epoch(&self) -> Epoch {
        match self {
            Body::VoteRequest(request) => request.ballot.epoch.max(request.config.version.epoch),
            Body::Vote { config: Some(config), .. }
            | Body::Configuration { config }
            | Body::Recovered { state: RecoveredState::Founded(config), .. } => config.version.epoch,
            _ => Epoch::ZERO,
        }
    }

    /// All names that [`Body::name`] gives, so that what counts by name can begin with all of them.
    pub const NAMES: [&'static str; 20] = [
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
        "vote_request",
        "vote",
        "renew",
        "renewed",
        "configuration",
        "recover",
        "recovered",
        "propose_transfer",
        "transfer_ready",
    ];

    /// Whether only `classic` has it.
    pub(super) fn of_classic(&self) -> bool {
        matches!(self, Body::Election | Body::Answer | Body::Heartbeat { .. } | Body::HeartbeatAck { .. })
    }

    /// Whether only `majority` has it.
    pub(super) fn of_majority(&self) -> bool {
        matches!(
            self,
            Body::VoteRequest(_)
                | Body::Vote { .. }
                | Body::Renew { .. }
                | Body::Renewed { .. }
                | Body::Configuration { .. }
                | Body::Recover { .. }
                | Body::Recovered { .. }
                | Body::ProposeTransfer
                | Body::TransferReady { .. }
        )
    }

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
            Body::VoteRequest(_) => "vote_request",
            Body::Vote { .. } => "vote",
            Body::Renew { .. } => "renew",
            Body::Renewed { .. } => "renewed",
            Body::Configuration { .. } => "configuration",
            Body::Recover { .. } => "recover",
            Body::Recovered { .. } => "recovered",
            Body::ProposeTransfer => "propose_transfer",
            Body::TransferReady { .. } => "transfer_ready",
        }
    }
}
