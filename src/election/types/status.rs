//! What a process may be asked about, as one immutable snapshot.

use super::lease::{LeaseReason, lease_for};
use crate::election::{Candidacy, Epoch, Incumbent, Moment, Peer, ProcessId, State, VoterConfig};
use std::collections::BTreeMap;
use std::time::Duration;

/// What this process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It asks its peers for the leader before it starts an election.
    Asking,
    /// It takes part in an election.
    Electing,
    /// It was elected and has not heard otherwise. [`Status::leads`] says whether it leads *now*.
    Leading,
    /// It was elected, and is to resign. It leads no more for applications, and waits for their holds.
    Resigning,
    /// It follows a leader.
    Following,
    /// It has resigned and is about to end.
    Leaving,
}

impl Role {
    /// Its name in answers and logs.
    pub fn name(self) -> &'static str {
        match self {
            Role::Asking => "asking",
            Role::Electing => "electing",
            Role::Leading => "leading",
            Role::Resigning => "resigning",
            Role::Following => "following",
            Role::Leaving => "leaving",
        }
    }
}

/// One line of `/members`.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// The member.
    pub peer: Peer,
    /// What the failure detector holds of it; this process holds itself alive.
    pub state: State,
    /// When a message of it last arrived here; none for this process itself.
    pub last_heard: Option<Moment>,
    /// The latest heartbeat's round trip, where this process leads.
    pub round_trip: Option<Duration>,
}

/// What `majority` adds to a status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Voting {
    /// The configuration that this process votes by; none: it has no vote yet.
    pub config: Option<VoterConfig>,
    /// Why this voter does not vote yet; none: it does.
    pub not_ready: Option<NotReady>,
    /// The `--lease` of each member that is known, in milliseconds, this process included.
    pub leases_ms: BTreeMap<ProcessId, u32>,
}

/// What a voter waits for before it votes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NotReady {
    /// It has no record (clauses 10 and 22).
    Recovery {
        /// The voters that have not answered yet.
        missing: Vec<String>,
        /// The voters that were started with another list or lease: at a first start all have to agree.
        differ: Vec<String>,
        /// How many other voters have answered from a record, and how many have to. None: as far as is known,
        /// no voter has one.
        records: Option<(usize, usize)>,
    },
    /// It takes part in a first start, and waits until the others do (clause 23).
    Founding {
        /// The other voters that have not said that they take part too.
        missing: Vec<String>,
    },
    /// It was restarted (clause 8).
    Grace {
        /// Until when, as far as the latest turn knows. An acknowledged round turns the rest into a promise.
        until: Moment,
    },
}

/// A snapshot of the machine. It never says "I lead". The process computes that for each question, from the
/// moment of asking and the driver's last turn. So a resumed process does not answer for the time before its
/// pause.
#[derive(Clone, Debug)]
pub struct Status {
    /// The cluster's name.
    pub cluster: String,
    /// This process.
    pub me: Peer,
    /// What it is doing.
    pub role: Role,
    /// Its epoch.
    pub epoch: Epoch,
    /// The leader that it follows, or itself.
    pub leader: Option<Incumbent>,
    /// All members, this process included, by rank, the highest first.
    pub members: Vec<MemberStatus>,
    /// `majority`: until when its answer holds. For the leader that is the end of its lease, for a follower
    /// the moment at which it gives up a silent leader. None where it knows no leader.
    pub valid_until: Option<Moment>,
    /// `majority`: the voters, and whether this process votes. None in `classic`.
    pub voting: Option<Voting>,
    /// `classic`: discovery names an address that refuses no connection, and no process is connected. Such a
    /// process may lead itself beside an election that it does not reach.
    pub cut_off: bool,
    /// How many holds are out.
    pub holds: usize,
    /// What keeps this process from being a candidate, beside its settings.
    pub candidacy: Candidacy,
    /// How long an answer about leadership stands without a turn of the driver: the failure timeout, or a
    /// leader's shorter lease.
    pub answer_ttl: Duration,
    /// The lease that the leader's latest heartbeat named, and so how long its silence lasts before it counts
    /// as failed. None before the first heartbeat, and without a leader.
    pub lease: Option<Duration>,
    /// The worst delay that the lease goes by. None where leases are fixed, and before anything is learnt.
    pub worst_delay: Option<Duration>,
    /// Why the lease is as long as it is. None on a process that does not lead.
    pub lease_reason: Option<LeaseReason>,
}

impl Status {
    /// Whether the answers of this status still stand at `now`, when the driver last turned at `turned`.
    /// `classic` has no lease, so a paused or starved process relies on this.
    pub fn is_fresh(&self, now: Moment, turned: Moment) -> bool {
        let leased = self.voting.is_none() || self.valid_until.is_some_and(|until| now < until);
        now.since(turned) <= self.answer_ttl && leased
    }

    /// Whether this process leads at `now`. In `majority` its lease decides, which ends by itself.
    pub fn leads(&self, now: Moment, turned: Moment) -> bool {
        self.role == Role::Leading && self.is_fresh(now, turned)
    }

    /// The leader at `now`, as far as this process knows.
    pub fn leader(&self, now: Moment, turned: Moment) -> Option<&Incumbent> {
        self.leader.as_ref().filter(|_| self.is_fresh(now, turned))
    }

    /// Whether leases can be long enough for answers that hold for so long, from one round to the next.
    pub fn can_hold_for(&self, wanted: Duration) -> bool {
        let config = self.voting.as_ref().and_then(|voting| voting.config.as_ref());
        config.is_some_and(|config| lease_for(wanted) <= config.lease())
    }

    /// Whether it votes, or no votes are counted, and it knows a leader at `now`.
    pub fn follows_or_leads(&self, now: Moment, turned: Moment) -> bool {
        let votes = self.voting.as_ref().is_none_or(|voting| voting.not_ready.is_none());
        votes && self.leader(now, turned).is_some()
    }

    /// Whether it takes part at `now` (`/readyz`). A process that leads beside an election that it does not
    /// reach takes no part in it.
    pub fn takes_part(&self, now: Moment, turned: Moment) -> bool {
        self.follows_or_leads(now, turned) && !(self.cut_off && self.role == Role::Leading)
    }
}
