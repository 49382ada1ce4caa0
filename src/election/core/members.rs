//! The table of the other members of the cluster, bounded, and the version of the list it holds.

use crate::election::{Entry, Member, MembershipVersion, Moment, Peer, ProcessId, State};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// All members but this process.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Members {
    members: BTreeMap<ProcessId, Member>,
    /// The address and id of each member: a list of n members asks n times which process has an address.
    addresses: BTreeSet<(SocketAddr, ProcessId)>,
    /// How many there may be, this process included.
    most: usize,
    /// Which state of a leader's list this is.
    pub(crate) version: MembershipVersion,
    /// Whether the list may differ from that all the same. Since the leader sent the whole list, this process
    /// has changed it by itself, or kept what it knew from a connection.
    pub(crate) list_stale: bool,
}

/// What taking in a peer changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Upsert {
    /// Nothing.
    Known,
    /// It was not a member, or is another incarnation of one, or has changed its address or priority.
    Changed,
    /// The cluster is full.
    Full,
}

impl Members {
    pub(crate) fn of_at_most(most: usize) -> Members {
        let version = MembershipVersion::default();
        let (members, addresses) = (BTreeMap::new(), BTreeSet::new());
        Members { members, addresses, most, version, list_stale: false }
    }

    /// What a follower acknowledges. It names no version where the list may differ, so that the leader sends
    /// the whole list.
    pub(crate) fn version_held(&self) -> MembershipVersion {
        if self.list_stale { MembershipVersion::default() } else { self.version }
    }

    pub(crate) fn get(&self, id: ProcessId) -> Option<&Member> {
        self.members.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ProcessId) -> Option<&mut Member> {
        self.members.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.members.values_mut()
    }

    pub(crate) fn entries(&self) -> Arc<[Entry]> {
        self.iter().map(Member::entry).collect()
    }

    pub(crate) fn remove(&mut self, id: ProcessId) -> Option<Member> {
        let member = self.members.remove(&id)?;
        self.addresses.remove(&(member.peer.address, id));
        Some(member)
    }

    /// The member, other than `but`, that is known under this address.
    pub(crate) fn at(&self, address: SocketAddr, but: ProcessId) -> Option<ProcessId> {
        let here = self.addresses.range((address, ProcessId(Uuid::nil()))..);
        here.take_while(|(at, _)| *at == address).map(|(_, id)| *id).find(|id| *id != but)
    }

    /// The name of a member, unless another one of that name is connected, alive, heard within that time, and
    /// known for as long at least.
    pub(crate) fn name(&self, id: ProcessId, now: Moment, heard_within: Duration) -> Option<&str> {
        let member = self.get(id)?;
        let alive = |m: &Member| {
            let heard = m.last_heard.is_some_and(|at| now.since(at) <= heard_within);
            m.linked && m.state == State::Alive && heard
        };
        let taken = |m: &Member| {
            m.peer.id != id
                && m.peer.name == member.peer.name
                && m.alive_since <= member.alive_since
                && alive(m)
        };
        (!self.iter().any(taken)).then_some(member.peer.name.as_str())
    }

    /// Takes in what is known of a peer. A full table gives up a failed member for a live one, but none that
    /// is connected.
    pub(crate) fn upsert(&mut self, peer: Peer, state: State, now: Moment) -> Upsert {
        if let Some(member) = self.members.get_mut(&peer.id) {
            let changed = member.peer != peer;
            if changed && member.peer.incarnation != peer.incarnation {
                member.linked = false;
                member.last_heard = None;
                member.round_trip = None;
                member.alive_since = now;
            }
            if state == State::Alive && member.state == State::Failed {
                member.alive_since = now;
            }
            if member.peer.address != peer.address {
                self.addresses.remove(&(member.peer.address, peer.id));
                self.addresses.insert((peer.address, peer.id));
            }
            member.peer = peer;
            member.state = state;
            return if changed { Upsert::Changed } else { Upsert::Known };
        }
        if self.members.len() + 1 >= self.most {
            let failed = self.iter().find(|m| m.state == State::Failed && !m.linked).map(|m| m.peer.id);
            match failed {
                Some(id) if state == State::Alive => self.remove(id),
                _ => return Upsert::Full,
            };
        }
        let id = peer.id;
        let member = Member {
            peer,
            state,
            linked: false,
            last_heard: None,
            round_trip: None,
            alive_since: now,
            ranked_since: Moment::default(),
            rank_untold: false,
            unlisted_since: None,
        };
        self.addresses.insert((member.peer.address, id));
        self.members.insert(id, member);
        Upsert::Changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Incarnation, MEMBERS_MAX, Priority};

    fn peer(number: u128) -> Peer {
        Peer {
            id: ProcessId(Uuid::from_u128(number)),
            incarnation: Incarnation(1),
            name: format!("p{number}"),
            address: ([198, 18, 0, number as u8], 4041).into(),
            priority: Priority::DEFAULT,
            revision: String::new(),
        }
    }

    /// The preemption delay counts from there.
    #[test]
    fn a_member_is_alive_since_it_came_back_and_not_since_it_was_heard_last() {
        let at = |s| Moment(Duration::from_secs(s));
        let mut members = Members::of_at_most(MEMBERS_MAX);
        let since = |members: &Members| members.get(peer(2).id).map(|member| member.alive_since);
        // What is told of it, when, and since when it is alive then.
        let table = [
            (State::Alive, 1, at(1)),
            (State::Alive, 2, at(1)),
            (State::Failed, 3, at(1)),
            (State::Failed, 4, at(1)),
            (State::Alive, 5, at(5)),
            (State::Alive, 6, at(5)),
        ];
        for (state, now, alive_since) in table {
            members.upsert(peer(2), state, at(now));
            assert_eq!(since(&members), Some(alive_since), "{state:?} at {now} s");
        }
    }
}
