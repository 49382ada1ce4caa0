//! A leader's resignation, and leadership transfer to a better member.

use super::{Core, Heard, Phase, Protocol};
use crate::election::clauses::Clauses;
use crate::election::{
    Action, Body, Member, Moment, Notification, Now, OperationRefusal, Preempt, ProcessId, Reason, State,
    Timer,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// A failed transfer doubles the delay of the next at most this often.
const TRANSFER_DOUBLINGS_MAX: u32 = 6;

/// The transfers that this process has tried.
#[derive(Clone, Hash, Debug, Default)]
pub(crate) struct Transfers {
    /// Whether one is under way.
    pub(crate) under_way: bool,
    /// How many in a row had no successor that led; each doubles the delay of the next.
    pub(crate) failed: u32,
    /// When the next one may be tried: after a failure, or once the successor had time to answer.
    pub(crate) not_before: Moment,
}

/// Why a leader resigns, and in favour of which process.
#[derive(Clone, Copy, Hash, Debug)]
pub(in crate::election) enum Resignation {
    /// It is told to stop. It names the next leader, where one can be had.
    Leaving,
    /// That process takes over, or an election decides, and this one goes on.
    Transfer(Option<ProcessId>),
}

impl<P: Protocol> Core<P> {
    /// The leader resigns. The successor that it names announces itself at once, and no process outranks it.
    /// The others wait for it.
    pub(crate) fn on_resign(&mut self, by: Heard, successor: Option<ProcessId>, leaving: bool) {
        let Heard { now, from, epoch } = by;
        // A process that follows, or is, another leader has no use for the word of one that never led it. One
        // that was paused may have slept through the term that this ends, and through the next.
        let slept = self.awaits_answer_after_pause(from);
        let may_have_led = self.leads(from) || self.leader.is_none() && !slept && P::may_have_led(self, from);
        let current = may_have_led && (epoch > self.epoch || epoch == self.epoch && self.leads(from));
        let heeded = current && !self.phase.leading();
        if heeded {
            let reason = if leaving { Reason::Resign } else { Reason::Transfer };
            self.lose_leader(reason);
            self.loss = reason;
            self.set_epoch(epoch);
        }
        if heeded || slept && epoch >= self.epoch {
            self.last_resignation = Some((from, epoch));
        }
        // Voters may grant freed promises anew at once, and then the epoch of this resignation is over.
        P::on_resign(self, by);
        if current && !self.phase.leading() && self.epoch == epoch {
            match successor {
                Some(id) if id == self.me.id && self.rank().eligible() => {
                    P::succeed(self, now, leaving.then_some(from));
                }
                // What it counts for, the leader has heard later than this process: it may just have been
                // uncordoned.
                Some(id) if self.members.get(id).is_some_and(|m| m.state == State::Alive) => {
                    self.wait_for(id);
                    if self.waits_in_vain(id) {
                        self.query_leader(id);
                    }
                }
                _ => {
                    self.forget_leaver(from, leaving);
                    if successor == Some(self.me.id) {
                        // It is no candidate any more, and the others wait for it.
                        let nothing = Body::LeaderInfo { leader: None, entries: [].into() };
                        self.send_each(self.ids(|m| m.linked), &nothing);
                    }
                    P::start_election(self, now);
                }
            }
        }
        self.forget_leaver(from, leaving);
        if leaving {
            self.not_asked_any_more(now, from);
        }
    }

    pub(crate) fn forget_leaver(&mut self, id: ProcessId, leaving: bool) {
        if leaving {
            self.members.list_stale = true;
            self.forget(id);
        }
    }

    /// The operator stops this process. A leader resigns; others say that they leave.
    pub(crate) fn on_stop(&mut self, now: Now) {
        if self.phase == Phase::Leaving {
            return;
        }
        self.refuse_pending(OperationRefusal::Stopping);
        if self.phase.leading() {
            return self.resign(now, Resignation::Leaving);
        }
        let leave = Body::Leave { version: None, id: self.me.id };
        self.enter(Phase::Leaving);
        self.send_each(self.ids(|m| m.linked), &leave);
        self.act(Action::Exit);
    }

    /// The one way in which a leader resigns: it is told to stop (`leaving`), a better process takes over, or
    /// an operator asks for it. It waits for the holds of its applications. Then it stops leading, durably,
    /// before its resignation leaves.
    pub(crate) fn resign(&mut self, now: Now, resignation: Resignation) {
        if self.clauses.waits_for_holds(self.held()) {
            return self.wait_for_holds(now, resignation);
        }
        let (successor, leaving) = match resignation {
            Resignation::Leaving => (self.successor(&BTreeSet::new()), true),
            Resignation::Transfer(successor) => (successor, false),
        };
        let waited = self.holds.resigning.take();
        self.disarm(Timer::Hold);
        if leaving {
            self.enter(Phase::Leaving);
        }
        match waited.and_then(|waited| waited.aside) {
            Some(aside) if self.pending.is_none() => self.step_aside(aside),
            _ => self.resigned_for_operation(),
        }
        let peer = successor.and_then(|id| self.members.get(id)).map(|m| m.peer.clone());
        let reason = if leaving { Reason::Resign } else { Reason::Transfer };
        self.note(Notification::Resigning { successor: peer, reason });
        self.lose_leader(reason);
        // The successor hears it first, since the successor acts.
        let others = self.ids(|m| m.linked && Some(m.peer.id) != successor);
        self.send_each(successor.into_iter().chain(others), &Body::Resign { successor, leaving });
        match (leaving, successor) {
            (true, Some(_)) => self.arm(Timer::Leave, self.answer_timeout()),
            (true, None) => self.act(Action::Exit),
            (false, Some(to)) => {
                self.transfers.under_way = true;
                self.wait_for(to);
            }
            (false, None) => P::start_election(self, now),
        }
    }

    /// The process that should lead next: the best-ranked live member. A member of another revision than this
    /// process comes first, since it has already been restarted in the rollout under way. `but`: those that
    /// cannot win.
    pub(super) fn successor(&self, but: &BTreeSet<ProcessId>) -> Option<ProcessId> {
        let by_rank_alone = self.settings.preempt == Preempt::Always;
        let restarted = |m: &Member| {
            !by_rank_alone
                && !self.me.revision.is_empty()
                && !m.peer.revision.is_empty()
                && m.peer.revision != self.me.revision
        };
        let eligible = self.members.iter().filter(|m| self.unfit(m).is_none() && !but.contains(&m.peer.id));
        eligible.max_by_key(|m| (restarted(m), m.peer.rank())).map(|m| m.peer.id)
    }

    /// Whether this leader may give leadership up by itself: no resignation and no operation is under way.
    pub(super) fn may_give_way(&self) -> bool {
        self.phase.leading() && self.pending.is_none() && self.holds.resigning.is_none()
    }

    /// Arms the transfer to a member of higher priority, if the operator wants it and there is one.
    pub(crate) fn watch_for_better(&mut self, now: Now) {
        let Some(delay) = self.transfer_delay().filter(|_| self.may_give_way()) else { return };
        let Some(since) = self.better().map(|m| m.alive_since.max(m.ranked_since)) else {
            P::call_off_transfer(self);
            return self.disarm(Timer::Preempt);
        };
        let due = since.plus(delay).max(self.transfers.not_before);
        self.arm(Timer::Preempt, due.since(now.at));
    }

    /// How long this leader leaves a better member waiting; none: no transfer follows.
    fn transfer_delay(&self) -> Option<Duration> {
        match self.settings.preempt {
            Preempt::After(delay) => Some(delay),
            Preempt::Always => (!P::TAKES_OVER_BY_FORCE).then_some(Duration::ZERO),
            Preempt::Never => None,
        }
    }

    /// The best member of higher priority. A greater id alone preempts only under `always`.
    fn better(&self) -> Option<&Member> {
        let always = self.settings.preempt == Preempt::Always;
        let outranks = |m: &Member| {
            if always { m.rank().outranks(self.rank()) } else { m.peer.priority > self.me.priority }
        };
        let better = self.members.iter().filter(|m| outranks(m) && self.unfit(m).is_none());
        better.max_by_key(|m| m.peer.rank())
    }

    /// The preemption delay is over: the leader transfers leadership in one step.
    pub(crate) fn on_preempt_timer(&mut self, now: Now) {
        if self.may_give_way()
            && self.transfer_delay().is_some()
            && let Some(id) = self.better().map(|m| m.peer.id)
        {
            P::transfer(self, now, id);
        }
    }

    /// The successor of a transfer did not lead: the next attempt comes later.
    pub(crate) fn transfer_failed(&mut self, now: Now) {
        let Some(delay) = self.transfer_delay() else {
            return;
        };
        let delay = if delay.is_zero() { self.coordinator_timeout() } else { delay };
        if std::mem::take(&mut self.transfers.under_way) {
            self.transfers.failed = (self.transfers.failed + 1).min(TRANSFER_DOUBLINGS_MAX);
            self.transfers.not_before = now.at.plus(delay.saturating_mul(1 << self.transfers.failed));
        }
    }
}
