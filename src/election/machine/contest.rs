//! The election itself: the seed's rules 1 to 4.

use super::{Machine, Mutation, Phase};
use crate::election::{
    Action, Body, Epoch, Member, Message, Notification, Now, Outcome, Preempt, ProcessId, Rank, Reason,
    State, Timer, Variant,
};

impl Machine {
    /// Rule 1: there is no coordinator, so this process contests.
    ///
    /// `paper`: if it has the highest process id it announces itself, otherwise it sends Election to every process that
    /// outranks it, the dead coordinator included. `detector`: every process knows the live ones from the
    /// failure detector, so the highest of them announces at once and the others wait for it.
    pub(super) fn contest(&mut self, now: Now) {
        if self.majority.votes() {
            return self.start_campaign(now);
        }
        let next = self.seen.max(self.epoch).next();
        if self.settings.variant == Variant::Paper {
            return self.elect(now, next);
        }
        match self.best_live() {
            Some(best) if best == self.me.id => self.announce(now, next),
            Some(best) => self.wait_for(best),
            None => self.no_candidate(),
        }
    }

    /// Waits for a process to announce itself.
    pub(super) fn wait_for(&mut self, id: ProcessId) {
        self.enter(Phase::Waiting(id));
        self.arm(Timer::Announcement, self.settings.answer_timeout);
    }

    /// The highest live process that may lead, this one included.
    fn best_live(&self) -> Option<ProcessId> {
        let others = self.members.iter().filter(|m| m.can_lead()).map(|m| m.peer.rank());
        others.chain(Some(self.rank()).filter(|r| r.eligible())).max().map(|r| r.id)
    }

    /// The paper's procedure in one epoch. Only live processes count for the detector variant, which falls back to it,
    /// and for a process that never leads and has found none in its first round: it would use up an epoch in each
    /// further one for calling the dead, and it seeks them anyway.
    pub(super) fn elect(&mut self, now: Now, epoch: Epoch) {
        let me = self.rank();
        let live_only = self.settings.variant == Variant::Detector || !me.eligible() && self.round_failed;
        let higher = self.ids(|m| m.peer.rank().outranks(me) && (m.state == State::Alive || !live_only));
        if higher.is_empty() {
            return if me.eligible() { self.announce(now, epoch) } else { self.no_candidate() };
        }
        assert!(epoch > self.epoch, "a round has an epoch of its own");
        assert!(
            self.round.is_none_or(|r| r < epoch),
            "invariant 6: at most one election per process and epoch"
        );
        self.round = Some(epoch);
        self.lose_leader(Reason::Superseded);
        self.set_epoch(epoch);
        self.enter(Phase::Electing);
        self.send_each(higher, &Body::Election);
        self.arm(Timer::Answer, self.settings.answer_timeout);
    }

    /// No live process may lead: this one looks again after a while.
    fn no_candidate(&mut self) {
        self.lose_leader(Reason::Superseded);
        if !self.round_failed {
            self.note(Notification::NoCandidate);
        }
        self.round_failed = true;
        self.defer();
    }

    /// Rule 2: it received no Answer, so it leads. A process that did not answer has failed, for all that can be known.
    pub(super) fn unanswered(&mut self, now: Now) {
        if self.phase != Phase::Electing {
            return;
        }
        let me = self.rank();
        for id in self.ids(|m| m.state == State::Alive && m.peer.rank().outranks(me)) {
            self.fail(id, Reason::Silence);
        }
        if me.eligible() { self.announce(now, self.unused(self.epoch)) } else { self.again(now) }
    }

    /// Rule 3: a process with a higher rank answered; it sends nothing more in this election and waits.
    pub(super) fn answer(&mut self, from: ProcessId, epoch: Epoch) {
        if self.phase == Phase::Electing && epoch >= self.epoch && self.outranked_by(from) {
            self.defer();
        }
    }

    /// Waits for a Coordinator.
    pub(super) fn defer(&mut self) {
        self.enter(Phase::Deferring);
        self.arm(Timer::Coordinator, self.settings.coordinator_timeout);
    }

    /// Rule 3: no process announced in time; this one begins again.
    pub(super) fn coordinator_missed(&mut self, now: Now) {
        if self.phase != Phase::Deferring {
            return;
        }
        if self.round_failed && self.best_live().is_none() && !self.majority.votes() {
            // Still no process may lead, and there is no news worth a line in the log every time.
            return self.arm(Timer::Coordinator, self.settings.coordinator_timeout);
        }
        self.again(now);
    }

    fn again(&mut self, now: Now) {
        self.round_failed = true;
        self.note(Notification::Contested { outcome: Outcome::Unfinished });
        self.note(Notification::Contesting { reason: self.loss });
        self.contest(now);
    }

    /// The process it waited for did not announce itself: back to the paper's procedure.
    pub(super) fn announcement_missed(&mut self, now: Now) {
        if matches!(self.phase, Phase::Waiting(_)) {
            self.handover_failed(now);
            if self.majority.votes() {
                return self.start_campaign(now);
            }
            self.elect(now, self.seen.max(self.epoch).next());
        }
    }

    /// Rule 4: a process of lower rank holds an election: Answer, and an election of its own, once an epoch. A leader
    /// replies with Coordinator.
    pub(super) fn election(&mut self, now: Now, from: ProcessId, epoch: Epoch) {
        if !self.members.get(from).is_some_and(|m| self.rank().outranks(m.peer.rank())) {
            return;
        }
        match self.phase {
            Phase::Leading(own) if epoch <= own => return self.send_claim(from),
            Phase::Leading(_) => {
                // A newer round: the incumbent takes part in it and goes on in its epoch.
                let epoch = self.unused(epoch);
                self.send_answer(from, epoch);
                return if self.strict_paper() { self.elect(now, epoch) } else { self.announce(now, epoch) };
            }
            _ => {}
        }
        let incumbent_lives =
            self.phase == Phase::Following && self.settings.variant == Variant::Detector && !self.leads(from);
        let asks_after_pause = matches!(&self.phase, Phase::Asking(asking) if asking.after_pause);
        let round_known = epoch <= self.epoch && !self.mutant(Mutation::NoDedupe);
        if round_known || incumbent_lives || asks_after_pause && !self.strict_paper() {
            // A round that is over or that this process takes part in already; or, for the detector variant, no round
            // at all while the leader is alive: the sender may be missing just that leader. Or a message that waited
            // while this process was paused: others have had the time to elect a leader since.
            self.send(from, Body::Answer);
            if self.leader.is_some() {
                self.tell(from);
            }
            return;
        }
        let epoch = self.unused(epoch);
        self.send_answer(from, epoch);
        self.elect(now, epoch);
    }

    /// Answers with the epoch of the round that this process joins in the same turn: with its former one the Answer
    /// would be stale for the sender, which is in that round already.
    fn send_answer(&mut self, to: ProcessId, round: Epoch) {
        if let Some(address) = self.members.get(to).map(|m| m.peer.address) {
            let message = Message { epoch: round, body: Body::Answer };
            self.act(Action::Send { to, address, message });
        }
    }

    /// This epoch, unless a higher one has been seen since: then the next above all.
    fn unused(&self, epoch: Epoch) -> Epoch {
        if epoch < self.seen { self.seen.next() } else { epoch }
    }

    /// Whether rules are followed to the letter of the seed where that costs an incumbent its place.
    pub(super) fn strict_paper(&self) -> bool {
        self.settings.variant == Variant::Paper && self.settings.preempt == Preempt::Always
    }

    /// Rule 5's exception: this process outranks one that claims or is said to lead, and takes over by force. Apart
    /// from `--preempt always`, only a leader does that: others let an incumbent be.
    pub(super) fn bullies(&self, other: Rank) -> bool {
        let contends = self.settings.preempt == Preempt::Always || self.phase.leading();
        contends && !self.majority.votes() && self.rank().outranks(other)
    }

    fn outranked_by(&self, id: ProcessId) -> bool {
        self.members.get(id).map(Member::rank).is_some_and(|r| r.outranks(self.rank()))
    }
}
