//! Handover: rule 11. The incumbent resigns only once the successor has sounded the voters, and then in one step.

use super::Machine;
use crate::election::machine::{Mutation, Phase};
use crate::election::{Body, Epoch, Member, Moment, Now, ProcessId, Question, Timer};

impl Machine {
    /// Whether a member may lead after this process: in `majority` a voter.
    pub(in crate::election::machine) fn may_succeed(&self, member: &Member) -> bool {
        let view = self.majority.as_ref().and_then(|m| m.view.as_ref());
        view.is_none_or(|view| view.voters.contains(&member.peer.name))
    }

    /// A better process is to take over: it is asked whether a majority would grant.
    pub(in crate::election::machine) fn propose_handover(&mut self, now: Now, to: ProcessId) {
        if self.mutant(Mutation::HandoverUnprepared) {
            return self.hand_over(to);
        }
        let wait = self.settings.answer_timeout.saturating_mul(2);
        let Some(term) = self.majority.as_mut().and_then(|m| m.term.as_mut()) else { return };
        if term.preparing.take().is_some() {
            // It has not answered.
            return self.handover_refused(now);
        }
        term.preparing = Some(to);
        self.send(to, Body::Prepare);
        self.arm(Timer::Preempt, wait);
    }

    /// The incumbent asks: this process sounds the voters, as if what they promised to the incumbent were freed.
    pub(super) fn prepare(&mut self, now: Now, from: ProcessId, epoch: Epoch) {
        let follows = self.phase == Phase::Following && self.leads(from) && self.epoch == epoch;
        let busy = self.majority.as_ref().is_none_or(|m| m.contest.is_some());
        if !follows || busy || !self.votes() || !self.rank().eligible() || self.cautious(now) {
            return self.send(from, Body::Prepared { majority: false });
        }
        self.ask_voters(now, Question::Sounding, Some((from, epoch)));
    }

    /// A majority would grant, and stands by that until then.
    pub(super) fn ready_to_take_over(&mut self, incumbent: ProcessId, epoch: Epoch, until: Moment) {
        self.disarm(Timer::Answer);
        if let Some(m) = &mut self.majority {
            m.contest = None;
            m.prepared = Some((epoch, until));
        }
        self.send(incumbent, Body::Prepared { majority: true });
    }

    /// Whether the successor has a majority. If so the incumbent stops, durably, before its farewell leaves.
    pub(super) fn prepared(&mut self, now: Now, from: ProcessId, epoch: Epoch, majority: bool) {
        if !self.phase.leading() || epoch != self.epoch {
            return;
        }
        let Some(term) = self.majority.as_mut().and_then(|m| m.term.as_mut()) else { return };
        if term.preparing != Some(from) {
            return;
        }
        term.preparing = None;
        if majority { self.hand_over(from) } else { self.handover_refused(now) }
    }

    fn hand_over(&mut self, to: ProcessId) {
        self.handing_over = true;
        self.resign(Some(to), false);
        self.wait_for(to);
    }

    /// The next attempt comes later, with doubling delay.
    fn handover_refused(&mut self, now: Now) {
        self.handing_over = true;
        self.handover_failed(now);
        self.watch_for_better(now);
    }

    /// The farewell names this process: it claims at once if it has sounded for that, otherwise it sounds first.
    pub(in crate::election::machine) fn take_over(&mut self, now: Now, farewell: Epoch) {
        let prepared = self.majority.as_mut().and_then(|m| m.prepared.take());
        let ready = prepared.is_some_and(|(epoch, until)| epoch == farewell && now.at < until);
        if ready && self.votes() {
            self.enter(Phase::Electing);
            self.stake(now);
        } else {
            self.sound(now);
        }
    }
}
