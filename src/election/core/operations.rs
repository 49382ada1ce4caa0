//! What operators ask of a process while it runs: to resign, to transfer leadership, to be cordoned. One
//! operation is under way at a time, and each is answered once.

use super::{Core, Phase, Protocol};
use crate::election::{
    Action, Member, Moment, Now, Operation, OperationDone, OperationOutcome, OperationRefusal, ProcessId,
    Timer,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// What wants a leader to resign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Asker {
    /// An operator, who is answered by this number.
    Operator(u64),
    /// The state of the application, which takes no answer.
    Application,
}

/// A leader has been asked to resign, and another process does not lead yet.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Pending {
    asker: Asker,
    operation: Operation,
    /// By when it is answered.
    deadline: Moment,
    /// The members that were asked to take over, the latest last. At most one entry a member.
    asked: Vec<ProcessId>,
    /// Whether this process has resigned, or leads no longer for another reason.
    resigned: bool,
}

impl<P: Protocol> Core<P> {
    /// An operator asks for something.
    pub(super) fn on_operation(&mut self, now: Now, number: u64, operation: Operation, within: Duration) {
        if self.phase == Phase::Leaving {
            return self.answer(number, Err(OperationRefusal::Stopping));
        }
        if operation == Operation::Uncordon {
            self.refuse_pending(OperationRefusal::Uncordoned);
            self.holds.resigning.iter_mut().for_each(|resigning| resigning.aside = None);
        } else if self.pending.as_ref().is_some_and(|pending| pending.asker != Asker::Application) {
            return self.answer(number, Err(OperationRefusal::Busy));
        }
        if operation == Operation::Cordon && self.takes_over_resignation(now, number, within) {
            return;
        }
        if self.pending.is_some() {
            // An operator's word comes before that of the application's state, which asks again.
            self.refuse_pending(OperationRefusal::Busy);
        }
        match operation {
            Operation::Uncordon => self.uncordon(now),
            _ if self.phase.leading() => {
                if let Err(refusal) = self.begin_operation(now, Asker::Operator(number), operation, within) {
                    self.answer(number, Err(refusal));
                }
                return;
            }
            Operation::Cordon => {
                self.cordon();
                self.rejoin_election(now);
            }
            Operation::Resign { .. } | Operation::Transfer { .. } => {
                let leader = self.incumbent().map(|leader| leader.peer);
                return self.answer(number, Err(OperationRefusal::NotLeading { leader }));
            }
        }
        let done = self.done(now);
        self.answer(number, Ok(done));
    }

    /// A leader waits for holds before it resigns, and is to be cordoned. That comes once it has resigned.
    fn takes_over_resignation(&mut self, now: Now, number: u64, within: Duration) -> bool {
        let cordons = self.holds.resigning.is_some_and(|resigning| resigning.aside == Some(Duration::ZERO));
        if self.resigns_already() != Some(OperationRefusal::Busy) || cordons {
            return false;
        }
        self.holds.resigning.iter_mut().for_each(|resigning| resigning.aside = Some(Duration::ZERO));
        let (asker, deadline) = (Asker::Operator(number), now.at.plus(within));
        let operation = Operation::Cordon;
        self.pending = Some(Pending { asker, operation, deadline, asked: Vec::new(), resigned: false });
        self.wait_for_operator(now.at);
        true
    }

    /// A leader is asked to resign. Where that is not refused, it is under way from now on.
    pub(super) fn begin_operation(
        &mut self,
        now: Now,
        asker: Asker,
        operation: Operation,
        within: Duration,
    ) -> Result<(), OperationRefusal> {
        if let Some(refusal) = self.resigns_already() {
            return Err(refusal);
        }
        let successor = match &operation {
            Operation::Transfer { to } => self.successor_named(to),
            _ => self.successor(&BTreeSet::new()).ok_or_else(|| self.no_successor()),
        }?;
        let deadline = now.at.plus(within);
        self.pending = Some(Pending { asker, operation, deadline, asked: Vec::new(), resigned: false });
        self.ask_to_take_over(now, successor);
        Ok(())
    }

    /// The member with this name, if it can take over.
    fn successor_named(&self, name: &str) -> Result<ProcessId, OperationRefusal> {
        if *name == self.me.name {
            return Err(OperationRefusal::LeadsAlready);
        }
        let named = || self.members.iter().filter(|m| m.peer.name == name);
        if let Some(fit) = named().find(|m| self.unfit(m).is_none()) {
            return Ok(fit.peer.id);
        }
        let name = name.to_owned();
        Err(match named().find_map(|m| self.unfit(m)) {
            Some(unfit) => OperationRefusal::UnfitSuccessor { name, unfit },
            None => {
                let members = self.members.iter().map(|m| m.peer.name.clone()).collect();
                OperationRefusal::Unknown { name, members }
            }
        })
    }

    fn no_successor(&self) -> OperationRefusal {
        let unfit = |m: &Member| Some((m.peer.name.clone(), self.unfit(m)?));
        OperationRefusal::NoSuccessor { members: self.members.iter().filter_map(unfit).collect() }
    }

    /// The leader wants that member to lead, and waits for two answer timeouts at most.
    fn ask_to_take_over(&mut self, now: Now, to: ProcessId) {
        let answer_timeout = self.answer_timeout();
        let Some(pending) = &mut self.pending else { return };
        pending.asked.push(to);
        let wait = answer_timeout.saturating_mul(2).min(pending.deadline.since(now.at));
        self.arm(Timer::Operation, wait);
        P::call_off_transfer(self);
        P::transfer(self, now, to);
    }

    /// The member that was asked last cannot win, or does not answer.
    pub(crate) fn ask_next_successor(&mut self, now: Now) {
        let Some(pending) = &self.pending else { return };
        let asked: BTreeSet<ProcessId> = pending.asked.iter().copied().collect();
        let named = matches!(pending.operation, Operation::Transfer { .. });
        match self.successor(&asked).filter(|_| !named && now.at < pending.deadline) {
            Some(next) => self.ask_to_take_over(now, next),
            None => {
                let asked = asked.iter().filter_map(|id| self.members.get(*id));
                let asked = asked.map(|m| m.peer.name.clone()).collect();
                self.refuse_pending(OperationRefusal::NoMajority { asked });
            }
        }
    }

    /// This process resigns, or leads no longer. If an operation asks for that, it stands aside from now on.
    pub(super) fn resigned_for_operation(&mut self) {
        let Some(aside) = self.aside_asked_for() else { return };
        self.pending.iter_mut().for_each(|pending| pending.resigned = true);
        self.step_aside(aside);
        self.wait_for_operator(self.last_turn.at);
    }

    /// For how long the operator wants this process to stand aside once it has resigned; zero: until it is
    /// uncordoned.
    pub(super) fn aside_asked_for(&self) -> Option<Duration> {
        Some(match &self.pending.as_ref()?.operation {
            Operation::Resign { stand_aside } => stand_aside.unwrap_or(self.settings.failure_timeout),
            // A better process would take leadership back at once.
            Operation::Transfer { .. } => self.settings.failure_timeout,
            Operation::Cordon | Operation::Uncordon => Duration::ZERO,
        })
    }

    /// From now on only the operator's patience ends the operation.
    pub(super) fn wait_for_operator(&mut self, at: Moment) {
        let left = self.pending.as_ref().map(|pending| pending.deadline.since(at));
        left.into_iter().for_each(|left| self.arm(Timer::Operation, left));
    }

    /// Ends a turn: looks whether what an operation waits for has happened.
    pub(super) fn look_at_operation(&mut self, now: Now) {
        let Some(pending) = &self.pending else { return };
        let leader = self.incumbent().map(|leader| leader.peer);
        let transfer = matches!(pending.operation, Operation::Transfer { .. });
        if !pending.resigned {
            if self.phase.leading() {
                return;
            }
            if transfer {
                return self.refuse_pending(OperationRefusal::NotLeading { leader });
            }
            // It lost its lease, or was paused, before it could resign.
            self.resigned_for_operation();
            self.rejoin_election(now);
            return self.look_at_operation(now);
        }
        let Some(leader) = leader else { return };
        let asked_for = !transfer || pending.asked.last() == Some(&leader.id);
        if leader.id != self.me.id && asked_for {
            let done = self.done(now);
            self.answer_pending(Ok(done));
        } else {
            self.refuse_pending(OperationRefusal::AnotherLeads { leader });
        }
    }

    /// The member that was asked is silent, or the operator's time is over.
    pub(super) fn on_operation_timer(&mut self, now: Now) {
        match self.pending.as_ref().map(|pending| pending.resigned) {
            Some(true) => self.refuse_pending(OperationRefusal::NoLeader),
            Some(false) if self.holds.resigning.is_some() => self.refuse_pending(OperationRefusal::StillHeld),
            Some(false) => self.ask_next_successor(now),
            None => {}
        }
    }

    /// The operation under way does not come to its end.
    pub(super) fn refuse_pending(&mut self, refusal: OperationRefusal) {
        if self.holds.resigning.is_none() {
            P::call_off_transfer(self);
        }
        self.answer_pending(Err(refusal));
    }

    fn answer_pending(&mut self, outcome: OperationOutcome) {
        if let Some(Pending { asker, .. }) = self.pending.take() {
            self.disarm(Timer::Operation);
            if let Asker::Operator(number) = asker {
                self.answer(number, outcome);
            }
        }
    }

    fn answer(&mut self, number: u64, outcome: OperationOutcome) {
        self.act(Action::Answer { number, outcome });
    }

    fn done(&self, now: Now) -> OperationDone {
        let candidacy = self.eligibility.candidacy;
        OperationDone {
            leader: self.incumbent().map(|leader| (leader.peer, self.epoch)),
            candidacy,
            aside: candidacy.aside_until.map(|until| until.since(now.at)),
        }
    }
}
