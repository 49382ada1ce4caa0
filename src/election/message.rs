//! What processes say to each other.

use super::{
    Ballot, Entry, Epoch, Incarnation, MembershipVersion, Moment, Peer, ProcessId, Question, Recollection,
    Verdict, ViewStamp, VoterView,
};
use serde::{Deserialize, Serialize};

/// The leader of an epoch, as one process tells another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Incumbent {
    /// Who leads.
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
    /// `majority`: a contestant asks a voter whether it would grant (rule 2), or to grant (rule 3).
    Contest {
        /// Which of both.
        question: Question,
        /// What for.
        ballot: Ballot,
        /// The incumbent that has announced a handover to the contestant, by its epoch: voters answer a sounding as if
        /// what they promised to that one were freed (rule 11).
        freed: Option<Epoch>,
        /// The contestant's view: who votes by an earlier one grants by this one, and stores it (rule 9).
        view: VoterView,
    },
    /// `majority`: the reply. It echoes what was asked, so that it is never taken for the reply to something else.
    Vote {
        /// What was asked.
        question: Question,
        /// The ballot's epoch.
        epoch: Epoch,
        /// The ballot's incarnation.
        incarnation: Incarnation,
        /// The ballot's moment.
        asked_at: Moment,
        /// The answer.
        verdict: Verdict,
        /// The voter's view: a majority is counted in the highest of them (rule 9).
        view: VoterView,
        /// The voter's own `--lease`, in milliseconds: it waits at least so long after a restart without its record.
        lease_ms: u32,
    },
    /// `majority`: the sender's claims up to this epoch are dead; what was promised for them is freed (rule 3).
    Withdraw {
        /// Up to which.
        epoch: Epoch,
        /// Which life withdraws.
        incarnation: Incarnation,
    },
    /// `majority`: the leader's heartbeat, which asks for another lease (rule 5). At most 128 bytes in a frame.
    Renew {
        /// Counts the rounds.
        sequence: u32,
        /// Which membership list the leader has.
        membership: MembershipVersion,
        /// For how long it wants the promise, from receipt.
        lease_ms: u32,
        /// Which voter view the leader uses.
        view: ViewStamp,
    },
    /// `majority`: to the leader: recorded and promised.
    Renewed {
        /// That of the heartbeat.
        sequence: u32,
        /// Which membership list the follower has.
        membership: MembershipVersion,
        /// Whether this is a voter's promise; otherwise the sender only follows.
        promised: bool,
        /// Which voter view the follower stores.
        view: ViewStamp,
        /// A fingerprint of the `--voters` that the follower was given.
        target: u64,
        /// The lease that the follower itself was given, in milliseconds: a difference is logged.
        lease_ms: u32,
    },
    /// `majority`: from the leader: store and use this voter view (rule 9).
    Voters {
        /// Which.
        view: VoterView,
    },
    /// `majority`: the sender has lost its record, or never had one, and asks what it has to know (rule 8).
    Recover {
        /// Counts the sender's rounds of asking, so that it knows when an answer was given.
        round: u32,
        /// Which life asks.
        incarnation: Incarnation,
    },
    /// `majority`: the reply.
    Recovered {
        /// That of the question.
        round: u32,
        /// That of the question: an answer to a former life says nothing to this one.
        incarnation: Incarnation,
        /// What the sender knows from its record; none: it has none either.
        recollection: Option<Recollection>,
        /// A fingerprint of the `--voters` that the sender was given: at a first start all have to agree.
        target: u64,
    },
    /// `majority`: from the incumbent to whom it wants to hand over: sound the voters, as if what they promised me were
    /// freed (rule 11).
    Prepare,
    /// `majority`: the reply: whether a majority would grant.
    Prepared {
        /// Whether it would.
        majority: bool,
    },
}

impl Body {
    /// All names that [`Body::name`] gives, so that what counts by name can begin with all of them.
    pub const NAMES: [&'static str; 21] = [
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
        "contest",
        "vote",
        "withdraw",
        "renew",
        "renewed",
        "voters",
        "recover",
        "recovered",
        "prepare",
        "prepared",
    ];

    /// Whether only `classic` has it.
    pub(super) fn of_classic(&self) -> bool {
        matches!(self, Body::Election | Body::Answer | Body::Heartbeat { .. } | Body::HeartbeatAck { .. })
    }

    /// Whether only `majority` has it.
    pub(super) fn of_majority(&self) -> bool {
        matches!(
            self,
            Body::Contest { .. }
                | Body::Vote { .. }
                | Body::Withdraw { .. }
                | Body::Renew { .. }
                | Body::Renewed { .. }
                | Body::Voters { .. }
                | Body::Recover { .. }
                | Body::Recovered { .. }
                | Body::Prepare
                | Body::Prepared { .. }
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
            Body::Contest { .. } => "contest",
            Body::Vote { .. } => "vote",
            Body::Withdraw { .. } => "withdraw",
            Body::Renew { .. } => "renew",
            Body::Renewed { .. } => "renewed",
            Body::Voters { .. } => "voters",
            Body::Recover { .. } => "recover",
            Body::Recovered { .. } => "recovered",
            Body::Prepare => "prepare",
            Body::Prepared { .. } => "prepared",
        }
    }
}
