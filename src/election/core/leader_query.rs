//! Questions about the leader, and their answers.

use super::{Announcement, Core, Heard, Phase, Protocol};
use crate::election::{Body, Entry, Incumbent, ListWanted, Member, ProcessId, Reason, State};

impl<P: Protocol> Core<P> {
    /// Asks one peer for the leader.
    pub(crate) fn query_leader(&mut self, id: ProcessId) {
        if let Phase::Asking(asking) = &mut self.phase {
            asking.unanswered.insert(id);
        }
        let list = if self.dial_targets.name_this_process() { ListWanted::Best } else { ListWanted::Whole };
        self.send(id, Body::LeaderQuery { list });
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
            asking.no_longer_awaits(from);
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
}
