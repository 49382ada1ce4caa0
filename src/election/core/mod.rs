//! What both protocols share: the process, its members, its failure detector, its leader, and what it sends.
//!
//! Each turn is one call of [`Core::handle`]. The core asks [`Protocol`] for what `classic` and `majority`
//! decide each in its own way. The two protocols never import each other.
//!
//! Invariants are asserted in release builds: a process that breaks one must end (fail-stop), not go on.

mod adaptation;
mod application_health;
mod dial_targets;
mod eligibility;
mod failure_detector;
mod heartbeat_recipients;
mod heartbeats;
mod holds;
mod leader_query;
mod leadership;
mod members;
mod membership;
mod operations;
mod outbox;
mod pause;
mod phase;
mod protocol;
mod record;
mod resignation;
mod startup;
mod status;
mod transfer;

use super::clauses::Rules;
use super::{
    Action, Body, Epoch, Event, Incumbent, Instance, Message, Moment, Now, Peer, ProcessId, Rank, Reason,
    Record, Settings, State, Timer,
};
use adaptation::Adaptation;
pub(super) use adaptation::SHORTEST_INTERVAL;
use application_health::Application;
use dial_targets::DialTargets;
use eligibility::Eligibility;
use heartbeats::Heartbeats;
use holds::Holds;
use members::Members;
use operations::Pending;
use outbox::Outbox;
use pause::LastTurn;
pub(super) use phase::Phase;
pub(super) use protocol::{Announcement, Protocol};
pub(super) use resignation::Resignation;
pub(super) use startup::Asking;
use std::time::Duration;
use transfer::Transfers;

/// One process of the algorithm under one protocol: events in, actions out.
#[derive(Clone, Hash, Debug)]
pub(super) struct Core<P> {
    /// What only this protocol keeps.
    pub(super) protocol: P,
    pub(super) settings: Settings,
    pub(super) cluster: String,
    pub(super) me: Peer,
    pub(super) phase: Phase,
    pub(super) epoch: Epoch,
    /// The highest epoch that any message carried: the next round is above it.
    pub(super) seen: Epoch,
    pub(super) leader: Option<Incumbent>,
    /// Why there is or was no leader: the reason of the next change.
    pub(super) loss: Reason,
    /// Whether a round since the last leader has ended without a leader.
    pub(super) round_failed: bool,
    pub(super) members: Members,
    pub(super) dial_targets: DialTargets,
    /// When a peer last refused this process, since its list of members was full.
    pub(super) turned_away: Option<Moment>,
    pub(super) started: bool,
    pub(super) last_turn: LastTurn,
    pub(super) heartbeats: Heartbeats,
    /// What is known of delays.
    pub(super) adaptation: Adaptation,
    /// For how long the leader may be silent, by its latest heartbeat. None before the first, and without a
    /// leader.
    pub(super) pace: Option<Duration>,
    /// The same, by the heartbeat before that, where this process leads.
    pub(super) former_pace: Option<Duration>,
    /// The latest resignation: its sender and its epoch. That epoch is over.
    pub(super) last_resignation: Option<(ProcessId, Epoch)>,
    pub(super) transfers: Transfers,
    /// Whether it is a candidate for now.
    pub(super) eligibility: Eligibility,
    /// What was heard of the application.
    pub(super) application: Application,
    /// What applications were promised.
    pub(super) holds: Holds,
    /// The operation that waits for its end.
    pub(super) pending: Option<Pending>,
    /// The clauses that it keeps: all of them, but in tests.
    pub(super) clauses: Rules,
    pub(super) outbox: Outbox,
}

/// From which process a message comes, in which epoch, and when.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    pub(super) now: Now,
    pub(super) from: ProcessId,
    pub(super) epoch: Epoch,
}

impl<P: Protocol> Core<P> {
    /// A process before its start. `record` is what it kept from its last incarnation; a leadership never
    /// survives its process.
    pub(crate) fn new(settings: Settings, cluster: String, me: Peer, record: Option<&Record>) -> Core<P> {
        assert!(settings.answer_timeout < settings.coordinator_timeout, "config checks this relation");
        assert!(settings.heartbeat * 4 <= settings.failure_timeout, "config checks this relation");
        let epoch = record.map_or(Epoch::ZERO, |r| r.epoch);
        let mut core = Core {
            protocol: P::new(&settings, record),
            clauses: Rules::default(),
            eligibility: Eligibility::of(me.priority),
            application: Application::of(&settings),
            adaptation: Adaptation::of(&settings),
            holds: Holds::default(),
            pending: None,
            dial_targets: DialTargets::of(me.address),
            members: Members::of_at_most(settings.members_max),
            settings,
            cluster,
            phase: Phase::Asking(Asking::default()),
            epoch,
            seen: epoch,
            leader: None,
            loss: Reason::Start,
            round_failed: false,
            turned_away: None,
            started: false,
            last_turn: LastTurn::default(),
            heartbeats: Heartbeats::of(me.incarnation),
            pace: None,
            former_pace: None,
            me,
            transfers: Transfers::default(),
            last_resignation: None,
            outbox: Outbox::default(),
        };
        core.eligibility.candidacy.complaints = core.application.look(Moment::default());
        core.update_priority();
        core
    }

    /// One turn. [`Machine::handle`](crate::election::Machine::handle) says what it promises.
    pub(crate) fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        assert!(now.at >= self.last_turn.at, "the driver's clock never goes back");
        assert!(self.started != matches!(event, Event::Start), "Start comes first, and once");
        let before = self.epoch;
        let resumed = self.notice_pause(now);
        P::begin_turn(self, now);
        match event {
            Event::Start => self.on_start(now),
            Event::LinkUp(peer) => self.on_link_up(now, peer),
            Event::LinkDown { id, incarnation } => {
                self.link_down(id, incarnation);
                P::on_link_lost(self, now, None);
            }
            Event::Crashed { id, incarnation } => self.on_crash(now, Instance { id, incarnation }),
            Event::Refused(address) => self.on_refused_dial(now, address),
            Event::TurnedAway => self.turned_away = Some(now.at),
            Event::Received { from, message } => self.on_message(now, from, message),
            Event::Timer(timer) => {
                // A timer that was disarmed while its event waited in the driver's queue is no timer. One
                // that was due before a pause is none either: what is armed now has just begun.
                let counts = !resumed || timer.outlives_phases();
                if counts && self.outbox.armed.remove(&timer) {
                    self.on_timer(now, timer);
                }
            }
            Event::Discovered { addresses, complete } => self.on_discovered(now, addresses, complete),
            Event::ReachedSelf(address) => self.dial_targets.add_own(address),
            Event::Advertise(address) => {
                self.me.address = address;
                self.dial_targets.add_own(address);
            }
            Event::Stop => self.on_stop(now),
            Event::Operation { number, operation, within } => {
                self.on_operation(now, number, operation, within);
            }
            Event::Hold(request) => self.on_hold(now, request),
            Event::Application(sign) => self.on_sign(now, sign),
            Event::Turn => {}
        }
        self.look_at_operation(now);
        self.look_at_holds(now);
        assert!(self.epoch >= before, "invariant 1: an epoch never goes back");
        self.finish()
    }

    fn on_message(&mut self, now: Now, from: ProcessId, message: Message) {
        let Message { epoch, priority, body } = message;
        if body.protocols() == P::OTHER {
            return;
        }
        // No message may use up the numbers.
        if !epoch.max(body.highest_epoch()).plausible(self.seen, now.wall_ms)
            || matches!(self.phase, Phase::Leaving)
                && !matches!(body, Body::Coordinator { .. } | Body::VoteRequest { .. })
        {
            return;
        }
        if !self.heard(now, from) {
            return;
        }
        self.seen = self.seen.max(epoch);
        self.on_priority(now, from, priority);
        if self.may_be_from_before_pause(from, &body) {
            return;
        }
        let by = Heard { now, from, epoch };
        match body {
            Body::Coordinator { .. } if self.phase == Phase::Leaving => self.leave_to_successor(epoch),
            Body::Coordinator { elected_at_ms } => {
                P::on_coordinator(self, by, Announcement::Election { elected_at_ms });
            }
            Body::Membership { version, entries } => self.on_membership(by, version, &entries),
            Body::Join { version, entry } => self.on_join(by, version, entry),
            Body::Leave { version, id } => self.on_leave(by, version, id),
            Body::Resign { successor, leaving } => self.on_resign(by, successor, leaving),
            Body::LeaderQuery { list } => self.on_leader_query(by, list),
            Body::LeaderInfo { leader, entries } => self.on_leader_info(by, leader, &entries),
            body => P::on_message(self, by, body),
        }
    }

    fn on_timer(&mut self, now: Now, timer: Timer) {
        match timer {
            Timer::Margin => self.on_margin_timer(now),
            // This process has waited for others long enough.
            Timer::Start => P::start_election(self, now),
            Timer::Silence => self.on_silence_timer(now),
            Timer::Heartbeat => self.on_heartbeat_timer(now),
            Timer::Preempt => self.on_preempt_timer(now),
            Timer::Leave => self.act(Action::Exit),
            Timer::Operation => self.on_operation_timer(now),
            Timer::Aside => self.on_aside_timer(now),
            Timer::Application => self.on_application_timer(now),
            Timer::Hold => self.on_hold_timer(now),
            timer => P::on_timer(self, now, timer),
        }
    }

    /// Whether it knows no other live process.
    pub(crate) fn alone(&self) -> bool {
        !self.members.iter().any(|m| m.state == State::Alive)
    }

    /// Whether discovery should look more often: it knows no other live process, or it starts and a name
    /// server does not name it yet, nor those that start after it.
    pub(crate) fn hurries_discovery(&self) -> bool {
        self.alone() || matches!(self.phase, Phase::Asking(_)) && !self.dial_targets.name_this_process()
    }

    /// The latest heartbeat's round trip to a member; none where this process does not lead.
    pub(crate) fn round_trip(&self, id: ProcessId) -> Option<Duration> {
        self.members.get(id).and_then(|member| member.round_trip)
    }

    /// Ends a turn: checks the invariants, and puts what must be durable before everything that depends on
    /// it.
    fn finish(&mut self) -> Vec<Action> {
        if let Phase::Leading(elected) = self.phase {
            assert!(self.epoch == elected, "invariant 5: a leader's epoch is the one it was elected with");
            assert!(self.leads(self.me.id), "a leader holds itself to be the leader");
            assert!(self.me.rank().eligible(), "priority 0 never leads");
        } else {
            assert!(!self.leads(self.me.id), "only a leader holds itself to be the leader");
        }
        assert!(self.phase != Phase::Following || self.leader.is_some(), "a follower has a leader");
        P::check_invariants(self);
        self.seek();
        self.flush()
    }

    pub(crate) fn rank(&self) -> Rank {
        self.me.rank()
    }

    pub(crate) fn leads(&self, id: ProcessId) -> bool {
        self.leader.as_ref().is_some_and(|l| l.peer.id == id)
    }

    /// Whether this process follows that leader in that epoch.
    pub(crate) fn follows(&self, id: ProcessId, epoch: Epoch) -> bool {
        self.phase == Phase::Following && self.leads(id) && self.epoch == epoch
    }
}
