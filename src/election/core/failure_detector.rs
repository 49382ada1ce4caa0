//! The failure detector: silence and crash evidence, and the timeouts that follow measured delays.

use super::{Core, Phase, Protocol};
use crate::election::clauses::Clauses;
use crate::election::{
    CrashEvidence, Instance, LEASE_MIN_SHORTEST, Notification, Now, ProcessId, Reason, State,
};
use core::net::SocketAddr;
use std::time::Duration;

impl<P: Protocol> Core<P> {
    /// Any message shows that its sender is alive and its connection open. Says whether the sender is a
    /// member; the core drops messages of others.
    pub(crate) fn heard(&mut self, now: Now, from: ProcessId) -> bool {
        let Some(member) = self.members.get_mut(from) else {
            return false;
        };
        member.last_heard = Some(now.at);
        member.linked = true;
        if member.state == State::Failed {
            self.revive(now, from);
        }
        true
    }

    /// A member that counted as failed is alive.
    pub(crate) fn revive(&mut self, now: Now, id: ProcessId) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.state = State::Alive;
        member.alive_since = now.at;
        self.outbox.peers_changed = true;
        let peer = member.peer.clone();
        self.note(Notification::MemberUp(peer));
        self.broadcast_entry(id);
        self.watch_for_better(now);
    }

    /// Holds those members failed that have been silent for the failure timeout.
    pub(super) fn fail_silent(&mut self, now: Now) {
        let timeout = self.settings.failure_timeout;
        let silent = self.ids(|m| {
            m.state == State::Alive && m.last_heard.is_none_or(|heard| now.at.since(heard) > timeout)
        });
        for id in silent {
            self.fail(id, Reason::Silence);
        }
    }

    /// The leader has been silent for the failure timeout.
    pub(crate) fn on_silence_timer(&mut self, now: Now) {
        if let Some(id) = self.leader.as_ref().map(|l| l.peer.id) {
            let heard = self.members.get(id).and_then(|m| m.last_heard);
            self.fail(id, Reason::Silence);
            self.lose_leader_since(Reason::Silence, heard.unwrap_or(now.at));
            P::start_election(self, now);
        }
    }

    /// Crash evidence about one incarnation of a member.
    pub(crate) fn on_crash(&mut self, now: Now, instance: Instance) {
        let Instance { id, incarnation } = instance;
        self.link_down(id, incarnation);
        P::on_link_lost(self, now, Some(instance));
        if self.settings.crash_evidence == CrashEvidence::Off {
            return self.not_asked_any_more(now, id);
        }
        if self.members.get(id).is_some_and(|m| m.peer.incarnation == incarnation) {
            self.fail_crashed(now, id);
        }
    }

    /// No process listens at an address any more. Its member is gone, unless it is still connected.
    /// The refusal does not name the incarnation that listened there, so it frees no promise. The address may
    /// belong to another process by now, or to the next incarnation of the same one.
    pub(crate) fn on_refused_dial(&mut self, now: Now, address: SocketAddr) {
        if P::LEADS_WITHOUT_VOTES {
            self.dial_targets.refused(address);
        }
        if self.settings.crash_evidence == CrashEvidence::Off {
            return;
        }
        for id in self.ids(|m| m.peer.address == address && !m.linked) {
            self.fail_crashed(now, id);
        }
    }

    /// A member has crashed. If it was the leader, this process starts an election at once. A process that
    /// waited for it does not wait any longer.
    pub(crate) fn fail_crashed(&mut self, now: Now, id: ProcessId) {
        self.members.list_stale = true;
        self.fail(id, Reason::Crash);
        self.not_asked_any_more(now, id);
        if self.leads(id) {
            self.lose_leader(Reason::Crash);
            P::start_election(self, now);
        } else if self.phase == Phase::Waiting(id) {
            self.transfer_failed(now);
            P::start_election(self, now);
        }
    }

    /// Holds a member failed. A leader tells the others: they must know the live members when it dies itself.
    /// Without a reason, the leader has said so.
    pub(crate) fn fail(&mut self, id: ProcessId, reason: impl Into<Option<Reason>>) {
        let Some(member) = self.members.get_mut(id).filter(|m| m.state == State::Alive) else {
            return;
        };
        member.state = State::Failed;
        member.round_trip = None;
        self.outbox.peers_changed = true;
        let peer = member.peer.clone();
        self.note(Notification::MemberFailed { peer: peer.clone(), reason: reason.into() });
        P::on_member_lost(self, &peer, false);
        self.broadcast_entry(id);
    }

    /// How long a leader may be silent, by its latest heartbeat. Before that it is the failure timeout, or
    /// the longest lease where that is longer. A leader may space its heartbeats by that lease.
    pub(crate) fn silence_of_leader(&self) -> Duration {
        let longest = P::longest_lease(self).unwrap_or_default().max(self.settings.failure_timeout);
        let told = self.pace.map(|pace| self.clauses.silence_lasts(pace));
        told.map_or(longest, |told| told.clamp(LEASE_MIN_SHORTEST.min(longest), longest))
    }

    /// How long an Election waits for an Answer: for longer than a round trip, where leases adapt to that.
    pub(crate) fn answer_timeout(&self) -> Duration {
        let worst = self.adaptation.worst(self.last_turn.at).unwrap_or_default();
        self.settings.answer_timeout.max(worst * 2)
    }

    /// How long an answered process waits for a Coordinator: for longer than the answer timeout.
    pub(crate) fn coordinator_timeout(&self) -> Duration {
        self.settings.coordinator_timeout + (self.answer_timeout() - self.settings.answer_timeout)
    }
}
