//! Leadership: rule 5, and how it begins, ends and is handed over.

use super::{Machine, Phase};
use crate::election::{
    Action, Body, Epoch, Incumbent, Member, Moment, Notification, Now, Preempt, ProcessId, Reason, State,
    Timer,
};
use std::time::Duration;

/// A failed handover doubles the delay of the next at most this often.
const HANDOVER_DOUBLINGS_MAX: u32 = 6;

impl Machine {
    /// Leads from now on, in `epoch`, and tells every other process (rules 1 and 2).
    pub(super) fn announce(&mut self, now: Now, epoch: Epoch) {
        let own_round = self.phase == Phase::Electing && self.round == Some(epoch) && epoch == self.epoch;
        assert!(
            epoch > self.epoch || own_round,
            "a leader's epoch is that of its own round, or above all it was in"
        );
        self.handover_failed(now);
        self.round = Some(epoch);
        let reason = if self.leader.is_some() { Reason::Superseded } else { self.loss };
        if self.phase.leading() {
            // Elected again: its old term ends here.
            self.leader = None;
        } else if !self.phase.contesting() {
            self.lose_leader(Reason::Superseded);
            self.enter(Phase::Deferring);
        }
        self.set_epoch(epoch);
        self.leader = Some(Incumbent { peer: self.me.clone(), elected_at_ms: now.wall_ms });
        self.peers_changed = true;
        self.enter(Phase::Leading(epoch));
        self.round_failed = false;
        self.remembered.clear();
        self.members.version = crate::election::MembershipVersion { epoch, version: 1 };
        self.beats.clear();
        self.lists.clear();
        self.note(Notification::Leader { peer: self.me.clone(), epoch, reason, me: true });
        let others = self.candidates.difference(&self.own_addresses).count();
        if self.alone() && others > 0 {
            self.note(Notification::LeadsAlone { others });
        }
        for id in self.ids(|m| m.state == State::Alive) {
            self.send_claim(id);
        }
        // With the list at once, what changes it from here on is in step with what they hold: this leader may die before
        // its first heartbeat. A member that is not linked yet gets it with the link.
        for id in self.ids(|m| m.linked && m.state == State::Alive) {
            self.send_list(id);
        }
        // Silence is counted from here: a member has the failure timeout to acknowledge this leader.
        for member in self.members.iter_mut().filter(|m| m.state == State::Alive) {
            member.last_heard = member.last_heard.max(Some(now.at));
        }
        self.arm(Timer::Heartbeat, self.heartbeat_interval());
        self.watch_for_better(now);
    }

    /// "I lead in this epoch."
    pub(super) fn send_claim(&mut self, to: ProcessId) {
        if let Some(leader) = &self.leader {
            let elected_at_ms = leader.elected_at_ms;
            self.send(to, Body::Coordinator { elected_at_ms });
        }
    }

    /// Rule 5: a process says that it leads. The sender becomes the leader, unless the message is stale, or this process
    /// outranks it and bullies it with a higher epoch.
    pub(super) fn claim(&mut self, now: Now, from: ProcessId, epoch: Epoch, elected_at_ms: Option<u64>) {
        let Some(sender) = self.members.get(from).map(|m| m.peer.clone()) else {
            return;
        };
        if self.phase == Phase::Leaving {
            // The successor leads: nothing is left to do here.
            if epoch > self.epoch {
                self.act(Action::Exit);
            }
            return;
        }
        if self.majority.votes() {
            return self.announced(now, from, epoch, elected_at_ms);
        }
        if self.resigned == Some((from, epoch)) {
            // A message from before its farewell that was slower than that: a resigned epoch is never led again.
            return;
        }
        if epoch < self.epoch || !sender.rank().eligible() {
            return self.answer_stale(from);
        }
        if epoch == self.epoch {
            match self.leader.as_ref().map(|l| l.peer.rank()) {
                Some(known) if known.id == from => return self.follow(now, sender, epoch, elected_at_ms),
                // Two leaders of one epoch, which classic cannot exclude: rank decides for everybody alike.
                Some(known) if known.id != self.me.id && known > sender.rank() => return self.tell(from),
                _ => {}
            }
        }
        if self.bullies(sender.rank()) {
            if self.phase.contesting() {
                // Its own election goes on, and ends in a higher epoch than this one. To begin it anew at each claim
                // would never end it.
                return;
            }
            let next = self.seen.next();
            return if self.phase.leading() && !self.strict_paper() {
                self.announce(now, next)
            } else {
                self.contest(now)
            };
        }
        if self.phase.leading() && epoch == self.epoch {
            // Two leaders of one epoch: the one that goes on must hear of the other, to take a new epoch.
            self.send_claim(from);
        }
        self.follow(now, sender, epoch, elected_at_ms);
    }

    /// A message of a lower epoch is answered with the current one and changes nothing (spec, "Epoch").
    pub(super) fn answer_stale(&mut self, to: ProcessId) {
        if self.phase.leading() { self.send_claim(to) } else { self.tell(to) }
    }

    /// Follows a leader, or hears from it again.
    pub(super) fn follow(
        &mut self,
        now: Now,
        leader: crate::election::Peer,
        epoch: Epoch,
        elected_at_ms: Option<u64>,
    ) {
        let same = epoch == self.epoch && self.leads(leader.id) && self.phase == Phase::Following;
        if !same {
            let reason = if self.leader.is_some() { Reason::Superseded } else { self.loss };
            if self.phase.leading() {
                self.lose_leader(Reason::Superseded);
            }
            if self.handing_over {
                self.handing_over = false;
                self.handovers_failed = 0;
            }
            self.set_epoch(epoch);
            // It may have followed another one meanwhile, or taken in what others told of members.
            self.members.list_stale = true;
            self.round_failed = false;
            self.remembered.clear();
            let elected_or_heard_ms = elected_at_ms.unwrap_or(now.wall_ms);
            self.leader = Some(Incumbent { peer: leader.clone(), elected_at_ms: elected_or_heard_ms });
            self.peers_changed = true;
            self.enter(Phase::Following);
            self.note(Notification::Leader { peer: leader.clone(), epoch, reason, me: false });
            if elected_at_ms.is_none() {
                // A heartbeat does not say when it was elected; its answer will.
                self.send(leader.id, Body::Ask);
            }
        } else if let (Some(known), Some(elected_at_ms)) = (&mut self.leader, elected_at_ms) {
            known.elected_at_ms = elected_at_ms;
        }
        self.arm(Timer::Silence, self.silence_of_leader());
    }

    /// There is no leader any more, for this reason; nothing happens if there was none.
    pub(super) fn lose_leader(&mut self, reason: Reason) {
        self.lose_leader_since(reason, self.last_turn);
    }

    /// The same, when there has been none for a while already.
    pub(super) fn lose_leader_since(&mut self, reason: Reason, since: Moment) {
        let Some(former) = self.leader.take() else { return };
        self.peers_changed = true;
        self.loss = reason;
        let me = former.peer.id == self.me.id;
        if me {
            self.disarm(Timer::Heartbeat);
            self.disarm(Timer::Preempt);
            self.disarm(Timer::Lease);
            self.stopped_leading();
        }
        self.note(Notification::Leaderless { former: former.peer, epoch: self.epoch, reason, me, since });
    }

    pub(super) fn set_epoch(&mut self, epoch: Epoch) {
        assert!(epoch >= self.epoch, "invariant 1: an epoch never goes back");
        self.dirty |= epoch > self.epoch;
        self.epoch = epoch;
        self.seen = self.seen.max(epoch);
    }

    /// The leader's farewell. The successor that it names announces at once, and no process outranks it. The others
    /// wait for it.
    pub(super) fn resigned(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        successor: Option<ProcessId>,
        leaving: bool,
    ) {
        let current = epoch > self.epoch || epoch == self.epoch && self.leads(from);
        if current && !self.phase.leading() {
            let reason = if leaving { Reason::Resign } else { Reason::Handover };
            self.lose_leader(reason);
            self.loss = reason;
            self.set_epoch(epoch);
            self.resigned = Some((from, epoch));
        }
        // Freed promises may be granted anew at once, and then this farewell's epoch is over.
        self.on_resign(from, epoch);
        if current && !self.phase.leading() && self.epoch == epoch {
            match successor {
                // The process that leaves hears it too: it waits for just that.
                Some(id) if id == self.me.id && self.rank().eligible() && self.majority.votes() => {
                    self.request_votes(now);
                }
                Some(id) if id == self.me.id && self.rank().eligible() => {
                    self.announce(now, self.seen.next())
                }
                Some(id) if self.members.get(id).is_some_and(Member::can_lead) => self.wait_for(id),
                _ => {
                    self.forget_leaver(from, leaving);
                    self.contest(now);
                }
            }
        }
        self.forget_leaver(from, leaving);
    }

    fn forget_leaver(&mut self, id: ProcessId, leaving: bool) {
        if leaving {
            self.members.list_stale = true;
            self.forget(id);
        }
    }

    /// Told to stop. A leader stops leading, durably, before its farewell leaves; others say that they leave.
    pub(super) fn stop(&mut self) {
        if self.phase == Phase::Leaving {
            return;
        }
        if !self.phase.leading() {
            let leave = Body::Leave { version: None, id: self.me.id };
            self.enter(Phase::Leaving);
            self.send_each(self.ids(|m| m.linked), &leave);
            return self.act(Action::Exit);
        }
        let successor = self.successor();
        self.enter(Phase::Leaving);
        self.resign(successor, true);
        match successor {
            Some(_) => self.arm(Timer::Farewell, self.settings.answer_timeout),
            None => self.act(Action::Exit),
        }
    }

    pub(super) fn resign(&mut self, successor: Option<ProcessId>, leaving: bool) {
        let peer = successor.and_then(|id| self.members.get(id)).map(|m| m.peer.clone());
        let reason = if leaving { Reason::Resign } else { Reason::Handover };
        self.note(Notification::Resigning { successor: peer, reason });
        self.lose_leader(reason);
        // The successor hears it first: it is the one that acts.
        let others = self.ids(|m| m.linked && Some(m.peer.id) != successor);
        self.send_each(successor.into_iter().chain(others), &Body::Resign { successor, leaving });
    }

    /// The process that should lead next: the best-ranked live member, preferring one that was made from something else than this
    /// process, since that one has already been restarted in the rollout under way.
    fn successor(&self) -> Option<ProcessId> {
        let by_rank_alone = self.settings.preempt == Preempt::Always;
        let restarted = |m: &Member| {
            !by_rank_alone
                && !self.me.revision.is_empty()
                && !m.peer.revision.is_empty()
                && m.peer.revision != self.me.revision
        };
        let eligible = self.members.iter().filter(|m| m.linked && m.can_lead() && self.may_succeed(m));
        eligible.max_by_key(|m| (restarted(m), m.peer.rank())).map(|m| m.peer.id)
    }

    /// Arms the handover to a member of higher priority, if the operator wants it and there is one.
    pub(super) fn watch_for_better(&mut self, now: Now) {
        let Some(delay) = self.preempt_delay() else {
            return;
        };
        if !self.phase.leading() {
            return;
        }
        let Some(since) = self.better().map(|m| m.alive_since) else {
            return self.disarm(Timer::Preempt);
        };
        let due = since.plus(delay).max(self.handover_not_before);
        self.arm(Timer::Preempt, due.since(now.at));
    }

    /// How long a better process is left waiting; none: for ever, or it takes over by force.
    fn preempt_delay(&self) -> Option<Duration> {
        match self.settings.preempt {
            Preempt::After(delay) => Some(delay),
            // Where voters decide, no process takes over by force: the leader hands over at once.
            Preempt::Always if self.majority.votes() => Some(Duration::ZERO),
            Preempt::Always | Preempt::Never => None,
        }
    }

    /// The best member of higher priority. A greater id alone preempts only under `always`.
    fn better(&self) -> Option<&Member> {
        let always = self.settings.preempt == Preempt::Always;
        let outranks = |m: &Member| {
            if always { m.rank().outranks(self.rank()) } else { m.peer.priority > self.me.priority }
        };
        let better =
            self.members.iter().filter(|m| m.linked && m.can_lead() && outranks(m) && self.may_succeed(m));
        better.max_by_key(|m| m.peer.rank())
    }

    /// The preemption delay is over: the incumbent hands over in one step.
    pub(super) fn preempt(&mut self, now: Now) {
        if !self.phase.leading() {
            return;
        }
        let Some(id) = self.better().map(|m| m.peer.id) else {
            return;
        };
        if self.majority.votes() {
            return self.propose_transfer(now, id);
        }
        self.hand_over(id);
    }

    /// Resigns in favour of a successor.
    pub(super) fn hand_over(&mut self, to: ProcessId) {
        self.handing_over = true;
        self.resign(Some(to), false);
        self.wait_for(to);
    }

    /// The successor of a handover did not lead: the next attempt comes later.
    pub(super) fn handover_failed(&mut self, now: Now) {
        let Some(delay) = self.preempt_delay() else {
            return;
        };
        let delay = if delay.is_zero() { self.settings.coordinator_timeout } else { delay };
        if std::mem::take(&mut self.handing_over) {
            self.handovers_failed = (self.handovers_failed + 1).min(HANDOVER_DOUBLINGS_MAX);
            self.handover_not_before = now.at.plus(delay.saturating_mul(1 << self.handovers_failed));
        }
    }
}
