//! Resignation: how a leader gives leadership up, and how a process begins to leave.

use super::{Core, Heard, Phase, Protocol};
use crate::election::clauses::Clauses;
use crate::election::{Action, Body, Notification, Now, OperationRefusal, ProcessId, Reason, State, Timer};
use std::collections::BTreeSet;

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
                    P::on_named_successor(self, now, leaving.then_some(from));
                }
                // The leader heard its priority later than this process: it may just have been uncordoned.
                Some(id) if self.members.get(id).is_some_and(|m| m.state == State::Alive) => {
                    self.wait_for(id);
                    if self.waits_in_vain(id) {
                        self.query_leader(id);
                    }
                }
                _ => {
                    if leaving {
                        self.forget_leaver(from);
                    }
                    if successor == Some(self.me.id) {
                        // It is no candidate any more, and the others wait for it.
                        let nothing = Body::LeaderInfo { leader: None, entries: [].into() };
                        self.send_each(self.ids(|m| m.linked), &nothing);
                    }
                    P::start_election(self, now);
                }
            }
        }
        if leaving {
            self.forget_leaver(from);
            self.not_asked_any_more(now, from);
        }
    }

    /// A member has left by its own word. The leader's list may still name it.
    pub(crate) fn forget_leaver(&mut self, id: ProcessId) {
        self.members.list_stale = true;
        self.forget(id);
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
}
