//! All that `classic` and `majority` decide each in its own way.

use super::{Core, Heard};
use crate::election::message::Protocols;
use crate::election::{
    Body, Incumbent, Instance, LeaseReason, Member, Moment, Now, Pace, Peer, ProcessId, Rank, Record,
    Settings, Timer, VoteRecord, Voting,
};
use std::time::Duration;

/// How a process says that it leads.
#[derive(Clone, Copy, Debug)]
pub(in crate::election) enum Announcement {
    /// It was elected then, by its wall clock.
    Election { elected_at_ms: u64 },
    /// A heartbeat, and how its next one comes.
    Heartbeat(Pace),
}

/// The hooks of the core. Each is called in the middle of a turn and acts through the core that it is given.
/// A protocol leaves out those that it has no use for.
pub(in crate::election) trait Protocol: Sized {
    /// Whether a process may lead without votes.
    const LEADS_WITHOUT_VOTES: bool;
    /// Whether the best live member announces itself when the leader is gone, without asking.
    const BEST_ANNOUNCES: bool;
    /// Whether a better process takes over by force under `--preempt always`. Otherwise the leader then
    /// transfers leadership at once.
    const TAKES_OVER_BY_FORCE: bool;

    /// The other protocol, whose messages the core drops.
    const OTHER: Protocols;

    /// Its own state at a start. `record` is what an earlier incarnation stored.
    fn new(settings: &Settings, record: Option<&Record>) -> Self;

    /// The process starts.
    fn on_start(_core: &mut Core<Self>, _now: Now) {}
    /// A turn begins; its event comes after this.
    fn begin_turn(_core: &mut Core<Self>, _now: Now) {}
    /// A turn ends: asserts what holds between turns.
    fn check_invariants(_core: &Core<Self>) {}
    /// A message that the core does not handle.
    fn on_message(core: &mut Core<Self>, by: Heard, body: Body);
    /// A timer that the core does not handle.
    fn on_timer(core: &mut Core<Self>, now: Now, timer: Timer);

    /// There is no leader: the process takes part in an election.
    fn start_election(core: &mut Core<Self>, now: Now);
    /// The process stops asking for the leadership.
    fn abandon_election(_core: &mut Core<Self>) {}
    /// The sender announces that it leads.
    fn on_coordinator(core: &mut Core<Self>, by: Heard, announcement: Announcement);
    /// A peer names the leader while this process has none.
    fn on_leader_named(_core: &mut Core<Self>) {}
    /// This leader hears of a higher epoch, and perhaps of the leader in it.
    fn on_higher_epoch(core: &mut Core<Self>, now: Now, leader: Option<Incumbent>);
    /// Whether this process may start an election before the set of peers has been stable for the margin.
    fn needs_no_margin(_core: &Core<Self>) -> bool {
        false
    }
    /// Whether this process takes over from a leader of this rank by force.
    fn bullies(_core: &Core<Self>, _leader: Rank) -> bool {
        false
    }

    /// A member is connected.
    fn on_link_up(_core: &mut Core<Self>, _id: ProcessId) {}
    /// A connection is gone. With crash evidence, the incarnation at its other end is named.
    fn on_link_lost(_core: &mut Core<Self>, _now: Now, _crashed: Option<Instance>) {}
    /// A member counts as failed, or (`gone`) is no member any more.
    fn on_member_lost(_core: &mut Core<Self>, _member: &Peer, _gone: bool) {}
    /// This leader tells a peer what the peer needs before it can follow.
    fn send_config(_core: &mut Core<Self>, _to: ProcessId) {}

    /// This leader sends its round of heartbeats.
    fn send_heartbeats(core: &mut Core<Self>, now: Now);
    /// Whether a member gets each round of a short lease. `better` is the number of members that
    /// rank above it.
    fn is_told_often(core: &Core<Self>, _member: &Member, better: usize) -> bool {
        better < core.settings.told_often_max
    }
    /// The longest lease that any round may ask for, where voters have agreed on one.
    fn longest_lease(_core: &Core<Self>) -> Option<Duration> {
        None
    }
    /// For how long this leader may be silent, by its next round, and why.
    fn lease_asked(core: &Core<Self>) -> (Duration, LeaseReason) {
        core.adaptation.lease(core.last_turn.at, core.settings.failure_timeout)
    }
    /// This process leads no longer.
    fn on_term_end(_core: &mut Core<Self>) {}

    /// Whether a member may lead after this process.
    fn may_succeed(_core: &Core<Self>, _member: &Member) -> bool {
        true
    }
    /// This leader wants that member to lead.
    fn transfer(core: &mut Core<Self>, now: Now, to: ProcessId);
    /// This leader does not wait any longer for the process that it has asked to take over.
    fn call_off_transfer(_core: &mut Core<Self>) {}
    /// Whether a process may have led that says so.
    fn may_have_led(_core: &Core<Self>, _id: ProcessId) -> bool {
        true
    }
    /// A leader has resigned.
    fn on_resign(_core: &mut Core<Self>, _by: Heard) {}
    /// The leader that has resigned names this process as its successor. That leader may be about to end.
    fn on_named_successor(core: &mut Core<Self>, now: Now, leaver: Option<ProcessId>);

    /// Until when what this process says of the leader holds; none: as long as it takes turns.
    fn valid_until(_core: &Core<Self>) -> Option<Moment> {
        None
    }
    /// Until when enough voters have promised this leader firmly to vote for no other process: holds rest on
    /// that. None: nothing is promised.
    fn firm_until(_core: &Core<Self>) -> Option<Moment> {
        None
    }
    /// How many acknowledgements a round of heartbeats needs, of this number of live followers.
    fn answers_needed(_core: &Core<Self>, followers: usize) -> usize {
        followers.div_ceil(2)
    }
    /// What it shows of its vote.
    fn voting(_core: &Core<Self>) -> Option<Voting> {
        None
    }
    /// What it keeps of its vote over a restart.
    fn vote_record(_core: &Core<Self>) -> Option<VoteRecord> {
        None
    }
}
