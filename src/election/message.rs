//! What processes say to each other.

use super::types::validate::{Bounded, LimitError};
use super::{
    Ballot, ConfigVersion, Entry, Epoch, Flags, Incarnation, Learnt, MembershipVersion, Pace, Peer, Priority,
    ProcessId, RecoveredState, Safety, VoteOutcome, VoterConfig,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// The sender's epoch (tests/bully-readme.txt, note 3).
    pub epoch: Epoch,
    /// Its sender's priority now. An operator may have cordoned the sender since its connection began.
    pub priority: Priority,
    /// What it says.
    pub body: Body,
}

/// The one table of messages: what each says, its protocol, its number on the wire, its name, and its fields
/// in order.
///
/// `$then` is the macro that makes something of it. A number is never reused, also not after its message is
/// gone. The bounds of a field are those of its type (`Bounded` in `validate`).
macro_rules! message_table {
    ($then:ident) => {
        $then! {
            /// To every process that outranks the sender: an election of this epoch is on.
            Classic 16 "election" Election;
            /// To the sender of an Election that this process outranks: this process takes over.
            Classic 17 "answer" Answer;
            /// From the announcer to a process that has answered it: lead (`--variant announcer`).
            Classic 27 "declare" Declare;
            /// To every other process: the sender leads in this epoch.
            Both 18 "coordinator" Coordinator {
                /// The leader's wall clock at its election, milliseconds since 1970.
                elected_at_ms: u64,
            };
            /// From the leader: I lead in this epoch and am alive. At most 128 bytes in a frame, however many
            /// members.
            Classic 19 "heartbeat" Heartbeat {
                /// Counts the rounds, for the round trip.
                sequence: u32,
                /// How long the next one may take. An earlier version does not say.
                pace: Pace,
            };
            /// To the leader: heard you.
            Classic 20 "heartbeat_ack" HeartbeatAck {
                /// The heartbeat's sequence.
                sequence: u32,
                /// The version of the follower's list. The leader answers an older one with its list.
                membership: MembershipVersion,
            };
            /// From the leader: the whole list.
            Both 21 "membership" Membership {
                /// Its version.
                version: MembershipVersion,
                /// At most [`MEMBERS_MAX`](super::MEMBERS_MAX).
                entries: Arc<[Entry]>,
            };
            /// From the leader: one member is new or changed (tests/bully-readme.txt, note 7).
            Both 22 "join" Join {
                /// The list's version with this change. A follower whose list has not the version before it
                /// asks for the whole list with its next acknowledgement.
                version: MembershipVersion,
                /// The member, and whether the leader holds it alive.
                entry: Entry,
            };
            /// One member is gone (tests/bully-readme.txt, note 7). The leader says so with the list's new
            /// version. The leaving member says so without a version, to every process that it is connected
            /// with.
            Both 23 "leave" Leave {
                /// The list's version with this change, from a leader.
                version: Option<MembershipVersion>,
                /// The member.
                id: ProcessId,
            };
            /// A leader's resignation: it has stopped leading, durably, before this left.
            Both 24 "resign" Resign {
                /// The next leader: it announces at once, without an election.
                successor: Option<ProcessId>,
                /// Whether the sender also leaves the cluster.
                leaving: bool,
            };
            /// Asks for the receiver's leader and epoch ("Returning processes ask first.").
            Both 25 "leader_query" LeaderQuery {
                /// Which members the reply has to name. An earlier version does not say.
                list: ListWanted,
            };
            /// The reply to [`Body::LeaderQuery`], and to any message of a lower epoch.
            Both 26 "leader_info" LeaderInfo {
                /// The leader that the sender follows, or the sender itself.
                leader: Option<Incumbent>,
                /// Members that the sender knows: all, or the best. At most
                /// [`MEMBERS_MAX`](super::MEMBERS_MAX).
                entries: Arc<[Entry]>,
            };
            /// A candidate asks a voter.
            Majority 37 "vote_request" VoteRequest {
                /// What it asks for, and what it says of itself.
                request: VoteRequest,
            };
            /// The reply. It repeats the ballot, so that it is never taken for the reply to another request.
            Majority 38 "vote" Vote {
                /// The request's.
                ballot: Ballot,
                /// What the voter says.
                outcome: VoteOutcome,
                /// The configuration that the voter stores, where that is later than the request's (clause
                /// 24).
                config: Option<VoterConfig>,
            };
            /// The leader's heartbeat, which asks for another lease (clause 16). At most 128 bytes in a
            /// frame.
            Majority 39 "renew" Renew {
                /// Counts the rounds.
                sequence: u32,
                /// How long it wants the promise to last, from receipt, in milliseconds; at most the
                /// configuration's lease.
                lease_ms: u32,
                /// Which configuration the leader uses.
                config: ConfigVersion,
                /// What the leader has learnt of delays. An earlier version does not say.
                learnt: Learnt,
            };
            /// To the leader: the round was heard, and perhaps acknowledged.
            Majority 40 "renewed" Renewed {
                /// The heartbeat's sequence.
                sequence: u32,
                /// Which membership list the follower has.
                membership: MembershipVersion,
                /// Whether this is an acknowledgement: epoch and configuration are stored, and the promise is
                /// made.
                promised: bool,
                /// Whether the promise stands to its end, whatever happens to the leader. Only then a hold
                /// may rest on it.
                firm: bool,
                /// Which configuration the follower stores.
                config: ConfigVersion,
                /// What the follower was started with.
                flags: Flags,
            };
            /// Store and use this configuration.
            Majority 41 "configuration" Configuration {
                /// Which.
                config: VoterConfig,
            };
            /// The sender has no record, or has not finished its first start, and asks what others know.
            Majority 33 "recover" Recover {
                /// Counts the sender's rounds of asking, so that it knows when an answer was given.
                round: u32,
                /// Which incarnation asks.
                incarnation: Incarnation,
            };
            /// The reply. Its message's epoch is the sender's.
            Majority 42 "recovered" Recovered {
                /// The question's round.
                round: u32,
                /// The question's incarnation: an answer to a former incarnation does not count.
                incarnation: Incarnation,
                /// What the sender knows from its record.
                state: RecoveredState,
                /// What the sender was started with: at a first start all have to agree.
                flags: Flags,
            };
            /// From the leader to a better process: find out whether a majority would vote for you (clause
            /// 28).
            Majority 35 "propose_transfer" ProposeTransfer;
            /// The reply.
            Majority 36 "transfer_ready" TransferReady {
                /// Whether a majority would.
                majority: bool,
            };
        }
    };
}
pub(crate) use message_table;

/// Which processes have a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocols {
    Both,
    Classic,
    Majority,
}

macro_rules! declare {
    ($($(#[$doc:meta])* $protocol:ident $number:literal $name:literal $variant:ident
        $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?;)*) => {
        /// What a message says. The table of messages in this file has all of them.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Body {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $type,)* })?,)*
        }

        impl Body {
            /// All names that [`Body::name`] gives, so that what counts by name can begin with all of them.
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            const PROTOCOLS: [Protocols; Body::NAMES.len()] = [$(Protocols::$protocol),*];

            /// The message's name in logs, metrics and traces.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Body::$variant { .. } => $name,)*
                }
            }

            /// Which processes have it.
            pub(super) fn protocols(&self) -> Protocols {
                match self {
                    $(Body::$variant { .. } => Protocols::$protocol,)*
                }
            }

            /// Whether every field is within its limits.
            pub(super) fn check(&self) -> Result<(), LimitError> {
                match self {
                    $(Body::$variant { $($($field,)*)? } => {
                        $($($field.check()?;)*)?
                        Ok(())
                    })*
                }
            }
        }
    };
}
message_table!(declare);

/// Which members a [`Body::LeaderInfo`] has to name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum ListWanted {
    /// All.
    #[default]
    Whole,
    /// The best one that may lead: discovery names all to the asker, or it did not ask.
    Best,
}

/// What a candidate sends to each voter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VoteRequest {
    /// What it asks for.
    pub ballot: Ballot,
    /// Whether it may still win, as far as it knows (the candidacy rule, clause 25).
    pub contender: bool,
    /// The leader's epoch, if that leader wants to transfer leadership to the candidate. A pre-vote then
    /// looks neither at ranks nor at the promise to that leader.
    pub transfer: Option<Epoch>,
    /// The candidate's configuration: a majority of its voters elects.
    pub config: VoterConfig,
}

impl Body {
    /// The names of the messages that processes of this safety level send.
    pub fn names_of(safety: &Safety) -> impl Iterator<Item = &'static str> {
        let other = match safety {
            Safety::Classic => Protocols::Majority,
            Safety::Majority { .. } => Protocols::Classic,
        };
        let all = Body::NAMES.into_iter().zip(Body::PROTOCOLS);
        all.filter(move |(_, of)| *of != other).map(|(name, _)| name)
    }

    /// The highest epoch in what it says.
    pub(super) fn highest_epoch(&self) -> Epoch {
        match self {
            Body::VoteRequest { request } => request.ballot.epoch.max(request.config.version.epoch),
            Body::Vote { config: Some(config), .. }
            | Body::Configuration { config }
            | Body::Recovered { state: RecoveredState::Founded(config), .. } => config.version.epoch,
            _ => Epoch::ZERO,
        }
    }
}
