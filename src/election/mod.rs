//! The election as a pure machine: events in, actions out.
//!
//! It owns no clock, socket, thread, file, log or source of randomness; the time is an argument of every event.
//! [`Machine`] holds the rules, the other files the data that goes in and out. `tests/tidy.rs` keeps this folder
//! pure.

mod action;
mod campaign;
mod contenders;
mod epoch;
mod event;
mod identity;
mod machine;
mod member;
mod members;
mod message;
mod mutation;
mod reconfiguration;
mod recovery;
mod settings;
mod tally;
mod term;
mod time;
mod timer;
mod validate;
mod view;
mod voters;

pub use action::{Action, KnownPeers, Notification, Outcome, Reason, Record};
pub use epoch::Epoch;
pub use event::Event;
pub use identity::{Incarnation, Priority, ProcessId, Rank};
pub use machine::Machine;
pub use member::{
    CLUSTER_BYTES_MAX, Entry, MEMBERS_MAX, Member, MembershipVersion, NAME_BYTES_MAX, Peer,
    REVISION_BYTES_MAX, State,
};
pub use message::{Body, Incumbent, Message, VoteRequest};
#[cfg(any(test, feature = "mutations"))]
#[doc(hidden)]
pub use mutation::Mutation;
pub use settings::{CrashEvidence, DRIFT, Founding, Preempt, Safety, Settings, Variant, counted};
pub use time::{Moment, Now};
pub use timer::Timer;
pub use validate::{LimitError, check_cluster, check_entries, check_text, check_voters};
pub use view::{MemberView, NotReady, Role, View, Voting};
pub use voters::{
    Ballot, ConfigVersion, Denial, Flags, Instance, LEASE_MS_MAX, RecoveredState, Stage, VOTERS_MAX,
    VoteOutcome, VoteRecord, VoterConfig,
};
