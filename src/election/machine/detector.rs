//! The failure detector's rules: heartbeats, silence, and crash evidence.

use super::{BEATS_MAX, Machine, Phase};
use crate::election::{
    Body, CrashEvidence, Epoch, Incarnation, MembershipVersion, Notification, Now, ProcessId, Reason, State,
    Timer, VoterConfig,
};
use core::net::SocketAddr;
use std::time::Duration;

impl Machine {
    /// Any message is a sign of life, and of a connection that is open. Says whether the sender is a member; messages of others are dropped.
    pub(super) fn heard(&mut self, now: Now, from: ProcessId) -> bool {
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

    /// A member that was held failed lives.
    pub(super) fn revive(&mut self, now: Now, id: ProcessId) {
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.state = State::Alive;
        member.alive_since = now.at;
        let peer = member.peer.clone();
        self.note(Notification::MemberUp(peer));
        self.broadcast_entry(id);
        self.watch_for_better(now);
    }

    /// The leader's round of heartbeats, and its look at members that have been silent.
    pub(super) fn beat(&mut self, now: Now) {
        if !self.phase.leading() {
            return;
        }
        let timeout = self.settings.failure_timeout;
        let silent = self.ids(|m| {
            m.state == State::Alive && m.last_heard.is_none_or(|heard| now.at.since(heard) > timeout)
        });
        for id in silent {
            self.fail(id, Reason::Silence);
        }
        self.sequence = self.sequence.wrapping_add(1);
        if self.beats.len() == BEATS_MAX {
            self.beats.pop_front();
        }
        self.beats.push_back((self.sequence, now.at));
        let renew = self.begin_round(now);
        let beat =
            renew.unwrap_or(Body::Heartbeat { sequence: self.sequence, membership: self.members.version });
        // Silent members that are still connected get it too: that is how one that was paused hears of this leader.
        self.send_each(self.ids(|m| m.linked), &beat);
        self.arm(Timer::Heartbeat, self.heartbeat_interval());
        self.watch_for_better(now);
        self.round_sent(now);
    }

    /// A follower's side of the heartbeat. It counts as a claim, so a lost Coordinator does no harm.
    pub(super) fn heartbeat(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        sequence: u32,
        _membership: MembershipVersion,
    ) {
        self.claim(now, from, epoch, None);
        if self.phase == Phase::Following && self.leads(from) && self.epoch == epoch {
            self.send(from, Body::HeartbeatAck { sequence, membership: self.members.held() });
        }
    }

    /// The leader's side of the acknowledgement: the round trip, and the list for a follower that has another one.
    pub(super) fn acknowledged(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        sequence: u32,
        held: MembershipVersion,
    ) {
        if !self.phase.leading() {
            return;
        }
        if epoch < self.epoch {
            return self.send_claim(from);
        }
        if epoch > self.epoch {
            return self.send(from, Body::Ask);
        }
        let sent = self.beats.iter().find(|(s, _)| *s == sequence).map(|(_, at)| *at);
        if let (Some(sent), Some(member)) = (sent, self.members.get_mut(from)) {
            member.round_trip = Some(now.at.since(sent));
        }
        // A follower that was paused acknowledges many heartbeats at once, with the list that it had before: one copy
        // of the list is enough, until it acknowledges a heartbeat that was sent after that.
        let sent_since = self.lists.get(&from).is_some_and(|at| sequence <= *at);
        if held != self.members.version && !sent_since {
            self.send_list(from);
        }
    }

    /// A leader's whole list, for one member. Acknowledgements of heartbeats that are on their way already are no
    /// reason for another.
    pub(super) fn send_list(&mut self, to: ProcessId) {
        self.lists.insert(to, self.sequence);
        let entries = self.members.entries();
        self.send(to, Body::Membership { version: self.members.version, entries });
    }

    /// The leader has been silent for the failure timeout.
    pub(super) fn leader_silent(&mut self, now: Now) {
        if self.phase != Phase::Following {
            return;
        }
        if let Some(id) = self.leader.as_ref().map(|l| l.peer.id) {
            let heard = self.members.get(id).and_then(|m| m.last_heard);
            self.fail(id, Reason::Silence);
            self.lose_leader_since(Reason::Silence, heard.unwrap_or(now.at));
            self.contest(now);
        }
    }

    /// Crash evidence about one life of a member.
    pub(super) fn crashed(&mut self, now: Now, id: ProcessId, incarnation: Incarnation) {
        self.link_down(id, incarnation);
        self.release(id, incarnation);
        self.check_connections(now);
        if self.settings.crash_evidence == CrashEvidence::Off {
            return self.not_asked_any_more(now, id);
        }
        if self.members.get(id).is_some_and(|m| m.peer.incarnation == incarnation) {
            self.gone(now, id);
        }
    }

    /// No process listens at an address any more: its member, unless it is connected all the same, is gone. Whose life that was the
    /// refusal does not say, so it frees no promise: the address may be another's by now, or the same one's next life.
    pub(super) fn refused(&mut self, now: Now, address: SocketAddr) {
        if self.settings.crash_evidence == CrashEvidence::Off {
            return;
        }
        for id in self.ids(|m| m.peer.address == address && !m.linked) {
            self.gone(now, id);
        }
    }

    /// A member is known to have crashed. Its leader's crash calls an election at once. A process that waited for it does
    /// not wait any longer.
    pub(super) fn gone(&mut self, now: Now, id: ProcessId) {
        self.members.list_stale = true;
        self.fail(id, Reason::Crash);
        self.not_asked_any_more(now, id);
        if self.leads(id) {
            self.lose_leader(Reason::Crash);
            self.contest(now);
        } else if self.phase == Phase::Waiting(id) {
            self.handover_failed(now);
            self.contest(now);
        }
    }

    /// Holds a member failed. A leader tells the others: they must know the live members when it dies itself.
    pub(super) fn fail(&mut self, id: ProcessId, reason: Reason) {
        let Some(member) = self.members.get_mut(id).filter(|m| m.state == State::Alive) else {
            return;
        };
        member.state = State::Failed;
        member.round_trip = None;
        let peer = member.peer.clone();
        self.note(Notification::MemberFailed { peer, reason: Some(reason) });
        // That it has asked for votes a moment ago keeps no other from standing (clause 25).
        self.majority.contenders.forget(id);
        self.broadcast_entry(id);
    }

    /// Between two rounds of heartbeats: in `majority` at most a fifth of the lease in use.
    pub(super) fn heartbeat_interval(&self) -> Duration {
        let fifth =
            self.majority.config().map(|_| crate::election::voters::duration(self.lease_asked_ms()) / 5);
        self.settings.heartbeat.min(fifth.unwrap_or(Duration::MAX))
    }

    /// How long a leader may be silent: the failure timeout, or the configuration's lease where that is longer, since it
    /// may space its heartbeats by that.
    pub(super) fn silence_of_leader(&self) -> Duration {
        self.settings.failure_timeout.max(self.majority.config().map_or(Duration::ZERO, VoterConfig::lease))
    }

    /// A leader that has lost its connections to a majority stops at once where refused dials free its lease: the
    /// others may have been refused by something on the path, and elect another.
    pub(super) fn check_connections(&mut self, now: Now) {
        if !self.phase.leading() || self.settings.crash_evidence != CrashEvidence::Release {
            return;
        }
        let linked = self.members.iter().filter(|m| m.linked).map(|m| m.peer.name.as_str());
        let connected = linked.chain([self.me.name.as_str()]);
        if self.majority.config().is_some_and(|config| !config.has_majority(connected)) {
            self.lapse(now);
        }
    }
}
