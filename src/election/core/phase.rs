//! What a process is in the middle of, and how that changes.

use super::{Asking, Core, Protocol};
use crate::election::{ElectionOutcome, Epoch, Notification, Now, ProcessId, Timer};

/// What this process is in the middle of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::election) enum Phase {
    /// It asks its peers for the leader ("returning processes ask first").
    Asking(Asking),
    /// It waits for this process to announce itself: the highest live one, or a successor.
    Waiting(ProcessId),
    /// It has sent Elections in its epoch, and no process has answered yet.
    Electing,
    /// A process answered, or none may lead: it waits for a Coordinator.
    Deferring,
    /// It leads in the epoch it was elected with.
    Leading(Epoch),
    /// It follows the leader.
    Following,
    /// It has resigned, or said that it leaves.
    Leaving,
}

impl Phase {
    pub(in crate::election) fn in_election(&self) -> bool {
        matches!(self, Phase::Waiting(_) | Phase::Electing | Phase::Deferring)
    }

    pub(in crate::election) fn leading(&self) -> bool {
        matches!(self, Phase::Leading(_))
    }
}

impl<P: Protocol> Core<P> {
    /// Changes what it is in the middle of. No timer of a phase survives that: each phase arms its own, so
    /// their handlers need not ask for the phase. Nor does an election: a new one begins anew.
    pub(crate) fn enter(&mut self, phase: Phase) {
        P::abandon_election(self);
        self.disarm_all();
        if !self.phase.in_election() && phase.in_election() {
            self.note(Notification::ElectionBegins { reason: self.loss });
        }
        if self.phase.in_election() && !phase.in_election() {
            let outcome = match phase {
                Phase::Leading(_) => ElectionOutcome::Won,
                Phase::Following => ElectionOutcome::Lost,
                _ => ElectionOutcome::Unfinished,
            };
            self.note(Notification::ElectionEnds { outcome });
        }
        self.phase = phase;
    }

    /// Waits for a process to announce itself.
    pub(crate) fn wait_for(&mut self, id: ProcessId) {
        self.enter(Phase::Waiting(id));
        self.arm(Timer::Announcement, self.answer_timeout());
    }

    /// Whether this process waits for one that is no candidate, as far as is known.
    pub(crate) fn waits_in_vain(&self, id: ProcessId) -> bool {
        self.phase == Phase::Waiting(id) && self.members.get(id).is_some_and(|m| !m.peer.rank().eligible())
    }

    /// Waits for a Coordinator.
    pub(crate) fn defer(&mut self) {
        self.enter(Phase::Deferring);
        self.arm(Timer::Coordinator, self.coordinator_timeout());
    }

    /// The round has ended without a leader: this process begins another.
    pub(crate) fn elect_again(&mut self, now: Now) {
        self.round_failed = true;
        self.note(Notification::ElectionEnds { outcome: ElectionOutcome::Unfinished });
        self.note(Notification::ElectionBegins { reason: self.loss });
        P::start_election(self, now);
    }
}
