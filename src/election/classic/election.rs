//! The election itself: rules 1 to 4 of `tests/bully-readme.txt`.

use super::Classic;
use crate::election::clauses::Clauses;
use crate::election::core::{Asking, Core, Heard, Phase};
use crate::election::{
    Action, Body, Epoch, ListWanted, Member, Message, Notification, Now, Preempt, ProcessId, Rank, Reason,
    State, Timer, Variant,
};
use std::time::Duration;

impl Core<Classic> {
    /// Rule 1: there is no coordinator, so this process starts an election.
    ///
    /// `paper`: the process with the highest id announces itself. Each other process sends Election to every
    /// process that outranks it, the dead coordinator included. `detector`: every process knows the live ones
    /// from the failure detector. The highest of them announces at once, and the others wait for it.
    /// `optimized` and `announcer` have files of their own.
    pub(super) fn start_election(&mut self, now: Now) {
        if self.is_turned_away(now) {
            self.lose_leader(Reason::Superseded);
            return self.ask_all(Asking::default());
        }
        let next = self.seen.next();
        match self.settings.variant {
            Variant::Paper | Variant::Optimized => self.elect(now, next),
            Variant::Announcer => self.start_inquiry(now, next),
            Variant::Detector => self.lead_or_wait(now, next),
        }
    }

    /// The failure detector says which process leads: the highest live one.
    fn lead_or_wait(&mut self, now: Now, next: Epoch) {
        match self.best_live() {
            Some(best) if best == self.me.id => self.become_leader(now, next),
            Some(best) => self.wait_for(best),
            None => self.no_candidate(),
        }
    }

    /// The highest live process that may lead, this one included.
    fn best_live(&self) -> Option<ProcessId> {
        self.other_candidates().chain(Some(self.rank()).filter(|r| r.eligible())).max().map(|r| r.id)
    }

    /// The ranks of the other live processes that may lead. One that this process cannot reach is left to
    /// those that can: it may be a name on a list, and no more.
    pub(super) fn other_candidates(&self) -> impl Iterator<Item = Rank> {
        self.members.iter().filter(|m| m.can_lead() && self.can_reach(m)).map(|m| m.peer.rank())
    }

    /// The paper's procedure in one epoch. In two cases only live processes count. One is each variant but
    /// the paper's own. The other is a process that never leads and found no leader in its first round. If it
    /// called the dead too, it would use up an epoch in each further round. It seeks them anyway.
    pub(super) fn elect(&mut self, now: Now, epoch: Epoch) {
        let me = self.rank();
        if self.settings.variant == Variant::Optimized {
            return self.elect_among(now, epoch, self.highest(1));
        }
        let live_only = self.settings.variant != Variant::Paper || !me.eligible() && self.round_failed;
        let counts = |m: &Member| self.can_reach(m) && (m.state == State::Alive || !live_only);
        self.elect_among(now, epoch, self.ids(|m| m.peer.rank().outranks(me) && counts(m)));
    }

    /// An election in one epoch, which asks these processes. If there are none, this process leads.
    pub(super) fn elect_among(&mut self, now: Now, epoch: Epoch, higher: Vec<ProcessId>) {
        let me = self.rank();
        if higher.is_empty() {
            return if me.eligible() { self.become_leader(now, epoch) } else { self.no_candidate() };
        }
        assert!(epoch > self.epoch, "invariant 6: at most one election per process and epoch");
        self.lose_leader(Reason::Superseded);
        self.set_epoch(epoch);
        self.enter(Phase::Electing);
        self.send_each(higher.clone(), &Body::Election);
        self.protocol.asked = higher;
        self.arm(Timer::Answer, self.answer_timeout());
    }

    /// No live process may lead: this process looks again after a while.
    fn no_candidate(&mut self) {
        self.lose_leader(Reason::Superseded);
        if !self.round_failed {
            self.note(Notification::NoCandidate);
        }
        self.round_failed = true;
        self.defer();
    }

    /// Rule 2: this process received no Answer, so it leads. A process that did not answer counts as failed.
    pub(super) fn on_answer_timer(&mut self, now: Now) {
        for id in std::mem::take(&mut self.protocol.asked) {
            self.fail(id, Reason::Silence);
        }
        if self.declare_if_known() {
            return;
        }
        if self.has_others_to_ask() {
            return self.start_election(now);
        }
        let may_lead = self.rank().eligible();
        if may_lead { self.become_leader(now, self.unused(self.epoch)) } else { self.elect_again(now) }
    }

    /// A process is gone that may have been asked. Where no other may still answer, none is waited for.
    pub(super) fn on_asked_lost(&mut self, id: ProcessId) {
        self.forget_inquired(id);
        let asked = &mut self.protocol.asked;
        let Some(at) = asked.iter().position(|asked| *asked == id) else { return };
        asked.swap_remove(at);
        let last = asked.is_empty();
        if !self.declare_if_known() && last {
            self.arm(Timer::Answer, Duration::ZERO);
        }
    }

    /// Rule 3: a process with a higher rank answered. This process sends nothing more in this election and
    /// waits.
    pub(super) fn on_answer(&mut self, by: Heard) {
        let Heard { from, epoch, .. } = by;
        let Some(rank) = self.members.get(from).map(Member::rank) else { return };
        let expected = self.phase == Phase::Electing && rank.outranks(self.rank());
        if expected && !self.hear_inquired(rank) && (epoch >= self.epoch || self.has_announcer()) {
            self.defer();
        }
    }

    /// Rule 3: no process announced in time, so this process begins again.
    pub(super) fn on_coordinator_timer(&mut self, now: Now) {
        if self.round_failed && self.best_live().is_none() {
            // Still no process may lead. A line in the log every time would be no news.
            return self.arm(Timer::Coordinator, self.coordinator_timeout());
        }
        self.elect_again(now);
    }

    /// The awaited process did not announce itself: back to the paper's procedure.
    pub(super) fn on_announcement_timer(&mut self, now: Now) {
        self.transfer_failed(now);
        if self.is_announcer() {
            return self.ask_anew(now);
        }
        self.elect(now, self.seen.next());
    }

    /// Rule 4: a process of lower rank holds an election. This process sends an Answer, and holds an election
    /// of its own, once an epoch. A leader replies with Coordinator.
    pub(super) fn on_election(&mut self, by: Heard) {
        let Heard { now, from, epoch } = by;
        if !self.members.get(from).is_some_and(|m| self.rank().outranks(m.peer.rank())) {
            return;
        }
        match self.phase {
            Phase::Leading(own) if epoch <= own => return self.send_coordinator(from),
            Phase::Leading(_) => {
                // A newer round: the incumbent takes part in it and goes on in its epoch.
                let epoch = self.unused(epoch);
                self.send_answer(from, epoch);
                return if self.strict_paper() {
                    self.elect(now, epoch)
                } else {
                    self.become_leader(now, epoch)
                };
            }
            _ => {}
        }
        let incumbent_lives =
            self.phase == Phase::Following && self.settings.variant != Variant::Paper && !self.leads(from);
        let asks_after_pause = matches!(&self.phase, Phase::Asking(asking) if asking.after_pause);
        let round_known = self.clauses.is_known_round(epoch, self.epoch);
        if round_known || incumbent_lives || asks_after_pause && !self.strict_paper() {
            // There are three cases. The round is over, or this process takes part in it already. With
            // a failure detector there is no round while the leader is alive: perhaps only the sender misses
            // that leader. Or the message waited while this process was paused: others have had the time to
            // elect a leader since.
            self.send(from, Body::Answer);
            if self.leader.is_some() {
                // An election is rare, and the sender may know no other member that lives.
                self.reply_with_leader(from, ListWanted::Whole);
            }
            return;
        }
        if self.awaits_declaration(from) {
            return self.send(from, Body::Answer);
        }
        let epoch = self.unused(epoch);
        self.send_answer(from, epoch);
        self.elect(now, epoch);
    }

    /// Answers with the epoch of the round that this process joins in the same turn. The sender is in that
    /// round already, and an Answer with the former epoch would be stale for it.
    fn send_answer(&mut self, to: ProcessId, round: Epoch) {
        if let Some(address) = self.members.get(to).map(|m| m.peer.address) {
            let message = Message { epoch: round, priority: self.me.priority, body: Body::Answer };
            self.act(Action::Send { to, address, message });
        }
    }

    /// This epoch, unless a higher one has been seen since: then the next above all.
    pub(super) fn unused(&self, epoch: Epoch) -> Epoch {
        if epoch < self.seen { self.seen.next() } else { epoch }
    }

    /// Whether rules are followed to the letter of the seed where that costs an incumbent its place.
    pub(super) fn strict_paper(&self) -> bool {
        self.settings.variant == Variant::Paper && self.settings.preempt == Preempt::Always
    }
}
