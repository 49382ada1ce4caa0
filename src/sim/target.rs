//! Which places a fault hits, and when. A plan names some of them by their role at that moment: it is drawn
//! before any leader is known.

use super::clock::Ns;
use super::link_faults::{Pairs, Places};
use crate::election::{Body, Message, Stage};

/// A place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// This one.
    Place(usize),
    /// The place that was elected in the highest epoch, else the first one.
    Leader,
    /// Another place than the leader's, by its number among the others.
    Follower(usize),
    /// The place that did what the fault waited for, else the first one.
    Actor,
}

/// Which directions between which places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Between {
    /// These places, by bits, and the others.
    Sides(Places),
    /// One and all others.
    Away(Target),
    /// One and all others, but only what it sends.
    From(Target),
    /// One and all others, but only what it is sent.
    To(Target),
    /// Two.
    Both(Target, Target),
    /// From the one to the other.
    OneWay(Target, Target),
    /// Some pairs, in both directions.
    Pairs(Pairs),
    /// All pairs.
    All,
}

/// What a fault waits for, from its moment on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cue {
    /// A candidate asks for pre-votes.
    PreVote,
    /// A candidate asks for votes.
    VoteRequest,
    /// A voter answers a candidate.
    Vote,
    /// A process asks for another lease.
    Renew,
    /// A process promises one.
    Renewed,
    /// A leader resigns.
    Resign,
    /// A process answers one without a record.
    Recovered,
    /// A leader tells of a configuration.
    Configuration,
    /// A process is elected.
    Elected,
    /// A process starts.
    Started,
}

impl Cue {
    pub(super) const ALL: [Cue; 10] = [
        Cue::PreVote,
        Cue::VoteRequest,
        Cue::Vote,
        Cue::Renew,
        Cue::Renewed,
        Cue::Resign,
        Cue::Recovered,
        Cue::Configuration,
        Cue::Elected,
        Cue::Started,
    ];

    /// The cue that a message gives when it leaves.
    pub(super) fn of(message: &Message) -> Option<Cue> {
        Some(match &message.body {
            Body::VoteRequest { request } if request.ballot.stage == Stage::PreVote => Cue::PreVote,
            Body::VoteRequest { .. } => Cue::VoteRequest,
            Body::Vote { .. } => Cue::Vote,
            Body::Renew { .. } | Body::Heartbeat { .. } => Cue::Renew,
            Body::Renewed { .. } | Body::HeartbeatAck { .. } => Cue::Renewed,
            Body::Resign { .. } => Cue::Resign,
            Body::Recovered { .. } => Cue::Recovered,
            Body::Configuration { .. } => Cue::Configuration,
            _ => return None,
        })
    }
}

/// A fault that waits for its cue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) cue: Cue,
    /// Which of the plan's faults.
    pub(super) number: usize,
    /// How long after the cue it begins.
    pub(super) delay: Ns,
}
