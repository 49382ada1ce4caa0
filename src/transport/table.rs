//! Which links there are, which are wanted, and what waits for one.

use super::LINKS_MAX;
use super::link::Link;
use crate::election::{Incarnation, Moment, ProcessId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How many messages wait for a dial to one peer; the oldest goes first.
const PENDING_MAX: usize = 16;
/// How many links a peer may have at a time.
const LINKS_PER_PEER_MAX: usize = 4;
/// Between two dials to an address that does not answer: this, doubled each time up to the maximum, drawn ±50 %.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// All of it, behind one lock that is never held while anything waits.
pub(super) struct Table {
    links: BTreeMap<ProcessId, Vec<Arc<Link>>>,
    /// Frames that wait for a link, by whom they are for.
    pending: BTreeMap<ProcessId, Pending>,
    sought: BTreeMap<SocketAddr, Seek>,
    dialling: BTreeSet<SocketAddr>,
    /// Peers about whose crash evidence is being gathered.
    probing: BTreeSet<(ProcessId, u64)>,
    advertised: SocketAddr,
    closed: bool,
}

struct Pending {
    address: SocketAddr,
    frames: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Default)]
struct Seek {
    failures: u32,
    not_before: Moment,
}

/// What became of a dial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialled {
    /// There is a link now.
    Linked,
    /// There is none.
    Failed,
    /// That was this process itself, or one that will go on refusing: there is no hurry.
    Hopeless,
}

impl Table {
    pub(super) fn new(advertised: SocketAddr) -> Table {
        Table {
            links: BTreeMap::new(),
            pending: BTreeMap::new(),
            sought: BTreeMap::new(),
            dialling: BTreeSet::new(),
            probing: BTreeSet::new(),
            advertised,
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

    /// The newest link of a peer that is not being closed.
    pub(super) fn link(&self, id: ProcessId) -> Option<Arc<Link>> {
        self.links.get(&id)?.iter().rev().find(|link| !link.closing()).cloned()
    }

    /// Adds a link and hands out what has waited for it. `None`: there are too many, or the transport is closed.
    pub(super) fn add(&mut self, link: &Arc<Link>) -> Option<Vec<Vec<u8>>> {
        let total: usize = self.links.values().map(Vec::len).sum();
        let id = link.peer.id;
        let of_peer = self.links.get(&id).map_or(0, Vec::len);
        if self.closed || total >= LINKS_MAX || of_peer >= LINKS_PER_PEER_MAX {
            return None;
        }
        self.links.entry(id).or_default().push(Arc::clone(link));
        Some(self.take_waiting(id))
    }

    pub(super) fn remove(&mut self, link: &Arc<Link>) {
        let id = link.peer.id;
        if let Some(links) = self.links.get_mut(&id) {
            links.retain(|other| !Arc::ptr_eq(other, link));
            if links.is_empty() {
                self.links.remove(&id);
            }
        }
    }

    /// The links of another life of this peer.
    pub(super) fn former(&self, id: ProcessId, incarnation: Incarnation) -> Vec<Arc<Link>> {
        let links = self.links.get(&id).into_iter().flatten();
        links.filter(|l| l.peer.incarnation != incarnation).cloned().collect()
    }

    /// Begins to gather evidence about one life of a peer; false if somebody does already.
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
        let pending = self.pending.entry(to).or_insert(Pending { address, frames: Vec::new() });
        pending.address = address;
        if pending.frames.len() == PENDING_MAX {
            pending.frames.remove(0);
        }
        pending.frames.push(frame);
        self.dialling.insert(address)
    }

    /// What has waited for a peer.
    pub(super) fn take_waiting(&mut self, id: ProcessId) -> Vec<Vec<u8>> {
        self.pending.remove(&id).map(|p| p.frames).unwrap_or_default()
    }

    /// A dial is over. What waited for it and got no link is dropped.
    pub(super) fn dialled(&mut self, address: SocketAddr, outcome: Dialled, now: Moment) {
        self.dialling.remove(&address);
        if outcome != Dialled::Linked {
            self.pending.retain(|_, pending| pending.address != address);
        }
        if let Some(seek) = self.sought.get_mut(&address) {
            seek.failures = match outcome {
                Dialled::Linked => 0,
                Dialled::Failed => seek.failures.saturating_add(1),
                Dialled::Hopeless => u32::MAX,
            };
            let doubled = BACKOFF_MIN.saturating_mul(1u32.checked_shl(seek.failures).unwrap_or(u32::MAX));
            seek.not_before = now.plus(doubled.min(BACKOFF_MAX).mul_f64(0.5 + fastrand::f64()));
        }
    }

    pub(super) fn seek(&mut self, addresses: BTreeSet<SocketAddr>) {
        let known = std::mem::take(&mut self.sought);
        self.sought =
            addresses.into_iter().map(|a| (a, known.get(&a).copied().unwrap_or_default())).collect();
    }

    pub(super) fn sought(&self, address: SocketAddr) -> bool {
        self.sought.contains_key(&address)
    }

    /// Begins all dials that are due, and says when the next one is.
    pub(super) fn due(&mut self, now: Moment) -> (Vec<SocketAddr>, Option<Moment>) {
        if self.closed {
            return (Vec::new(), None);
        }
        let linked: BTreeSet<SocketAddr> =
            self.links.values().flatten().filter(|l| !l.closing()).map(|l| l.peer.address).collect();
        let mut due = Vec::new();
        let mut next = None;
        for (address, seek) in &self.sought {
            if linked.contains(address) || self.dialling.contains(address) {
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
