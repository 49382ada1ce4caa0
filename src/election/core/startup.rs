//! Asking first: a process that starts, or that was paused, learns the incumbent and the epoch from its peers
//! before it starts an election.

use super::{Announcement, Core, Heard, Phase, Protocol};
use crate::election::{
    Body, Entry, Incumbent, ListWanted, Member, Notification, Now, ProcessId, Reason, State, Timer,
};
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

impl<P: Protocol> Core<P> {
    pub(crate) fn on_start(&mut self, now: Now) {
        self.started = true;
        self.dial_targets.lists_from = Some(now.at.plus(self.settings.start_timeout));
        self.note(Notification::Asking { paused: None, expect: self.settings.expect });
        self.ask_all(Asking { starting: true, ..Asking::default() });
        let complaints = self.standing.candidacy.complaints;
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

    /// Asks one peer for the leader.
    pub(crate) fn query_leader(&mut self, id: ProcessId) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.insert(id);
        }
        let list = if self.dial_targets.name_this_process() { ListWanted::Best } else { ListWanted::Whole };
        self.send(id, Body::LeaderQuery { list });
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
        if !P::LEADS_ALONE || all_are_named || !self.is_small() {
            return;
        }
        let Some(entry) = self.members.get(newcomer).map(Member::entry) else { return };
        let others = self.ids(|m| m.linked && m.peer.id != newcomer);
        self.send_each(others, &Body::LeaderInfo { leader: None, entries: [entry].into() });
    }

    /// A peer's question. A leader that hears from a leaderless process of a higher epoch announces itself
    /// anew above that epoch. Otherwise its messages would stay stale for that process.
    pub(crate) fn on_leader_query(&mut self, by: Heard, list: ListWanted) {
        let Heard { now, from, epoch } = by;
        if self.phase.leading() && epoch > self.epoch {
            P::on_higher_epoch(self, now, None);
        }
        if self.leads(from) && epoch >= self.epoch {
            // A leader does not ask, so the sender was paused, and has stopped leading. A question that
            // the sender sent before its election proves nothing. It was slower than the Coordinator, which
            // came over another connection.
            self.lose_leader(Reason::Pause);
            P::start_election(self, now);
        }
        self.reply_with_leader(from, list);
        if self.phase.leading() {
            // The peer may have missed this leader's configuration, and follows this leader now.
            P::send_config(self, from);
        }
    }

    /// Tells a peer unasked of the leader, as far as this process knows it.
    pub(crate) fn send_leader_info(&mut self, to: ProcessId) {
        self.reply_with_leader(to, ListWanted::Best);
    }

    /// In a large cluster each process that starts would hear the whole list from each other one. Where it
    /// needs no list, it hears of the best other member that may lead.
    pub(crate) fn reply_with_leader(&mut self, to: ProcessId, list: ListWanted) {
        let leader = self.incumbent();
        let entries = match list {
            ListWanted::Best if !self.is_small() => {
                let others = self.members.iter().filter(|m| m.can_lead() && m.peer.id != to);
                others.max_by_key(|m| m.peer.rank()).map(Member::entry).into_iter().collect()
            }
            _ => self.members.entries(),
        };
        self.send(to, Body::LeaderInfo { leader, entries });
    }

    /// A peer names the leader, of its own accord or asked.
    pub(crate) fn on_leader_info(&mut self, by: Heard, leader: Option<Incumbent>, entries: &[Entry]) {
        let Heard { now, from, epoch } = by;
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.remove(&from);
            asking.named.take_if(|named| *named == from);
        }
        if let Some(leader) = leader.as_ref().filter(|l| l.peer.id == from) {
            let announcement = Announcement::Election { elected_at_ms: leader.elected_at_ms };
            return P::on_coordinator(self, by, announcement);
        }
        match self.phase {
            Phase::Following | Phase::Leaving => return,
            Phase::Leading(own) if epoch > own => return P::on_higher_epoch(self, now, leader),
            Phase::Leading(own) => {
                // Two leaders of one epoch decide by their ranks, once they are connected.
                if let Some(other) = leader.filter(|l| epoch == own && self.may_dial(l.peer.address)) {
                    self.learn(now, Entry { peer: other.peer, state: State::Alive });
                }
                return;
            }
            _ => {}
        }
        for entry in entries {
            self.learn(now, entry.clone());
        }
        if leader.is_none() && epoch >= self.epoch && self.waits_in_vain(from) {
            self.transfer_failed(now);
            return P::start_election(self, now);
        }
        if let Some(peer) = leader.map(|l| l.peer).filter(|p| p.id != self.me.id) {
            let (id, rank) = (peer.id, peer.rank());
            P::on_leader_named(self);
            self.learn(now, Entry { peer, state: State::Alive });
            let mut asked = false;
            if let Phase::Asking(asking) = &mut self.phase {
                asking.named = Some(id);
                asked = asking.unanswered.contains(&id);
                if P::bullies(self, rank) {
                    return P::start_election(self, now);
                }
            }
            if !asked {
                self.query_leader(id);
            }
        }
        self.elect_if_ready(now);
    }

    /// Whether this process waits for one that is no candidate, as far as is known. Each message says what
    /// its sender counts for.
    pub(crate) fn waits_in_vain(&self, id: ProcessId) -> bool {
        self.phase == Phase::Waiting(id) && self.members.get(id).is_some_and(|m| !m.peer.rank().eligible())
    }

    /// A peer that is gone does not reply.
    pub(crate) fn not_asked_any_more(&mut self, now: Now, id: ProcessId) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.remove(&id);
            asking.named.take_if(|named| *named == id);
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
    /// and this process is no part of it. (A process that never leads alone need not care.)
    pub(in crate::election) fn is_turned_away(&self, now: Now) -> bool {
        let lately = self.turned_away.is_some_and(|since| now.at.since(since) < self.settings.start_timeout);
        P::LEADS_ALONE && lately && self.ids(|m| m.linked).is_empty()
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
    /// process that never leads alone need not care.)
    pub(crate) fn awaits_discovery(&self) -> bool {
        P::LEADS_ALONE
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
        P::LEADS_ALONE
            && unanswered
            && self.members.iter().any(|m| m.state == State::Alive && !self.can_reach(m))
    }
}
