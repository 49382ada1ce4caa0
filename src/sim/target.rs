//! Whom a fault is about, and when: some are named by what they are at that moment, since who leads when is not known when a
//! plan is drawn.

use super::clock::Ns;
use super::link_faults::{Pairs, Places};
use super::world::World;
use crate::election::{Body, Message, Role, Stage};

/// A place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    /// This one.
    Place(usize),
    /// Who was elected in the highest epoch, else the first one.
    Leader,
    /// The so-manieth of the others.
    Follower(usize),
    /// Who did what the fault waited for, else the first one.
    Actor,
}

/// Between whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Between {
    /// These places, by bits, and the others.
    Sides(Places),
    /// One and all others.
    Away(Who),
    /// One and all others, but only what it sends.
    From(Who),
    /// One and all others, but only what it is sent.
    To(Who),
    /// Two.
    Both(Who, Who),
    /// From the one to the other.
    OneWay(Who, Who),
    /// Some pairs, in both directions.
    Pairs(Pairs),
    /// Everybody.
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
            Body::VoteRequest(request) if request.ballot.stage == Stage::PreVote => Cue::PreVote,
            Body::VoteRequest(_) => Cue::VoteRequest,
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

impl World {
    /// The place that is meant now.
    pub(super) fn who(&self, who: Who, actor: usize) -> usize {
        match who {
            Who::Place(place) => place,
            Who::Actor => actor,
            Who::Leader => self.leading(),
            Who::Follower(number) => (self.leading() + 1 + number % (self.members() - 1)) % self.members(),
        }
    }

    /// How many places there are but those for further processes.
    fn members(&self) -> usize {
        self.plan.n
    }

    fn leading(&self) -> usize {
        let led = |p: &super::node::Node| {
            p.view.as_ref().filter(|view| view.role == Role::Leading).map(|view| (view.epoch, p.place))
        };
        self.nodes.iter().filter_map(led).max().map_or(0, |(_, place)| place).min(self.members() - 1)
    }

    /// The ways that are meant now.
    pub(super) fn between(&self, between: Between, actor: usize) -> Pairs {
        match between {
            Between::Sides(side) => Pairs::split(side),
            Between::Away(who) => Pairs::split(1 << self.who(who, actor)),
            Between::From(who) => Pairs::from(self.who(who, actor)),
            Between::To(who) => Pairs::to(self.who(who, actor)),
            Between::Both(a, b) => Pairs::both(self.who(a, actor), self.who(b, actor)),
            Between::OneWay(a, b) => Pairs::one_way(self.who(a, actor), self.who(b, actor)),
            Between::Pairs(pairs) => pairs,
            Between::All => Pairs::ALL,
        }
    }
}
