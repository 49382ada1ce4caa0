//! What a process keeps over a restart: its record, and where its peers were.

use super::{Core, Protocol};
use crate::election::{KnownPeers, Member, Record};

impl<P: Protocol> Core<P> {
    /// What is to be durable now.
    pub(crate) fn record(&self) -> Record {
        Record {
            cluster: self.cluster.clone(),
            id: self.me.id,
            epoch: self.epoch,
            vote: P::vote_record(self),
        }
    }

    /// Makes the machine seek these peers while it asks for the leader at its start, besides those that
    /// discovery names. To be called before [`Event::Start`](crate::election::Event::Start).
    pub(crate) fn ask_first(&mut self, known: &KnownPeers) {
        assert!(!self.started, "known peers are for the start");
        let leader = known.leader.iter().map(|leader| leader.address);
        let members = known.members.iter().map(|member| member.peer.address);
        self.dial_targets.remembered.extend(leader.chain(members));
    }

    /// The leader and the members as they are now.
    pub(crate) fn known_peers(&self) -> KnownPeers {
        KnownPeers {
            cluster: self.cluster.clone(),
            leader: self.leader.as_ref().map(|leader| leader.peer.clone()),
            // A name on a list is not worth a dial at the next start either.
            members: self.members.iter().filter(|m| self.can_reach(m)).map(Member::entry).collect(),
        }
    }
}
