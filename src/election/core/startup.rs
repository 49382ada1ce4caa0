//! Asking first: a process that starts, or that was paused, asks its peers for the leader and the epoch.
//! It starts an election only after that, and only where no peer names a leader.

use super::{Core, Phase, Protocol};
use crate::election::{Body, Member, Notification, Now, ProcessId, State, Timer};
use std::collections::BTreeSet;

/// How far the asking has come.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::election) struct Asking {
    /// The peers that have been asked and have not replied.
    pub(super) unanswered: BTreeSet<ProcessId>,
    /// The leader that a peer follows. This process asks it in turn, and starts no election before that has
    /// failed.
    pub(super) named: Option<ProcessId>,
    /// Whether it asks because it was paused.
    pub(in crate::election) after_pause: bool,
    /// Whether it has never taken part, a pause at its start included.
    pub(super) starting: bool,
}

impl Asking {
    /// A peer has replied, or is gone.
    pub(super) fn no_longer_awaits(&mut self, id: ProcessId) {
        self.unanswered.remove(&id);
        self.named.take_if(|named| *named == id);
    }
}

impl<P: Protocol> Core<P> {
    pub(crate) fn on_start(&mut self, now: Now) {
        self.started = true;
        self.dial_targets.lists_from = Some(now.at.plus(self.settings.start_timeout));
        self.note(Notification::Asking { paused: None, expect: self.settings.expect });
        self.ask_all(Asking { starting: true, ..Asking::default() });
        let complaints = self.eligibility.candidacy.complaints;
        if complaints.any() {
            self.note(Notification::AwaitsApplication { complaints });
        }
        P::on_start(self, now);
    }

    /// Begins to ask, for the start timeout at most.
    pub(crate) fn ask_all(&mut self, asking: Asking) {
        self.enter(Phase::Asking(asking));
        self.begin_margin();
        self.arm(Timer::Start, self.settings.start_timeout);
        for id in self.ids(|m| m.linked) {
            self.query_leader(id);
        }
    }

    /// A new peer is there, while this process may be asking.
    pub(crate) fn ask_newcomer(&mut self, id: ProcessId, new: bool) {
        if self.leader.is_some() || matches!(self.phase, Phase::Leaving) {
            return;
        }
        self.query_leader(id);
        if new {
            self.begin_margin();
        }
        self.introduce(id);
    }

    /// Tells the others of a newcomer. At a first start a name server names the pods one after the other, and
    /// it may have named this process to two that do not know of each other: both would lead. Once it names
    /// all to this process it does so to them. In a large cluster there would be as many messages as pairs.
    fn introduce(&mut self, newcomer: ProcessId) {
        let discovered = &self.dial_targets.discovered;
        let all_are_named = self.dial_targets.name_this_process()
            && self.members.iter().all(|m| discovered.contains(&m.peer.address));
        if !P::LEADS_WITHOUT_VOTES || all_are_named || !self.is_small() {
            return;
        }
        let Some(entry) = self.members.get(newcomer).map(Member::entry) else { return };
        let others = self.ids(|m| m.linked && m.peer.id != newcomer);
        self.send_each(others, &Body::LeaderInfo { leader: None, entries: [entry].into() });
    }

    /// A peer that is gone does not reply.
    pub(crate) fn not_asked_any_more(&mut self, now: Now, id: ProcessId) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.no_longer_awaits(id);
            self.elect_if_ready(now);
        }
    }

    /// Starts an election as soon as all expected members are there and none knows a leader. Without a number
    /// to expect, the margin decides, or the protocol.
    pub(crate) fn elect_if_ready(&mut self, now: Now) {
        let Phase::Asking(asking) = &self.phase else {
            return;
        };
        let expected = self.expected() > 1 && self.complete();
        if (expected || P::needs_no_margin(self)) && asking.unanswered.is_empty() && asking.named.is_none() {
            P::start_election(self, now);
        }
    }

    /// Whether full processes refuse this one, and no other process is connected. There is a cluster then,
    /// and this process is no part of it. (A process that leads by votes alone need not care.)
    pub(in crate::election) fn is_turned_away(&self, now: Now) -> bool {
        let lately = self.turned_away.is_some_and(|since| now.at.since(since) < self.settings.start_timeout);
        P::LEADS_WITHOUT_VOTES && lately && self.ids(|m| m.linked).is_empty()
    }

    /// How many members it waits for, this process included; 0 where it has taken part before.
    pub(super) fn expected(&self) -> usize {
        let starting = matches!(&self.phase, Phase::Asking(asking) if asking.starting);
        if starting { self.settings.expect } else { 0 }
    }

    fn complete(&self) -> bool {
        self.ids(|m| m.linked).len() + 1 >= self.expected()
    }

    /// Whether no name server has said where peers may be, and no peer has come. The server may be down, or
    /// may not know a new pod yet. Until DNS has answered, a process does not assume that it is alone. (A
    /// process that leads by votes alone need not care.)
    pub(crate) fn awaits_discovery(&self) -> bool {
        P::LEADS_WITHOUT_VOTES
            && !self.dial_targets.discovery_complete
            && self.dial_targets.discovered.is_subset(&self.dial_targets.own)
            && self.ids(|m| m.linked).is_empty()
    }

    /// The set of peers has changed, or can be stable only from now on. While this process asks, the margin
    /// begins anew.
    pub(crate) fn begin_margin(&mut self) {
        if matches!(self.phase, Phase::Asking(_)) {
            self.arm(Timer::Margin, self.settings.stable_margin);
        }
    }

    /// The set of peers has been stable for the margin.
    pub(crate) fn on_margin_timer(&mut self, now: Now) {
        let lost = self.awaits_discovery();
        let Phase::Asking(asking) = &mut self.phase else {
            return;
        };
        if lost && asking.starting {
            // Peers may connect by themselves, until the start timeout.
            return self.begin_margin();
        }
        if asking.named.take().is_some() {
            // A live peer follows a process that has not replied to us. An election because of our own link
            // would unseat that leader for all others: ask again, until the start timeout.
            asking.unanswered.clear();
            for id in self.ids(|m| m.linked) {
                self.query_leader(id);
            }
            return self.begin_margin();
        }
        if asking.starting && self.knows_out_of_reach() {
            return self.begin_margin();
        }
        if self.complete() {
            P::start_election(self, now);
        }
    }

    /// Whether a live member is known that this process must not dial before discovery has answered. Then
    /// each of the two would lead.
    fn knows_out_of_reach(&self) -> bool {
        let unanswered = self.dial_targets.lists_from.is_some();
        P::LEADS_WITHOUT_VOTES
            && unanswered
            && self.members.iter().any(|m| m.state == State::Alive && !self.can_reach(m))
    }
}
