//! The members: links, discovery, and the broadcast list (tests/bully-readme.txt, note 7).

use super::members::Upsert;
use super::{Core, Heard, Phase, Protocol};
use crate::election::{
    Action, Body, Entry, Incarnation, Member, MembershipVersion, Notification, Now, Peer, ProcessId, Reason,
    State,
};
use core::net::SocketAddr;
use std::collections::BTreeSet;
use std::sync::Arc;

impl<P: Protocol> Core<P> {
    /// A peer is connected. It is a member from now on, of this list at least; a leader broadcasts it.
    pub(crate) fn on_link_up(&mut self, now: Now, peer: Peer) {
        let id = peer.id;
        if id == self.me.id {
            return;
        }
        // A Hello says what its sender was started with. Its messages have said its priority since.
        let known = self.members.get(id).filter(|m| m.peer.incarnation == peer.incarnation);
        let peer = Peer { priority: known.map_or(peer.priority, |m| m.peer.priority), ..peer };
        // An address that a new process took over belongs to the new process.
        let former_tenant = self.members.at(peer.address, id);
        // Another incarnation has taken the place of the known one, which is gone. (This frees no promise:
        // nothing shows which of the two is the former one.)
        let former_incarnation = self.members.get(id).is_some_and(|m| m.peer.incarnation != peer.incarnation);
        let namesake = self.members.iter().map(|m| (m.state, &m.peer)).find(|(state, known)| {
            *state == State::Alive
                && known.name == peer.name
                && known.id != id
                && Some(known.id) != former_tenant
        });
        let own_name = (self.me.name == peer.name).then(|| self.me.clone());
        if let Some(known) = own_name.or(namesake.map(|(_, known)| known.clone())) {
            self.note(Notification::SameName { known, other: peer.clone() });
        }
        let was_alive = self.members.get(id).is_some_and(|m| m.state == State::Alive);
        let mut upsert = self.members.upsert(peer.clone(), State::Alive, now.at);
        if upsert == Upsert::Full && self.make_room_for(peer.address) {
            upsert = self.members.upsert(peer.clone(), State::Alive, now.at);
        }
        if upsert == Upsert::Full {
            self.act(Action::Refuse(id));
            return self.note(Notification::TooManyMembers(peer));
        }
        let new = upsert == Upsert::Changed || !was_alive;
        if let Some(member) = self.members.get_mut(id) {
            member.linked = true;
            member.last_heard = Some(now.at);
        }
        if new {
            self.outbox.peers_changed = true;
            self.note(Notification::MemberUp(peer));
            self.broadcast_entry(id);
        }
        if self.phase.leading() {
            // The newcomer takes a configuration from the leader that it follows, so it has to follow first.
            self.send_coordinator(id);
            P::on_link_up(self, id);
            // It needs the list as soon as it follows: this leader may die before its next heartbeat.
            self.send_list(id);
            self.watch_for_better(now);
        } else {
            self.ask_newcomer(id, new);
            P::on_link_up(self, id);
        }
        let leader_gone =
            former_incarnation && self.leads(id) || former_tenant.is_some_and(|tenant| self.leads(tenant));
        let waited_for_gone = former_tenant.is_some_and(|tenant| self.phase == Phase::Waiting(tenant));
        if let Some(tenant) = former_tenant {
            self.evict(tenant);
        }
        if leader_gone {
            self.lose_leader(Reason::Crash);
        }
        if leader_gone || waited_for_gone {
            P::start_election(self, now);
        }
        self.elect_if_ready(now);
    }

    /// Gives up a member that discovery does not name for a process that it names; says whether there was
    /// one.
    fn make_room_for(&mut self, address: SocketAddr) -> bool {
        let named = &self.dial_targets.discovered;
        let unnamed = |m: &&Member| !named.contains(&m.peer.address) && !self.leads(m.peer.id);
        let Some(id) = self.members.iter().find(unnamed).map(|m| m.peer.id) else { return false };
        let room = named.contains(&address);
        if room {
            self.act(Action::Refuse(id));
            self.forget(id);
        }
        room
    }

    /// A member's address belongs to another process now. A member that is still connected may be alive all
    /// the same, where two processes advertise one address by mistake. It counts as failed until this process
    /// hears of it again.
    fn evict(&mut self, id: ProcessId) {
        self.members.list_stale = true;
        if self.members.get(id).is_some_and(|m| m.linked) {
            self.fail(id, Reason::Crash);
        } else {
            self.forget(id);
        }
    }

    /// The last connection with a member closed. That alone proves nothing: heartbeats decide.
    pub(crate) fn link_down(&mut self, id: ProcessId, incarnation: Incarnation) {
        if let Some(member) = self.members.get_mut(id).filter(|m| m.peer.incarnation == incarnation) {
            member.linked = false;
            let Member { state, peer: Peer { address, .. }, .. } = *member;
            // A member is gone for good once another process has its address.
            let inhabited = self.members.iter().any(|m| m.state == State::Alive && m.peer.address == address);
            if state == State::Failed && inhabited {
                self.forget(id);
            }
            // While the connection was there, the leader's word on that member did not always count.
            self.members.list_stale = true;
        }
    }

    /// Takes in a member that another process knows. Knowledge from a connection of its own is better.
    pub(crate) fn learn(&mut self, now: Now, entry: Entry) {
        let Entry { peer, state } = entry;
        let known = self.members.get(peer.id).is_some_and(|m| m.linked || m.state == State::Failed);
        let taken_address = self.members.at(peer.address, peer.id).is_some();
        if peer.id != self.me.id && !known && !taken_address && !peer.address.ip().is_unspecified() {
            self.upsert_entry(now, Entry { peer, state });
        }
    }

    fn upsert_entry(&mut self, now: Now, entry: Entry) {
        let Entry { peer, state } = entry;
        let was_alive = self.members.get(peer.id).is_some_and(|m| m.state == State::Alive);
        let upsert = self.members.upsert(peer.clone(), state, now.at);
        if upsert == Upsert::Full {
            return;
        }
        self.outbox.peers_changed |= upsert == Upsert::Changed || was_alive != (state == State::Alive);
        match state {
            State::Alive if !was_alive => self.note(Notification::MemberUp(peer)),
            State::Failed if was_alive => self.note(Notification::MemberFailed { peer, reason: None }),
            _ => {}
        }
    }

    /// The whole list from the leader. Members that it does not name are dropped, but for the leader itself
    /// and for those that this process is connected with.
    pub(crate) fn on_membership(&mut self, by: Heard, version: MembershipVersion, entries: &[Entry]) {
        let Heard { now, from, epoch } = by;
        if !self.follows(from, epoch) {
            return;
        }
        let named: BTreeSet<ProcessId> = entries.iter().map(|e| e.peer.id).collect();
        for id in self.ids(|m| !m.linked && m.peer.id != from && !named.contains(&m.peer.id)) {
            self.forget(id);
        }
        let mut agreed = true;
        for entry in entries {
            agreed &= self.learn_from_leader(now, entry.clone());
        }
        if agreed {
            self.members.version = version;
        }
        self.members.list_stale = !agreed;
    }

    /// The leader's word on a member; false where this process holds otherwise and the leader has to say it
    /// again.
    fn learn_from_leader(&mut self, now: Now, entry: Entry) -> bool {
        let Entry { peer, state } = &entry;
        if peer.id == self.me.id || self.leads(peer.id) {
            return true;
        }
        if self.members.get(peer.id).is_some_and(|m| m.linked) {
            return self.learn_of_connected(now, &entry);
        }
        if let Some(tenant) = self.members.at(peer.address, peer.id).and_then(|id| self.members.get(id)) {
            match (tenant.linked, tenant.state, state) {
                // The leader has not heard yet which process listens there now.
                (true, State::Alive, State::Alive) => return false,
                // A member is gone for good once another process has its address.
                (true, _, State::Failed) | (_, State::Alive, State::Failed) => {
                    self.forget(peer.id);
                    return true;
                }
                // A connected process stays a member, though it counts as failed. The core drops messages of
                // others, and no second connection would make it a member again.
                (true, State::Failed, State::Alive) => {}
                (false, ..) => self.forget(tenant.peer.id),
            }
        }
        self.upsert_entry(now, entry);
        true
    }

    /// The leader's word on a member that this process is connected with. A process that has just heard from
    /// the member knows better that the member is alive. A silent connection proves nothing: the host at its
    /// other end may be gone.
    fn learn_of_connected(&mut self, now: Now, entry: &Entry) -> bool {
        let id = entry.peer.id;
        // This process knows best which incarnation it is connected with. A leader without a connection may
        // have heard of a former incarnation. Messages of the connected one would then count as that former
        // one's. This process asks again when the connection is gone.
        let Some(known) = self.members.get(id).filter(|m| m.peer.incarnation == entry.peer.incarnation)
        else {
            return true;
        };
        let heard = known.last_heard.is_some_and(|at| now.at.since(at) <= self.settings.failure_timeout);
        let states = (known.state, entry.state);
        // Nor does a silent connection say which priority the member has. The leader hears the member often.
        self.rank_member(now, id, entry.peer.priority);
        match states {
            (State::Alive, State::Failed) => {
                if !heard {
                    self.fail(id, None);
                }
                !heard
            }
            (State::Failed, State::Alive) => {
                self.revive(now, id);
                true
            }
            _ => true,
        }
    }

    /// The leader has a new or changed member. A list that is out of step stays as it is, and the next
    /// acknowledgement makes the leader send the whole list.
    pub(crate) fn on_join(&mut self, by: Heard, version: MembershipVersion, entry: Entry) {
        let Heard { now, from, epoch } = by;
        if self.follows(from, epoch) && self.next_version(version) && self.learn_from_leader(now, entry) {
            self.members.version = version;
        }
    }

    /// A member is gone: it says so itself, or the leader does.
    pub(crate) fn on_leave(&mut self, by: Heard, version: Option<MembershipVersion>, id: ProcessId) {
        let Heard { now, from, epoch } = by;
        match version {
            None if id == from => {
                let led = self.leads(id);
                let waited_for = self.phase == Phase::Waiting(id);
                if led {
                    self.lose_leader(Reason::Resign);
                }
                self.forget_leaver(id);
                self.not_asked_any_more(now, id);
                if led || waited_for {
                    P::start_election(self, now);
                }
            }
            Some(version) if self.follows(from, epoch) && self.next_version(version) => {
                if id != from && !self.members.get(id).is_some_and(|m| m.linked) {
                    self.forget(id);
                }
                self.members.version = version;
            }
            _ => {}
        }
    }

    fn next_version(&self, version: MembershipVersion) -> bool {
        let held = self.members.version;
        version.epoch == held.epoch && Some(version.version) == held.version.checked_add(1)
    }

    /// Forgets a member; a leader tells all others.
    pub(crate) fn forget(&mut self, id: ProcessId) {
        let Some(member) = self.members.remove(id) else {
            return;
        };
        self.outbox.peers_changed = true;
        self.heartbeats.lists.remove(&id);
        P::on_member_lost(self, &member.peer, true);
        self.note(Notification::MemberGone(member.peer));
        if self.phase.leading() {
            self.bump_version();
            let leave = Body::Leave { version: Some(self.members.version), id };
            self.announce_change(id, &leave);
        }
    }

    /// A leader's whole list, for one member. Acknowledgements of heartbeats that are already on their way do
    /// not ask for another.
    pub(crate) fn send_list(&mut self, to: ProcessId) {
        self.send_entries(to, self.members.entries());
    }

    /// A leader's whole list, for all that are alive and connected. They share one copy.
    pub(crate) fn send_lists(&mut self) {
        let entries = self.members.entries();
        for id in self.ids(|m| m.linked && m.state == State::Alive) {
            self.send_entries(id, Arc::clone(&entries));
        }
    }

    fn send_entries(&mut self, to: ProcessId, entries: Arc<[Entry]>) {
        if self.heartbeats.lists.len() > self.settings.members_max {
            // A full table has given members up for others.
            self.heartbeats.lists.retain(|id, _| self.members.get(*id).is_some());
        }
        self.heartbeats.lists.insert(to, self.heartbeats.sequence);
        self.send(to, Body::Membership { version: self.members.version, entries });
    }

    /// A leader tells the others of a member that is new or changed.
    pub(crate) fn broadcast_entry(&mut self, id: ProcessId) {
        if !self.phase.leading() {
            return;
        }
        let Some(entry) = self.members.get(id).map(Member::entry) else {
            return;
        };
        self.bump_version();
        let join = Body::Join { version: self.members.version, entry };
        self.announce_change(id, &join);
    }

    fn bump_version(&mut self) {
        // Versions are only compared for being the same or the next one. After four billion changes in one
        // term a follower's next acknowledgement gets the whole list.
        self.members.version.version = self.members.version.version.wrapping_add(1);
    }

    /// Discovery works and names these addresses, or says that none is published, or there is nothing that
    /// it could name. A leader forgets failed members that discovery has not named for long. An answer that
    /// names no address removes no member.
    pub(crate) fn on_discovered(&mut self, now: Now, addresses: BTreeSet<SocketAddr>, complete: bool) {
        let lost = self.awaits_discovery();
        self.dial_targets.discovery_complete |= complete;
        self.dial_targets.lists_from = None;
        if !addresses.is_empty() {
            self.unlist(now, &addresses);
            self.dial_targets.found(addresses, self.me.address);
        }
        if lost && !self.awaits_discovery() {
            self.begin_margin();
        }
    }

    /// Notes which members discovery does not list any more.
    fn unlist(&mut self, now: Now, addresses: &BTreeSet<SocketAddr>) {
        let alive = self.members.iter().filter(|m| m.state == State::Alive);
        let inhabited: BTreeSet<SocketAddr> = alive.map(|m| m.peer.address).collect();
        for member in self.members.iter_mut() {
            let address = member.peer.address;
            // An address that a live member has taken over does not speak for the dead one that had it
            // before.
            let own = member.state == State::Alive || !inhabited.contains(&address);
            if own && addresses.contains(&address) {
                member.unlisted_since = None;
            } else {
                member.unlisted_since.get_or_insert(now.at);
            }
        }
        if self.phase.leading() {
            let forget_after = self.settings.forget_after;
            let long_gone = self.ids(|m| {
                m.state == State::Failed
                    && !m.linked
                    && m.unlisted_since.is_some_and(|since| now.at.since(since) >= forget_after)
            });
            for id in long_gone {
                self.forget(id);
            }
        }
    }
}
