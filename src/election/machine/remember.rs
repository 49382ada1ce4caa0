//! Where peers were: kept aside, for the next start.

use super::Machine;
use crate::election::KnownPeers;

impl Machine {
    /// Makes the machine seek these peers while it asks for the leader at its start, besides those that discovery names. To be
    /// called before [`Event::Start`](crate::election::Event::Start).
    pub fn ask_first(&mut self, known: &KnownPeers) {
        assert!(!self.started, "known peers are for the start");
        let leader = known.leader.iter().map(|leader| leader.address);
        let members = known.members.iter().map(|member| member.peer.address);
        self.remembered.extend(leader.chain(members));
    }

    /// The leader and the members as they are now.
    pub fn known_peers(&self) -> KnownPeers {
        KnownPeers {
            cluster: self.cluster.clone(),
            leader: self.leader.as_ref().map(|leader| leader.peer.clone()),
            members: self.members.entries(),
        }
    }
}
