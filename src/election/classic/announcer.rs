//! `--variant announcer`: one standing process asks for all, and declares which process leads.
//!
//! The lowest-ranked live process is the announcer, which needs no election of its own. It asks a few of the
//! highest processes whether they are alive, and declares the highest that answers. That process then
//! announces itself by rule 5. Overviews have the announcer tell all; then a second message could make a
//! process follow. All others wait. If the announcer crashes, the next lowest process is the announcer; if it
//! is silent, each process falls back to the paper's procedure.

use super::Classic;
use crate::election::core::{Core, Heard, Phase};
use crate::election::{Body, Epoch, Now, ProcessId, Rank, State, Timer, Variant};

/// How many processes the announcer asks at once.
pub(super) const ASKED_AT_ONCE: usize = 3;

/// What an announcer has heard.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Inquiry {
    /// The highest-ranked process that has answered.
    best: Option<Rank>,
}

impl Core<Classic> {
    /// Rule 1: the announcer asks, and each other process waits for it to declare a leader.
    pub(super) fn start_inquiry(&mut self, now: Now, epoch: Epoch) {
        let announcer = self.announcer();
        if announcer != self.me.id {
            self.enter(Phase::Waiting(announcer));
            return self.arm(Timer::Announcement, self.coordinator_timeout());
        }
        self.elect_among(now, epoch, self.highest(ASKED_AT_ONCE));
        if self.phase == Phase::Electing {
            self.protocol.inquiry = Some(Inquiry::default());
        }
    }

    /// The lowest live process, this one included. One that never leads may be it.
    fn announcer(&self) -> ProcessId {
        let live = self.members.iter().filter(|m| m.state == State::Alive && self.can_reach(m));
        live.map(|m| m.peer.rank()).fold(self.rank(), Rank::min).id
    }

    /// Whether there is an announcer at all.
    pub(super) fn has_announcer(&self) -> bool {
        self.settings.variant == Variant::Announcer
    }

    /// Whether this process asks for all.
    pub(super) fn is_announcer(&self) -> bool {
        self.has_announcer() && self.announcer() == self.me.id
    }

    /// The declared process has not announced itself: it hangs, or had not noticed yet that the leader is
    /// gone. The announcer asks again at once, and after that as often as any process begins an election.
    pub(super) fn ask_anew(&mut self, now: Now) {
        let again = std::mem::replace(&mut self.round_failed, true);
        if again { self.defer() } else { self.start_election(now) }
    }

    /// Whether this process waits for the sender of an Election to declare a leader. It then says only that
    /// it is alive.
    pub(super) fn awaits_declaration(&self, from: ProcessId) -> bool {
        self.has_announcer() && self.phase == Phase::Waiting(from)
    }

    /// An asked process is alive; says whether this process asks as the announcer. The Answer names the epoch
    /// that the sender is in: a process that waits takes no part in the announcer's.
    pub(super) fn hear_inquired(&mut self, rank: Rank) -> bool {
        let Some(inquiry) = &mut self.protocol.inquiry else { return false };
        inquiry.best = inquiry.best.max(Some(rank));
        self.protocol.asked.retain(|id| *id != rank.id);
        self.declare_if_known();
        true
    }

    /// Declares the best process that has answered, once no asked process outranks it that may still answer.
    /// Says whether it did.
    pub(super) fn declare_if_known(&mut self) -> bool {
        let Some(best) = self.protocol.inquiry.as_ref().and_then(|inquiry| inquiry.best) else {
            return false;
        };
        let outranks = |id: &ProcessId| self.members.get(*id).is_some_and(|m| m.rank().outranks(best));
        let known = !self.protocol.asked.iter().any(outranks);
        if known {
            self.send(best.id, Body::Declare);
            self.wait_for(best.id);
        }
        known
    }

    /// A process that had answered is gone: another one has to.
    pub(super) fn forget_inquired(&mut self, id: ProcessId) {
        if let Some(inquiry) = &mut self.protocol.inquiry {
            inquiry.best = inquiry.best.filter(|best| best.id != id);
        }
    }

    /// The announcer declares this process the leader. Only the process that this one waits for can do that.
    /// Otherwise this process says what it knows, and its priority.
    pub(super) fn on_declare(&mut self, by: Heard) {
        let Heard { now, from, epoch } = by;
        if self.awaits_declaration(from) && self.rank().eligible() {
            let next = if epoch > self.epoch { self.unused(epoch) } else { self.seen.next() };
            self.become_leader(now, next);
        } else {
            self.answer_stale(from);
        }
    }
}
