//! What a turn does: messages, timers, notifications, in the order in which the driver carries them out.

use super::{Core, Protocol};
use crate::election::{Action, Body, Member, Message, Notification, ProcessId, Timer};
use core::net::SocketAddr;
use std::collections::BTreeSet;
use std::time::Duration;

/// How many changes of the list a turn announces one by one. The list itself is shorter than more of them:
/// when the links of all members end at once, each change would go to each member.
const CHANGES_MAX: usize = 8;

/// What this turn has to do, and what earlier turns have left behind.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Outbox {
    pub(crate) actions: Vec<Action>,
    pub(crate) armed: BTreeSet<Timer>,
    /// Whether the record has changed.
    pub(crate) dirty: bool,
    /// Whether the leader or the members have changed.
    pub(crate) peers_changed: bool,
    /// How many changes of the list this turn has announced.
    pub(crate) changes: usize,
}

impl Default for Outbox {
    /// The first turn stores the record: a new process has none.
    fn default() -> Outbox {
        Outbox { actions: Vec::new(), armed: BTreeSet::new(), dirty: true, peers_changed: false, changes: 0 }
    }
}

impl<P: Protocol> Core<P> {
    pub(crate) fn act(&mut self, action: Action) {
        self.outbox.actions.push(action);
    }

    pub(crate) fn note(&mut self, note: Notification) {
        self.act(Action::Notification(note));
    }

    pub(crate) fn send(&mut self, to: ProcessId, body: Body) {
        // A message to a member without a link makes the driver dial.
        if let Some(address) = self.members.get(to).filter(|m| self.can_reach(m)).map(|m| m.peer.address) {
            self.send_to(to, address, body);
        }
    }

    /// Sends to a process that need not be a member.
    pub(crate) fn send_to(&mut self, to: ProcessId, address: SocketAddr, body: Body) {
        let message = Message { epoch: self.epoch, priority: self.me.priority, body };
        self.outbox.actions.push(Action::Send { to, address, message });
    }

    pub(crate) fn send_each(&mut self, to: impl IntoIterator<Item = ProcessId>, body: &Body) {
        for id in to {
            self.send(id, body.clone());
        }
    }

    /// Tells all connected members but one of a change of the list, which has the next version now.
    pub(crate) fn announce_change(&mut self, but: ProcessId, change: &Body) {
        self.outbox.changes += 1;
        if self.outbox.changes <= CHANGES_MAX {
            self.send_each(self.ids(|m| m.linked && m.peer.id != but), change);
        }
    }

    /// The members that `wanted` picks, in the order of their ids.
    pub(crate) fn ids(&self, wanted: impl Fn(&Member) -> bool) -> Vec<ProcessId> {
        self.members.iter().filter(|m| wanted(m)).map(|m| m.peer.id).collect()
    }

    pub(crate) fn arm(&mut self, timer: Timer, after: Duration) {
        self.outbox.armed.insert(timer);
        self.act(Action::Arm { timer, after });
    }

    pub(crate) fn disarm(&mut self, timer: Timer) {
        if self.outbox.armed.remove(&timer) {
            self.act(Action::Disarm(timer));
        }
    }

    /// Ends the timers of a phase, since each phase arms its own.
    pub(crate) fn disarm_all(&mut self) {
        for timer in Timer::ALL {
            if !timer.outlives_phases() {
                self.disarm(timer);
            }
        }
    }

    /// Ends a turn. What must be durable comes before everything that depends on it.
    pub(super) fn flush(&mut self) -> Vec<Action> {
        if std::mem::take(&mut self.outbox.changes) > CHANGES_MAX && self.phase.leading() {
            self.send_lists();
        }
        if std::mem::take(&mut self.outbox.peers_changed) {
            self.act(Action::Remember(self.known_peers()));
        }
        if std::mem::take(&mut self.outbox.dirty) {
            let record = self.record();
            self.outbox.actions.insert(0, Action::Persist(record));
        }
        std::mem::take(&mut self.outbox.actions)
    }
}
