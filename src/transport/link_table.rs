//! Which links there are, which are wanted, and what waits for one.

use super::announced_values::Announcements;
use super::credential_rotation::{Former, Renewal};
use super::link::Link;
use crate::base::{Budget, Holder, Share};
use crate::election::{Incarnation, MEMBERS_MAX, Moment, Peer, ProcessId};
use crate::wire::FRAME_BYTES_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How many messages wait for a dial to one peer; the oldest goes first.
const PENDING_MAX: usize = 16;
/// How many bytes they have together; likewise.
const PENDING_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// How many links a peer may have at a time.
const LINKS_PER_PEER_MAX: usize = 4;
/// Between two dials to an address that does not answer: this, doubled each time up to the maximum,
/// drawn ±50 %.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// The same for an address where a peer refuses this process, or where it reached itself.
const BACKOFF_HOPELESS: Duration = Duration::from_secs(30);

/// All of it, behind one lock that is never held while anything waits.
pub(super) struct LinkTable {
    links: BTreeMap<ProcessId, Vec<Arc<Link>>>,
    /// Frames that wait for a link, by receiver.
    pending: BTreeMap<ProcessId, Pending>,
    sought: BTreeMap<SocketAddr, Seek>,
    dialling: BTreeSet<SocketAddr>,
    /// Peers about whose crash evidence is being gathered.
    probing: BTreeSet<(ProcessId, u64)>,
    /// The live members that the election knows: which process is where.
    known: BTreeMap<ProcessId, Peer>,
    /// The process that leads, as far as is known.
    leader: Option<ProcessId>,
    renewal: Renewal,
    /// The addresses that discovery names, and how many of them each host has.
    named: BTreeSet<SocketAddr>,
    named_hosts: BTreeMap<IpAddr, usize>,
    /// The dials that wait for an answer to their Hello, by their tokens, and where they dialled.
    tokens: BTreeMap<u64, SocketAddr>,
    /// What newcomers say that they are, from the look whether that is so until they have a link or are
    /// turned away. Two that come at once see each other.
    claims: BTreeMap<u64, Peer>,
    claims_made: u64,
    pub(super) announcements: Announcements,
    advertised: SocketAddr,
    budget: Budget,
    closed: bool,
}

struct Pending {
    address: SocketAddr,
    frames: Vec<Vec<u8>>,
    held: Share,
}

#[derive(Clone, Copy, Default)]
struct Seek {
    failures: u32,
    not_before: Moment,
    /// The process that was reached there last: it may advertise another address.
    reached: Option<ProcessId>,
}

/// What became of a dial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialled {
    /// There is a link with this process now.
    Linked(ProcessId),
    /// There is none.
    Failed,
    /// That was this process itself, or one that will go on refusing: there is no hurry.
    Hopeless,
}

impl LinkTable {
    pub(super) fn new(advertised: SocketAddr, budget: Budget, announcements: Announcements) -> LinkTable {
        LinkTable {
            links: BTreeMap::new(),
            pending: BTreeMap::new(),
            sought: BTreeMap::new(),
            dialling: BTreeSet::new(),
            probing: BTreeSet::new(),
            known: BTreeMap::new(),
            leader: None,
            renewal: Renewal::default(),
            named: BTreeSet::new(),
            named_hosts: BTreeMap::new(),
            tokens: BTreeMap::new(),
            claims: BTreeMap::new(),
            claims_made: 0,
            announcements,
            advertised,
            budget,
            closed: false,
        }
    }

    pub(super) fn closed(&self) -> bool {
        self.closed
    }

    pub(super) fn advertised(&self) -> SocketAddr {
        self.advertised
    }

    /// Takes an own address found out; false if one was known already.
    pub(super) fn advertise(&mut self, address: SocketAddr) -> bool {
        let unknown = self.advertised.ip().is_unspecified();
        if unknown {
            self.advertised = address;
        }
        unknown
    }

    /// The links of a peer that are neither broken nor being closed, the newest first.
    pub(super) fn links(&self, id: ProcessId) -> Vec<Arc<Link>> {
        let links = self.links.get(&id).into_iter().flatten();
        links.rev().filter(|link| link.usable()).cloned().collect()
    }

    /// The other links of its peer.
    pub(super) fn others(&self, link: &Link) -> Vec<Arc<Link>> {
        let mut links = self.links(link.peer.id);
        links.retain(|other| !std::ptr::eq(Arc::as_ptr(other), link));
        links
    }

    /// Adds a link and hands out what has waited for it. `None`: there are too many, or the transport is
    /// closed.
    pub(super) fn add(&mut self, link: &Arc<Link>) -> Option<Vec<Vec<u8>>> {
        let id = link.peer.id;
        let of_peer = self.links.get(&id).map_or(0, Vec::len);
        if self.closed || of_peer >= LINKS_PER_PEER_MAX {
            return None;
        }
        self.links.entry(id).or_default().push(Arc::clone(link));
        // A frame for another process at this address waits in vain: the address is this process's now.
        self.pending.retain(|to, pending| *to == id || pending.address != link.peer.address);
        Some(self.take_waiting(id))
    }

    pub(super) fn remove(&mut self, link: &Arc<Link>) {
        let id = link.peer.id;
        if let Some(links) = self.links.get_mut(&id) {
            links.retain(|other| !Arc::ptr_eq(other, link));
            if links.is_empty() {
                self.links.remove(&id);
                self.announcements.keep(|said| *said != id || self.known.contains_key(said));
            }
        }
    }

    /// The links of another incarnation of this peer.
    pub(super) fn former(&self, id: ProcessId, incarnation: Incarnation) -> Vec<Arc<Link>> {
        let links = self.links.get(&id).into_iter().flatten();
        links.filter(|l| l.peer.incarnation != incarnation).cloned().collect()
    }

    /// The members that the election knows, from now on.
    pub(super) fn know(&mut self, members: impl Iterator<Item = Peer>) {
        self.known = members.map(|peer| (peer.id, peer)).collect();
        self.announcements.keep(|id| self.known.contains_key(id) || self.links.contains_key(id));
    }

    /// The process that leads, from now on.
    pub(super) fn led_by(&mut self, leader: Option<ProcessId>) {
        self.leader = leader;
    }

    /// Begins to renew a link that was made with other credentials than the present ones, if one is due.
    pub(super) fn renew(&mut self, is_former: impl Fn(&Link) -> bool, now: Moment) -> Option<SocketAddr> {
        if self.closed {
            return None;
        }
        let links = self.all_links().filter(|link| is_former(link));
        let former = |link: &Arc<Link>| Former {
            address: link.peer.address,
            to_leader: self.leader == Some(link.peer.id),
        };
        let former: Vec<Former> = links.map(former).collect();
        self.renewal.next(&former, now)
    }

    /// All links that are neither broken nor being closed.
    pub(super) fn all_links(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.links.values().flatten().filter(|link| link.usable())
    }

    /// The addresses that discovery names, from now on.
    pub(super) fn name(&mut self, addresses: BTreeSet<SocketAddr>) {
        self.named_hosts.clear();
        for address in &addresses {
            *self.named_hosts.entry(address.ip()).or_default() += 1;
        }
        self.named = addresses;
    }

    /// Whether discovery names an address of this host.
    pub(super) fn names_host(&self, host: IpAddr) -> bool {
        self.names_of(host) > 0
    }

    /// How many addresses of this host discovery names.
    pub(super) fn names_of(&self, host: IpAddr) -> usize {
        self.named_hosts.get(&host).copied().unwrap_or(0)
    }

    /// Whether discovery names this address.
    pub(super) fn names(&self, address: SocketAddr) -> bool {
        self.named.contains(&address)
    }

    /// The processes that are connected, or are known to be alive, and that have something in common with a
    /// newcomer: the id, the address, or where that counts the name. The newcomer itself may be among them.
    /// From now on the next newcomer is compared with this one too, until [`LinkTable::claim_ends`] with this
    /// number.
    pub(super) fn claim(&mut self, newcomer: &Peer, names_count: bool) -> (u64, Vec<Peer>) {
        let linked = self.links.values().filter_map(|links| links.last()).map(|link| &link.peer);
        let alike = |peer: &&Peer| {
            peer.id == newcomer.id
                || peer.address == newcomer.address
                || names_count && peer.name == newcomer.name
        };
        // A connected process is known best from its connection. One that is not connected and that discovery
        // does not name is no obstacle for one that discovery names: it may be long gone.
        let named = self.names(newcomer.address);
        let known = self.known.values().filter(|peer| !self.links.contains_key(&peer.id));
        let known = known.filter(|peer| !named || self.names(peer.address));
        let claimed = self.claims.values();
        let in_common = linked.chain(known).chain(claimed).filter(alike).cloned().collect();
        self.claims_made += 1;
        self.claims.insert(self.claims_made, newcomer.clone());
        (self.claims_made, in_common)
    }

    /// The newcomer of this number has a link, or is turned away.
    pub(super) fn claim_ends(&mut self, number: u64) {
        self.claims.remove(&number);
    }

    /// Notes a dial to an address, under its token.
    pub(super) fn dial_begins(&mut self, token: u64, address: SocketAddr) {
        self.tokens.insert(token, address);
    }

    /// A dial has its answer, or gets none.
    pub(super) fn dial_ends(&mut self, token: u64) {
        self.tokens.remove(&token);
    }

    /// Whether a dial with this token is under way to one of these addresses.
    pub(super) fn dials(&self, token: u64, addresses: (SocketAddr, SocketAddr)) -> bool {
        self.tokens.get(&token).is_some_and(|at| *at == addresses.0 || *at == addresses.1)
    }

    /// Begins to gather evidence about one incarnation of a peer; false if another thread does already.
    pub(super) fn probe(&mut self, id: ProcessId, incarnation: Incarnation) -> bool {
        !self.closed && self.probing.insert((id, incarnation.0))
    }

    pub(super) fn probed(&mut self, id: ProcessId, incarnation: Incarnation) {
        self.probing.remove(&(id, incarnation.0));
    }

    /// Keeps a frame for a peer until there is a link. Says whether the address has to be dialled.
    pub(super) fn wait(&mut self, to: ProcessId, address: SocketAddr, frame: Vec<u8>) -> bool {
        if self.closed {
            return false;
        }
        if self.pending.len() >= MEMBERS_MAX && !self.pending.contains_key(&to) {
            return false;
        }
        let named = if self.names_host(address.ip()) { Holder::Named } else { Holder::Stranger };
        let held = self.budget.share(named);
        let pending = self.pending.entry(to).or_insert(Pending { address, frames: Vec::new(), held });
        pending.address = address;
        pending.frames.push(frame);
        let bytes = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).sum::<usize>();
        while pending.frames.len() > PENDING_MAX
            || bytes(&pending.frames) > PENDING_BYTES_MAX
            || !pending.held.resize(bytes(&pending.frames))
        {
            pending.frames.remove(0);
        }
        self.dialling.insert(address)
    }

    /// Marks an address as being dialled; false if it is already.
    pub(super) fn dialling(&mut self, address: SocketAddr) -> bool {
        !self.closed && self.dialling.insert(address)
    }

    /// What has waited for a peer.
    pub(super) fn take_waiting(&mut self, id: ProcessId) -> Vec<Vec<u8>> {
        self.pending.remove(&id).map(|p| p.frames).unwrap_or_default()
    }

    /// A dial is over. What waited for it and got no link is dropped.
    pub(super) fn dialled(&mut self, address: SocketAddr, outcome: Dialled, now: Moment) {
        self.dialling.remove(&address);
        self.renewal.dialled(address, now);
        let linked = matches!(outcome, Dialled::Linked(_));
        self.pending.retain(|to, pending| pending.address != address || outcome == Dialled::Linked(*to));
        let Some(seek) = self.sought.get_mut(&address) else { return };
        seek.failures = if linked { 0 } else { seek.failures.saturating_add(1) };
        if let Dialled::Linked(id) = outcome {
            seek.reached = Some(id);
        }
        let doubled = BACKOFF_MIN.saturating_mul(1u32.checked_shl(seek.failures).unwrap_or(u32::MAX));
        let backoff = if outcome == Dialled::Hopeless { BACKOFF_HOPELESS } else { doubled.min(BACKOFF_MAX) };
        seek.not_before = now.plus(backoff.mul_f64(0.5 + fastrand::f64()));
    }

    /// The process at an address has no room for this one: the next dial to it comes late.
    pub(super) fn turned_away(&mut self, address: SocketAddr, now: Moment) {
        if let Some(seek) = self.sought.get_mut(&address) {
            seek.not_before = now.plus(BACKOFF_MAX.mul_f64(0.5 + fastrand::f64()));
        }
    }

    pub(super) fn seek(&mut self, addresses: BTreeSet<SocketAddr>) {
        let known = std::mem::take(&mut self.sought);
        self.sought =
            addresses.into_iter().map(|a| (a, known.get(&a).copied().unwrap_or_default())).collect();
    }

    /// Whether a link with this peer is sought.
    pub(super) fn sought(&self, peer: &Peer) -> bool {
        self.sought.contains_key(&peer.address) || self.sought.values().any(|s| s.reached == Some(peer.id))
    }

    /// Begins all dials that are due, and says when the next one is.
    pub(super) fn due(&mut self, now: Moment) -> (Vec<SocketAddr>, Option<Moment>) {
        if self.closed {
            return (Vec::new(), None);
        }
        let open = || self.links.values().flatten().filter(|l| !l.closing()).map(|l| &l.peer);
        let addresses: BTreeSet<SocketAddr> = open().map(|p| p.address).collect();
        let ids: BTreeSet<ProcessId> = open().map(|p| p.id).collect();
        let mut due = Vec::new();
        let mut next = None;
        for (address, seek) in &self.sought {
            let linked = addresses.contains(address) || seek.reached.is_some_and(|id| ids.contains(&id));
            if linked || self.dialling.contains(address) {
                continue;
            }
            if seek.not_before <= now {
                due.push(*address);
            } else {
                next = Some(next.map_or(seek.not_before, |n: Moment| n.min(seek.not_before)));
            }
        }
        self.dialling.extend(&due);
        (due, next)
    }

    /// Closes everything; the links are handed out for a last word.
    pub(super) fn close(&mut self) -> Vec<Arc<Link>> {
        self.closed = true;
        self.pending.clear();
        self.sought.clear();
        std::mem::take(&mut self.links).into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::Priority;
    use std::net::{TcpListener, TcpStream};
    use uuid::Uuid;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn id(number: u128) -> ProcessId {
        ProcessId(Uuid::from_u128(number))
    }

    fn link(number: u128, at: SocketAddr) -> Arc<Link> {
        let listener = TcpListener::bind(address(0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = Peer {
            id: id(number),
            incarnation: Incarnation(1),
            name: String::new(),
            address: at,
            priority: Priority::DEFAULT,
            revision: String::new(),
        };
        let held = Budget::new(0).share(Holder::Stranger);
        Arc::new(Link::new(peer, address(0).ip(), crate::channel::Channel::clear(stream), held))
    }

    fn table() -> LinkTable {
        let announcements = Announcements::new(id(0), crate::election::AnnouncedValues::default());
        LinkTable::new(address(1), Budget::new(usize::MAX / 8), announcements)
    }

    fn after(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    #[test]
    fn an_address_is_dialled_again_later_and_later_and_not_while_it_is_linked() {
        let mut table = table();
        table.seek(BTreeSet::from([address(2)]));
        assert_eq!(table.due(after(0)), (vec![address(2)], None));
        assert_eq!(table.due(after(0)), (vec![], None), "one dial at a time");
        let mut now = after(0);
        for failures in 1..=8u32 {
            table.dialled(address(2), Dialled::Failed, now);
            let (due, next) = table.due(now);
            let wait = next.unwrap().since(now);
            let drawn_from = (BACKOFF_MIN * 2u32.pow(failures)).min(BACKOFF_MAX);
            assert!(
                due.is_empty() && wait >= drawn_from / 2 && wait <= drawn_from * 3 / 2,
                "{failures}: {wait:?}"
            );
            now = now.plus(wait);
            assert_eq!(table.due(now).0, vec![address(2)]);
        }
        assert!(table.add(&link(7, address(2))).is_some());
        table.dialled(address(2), Dialled::Linked(id(7)), now);
        assert_eq!(table.due(now.plus(Duration::from_secs(60))), (vec![], None));
    }

    #[test]
    fn a_peer_that_advertises_another_address_than_it_was_reached_at_is_not_dialled_again() {
        let mut table = table();
        table.seek(BTreeSet::from([address(2)]));
        let link = link(7, address(9));
        assert!(table.add(&link).is_some());
        assert_eq!(table.due(after(0)).0, vec![address(2)]);
        table.dialled(address(2), Dialled::Linked(id(7)), after(0));
        assert_eq!(table.due(after(60_000)).0, vec![]);
        assert!(table.sought(&link.peer));
        table.remove(&link);
        assert_eq!(table.due(after(60_000)).0, vec![address(2)]);
    }

    #[test]
    fn what_waits_for_a_link_is_bounded_and_dropped_when_there_will_be_none() {
        let mut table = table();
        assert!(table.wait(id(7), address(2), vec![0]));
        for number in 1..=PENDING_MAX {
            assert!(
                !table.wait(id(7), address(2), vec![u8::try_from(number).unwrap()]),
                "one dial is enough"
            );
        }
        let waiting = table.add(&link(7, address(2))).unwrap();
        assert_eq!((waiting.len(), &waiting[0]), (PENDING_MAX, &vec![1]), "the oldest went first");
        table.wait(id(8), address(3), vec![1]);
        table.dialled(address(3), Dialled::Failed, after(0));
        assert_eq!(table.add(&link(8, address(3))), Some(vec![]));
        table.wait(id(8), address(5), vec![1]);
        table.wait(id(9), address(5), vec![1]);
        table.dialled(address(5), Dialled::Linked(id(9)), after(0));
        assert_eq!(table.take_waiting(id(8)), Vec::<Vec<u8>>::new(), "another process answered there");
        assert_eq!(table.take_waiting(id(9)), vec![vec![1]]);
        for _ in 0..PENDING_MAX {
            table.wait(id(8), address(3), vec![0; PENDING_BYTES_MAX / 2]);
        }
        assert_eq!(table.take_waiting(id(8)).len(), 2, "few long ones wait");
        table.wait(id(9), address(4), vec![1]);
        table.add(&link(10, address(4)));
        assert_eq!(table.take_waiting(id(9)), Vec::<Vec<u8>>::new(), "the address is another's now");
    }

    #[test]
    fn a_peer_has_few_links_and_a_closed_table_none() {
        let mut table = table();
        for _ in 0..LINKS_PER_PEER_MAX {
            assert!(table.add(&link(7, address(2))).is_some());
        }
        assert!(table.add(&link(7, address(2))).is_none());
        assert_eq!(table.close().len(), LINKS_PER_PEER_MAX);
        assert!(table.add(&link(8, address(2))).is_none());
        assert!(!table.wait(id(8), address(2), vec![1]));
        assert!(!table.probe(id(8), Incarnation(1)));
    }
}
