//! Where peers may be, and to which of these addresses this process wants links.

use super::{Core, Phase, Protocol};
use crate::election::{Action, Member, Moment, ProcessId, State};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeSet;

/// In a cluster of at most so many members, this process included, all keep links with all. An election then
/// opens none. A link takes a thread on either side, so larger clusters keep two stars: round the leader, and
/// round the best other member. Members that discovery does not name make no cluster large in which discovery
/// names few.
const STANDING_LINKS_MEMBERS_MAX: usize = 8;

/// The addresses that this process knows of.
#[derive(Clone, Hash, Debug)]
pub(crate) struct DialTargets {
    /// Where discovery says that peers may be.
    pub(crate) discovered: BTreeSet<SocketAddr>,
    /// Whether discovery has ever had an answer for every name.
    pub(crate) discovery_complete: bool,
    /// From when on lists name addresses to dial although discovery has not answered; none: it has.
    pub(crate) lists_from: Option<Moment>,
    /// Where peers were in its last incarnation: asked at a start, then forgotten.
    pub(crate) remembered: BTreeSet<SocketAddr>,
    /// This process's own.
    pub(crate) own: BTreeSet<SocketAddr>,
    /// Where discovery names a peer, and no process listened at the last look. Votes need no such list.
    silent: BTreeSet<SocketAddr>,
    /// What the driver was last told to seek.
    sought: BTreeSet<SocketAddr>,
    /// Whether only another leader, other members or another rank of this process can change that.
    settled: bool,
}

impl DialTargets {
    /// A process knows its own address only, until discovery answers.
    pub(super) fn of(own: SocketAddr) -> DialTargets {
        DialTargets {
            discovered: BTreeSet::new(),
            discovery_complete: false,
            lists_from: Some(Moment::default()),
            remembered: BTreeSet::new(),
            own: BTreeSet::from([own]),
            silent: BTreeSet::new(),
            sought: BTreeSet::new(),
            settled: false,
        }
    }

    /// Discovery names these addresses.
    pub(super) fn found(&mut self, addresses: BTreeSet<SocketAddr>, advertised: SocketAddr) {
        self.own.retain(|a| *a == advertised || addresses.contains(a));
        self.silent.retain(|a| addresses.contains(a));
        self.discovered = addresses;
        self.settled = false;
    }

    /// This process has another rank.
    pub(super) fn unsettle(&mut self) {
        self.settled = false;
    }

    /// This process listens at an address.
    pub(super) fn add_own(&mut self, address: SocketAddr) {
        self.own.insert(address);
        self.settled = false;
    }

    /// No process listens at an address.
    pub(super) fn refused(&mut self, address: SocketAddr) {
        if self.discovered.contains(&address) {
            self.silent.insert(address);
        }
    }

    /// Whether discovery names this process: then, but for a first start, every member.
    pub(super) fn name_this_process(&self) -> bool {
        self.own.iter().any(|own| self.discovered.contains(own))
    }

    /// The addresses of other processes that discovery names.
    pub(crate) fn others(&self) -> impl Iterator<Item = &SocketAddr> {
        self.discovered.difference(&self.own)
    }

    /// Whether discovery names an address of another process, and that process may run.
    pub(super) fn name_others(&self) -> bool {
        self.others().any(|a| !self.silent.contains(a))
    }
}

/// Whether a peer may listen at an address that only other peers name. A list must not send this process to
/// its own host's services, nor to its cloud's metadata.
fn may_be_a_peers(address: SocketAddr, own: IpAddr) -> bool {
    let ip = address.ip().to_canonical();
    let near = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(ip) => (ip.is_loopback(), ip.is_link_local()),
        IpAddr::V6(ip) => (ip.is_loopback(), ip.is_unicast_link_local()),
    };
    let ((loopback, link_local), (own_loopback, own_link_local)) = (near(ip), near(own));
    let one = !ip.is_unspecified() && !ip.is_multicast() && ip != IpAddr::V4(Ipv4Addr::BROADCAST);
    one && address.port() != 0 && (!loopback || own_loopback) && (!link_local || own_link_local)
}

impl<P: Protocol> Core<P> {
    /// Tells the driver to which addresses it wants links, when they have changed. A leader's and a
    /// follower's change with the leader, the members, their ranks, and what discovery says. To look in every
    /// turn would make a round of heartbeats cost the square of the members.
    pub(super) fn seek(&mut self) {
        let settled = matches!(self.phase, Phase::Leading(_) | Phase::Following)
            && self.dial_targets.lists_from.is_none();
        let was_settled = std::mem::replace(&mut self.dial_targets.settled, settled);
        if settled && was_settled && !self.outbox.peers_changed {
            debug_assert!(
                self.wanted().iter().eq(&self.dial_targets.sought),
                "something else has changed it"
            );
            return;
        }
        let seek = self.wanted();
        if !seek.iter().eq(&self.dial_targets.sought) {
            self.dial_targets.sought = seek.into_iter().collect();
            self.act(Action::Seek(self.dial_targets.sought.clone()));
        }
    }

    /// Whether it may open a connection to an address that a peer has named. Where discovery names this
    /// process too, it names every member, and no list has to be believed. Otherwise a seed alone may be
    /// named, and members have each other's addresses from lists: those that start together are published one
    /// after the other, and two of them would lead. Discovery answers soon after a start. Where it does not,
    /// restarted members would never meet. So lists count after the start timeout, and at once where members
    /// prove themselves.
    pub(crate) fn may_dial(&self, address: SocketAddr) -> bool {
        let discovered = &self.dial_targets.discovered;
        let remembered = &self.dial_targets.remembered;
        let early = self.dial_targets.lists_from.is_some_and(|from| self.last_turn.at < from);
        let unanswered = early && !self.settings.members_are_proved;
        discovered.contains(&address)
            || remembered.contains(&address)
            || !unanswered
                && !self.dial_targets.name_this_process()
                && may_be_a_peers(address, self.me.address.ip())
    }

    /// Whether a message to a member may arrive: there is a link, or the driver may open one.
    pub(crate) fn can_reach(&self, member: &Member) -> bool {
        member.linked || self.may_dial(member.peer.address)
    }

    /// Whether all members keep links with all.
    pub(super) fn is_small(&self) -> bool {
        self.members.iter().count() < STANDING_LINKS_MEMBERS_MAX
    }

    /// The links of a follower: with its leader, and in a small cluster with every live member. Where the
    /// best live member announces itself, also with that one, which keeps links with all.
    fn standing_links(&self) -> Vec<SocketAddr> {
        let discovered = &self.dial_targets.discovered;
        let few_named = discovered.len() <= STANDING_LINKS_MEMBERS_MAX;
        let alive = || self.members.iter().filter(|m| m.state == State::Alive);
        let better = alive().filter(|m| m.peer.rank().outranks(self.rank()) && !self.leads(m.peer.id));
        let best = better.max_by_key(|m| m.peer.rank()).filter(|_| P::BEST_ANNOUNCES);
        let is_best = P::BEST_ANNOUNCES && best.is_none() && self.rank().eligible();
        let all = self.is_small() || is_best;
        let standing = alive().map(|m| m.peer.address);
        let standing = standing.filter(|address| all || few_named && discovered.contains(address));
        let best = best.map(|m| m.peer.address);
        self.leader.iter().map(|l| l.peer.address).chain(best).chain(standing).collect()
    }

    /// Where it wants links: those that stand, plus what an election needs. In order, each once.
    fn wanted(&self) -> Vec<SocketAddr> {
        let address = |id: ProcessId| self.members.get(id).map(|m| m.peer.address);
        let mut wanted: Vec<SocketAddr> = match &self.phase {
            Phase::Leaving => Vec::new(),
            Phase::Following => self.standing_links(),
            Phase::Waiting(id) if !self.round_failed => address(*id).into_iter().collect(),
            Phase::Electing | Phase::Deferring if !self.round_failed => Vec::new(),
            // A leader seeks all (members that failed, leaders beyond a partition that healed). A process
            // that has found no leader the short way does so too.
            _ => self
                .members
                .iter()
                .map(|m| m.peer.address)
                .chain(self.dial_targets.discovered.iter().copied())
                .collect(),
        };
        if matches!(self.phase, Phase::Asking(_)) {
            wanted.extend(&self.dial_targets.remembered);
        }
        wanted.retain(|a| !self.dial_targets.own.contains(a) && self.may_dial(*a));
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}

#[cfg(test)]
mod tests {
    use crate::election::{
        CrashEvidence, Event, Incarnation, Machine, Moment, Now, Peer, Priority, ProcessId, Settings,
    };
    use core::net::{Ipv4Addr, SocketAddr};

    fn address(k: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 4000 + k).into()
    }

    fn peer(k: u16) -> Peer {
        Peer {
            id: ProcessId(uuid::Uuid::from_u128(k.into())),
            incarnation: Incarnation(1),
            name: format!("p{k}"),
            address: address(k),
            priority: Priority::DEFAULT,
            revision: String::new(),
        }
    }

    fn named(others: &[u16]) -> Event {
        let addresses = others.iter().chain([&1]).map(|k| address(*k)).collect();
        Event::Discovered { addresses, complete: true }
    }

    /// A pod that gets its sidecar before all others leads alone rightly. One that is turned away does not.
    #[test]
    fn a_process_is_cut_off_while_an_address_refuses_no_connection_and_none_is_connected() {
        let refused = |k| Event::Refused(address(k));
        let table = [
            (vec![named(&[])], false),
            (vec![named(&[2])], true),
            (vec![named(&[2]), refused(2)], false),
            (vec![named(&[2, 3]), refused(2)], true),
            (vec![named(&[2, 3]), refused(2), refused(3)], false),
            (vec![named(&[2, 3]), refused(2), named(&[3]), named(&[2])], true),
            (vec![refused(2), named(&[2])], true),
            (vec![named(&[2]), Event::LinkUp(peer(2))], false),
        ];
        for crash_evidence in [CrashEvidence::Off, CrashEvidence::Suspect] {
            for (row, (events, cut_off)) in table.iter().enumerate() {
                let settings = Settings { crash_evidence, ..Settings::default() };
                let mut machine = Machine::new(settings, "test".to_owned(), peer(1), None);
                for event in [Event::Start].iter().chain(events) {
                    machine.handle(Now::at(Moment::default()), event.clone());
                }
                assert_eq!(machine.status().cut_off, *cut_off, "row {row}, {crash_evidence:?}");
            }
        }
    }
}
