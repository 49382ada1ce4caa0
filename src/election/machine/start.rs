//! Asking first: a process that starts, or that was paused, learns the incumbent and the epoch from its peers before
//! it contests anything.

use super::{Machine, Phase};
use crate::election::{
    Body, Entry, Epoch, Incumbent, Moment, Notification, Now, ProcessId, Reason, State, Timer,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// How far the asking has come.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Asking {
    /// How many members to wait for, this process included; 0 after a pause.
    expect: usize,
    /// The peers that have been asked and have not replied.
    unanswered: BTreeSet<ProcessId>,
    /// The leader that a peer follows: asked in its turn, and not contested before that has come to nothing.
    named: Option<ProcessId>,
    /// Whether the start timeout has passed.
    overdue: bool,
    /// Whether it asks because it was paused.
    pub(super) after_pause: bool,
    /// Whether it has never taken part, a pause at its start included.
    starting: bool,
}

impl Machine {
    pub(super) fn start(&mut self, now: Now) {
        self.started = true;
        self.note(Notification::Asking { paused: None, expect: self.settings.expect });
        self.ask_all(Asking { expect: self.settings.expect, starting: true, ..Asking::default() });
        self.start_majority(now);
    }

    /// Begins a turn: looks whether this process was paused before it. How long a suspend has lasted is not known.
    pub(super) fn notice_pause(&mut self, now: Now) {
        let gap = now.at.since(std::mem::replace(&mut self.last_turn, now.at));
        self.last_slow = now.slow;
        let suspended = std::mem::replace(&mut self.suspends, now.suspends) != now.suspends;
        if self.started && (suspended || gap > self.settings.failure_timeout) {
            self.woke(gap);
        }
    }

    /// This process has not turned for longer than the failure timeout, or its host was suspended: others may have elected a
    /// leader since, and a leader of its own may be dead or not. It believes nothing and asks, as at a start (spec, "Safety
    /// levels").
    fn woke(&mut self, gap: Duration) {
        if matches!(self.phase, Phase::Leaving) {
            return;
        }
        let starting = matches!(&self.phase, Phase::Asking(asking) if asking.starting);
        let before = Moment(self.last_turn.0.saturating_sub(gap));
        self.lose_leader_since(Reason::Pause, before);
        self.note(Notification::Asking { paused: Some(gap), expect: 0 });
        self.ask_all(Asking { after_pause: true, starting, ..Asking::default() });
    }

    /// Begins to ask, for `expect` members at most as long as the start timeout.
    fn ask_all(&mut self, asking: Asking) {
        self.enter(Phase::Asking(asking));
        self.begin_margin();
        self.arm(Timer::Start, self.settings.start_timeout);
        for id in self.ids(|m| m.linked) {
            self.ask(id);
        }
    }

    /// Asks one peer for the leader.
    pub(super) fn ask(&mut self, id: ProcessId) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.insert(id);
        }
        self.send(id, Body::Ask);
    }

    /// A peer is there that was not there before, while this process may be asking.
    pub(super) fn ask_newcomer(&mut self, id: ProcessId, new: bool) {
        if self.leader.is_some() || matches!(self.phase, Phase::Leaving) {
            return;
        }
        self.ask(id);
        if new {
            self.begin_margin();
        }
    }

    /// A peer's question. A leader that hears from a leaderless process of a higher epoch announces itself anew above
    /// that epoch: otherwise its messages would be stale for that process for ever.
    pub(super) fn asked(&mut self, now: Now, from: ProcessId, epoch: Epoch) {
        if self.phase.leading() && epoch > self.epoch {
            self.new_term(now);
        }
        if self.leads(from) && epoch >= self.epoch {
            // A leader does not ask: it was paused, and has stopped leading. A question from before its election says
            // nothing of that: it was slower than the Coordinator, over another connection.
            self.lose_leader(Reason::Pause);
            self.contest(now);
        }
        if self.phase.leading() {
            // It may have missed that: it follows no process that is no voter of its own configuration.
            self.tell_config_to(from);
        }
        self.tell(from);
    }

    /// Tells a peer the leader, as far as this process knows it.
    pub(super) fn tell(&mut self, to: ProcessId) {
        let leader = self.incumbent();
        let entries = self.members.entries();
        self.send(to, Body::Tell { leader, entries });
    }

    /// A peer names the leader, of its own accord or asked.
    pub(super) fn told(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        leader: Option<Incumbent>,
        entries: Vec<Entry>,
    ) {
        if let Some(leader) = leader.as_ref().filter(|l| l.peer.id == from) {
            return self.claim(now, from, epoch, Some(leader.elected_at_ms));
        }
        match self.phase {
            Phase::Following | Phase::Leaving => return,
            Phase::Leading(own) => {
                if epoch > own {
                    self.told_of_newer(now, leader);
                }
                return;
            }
            _ => {}
        }
        for entry in entries {
            self.learn(now, entry);
        }
        let named = leader.map(|l| l.peer).filter(|p| p.id != self.me.id);
        if named.is_some() && self.phase == Phase::Electing && !self.majority.votes() {
            // There is a leader: as good as an Answer. It announces itself anew as soon as it is asked.
            self.defer();
        }
        if let Some(peer) = &named {
            self.learn(now, Entry { peer: peer.clone(), state: State::Alive });
        }
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.remove(&from);
            if let Some(peer) = &named {
                asking.named = Some(peer.id);
            }
        }
        if let Some(peer) = named {
            if self.bullies(peer.rank()) && matches!(self.phase, Phase::Asking(_)) {
                return self.contest(now);
            }
            let asked = matches!(&self.phase, Phase::Asking(asking) if asking.unanswered.contains(&peer.id));
            if !asked {
                self.ask(peer.id);
            }
        }
        self.elect_if_ready(now);
    }

    /// A leader hears of a newer epoch. Without a leader there it announces itself above it; otherwise two leaders
    /// have met, and the one that outranks the other goes on, in a new epoch.
    fn told_of_newer(&mut self, now: Now, leader: Option<Incumbent>) {
        match leader.map(|l| l.peer).filter(|p| p.id != self.me.id && !self.majority.votes()) {
            Some(peer) if !self.rank().outranks(peer.rank()) => {
                self.learn(now, Entry { peer: peer.clone(), state: State::Alive });
                self.lose_leader(Reason::Superseded);
                self.ask_all(Asking::default());
                self.ask(peer.id);
            }
            _ => self.new_term(now),
        }
    }

    /// A higher epoch is about: this leader goes on in one above it.
    fn new_term(&mut self, now: Now) {
        if self.majority.votes() {
            self.campaign_for_higher_epoch(now);
        } else {
            self.announce(now, self.seen.next());
        }
    }

    /// A peer that is gone does not reply.
    pub(super) fn not_asked_any_more(&mut self, now: Now, id: ProcessId) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.remove(&id);
            if asking.named == Some(id) {
                asking.named = None;
            }
            self.elect_if_ready(now);
        }
    }

    /// Contests as soon as all expected members are there and none knows a leader. Without a number to expect, the
    /// margin decides.
    pub(super) fn elect_if_ready(&mut self, now: Now) {
        let Phase::Asking(asking) = &self.phase else {
            return;
        };
        if asking.expect > 1
            && self.complete(asking)
            && asking.unanswered.is_empty()
            && asking.named.is_none()
        {
            self.contest(now);
        }
    }

    fn complete(&self, asking: &Asking) -> bool {
        asking.overdue || self.ids(|m| m.linked).len() + 1 >= asking.expect
    }

    /// Whether no name server has said where peers may be, and no peer has come: the server is down, or does not know of a
    /// pod that has just been made. That is no reason to think that there are no others. (In `majority` no process leads alone.)
    pub(super) fn awaits_discovery(&self) -> bool {
        !self.majority.votes()
            && !self.discovered
            && self.candidates.is_subset(&self.own_addresses)
            && self.ids(|m| m.linked).is_empty()
    }

    /// The set of peers has changed, or only now can be stable: while this process asks, the margin begins anew.
    pub(super) fn begin_margin(&mut self) {
        if matches!(self.phase, Phase::Asking(_)) {
            self.arm(Timer::Margin, self.settings.stable_margin);
        }
    }

    /// The set of peers has been stable for the margin.
    pub(super) fn margin_over(&mut self, now: Now) {
        let lost = self.awaits_discovery();
        let Phase::Asking(asking) = &mut self.phase else {
            return;
        };
        if lost && asking.starting {
            // They may come by themselves, until the start timeout.
            return self.begin_margin();
        }
        if asking.named.is_some() && !asking.overdue {
            // A live peer follows a process that has not replied to us. Contesting that leader because of our own link
            // would unseat it for all others: ask again, until the start timeout.
            asking.named = None;
            asking.unanswered.clear();
            for id in self.ids(|m| m.linked) {
                self.ask(id);
            }
            return self.begin_margin();
        }
        let asking = asking.clone();
        if self.complete(&asking) {
            self.contest(now);
        }
    }

    /// It has waited for others long enough.
    pub(super) fn start_over(&mut self, now: Now) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.overdue = true;
            self.contest(now);
        }
    }
}
