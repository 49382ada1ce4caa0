//! Pauses: a process that did not run for a while believes nothing before it has asked.

use super::{Asking, Core, Phase, Protocol};
use crate::election::{Body, Moment, Notification, Now, ProcessId, Reason};
use std::time::Duration;

/// When this process last turned: on its fast clock, on its slow one, and how often its host had been
/// suspended by then.
#[derive(Clone, Copy, Hash, Debug, Default)]
pub(crate) struct LastTurn {
    pub(crate) at: Moment,
    pub(crate) slow: Moment,
    pub(crate) suspends: u32,
}

impl<P: Protocol> Core<P> {
    /// Begins a turn: looks whether this process was paused before it, and says whether it asks again for
    /// that. A process does not know how long a suspend has lasted.
    pub(crate) fn notice_pause(&mut self, now: Now) -> bool {
        let gap = now.at.since(std::mem::replace(&mut self.last_turn.at, now.at));
        self.last_turn.slow = now.slow;
        let suspended = std::mem::replace(&mut self.last_turn.suspends, now.suspends) != now.suspends;
        self.learn_of_lateness(now.at);
        let paused =
            self.started && (suspended || gap > self.pause_after()) && !matches!(self.phase, Phase::Leaving);
        if paused {
            self.resume(gap);
        }
        paused
    }

    /// How long this process may go without a turn before it counts as paused. Once a leader was silent for
    /// longer than its followers wait for it, they may have elected another.
    pub(crate) fn pause_after(&self) -> Duration {
        // The end of a lease says the same by itself.
        let pace = self.pace.filter(|_| self.phase.leading() && P::valid_until(self).is_none());
        // The followers may not have heard the latest heartbeat yet.
        let pace = pace.map(|pace| self.former_pace.map_or(pace, |former| former.min(pace)));
        pace.map_or(self.settings.failure_timeout, |pace| pace.min(self.settings.failure_timeout))
    }

    /// This process was paused ([`Core::pause_after`]), or its host was suspended. Others may have elected a
    /// leader since, and its own leader may be dead or not. The process believes nothing and asks, as at a
    /// start.
    fn resume(&mut self, gap: Duration) {
        // A start goes on.
        let starting = matches!(self.phase, Phase::Asking(Asking { starting: true, .. }));
        let expect = self.expected();
        let before = Moment(self.last_turn.at.0.saturating_sub(gap));
        self.lose_leader_since(Reason::Pause, before);
        self.note(Notification::Asking { paused: Some(gap), expect });
        self.ask_all(Asking { after_pause: true, starting, ..Asking::default() });
    }

    /// Whether this process has asked a peer since it was paused, and the peer has not answered.
    pub(crate) fn awaits_answer_after_pause(&self, from: ProcessId) -> bool {
        let Phase::Asking(asking) = &self.phase else { return false };
        asking.after_pause && asking.unanswered.contains(&from)
    }

    /// Whether a peer may have said before a pause of this process that it leads: this process has asked
    /// since, and the peer has not answered. What a connection brings is in order. The peer may lead all the
    /// same, so this process starts no election before the peer has answered, or was asked again.
    pub(crate) fn may_be_from_before_pause(&mut self, from: ProcessId, body: &Body) -> bool {
        let announces =
            matches!(body, Body::Coordinator { .. } | Body::Heartbeat { .. } | Body::Renew { .. });
        if !announces || !self.awaits_answer_after_pause(from) {
            return false;
        }
        if let Phase::Asking(asking) = &mut self.phase {
            asking.named = Some(from);
        }
        true
    }
}
