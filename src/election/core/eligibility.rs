//! Whether a process is a candidate for now. An operator may cordon it, a leader that has resigned stands
//! aside for a while, and its application may not be healthy. It then has priority 0, here and at all others:
//! it votes, and it never leads.

use super::{Core, Phase, Protocol};
use crate::election::clauses::Clauses;
use crate::election::{Candidacy, Notification, Now, Priority, ProcessId, Reason, Timer};
use std::time::Duration;

/// The priority of this process where nothing keeps it from being a candidate, and what does.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Eligibility {
    given: Priority,
    pub(crate) candidacy: Candidacy,
}

impl Eligibility {
    pub(super) fn of(given: Priority) -> Eligibility {
        Eligibility { given, candidacy: Candidacy::default() }
    }
}

impl<P: Protocol> Core<P> {
    /// An operator has cordoned this process. It does not lead now.
    pub(super) fn cordon(&mut self) {
        if !std::mem::replace(&mut self.eligibility.candidacy.cordoned, true) {
            self.note(Notification::StandsAside { aside: None });
            self.update_priority();
        }
    }

    /// As an operator has asked: for so long, or, if that is zero, until this process is uncordoned.
    pub(super) fn step_aside(&mut self, aside: Duration) {
        if aside.is_zero() { self.cordon() } else { self.stand_aside(aside) }
    }

    /// This process is no candidate for so long. It does not lead now.
    pub(super) fn stand_aside(&mut self, aside: Duration) {
        let until = self.last_turn.at.plus(aside);
        self.eligibility.candidacy.aside_until = Some(until);
        self.arm(Timer::Aside, aside);
        self.note(Notification::StandsAside { aside: Some(aside) });
        self.update_priority();
    }

    /// An operator wants this process to be a candidate again.
    pub(super) fn uncordon(&mut self, now: Now) {
        self.disarm(Timer::Aside);
        let candidacy = Candidacy { cordoned: false, aside_until: None, ..self.eligibility.candidacy };
        self.be_candidate_again(now, candidacy);
    }

    /// The time of its resignation is over.
    pub(super) fn on_aside_timer(&mut self, now: Now) {
        self.be_candidate_again(now, Candidacy { aside_until: None, ..self.eligibility.candidacy });
    }

    /// Less keeps this process from being a candidate than before.
    fn be_candidate_again(&mut self, now: Now, candidacy: Candidacy) {
        if std::mem::replace(&mut self.eligibility.candidacy, candidacy) == candidacy {
            return;
        }
        if candidacy == Candidacy::default() {
            self.note(Notification::StandsAgain);
        }
        self.update_priority();
        self.rejoin_election(now);
    }

    /// Sets the priority that this process has for now. It does not lead. Each message says it from now on.
    pub(super) fn update_priority(&mut self) {
        let Candidacy { cordoned, aside_until, complaints } = self.eligibility.candidacy;
        let candidate = self.clauses.is_candidate(cordoned, aside_until.is_some(), complaints.any());
        let priority = if candidate { self.eligibility.given } else { Priority::NEVER };
        if std::mem::replace(&mut self.me.priority, priority) != priority {
            self.dial_targets.unsettle();
        }
    }

    /// Begins again with the part that this process has in an election: it has another priority. It
    /// may outrank the leader that it follows by now.
    pub(super) fn rejoin_election(&mut self, now: Now) {
        let outranks = |core: &Core<P>| core.leader.as_ref().is_some_and(|l| P::bullies(core, l.peer.rank()));
        let bullies = self.phase == Phase::Following && outranks(self);
        if bullies {
            // Its heartbeats would be followed on while this process is not elected yet.
            self.lose_leader(Reason::Superseded);
        }
        if bullies || matches!(self.phase, Phase::Electing | Phase::Deferring) {
            P::start_election(self, now);
        }
    }

    /// A member says which priority it has now.
    pub(super) fn on_priority(&mut self, now: Now, from: ProcessId, priority: Priority) {
        if self.rank_member(now, from, priority)
            && let Some(member) = self.members.get_mut(from)
        {
            // A member that changes its mind with each message must not make the leader send as much to all.
            member.rank_untold = self.phase.leading();
        }
    }

    /// Takes in the priority of a member; says whether that is news.
    pub(super) fn rank_member(&mut self, now: Now, id: ProcessId, priority: Priority) -> bool {
        let heeds = self.clauses.heeds_priority();
        let Some(member) = self.members.get_mut(id).filter(|m| heeds && m.peer.priority != priority) else {
            return false;
        };
        member.peer.priority = priority;
        member.ranked_since = now.at;
        self.outbox.peers_changed = true;
        true
    }

    /// A leader tells the others which members have another priority, once a heartbeat.
    pub(super) fn tell_priorities(&mut self) {
        for id in self.ids(|m| m.rank_untold) {
            self.members.get_mut(id).into_iter().for_each(|m| m.rank_untold = false);
            self.broadcast_entry(id);
        }
    }
}
