//! `--safety classic`: the published algorithm. Rank alone decides which live process leads.
//!
//! `election` has the rules 1 to 4 of `tests/bully-readme.txt`, `announcement` has rule 5. What the variants
//! `optimized` and `announcer` have of their own is in the files of these names.

mod announcement;
mod announcer;
mod election;
mod optimized;

use super::core::{Announcement, Core, Heard, Phase, Protocol, Resignation};
use super::message::Protocols;
use super::types::time::milliseconds;
use super::{Body, Incumbent, Moment, Now, Pace, Peer, ProcessId, Rank, Record, Settings, Timer};

/// What `classic` keeps beside what every process keeps.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Classic {
    /// When this process, as leader, last gave way to a newer epoch or announced itself above it.
    raised: Option<Moment>,
    /// The processes that its election has asked and has not heard of. At most as many as members.
    asked: Vec<ProcessId>,
    /// What it has heard, where it asks as the announcer.
    inquiry: Option<announcer::Inquiry>,
}

impl Protocol for Classic {
    const LEADS_WITHOUT_VOTES: bool = true;
    const BEST_ANNOUNCES: bool = true;
    const TAKES_OVER_BY_FORCE: bool = true;
    const OTHER: Protocols = Protocols::Majority;

    fn new(_: &Settings, _: Option<&Record>) -> Classic {
        Classic::default()
    }

    fn on_message(core: &mut Core<Classic>, by: Heard, body: Body) {
        match body {
            Body::Election => core.on_election(by),
            Body::Answer => core.on_answer(by),
            Body::Declare => core.on_declare(by),
            Body::Heartbeat { sequence, pace } => core.on_heartbeat(by, sequence, pace),
            Body::HeartbeatAck { sequence, membership } => core.on_heartbeat_ack(by, sequence, membership),
            _ => {}
        }
    }

    fn on_timer(core: &mut Core<Classic>, now: Now, timer: Timer) {
        match timer {
            Timer::Announcement => core.on_announcement_timer(now),
            Timer::Answer => core.on_answer_timer(now),
            Timer::Coordinator => core.on_coordinator_timer(now),
            _ => {}
        }
    }

    fn start_election(core: &mut Core<Classic>, now: Now) {
        core.start_election(now);
    }

    fn abandon_election(core: &mut Core<Classic>) {
        core.protocol.asked.clear();
        core.protocol.inquiry = None;
    }

    fn on_member_lost(core: &mut Core<Classic>, member: &Peer, _gone: bool) {
        core.on_asked_lost(member.id);
    }

    fn on_coordinator(core: &mut Core<Classic>, by: Heard, announcement: Announcement) {
        core.on_coordinator(by, announcement);
    }

    /// There is a leader, which is as good as an Answer. The leader announces itself anew as soon as this
    /// process asks it. (A process that answers the announcer may not have noticed yet that it has none.)
    fn on_leader_named(core: &mut Core<Classic>) {
        if core.phase == Phase::Electing && core.protocol.inquiry.is_none() {
            core.defer();
        }
    }

    fn on_higher_epoch(core: &mut Core<Classic>, now: Now, leader: Option<Incumbent>) {
        core.on_higher_epoch(now, leader);
    }

    fn bullies(core: &Core<Classic>, leader: Rank) -> bool {
        core.bullies(leader)
    }

    fn send_heartbeats(core: &mut Core<Classic>, now: Now) {
        let (sequence, learnt) = (core.heartbeats.sequence, core.adaptation.learnt(now.at));
        let heartbeat =
            |lease| Body::Heartbeat { sequence, pace: Pace { lease_ms: milliseconds(lease), learnt } };
        core.send_round(now, Classic::lease_asked(core).0, heartbeat);
    }

    fn transfer(core: &mut Core<Classic>, now: Now, to: ProcessId) {
        core.resign(now, Resignation::Transfer(Some(to)));
    }

    fn on_named_successor(core: &mut Core<Classic>, now: Now, leaver: Option<ProcessId>) {
        let leaver = leaver.and_then(|id| core.members.get(id)).map(|m| (m.peer.id, m.peer.address));
        // The new leader's first list does not name the process that leaves.
        if let Some((id, _)) = leaver {
            core.forget_leaver(id);
        }
        core.become_leader(now, core.seen.next());
        // That process hears the announcement too: it waits for just that.
        if let Some((to, address)) = leaver {
            core.send_to(to, address, Body::Coordinator { elected_at_ms: now.wall_ms });
        }
    }
}
