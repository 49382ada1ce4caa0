//! Leadership transfer: the choice of the successor, and preemption by a better member. `resignation` carries
//! it out.

use super::{Core, Protocol};
use crate::election::{Member, Moment, Now, Preempt, ProcessId, State, Timer, Unfit};
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

impl<P: Protocol> Core<P> {
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

    /// What keeps a member from leading after this process.
    pub(super) fn unfit(&self, member: &Member) -> Option<Unfit> {
        if member.state == State::Failed {
            Some(Unfit::Failed)
        } else if !member.linked {
            Some(Unfit::NotConnected)
        } else if !member.can_lead() {
            Some(Unfit::NoCandidate)
        } else {
            (!P::may_succeed(self, member)).then_some(Unfit::NoVoter)
        }
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
