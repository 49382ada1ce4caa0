//! Holds: a leader promises applications of its own pod that no other member leads for a time. A resignation
//! waits for them.
//!
//! docs/safety/holds.md has the rules, and why they hold.

use super::{Core, Protocol, Resignation};
use crate::election::clauses::Clauses;
use crate::election::types::hold::{HOLDS_MAX, HoldAnswer, HoldOutcome, HoldRequest};
use crate::election::{Action, DRIFT, Epoch, Moment, Notification, Now, OperationRefusal, Timer};
use std::collections::BTreeMap;
use std::time::Duration;

/// The holds that are out, and the resignation that waits for them.
#[derive(Clone, Hash, Debug, Default)]
pub(crate) struct Holds {
    /// The number of the latest.
    latest: u64,
    /// In which epoch each was granted, and when it is over, on the slow clock: at most [`HOLDS_MAX`].
    out: BTreeMap<u64, (Epoch, Moment)>,
    /// The resignation that waits for them.
    pub(crate) resigning: Option<Resigning>,
}

/// A leader that leads no more for its applications, and has not resigned yet.
#[derive(Clone, Copy, Hash, Debug)]
pub(crate) struct Resigning {
    resignation: Resignation,
    /// By when the last hold is over.
    until: Moment,
    /// For how long an operator wants it to stand aside then; zero: until it is uncordoned.
    pub(crate) aside: Option<Duration>,
    /// The holds are over, and its successor has been asked again whether it can win.
    asked: bool,
}

impl<P: Protocol> Core<P> {
    /// An application asks for a hold, goes on with one, or has stopped.
    pub(super) fn on_hold(&mut self, now: Now, request: HoldRequest) {
        let clauses = self.clauses;
        self.holds.out.retain(|_, (_, end)| !clauses.hold_is_over(*end, now.slow, now.at));
        if let HoldRequest::Take { lasts } | HoldRequest::Extend { lasts, .. } = request {
            self.lengthen_leases(now, lasts.min(self.longest_hold()));
        }
        let outcome = match request {
            HoldRequest::Take { lasts } => self.take_hold(now, lasts),
            HoldRequest::Extend { hold, lasts } => self.extend_hold(now, hold, lasts),
            HoldRequest::End { hold } => {
                self.holds.out.remove(&hold);
                HoldOutcome::Ended
            }
        };
        let answer = HoldAnswer { outcome, longest: self.longest_hold(), stop_wait: self.settings.stop_wait };
        self.act(Action::Held(answer));
    }

    fn take_hold(&mut self, now: Now, lasts: Duration) -> HoldOutcome {
        let lasts = self.grant(now, lasts);
        if lasts.is_zero() || self.holds.resigning.is_some() {
            return HoldOutcome::Nothing;
        }
        if self.holds.out.len() >= HOLDS_MAX {
            return HoldOutcome::TooMany;
        }
        self.holds.latest += 1;
        let hold = self.holds.latest;
        self.holds.out.insert(hold, (self.epoch, end_of(now, lasts)));
        HoldOutcome::Granted { hold, epoch: self.epoch, lasts }
    }

    /// A hold is never shortened, and none outlives its epoch. While this process resigns, a hold ends within
    /// the time that is left for that.
    fn extend_hold(&mut self, now: Now, hold: u64, lasts: Duration) -> HoldOutcome {
        let left = self.holds.resigning.map_or(lasts, |resigning| lasts.min(resigning.until.since(now.at)));
        let lasts = self.grant(now, left);
        match self.holds.out.get_mut(&hold) {
            Some((epoch, end)) if *epoch == self.epoch => {
                *end = end_of(now, lasts).max(*end);
                HoldOutcome::Granted { hold, epoch: *epoch, lasts }
            }
            _ => HoldOutcome::Unknown,
        }
    }

    /// What may be promised of a time that is asked for: a part of what is left of the firm lease.
    fn grant(&self, now: Now, lasts: Duration) -> Duration {
        let firm_until = P::firm_until(self).filter(|_| self.phase.leading());
        let left = firm_until.map_or(Duration::ZERO, |until| until.since(now.at));
        whole_ms(self.clauses.hold_lasts(left).min(lasts)).min(self.longest_hold())
    }

    /// The longest hold that this process ever promises.
    fn longest_hold(&self) -> Duration {
        let lease = P::longest_lease(self).filter(|_| !self.settings.crash_evidence.frees_promises());
        let lease = lease.map_or(Duration::ZERO, |longest| self.clauses.lease_counts(longest));
        whole_ms(self.clauses.hold_lasts(lease).min(self.settings.hold_max))
    }

    /// The holds that are out in this turn: in which epoch each was granted, and when it is over.
    fn held_now(&self) -> impl Iterator<Item = &(Epoch, Moment)> {
        let (slow, fast) = (self.last_turn.slow, self.last_turn.at);
        self.holds.out.values().filter(move |(_, end)| !self.clauses.hold_is_over(*end, slow, fast))
    }

    /// Whether a hold is out in this turn.
    pub(crate) fn held(&self) -> bool {
        self.held_now().next().is_some()
    }

    /// Whether a hold is out that was granted in an earlier epoch.
    pub(crate) fn held_since_earlier_term(&self) -> bool {
        self.held_now().any(|(epoch, _)| *epoch < self.epoch)
    }

    /// How many holds are out.
    pub(super) fn holds_out(&self) -> usize {
        self.held_now().count()
    }

    /// A leader is to resign, and holds are out. From now on it leads no more for its applications. It goes
    /// on with its rounds, since the holds rest on its lease.
    pub(super) fn wait_for_holds(&mut self, now: Now, resignation: Resignation) {
        let earlier = self.holds.resigning.take();
        let until = earlier.map_or(now.at.plus(self.settings.stop_wait), |earlier| earlier.until);
        let aside = self.aside_asked_for().or(earlier.and_then(|earlier| earlier.aside));
        self.holds.resigning = Some(Resigning { resignation, until, aside, asked: false });
        // A leader that began a pre-vote for a higher epoch would stop leading in the middle of the wait.
        P::abandon_election(self);
        self.disarm(Timer::Preempt);
        self.disarm(Timer::Hold);
        self.wait_for_operator(now.at);
        if earlier.is_none() {
            let holds = self.holds_out();
            self.note(Notification::WaitsForHolds { holds, at_most: self.settings.stop_wait });
        }
    }

    /// Ends a turn: looks whether the holds that a resignation waits for are over.
    pub(super) fn look_at_holds(&mut self, now: Now) {
        let Some(resigning) = self.holds.resigning else { return };
        if !self.phase.leading() {
            // It has lost its lease, or was paused: there is nothing to resign from.
            self.holds.resigning = None;
            self.disarm(Timer::Hold);
            return self.go_on_without_resigning(now, resigning);
        }
        if resigning.asked {
            return;
        }
        if let Some(last) = self.held_now().map(|(_, end)| *end).max() {
            // The timer runs on the fast clock, and so may come early.
            if !self.outbox.armed.contains(&Timer::Hold) {
                self.arm(Timer::Hold, last.since(now.slow).max(Duration::from_millis(1)));
            }
            return;
        }
        match resigning.resignation {
            Resignation::Leaving | Resignation::Transfer(None) => self.resign(now, resigning.resignation),
            Resignation::Transfer(Some(to)) => {
                // What was found out before the wait may be out of date.
                self.holds.resigning = Some(Resigning { asked: true, ..resigning });
                self.arm(Timer::Hold, self.answer_timeout().saturating_mul(2));
                P::transfer(self, now, to);
            }
        }
    }

    /// The successor that was asked again is silent. This process has said that it resigns, and does.
    pub(super) fn on_hold_timer(&mut self, now: Now) {
        if self.holds.resigning.is_some_and(|resigning| resigning.asked) {
            self.resign(now, Resignation::Transfer(None));
        }
    }

    fn go_on_without_resigning(&mut self, now: Now, resigning: Resigning) {
        match (resigning.resignation, resigning.aside) {
            (Resignation::Leaving, _) => self.on_stop(now),
            (Resignation::Transfer(_), Some(aside)) if self.pending.is_none() => {
                self.step_aside(aside);
                self.rejoin_election(now);
            }
            (Resignation::Transfer(_), _) => {}
        }
    }

    /// Why no operation begins now, if this leader resigns already.
    pub(super) fn resigns_already(&self) -> Option<OperationRefusal> {
        Some(match self.holds.resigning?.resignation {
            Resignation::Leaving => OperationRefusal::Stopping,
            Resignation::Transfer(_) => OperationRefusal::Busy,
        })
    }
}

/// When a hold is over, on the slow clock: later than its holder counts, by as much as clocks may differ.
fn end_of(now: Now, lasts: Duration) -> Moment {
    now.slow.plus(lasts + lasts / DRIFT)
}

fn whole_ms(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
