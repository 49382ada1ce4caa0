//! What a turn does: messages, timers, notifications, in the order in which the driver carries them out.

use super::{Core, Protocol};
use crate::election::{Action, Body, Member, Message, Notification, ProcessId, Timer};
use std::collections::BTreeSet;
use std::time::Duration;

/// What this turn has to do, and what earlier turns have left behind.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Outbox {
    pub(crate) actions: Vec<Action>,
    pub(crate) armed: BTreeSet<Timer>,
    /// Whether the record has changed.
    pub(crate) dirty: bool,
    /// Whether the leader or the members have changed.
    pub(crate) peers_changed: bool,
}

impl Default for Outbox {
    /// The first turn stores the record: a new process has none.
    fn default() -> Outbox {
        Outbox { actions: Vec::new(), armed: BTreeSet::new(), dirty: true, peers_changed: false }
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
        if let Some(member) = self.members.get(to) {
            let message = Message { epoch: self.epoch, body };
            self.outbox.actions.push(Action::Send { to, address: member.peer.address, message });
        }
    }

    pub(crate) fn send_each(&mut self, to: impl IntoIterator<Item = ProcessId>, body: &Body) {
        for id in to {
            self.send(id, body.clone());
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
