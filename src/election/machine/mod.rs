//! The machine: one process of the Bully algorithm.
//!
//! Call [`Machine::new`] once, then [`Machine::handle`] with [`Event::Start`] and after that with whatever happens; carry
//! out the actions of each call, in order, before the next. [`Machine::view`] is what may be told to others in
//! between. The rules are spread over this folder by what they are about: `start` (ask first), `contest` (the seed's
//! rules 1 to 4), `leadership` (rule 5, farewell, handover), `detector` (heartbeats, silence, crash evidence),
//! `membership`, and `majority` (the leader under `--safety majority`).
//!
//! Every rule is stated where it is carried out. Invariants are asserted in release builds: a process that breaks one
//! must end (fail-stop), not go on.

mod contest;
mod detector;
mod leadership;
mod majority;
mod membership;
mod mutant;
mod remember;
mod start;
mod status;

use super::members::Members;
use super::mutation::Mutation;
use super::{
    Action, Body, Epoch, Event, Incumbent, Message, Moment, Notification, Now, Outcome, Peer, ProcessId,
    Rank, Reason, Record, Settings, State, Timer,
};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// What this process is in the middle of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It asks its peers for the leader ("returning processes ask first").
    Asking(start::Asking),
    /// It waits for this process to announce itself: the highest live one, or a successor.
    Waiting(ProcessId),
    /// It has sent Elections in its epoch, and no process has answered yet.
    Electing,
    /// A process answered, or none may lead: it waits for a Coordinator.
    Deferring,
    /// It leads in the epoch it was elected with.
    Leading(Epoch),
    /// It follows the leader.
    Following,
    /// It has said farewell.
    Leaving,
}

impl Phase {
    fn contesting(&self) -> bool {
        matches!(self, Phase::Waiting(_) | Phase::Electing | Phase::Deferring)
    }

    fn leading(&self) -> bool {
        matches!(self, Phase::Leading(_))
    }
}

/// One process of the algorithm: events in, actions out. See the module for the order of calls.
#[derive(Clone, Hash, Debug)]
pub struct Machine {
    settings: Settings,
    cluster: String,
    me: Peer,
    phase: Phase,
    epoch: Epoch,
    /// The highest epoch that any message carried: the next round is above it.
    seen: Epoch,
    /// The epoch of the latest election that this process began (invariant 6).
    round: Option<Epoch>,
    leader: Option<Incumbent>,
    /// Why there is or was no leader: the reason of the next change.
    loss: Reason,
    /// Whether a round since the last leader has ended without a leader.
    round_failed: bool,
    members: Members,
    /// Where discovery says that peers may be.
    candidates: BTreeSet<SocketAddr>,
    /// Whether discovery has ever had an answer for every name.
    discovered: bool,
    /// Where peers were in its last life: asked at a start, then forgotten.
    remembered: BTreeSet<SocketAddr>,
    own_addresses: BTreeSet<SocketAddr>,
    seeking: BTreeSet<SocketAddr>,
    armed: BTreeSet<Timer>,
    started: bool,
    last_turn: Moment,
    /// The same turn on the slow clock.
    last_slow: Moment,
    /// How often the host had been suspended by then.
    suspends: u32,
    sequence: u32,
    /// When the latest heartbeats were sent, newest last, for their round trips.
    beats: VecDeque<(u32, Moment)>,
    /// Which heartbeat was the latest when a leader last sent its list to a member. Bounded by the members.
    lists: BTreeMap<ProcessId, u32>,
    /// Whose farewell in which epoch was the latest: that epoch is over.
    resigned: Option<(ProcessId, Epoch)>,
    /// Handovers in a row after which the successor did not lead; each doubles the delay of the next.
    handovers_failed: u32,
    handing_over: bool,
    /// When the next one may be tried after that.
    handover_not_before: Moment,
    /// `--safety majority`.
    majority: majority::Majority,
    /// The clause that a test has left out.
    #[cfg(any(test, feature = "mutations"))]
    mutation: Option<Mutation>,
    /// Whether the record has changed.
    dirty: bool,
    /// Whether the leader or the members have changed.
    peers_changed: bool,
    actions: Vec<Action>,
}

/// How many heartbeats a leader remembers for measuring round trips.
const BEATS_MAX: usize = 8;

impl Machine {
    /// A process before its start. `record` is what it kept from its last life; a claim never survives its process.
    pub fn new(settings: Settings, cluster: String, me: Peer, record: Option<&Record>) -> Machine {
        assert!(settings.answer_timeout < settings.coordinator_timeout, "config checks this relation");
        assert!(settings.heartbeat * 4 <= settings.failure_timeout, "config checks this relation");
        let epoch = record.map_or(Epoch::ZERO, |r| r.epoch);
        Machine {
            majority: majority::Majority::new(&settings, record),
            #[cfg(any(test, feature = "mutations"))]
            mutation: None,
            remembered: BTreeSet::new(),
            own_addresses: BTreeSet::from([me.address]),
            settings,
            cluster,
            phase: Phase::Asking(start::Asking::default()),
            epoch,
            seen: epoch,
            round: None,
            leader: None,
            loss: Reason::Start,
            round_failed: false,
            members: Members::default(),
            candidates: BTreeSet::new(),
            discovered: false,
            seeking: BTreeSet::new(),
            armed: BTreeSet::new(),
            started: false,
            last_turn: Moment::default(),
            last_slow: Moment::default(),
            suspends: 0,
            // Different lives count with different numbers: what acknowledges one's heartbeat does not another's. Half of
            // all numbers are left to count with, for seventeen years at four a second.
            sequence: (me.incarnation.0 >> 33) as u32,
            me,
            beats: VecDeque::new(),
            lists: BTreeMap::new(),
            handovers_failed: 0,
            handing_over: false,
            handover_not_before: Moment::default(),
            resigned: None,
            dirty: true,
            peers_changed: false,
            actions: Vec::new(),
        }
    }

    /// Takes one event at a time that never goes back, and says what to do. A gap of more than the failure timeout
    /// since the last event means that this process was paused: it then asks its peers before it believes anything,
    /// itself included, and before it looks at the event. A suspend of the host means the same, however short it seems.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        assert!(now.at >= self.last_turn, "the driver's clock never goes back");
        assert!(self.started != matches!(event, Event::Start), "Start comes first, and once");
        let before = self.epoch;
        self.notice_pause(now);
        self.check_lease(now);
        match event {
            Event::Start => self.start(now),
            Event::LinkUp(peer) => self.link_up(now, peer),
            Event::LinkDown { id, incarnation } => {
                self.link_down(id, incarnation);
                self.check_connections(now);
            }
            Event::Crashed { id, incarnation } => self.crashed(now, id, incarnation),
            Event::Refused(address) => self.refused(now, address),
            Event::Received { from, message } => self.received(now, from, message),
            Event::Timer(timer) => {
                // A timer that was disarmed while its event waited in the driver's queue is no timer.
                if self.armed.remove(&timer) {
                    self.timer(now, timer);
                }
            }
            Event::Candidates { addresses, complete } => self.listed(now, addresses, complete),
            Event::ReachedSelf(address) => {
                self.own_addresses.insert(address);
            }
            Event::Advertise(address) => {
                self.me.address = address;
                self.own_addresses.insert(address);
            }
            Event::Stop => self.stop(),
            Event::Turn => {}
        }
        assert!(self.epoch >= before, "invariant 1: an epoch never goes back");
        self.finish()
    }

    fn received(&mut self, now: Now, from: ProcessId, message: Message) {
        let Message { epoch, body } = message;
        if if self.majority.votes() { body.of_classic() } else { body.of_majority() } {
            return;
        }
        // One damaged message must not use up the numbers.
        if !epoch.max(body.highest_epoch()).plausible(self.seen)
            || matches!(self.phase, Phase::Leaving)
                && !matches!(body, Body::Coordinator { .. } | Body::VoteRequest(_))
        {
            return;
        }
        if !self.heard(now, from) {
            return;
        }
        self.seen = self.seen.max(epoch);
        match body {
            Body::Election => self.election(now, from, epoch),
            Body::Answer => self.answer(from, epoch),
            Body::Coordinator { elected_at_ms } => self.claim(now, from, epoch, Some(elected_at_ms)),
            Body::Heartbeat { sequence, membership } => {
                self.heartbeat(now, from, epoch, sequence, membership)
            }
            Body::HeartbeatAck { sequence, membership } => {
                self.acknowledged(now, from, epoch, sequence, membership)
            }
            Body::Membership { version, entries } => self.membership(now, from, epoch, version, entries),
            Body::Join { version, entry } => self.join(now, from, epoch, version, entry),
            Body::Leave { version, id } => self.leave(now, from, epoch, version, id),
            Body::Resign { successor, leaving } => self.resigned(now, from, epoch, successor, leaving),
            Body::Ask => self.asked(now, from, epoch),
            Body::Tell { leader, entries } => self.told(now, from, epoch, leader, entries),
            body => self.majority_message(now, from, epoch, body),
        }
    }

    fn timer(&mut self, now: Now, timer: Timer) {
        match timer {
            Timer::Margin => self.margin_over(now),
            Timer::Start => self.start_over(now),
            Timer::Announcement => self.announcement_missed(now),
            Timer::Answer if self.majority.votes() => self.voters_silent(now),
            Timer::Answer => self.unanswered(now),
            Timer::Coordinator => self.coordinator_missed(now),
            Timer::Silence => self.leader_silent(now),
            Timer::Heartbeat => self.beat(now),
            Timer::Preempt => self.preempt(now),
            Timer::Farewell => self.act(Action::Exit),
            // The turn has begun by looking at the lease.
            Timer::Lease => {}
            Timer::Retry => self.retry(now),
            Timer::Recover => self.ask_to_recover(now),
            Timer::Grace => self.grace_over(now),
        }
    }

    /// This process, as it introduces itself.
    pub fn me(&self) -> &Peer {
        &self.me
    }

    /// Its epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether it knows no other live process: discovery should then look more often.
    pub fn alone(&self) -> bool {
        !self.members.iter().any(|m| m.state == State::Alive)
    }

    /// The latest heartbeat's round trip to a member; none where this process does not lead.
    pub fn round_trip(&self, id: ProcessId) -> Option<Duration> {
        self.members.get(id).and_then(|member| member.round_trip)
    }

    /// Ends a turn: checks the invariants, and puts what must be durable before everything that depends on it.
    fn finish(&mut self) -> Vec<Action> {
        if let Phase::Leading(elected) = self.phase {
            assert!(self.epoch == elected, "invariant 5: a leader's epoch is the one it was elected with");
            assert!(self.leads(self.me.id), "a leader holds itself to be the leader");
            assert!(self.me.rank().eligible(), "priority 0 never leads");
            let leased = !self.majority.votes() || self.majority.term.is_some();
            assert!(leased, "majority: no process leads without a lease");
        } else {
            assert!(!self.leads(self.me.id), "only a leader holds itself to be the leader");
        }
        assert!(self.phase != Phase::Following || self.leader.is_some(), "a follower has a leader");
        let seek = self.wanted();
        if !seek.iter().eq(&self.seeking) {
            self.seeking = seek.into_iter().collect();
            self.act(Action::Seek(self.seeking.clone()));
        }
        if std::mem::take(&mut self.peers_changed) {
            self.act(Action::Remember(self.known_peers()));
        }
        if std::mem::take(&mut self.dirty) {
            self.actions.insert(0, Action::Persist(self.record()));
        }
        std::mem::take(&mut self.actions)
    }

    /// Where it wants links: a star round the leader, plus what an election needs. In order, each once: it is compared in every
    /// turn and changes in few.
    fn wanted(&self) -> Vec<SocketAddr> {
        let address = |id: ProcessId| self.members.get(id).map(|m| m.peer.address);
        let mut wanted: Vec<SocketAddr> = match &self.phase {
            Phase::Leaving => Vec::new(),
            Phase::Following => self.leader.iter().map(|l| l.peer.address).collect(),
            Phase::Waiting(id) if !self.round_failed => address(*id).into_iter().collect(),
            Phase::Electing | Phase::Deferring if !self.round_failed => Vec::new(),
            // A leader looks for all (members that failed, leaders beyond a partition that healed), and so does
            // a process that has found no leader the short way.
            _ => self.members.iter().map(|m| m.peer.address).chain(self.candidates.iter().copied()).collect(),
        };
        if matches!(self.phase, Phase::Asking(_)) {
            wanted.extend(&self.remembered);
        }
        wanted.retain(|a| !self.own_addresses.contains(a) && !a.ip().is_unspecified());
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    fn rank(&self) -> Rank {
        self.me.rank()
    }

    fn leads(&self, id: ProcessId) -> bool {
        self.leader.as_ref().is_some_and(|l| l.peer.id == id)
    }

    fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn note(&mut self, note: Notification) {
        self.act(Action::Notification(note));
    }

    fn send(&mut self, to: ProcessId, body: Body) {
        if let Some(member) = self.members.get(to) {
            let message = Message { epoch: self.epoch, body };
            self.actions.push(Action::Send { to, address: member.peer.address, message });
        }
    }

    fn send_each(&mut self, to: impl IntoIterator<Item = ProcessId>, body: &Body) {
        for id in to {
            self.send(id, body.clone());
        }
    }

    /// The members that `wanted` picks, in the order of their ids.
    fn ids(&self, wanted: impl Fn(&super::Member) -> bool) -> Vec<ProcessId> {
        self.members.iter().filter(|m| wanted(m)).map(|m| m.peer.id).collect()
    }

    fn arm(&mut self, timer: Timer, after: Duration) {
        self.armed.insert(timer);
        self.act(Action::Arm { timer, after });
    }

    fn disarm(&mut self, timer: Timer) {
        if self.armed.remove(&timer) {
            self.act(Action::Disarm(timer));
        }
    }

    fn disarm_all(&mut self) {
        for timer in Timer::ALL {
            if !timer.outlives_phases() {
                self.disarm(timer);
            }
        }
    }

    /// Changes what it is in the middle of. No timer of a phase survives that: each phase arms its own.
    fn enter(&mut self, phase: Phase) {
        if phase != Phase::Electing {
            self.drop_campaign();
        }
        self.disarm_all();
        if !self.phase.contesting() && phase.contesting() {
            self.note(Notification::Contesting { reason: self.loss });
        }
        if self.phase.contesting() && !phase.contesting() {
            let outcome = match phase {
                Phase::Leading(_) => Outcome::Won,
                Phase::Following => Outcome::Lost,
                _ => Outcome::Unfinished,
            };
            self.note(Notification::Contested { outcome });
        }
        self.phase = phase;
    }
}
