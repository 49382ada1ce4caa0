//! Which members a leader tells often that it lives. A short lease takes many rounds of heartbeats, and they
//! cost as much as there are members. So with a short lease only those get each round that may lead next.
//! They notice a silent leader early, and announce the next one to all. The others are told to wait longer.

use super::{Core, Protocol};
use crate::election::{Moment, ProcessId};
use core::cmp::Reverse;
use std::collections::BTreeSet;

/// The members that get a round.
pub(super) struct Recipients {
    /// They are told the lease in use.
    pub(super) often: Vec<ProcessId>,
    /// They are told the longest lease.
    pub(super) seldom: Vec<ProcessId>,
}

/// What the next round has to know of the former ones.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct LastRecipients {
    /// The members that wait no longer than the lease in use. Bounded by the members.
    often: BTreeSet<ProcessId>,
    /// When all members got a round.
    all: Option<Moment>,
}

impl LastRecipients {
    /// Whether a member is told often.
    pub(super) fn are_often(&self, id: ProcessId) -> bool {
        self.often.contains(&id)
    }
}

impl<P: Protocol> Core<P> {
    /// The recipients of the next round. `short`: its lease is not the longest one.
    pub(super) fn recipients(&mut self, now: Moment, short: bool) -> Recipients {
        if !self.adaptation.is_on() {
            return Recipients { often: self.ids(|m| m.linked), seldom: Vec::new() };
        }
        let mut linked: Vec<_> = self.members.iter().filter(|m| m.linked).collect();
        linked.sort_unstable_by_key(|m| Reverse(m.peer.rank()));
        let ranked = linked.into_iter().enumerate();
        let often = ranked.filter(|(better, m)| !short || P::is_told_often(self, m, *better));
        let often: BTreeSet<ProcessId> = often.map(|(_, m)| m.peer.id).collect();
        let former = std::mem::take(&mut self.heartbeats.recipients);
        let all = former.all.is_none_or(|at| now.since(at) >= self.settings.heartbeat);
        // A member that waits for no longer than a short lease hears at once that it may wait longer.
        let wanted = |id: &ProcessId| !often.contains(id) && (all || former.often.contains(id));
        let seldom = self.ids(|m| m.linked && wanted(&m.peer.id));
        let recipients = Recipients { often: often.iter().copied().collect(), seldom };
        let all = if all { Some(now) } else { former.all };
        self.heartbeats.recipients = LastRecipients { often, all };
        // Those that cannot be told anything now are told once they are connected again.
        let away = |id: &ProcessId| self.members.get(*id).is_some_and(|m| !m.linked);
        self.heartbeats.recipients.often.extend(former.often.into_iter().filter(away));
        recipients
    }
}
