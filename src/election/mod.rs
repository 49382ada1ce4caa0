//! The election as a pure machine: events in, actions out.
//!
//! It owns no clock, socket, thread, file, log or source of randomness; the time is an argument of every
//! event. [`Machine`] is one process. `core`, `classic` and `majority` have its rules, `clauses` what decides
//! in them, `message` what processes say, and `types` all other data. `tests/tidy.rs` keeps this folder pure.

mod classic;
mod clauses;
mod core;
pub mod describe;
mod machine;
mod majority;
mod message;
#[cfg(any(test, feature = "mutations"))]
#[path = "tests/mutations.rs"]
mod mutations;
mod types;

pub use machine::Machine;
pub(crate) use message::message_table;
pub use message::{Body, Incumbent, ListWanted, Message, VoteRequest};
#[cfg(any(test, feature = "mutations"))]
#[doc(hidden)]
pub use mutations::Mutation;
pub use types::action::Action;
pub use types::announced_values::{
    ANNOUNCE_KEY_BYTES_MAX, ANNOUNCE_MAX, ANNOUNCE_VALUE_BYTES_MAX, ANNOUNCED_URL, AnnouncedValues,
};
pub use types::application_health::{Complaints, Sign};
pub use types::epoch::Epoch;
pub use types::event::Event;
pub use types::hold::{HOLDS_MAX, HoldAnswer, HoldOutcome, HoldRequest};
pub use types::identity::{Incarnation, Instance, Priority, ProcessId, Rank};
pub use types::lease::{Learnt, LeaseReason, Pace};
pub use types::member::{
    CLUSTER_BYTES_MAX, Entry, MEMBERS_MAX, Member, MembershipVersion, NAME_BYTES_MAX, Peer,
    REVISION_BYTES_MAX, State,
};
pub use types::notification::{ElectionOutcome, Notification, Reason};
pub use types::operation::{Candidacy, Operation, OperationDone, OperationOutcome, OperationRefusal, Unfit};
pub use types::record::{KnownPeers, Record, VoteRecord};
pub use types::settings::{
    CrashEvidence, DELAY_MAX, DRIFT, Founding, LEASE_MIN_SHORTEST, Preempt, Safety, Settings, TOLD_OFTEN_MAX,
    Variant, WhenAllSick, counted,
};
pub use types::status::{MemberStatus, NotReady, Role, Status, Voting};
pub use types::time::{Moment, Now};
pub use types::timer::Timer;
pub use types::validate::{LimitError, check_cluster, check_entries, check_text, check_voters};
pub use types::vote::{Ballot, Denial, Stage, VoteOutcome};
pub use types::voter_config::{ConfigVersion, Flags, LEASE_MS_MAX, VOTERS_MAX, VoterConfig};
pub use types::voter_state::RecoveredState;
