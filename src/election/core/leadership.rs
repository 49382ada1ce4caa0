//! Leadership: how it begins and ends, in this process and in another.

use super::{Announcement, Core, Phase, Protocol};
use crate::election::types::time::duration;
use crate::election::{
    Action, Body, Epoch, Incumbent, MembershipVersion, Moment, Notification, Now, Pace, Peer, ProcessId,
    Reason, State, Timer,
};

impl<P: Protocol> Core<P> {
    /// Leads from now on, in `epoch`, and tells every other process (rules 1 and 2).
    pub(crate) fn become_leader(&mut self, now: Now, epoch: Epoch) {
        let own_round = self.phase == Phase::Electing && epoch == self.epoch;
        assert!(
            epoch > self.epoch || own_round,
            "a leader's epoch is that of its own round, or above all it was in"
        );
        self.transfer_failed(now);
        let reason = if self.leader.is_some() { Reason::Superseded } else { self.loss };
        if self.phase.leading() {
            // This process is elected again: its old term ends here.
            self.adaptation.end_term(now.at);
            self.leader = None;
            self.pace = None;
        } else if !self.phase.in_election() {
            self.lose_leader(Reason::Superseded);
            self.enter(Phase::Deferring);
        }
        self.set_epoch(epoch);
        self.leader = Some(Incumbent { peer: self.me.clone(), elected_at_ms: now.wall_ms });
        self.outbox.peers_changed = true;
        self.enter(Phase::Leading(epoch));
        self.round_failed = false;
        self.dial_targets.remembered.clear();
        self.members.version = MembershipVersion { epoch, version: 1 };
        self.heartbeats.begin_term();
        self.note(Notification::Leader { peer: self.me.clone(), epoch, reason, me: true });
        let others = self.dial_targets.others().count();
        // The process that has just resigned is still named, and not missed.
        let others = others.saturating_sub(usize::from(reason == Reason::Resign));
        if self.alone() && others > 0 {
            self.note(Notification::LeadsAlone { others });
        }
        for id in self.ids(|m| m.state == State::Alive) {
            self.send_coordinator(id);
        }
        // The members get the list at once, so later changes are in step with what they hold. This leader may
        // die before its first heartbeat. A member that is not linked yet gets the list with the link.
        self.send_lists();
        // Silence counts from here: a member has the failure timeout to acknowledge this leader.
        for member in self.members.iter_mut().filter(|m| m.state == State::Alive) {
            member.last_heard = member.last_heard.max(Some(now.at));
        }
        self.arm(Timer::Heartbeat, self.heartbeat_interval(P::lease_asked(self).0));
        self.watch_for_better(now);
    }

    /// "I lead in this epoch."
    pub(crate) fn send_coordinator(&mut self, to: ProcessId) {
        if let Some(leader) = &self.leader {
            let elected_at_ms = leader.elected_at_ms;
            self.send(to, Body::Coordinator { elected_at_ms });
        }
    }

    /// This process has resigned. Once its successor leads, nothing is left to do here.
    pub(super) fn leave_to_successor(&mut self, epoch: Epoch) {
        if epoch > self.epoch {
            self.act(Action::Exit);
        }
    }

    /// This process answers a message of a lower epoch with its own epoch. The message changes nothing.
    pub(crate) fn answer_stale(&mut self, to: ProcessId) {
        if self.phase.leading() { self.send_coordinator(to) } else { self.send_leader_info(to) }
    }

    /// Follows a leader, or hears from it again.
    pub(crate) fn follow(&mut self, now: Now, leader: Peer, epoch: Epoch, announcement: Announcement) {
        let elected_at_ms = match announcement {
            Announcement::Election { elected_at_ms } => Some(elected_at_ms),
            Announcement::Heartbeat(_) => None,
        };
        if !self.follows(leader.id, epoch) {
            let reason = if self.leader.is_some() { Reason::Superseded } else { self.loss };
            if self.phase.leading() {
                self.lose_leader(Reason::Superseded);
            }
            if self.transfers.under_way {
                self.transfers.under_way = false;
                self.transfers.failed = 0;
            }
            self.set_epoch(epoch);
            // Meanwhile this process may have followed another leader, or heard of members from others.
            self.members.list_stale = true;
            self.round_failed = false;
            self.dial_targets.remembered.clear();
            self.pace = None;
            let elected_or_heard_ms = elected_at_ms.unwrap_or(now.wall_ms);
            self.leader = Some(Incumbent { peer: leader.clone(), elected_at_ms: elected_or_heard_ms });
            self.outbox.peers_changed = true;
            self.enter(Phase::Following);
            self.note(Notification::Leader { peer: leader.clone(), epoch, reason, me: false });
            if elected_at_ms.is_none() {
                // A heartbeat does not say when it was elected; its answer will.
                self.query_leader(leader.id);
            }
        } else if let (Some(known), Some(elected_at_ms)) = (&mut self.leader, elected_at_ms) {
            known.elected_at_ms = elected_at_ms;
        }
        if let Announcement::Heartbeat(Pace { lease_ms, learnt }) = announcement {
            self.pace = (lease_ms > 0).then(|| duration(lease_ms));
            self.adaptation.take_over(now.at, learnt);
        }
        self.arm(Timer::Silence, self.silence_of_leader());
    }

    /// There is no leader any more, for this reason; nothing happens if there was none.
    pub(crate) fn lose_leader(&mut self, reason: Reason) {
        self.lose_leader_since(reason, self.last_turn.at);
    }

    /// There is no leader any more, and there has been none since an earlier moment.
    pub(crate) fn lose_leader_since(&mut self, reason: Reason, since: Moment) {
        let Some(former) = self.leader.take() else { return };
        (self.pace, self.former_pace) = (None, None);
        self.outbox.peers_changed = true;
        self.loss = reason;
        let me = former.peer.id == self.me.id;
        if me {
            self.disarm(Timer::Heartbeat);
            self.disarm(Timer::Preempt);
            self.disarm(Timer::Lease);
            self.adaptation.end_term(self.last_turn.at);
            P::on_term_end(self);
            // A leader keeps its rank to the end of its term.
            self.update_priority();
        }
        self.note(Notification::Leaderless { former: former.peer, epoch: self.epoch, reason, me, since });
    }

    pub(crate) fn set_epoch(&mut self, epoch: Epoch) {
        assert!(epoch >= self.epoch, "invariant 1: an epoch never goes back");
        self.outbox.dirty |= epoch > self.epoch;
        self.epoch = epoch;
        self.seen = self.seen.max(epoch);
    }
}
