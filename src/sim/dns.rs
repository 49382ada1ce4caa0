//! Name resolution as one process meets it: right, stale, partial, or without an answer.

use super::clock::Ns;
use super::link_faults::Places;
use core::net::SocketAddr;
use std::collections::BTreeSet;

/// What is wrong with the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DnsFault {
    /// The answers are those from the beginning of the fault.
    Stale,
    /// Only these places are in them, by bits.
    Partial(Places),
    /// There is none.
    Empty,
}

/// What one process is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Dns {
    fault: Option<(DnsFault, Ns)>,
    last: BTreeSet<SocketAddr>,
}

impl Dns {
    /// Goes wrong until then.
    pub(super) fn fail(&mut self, fault: DnsFault, until: Ns) {
        self.fault = Some((fault, until));
    }

    pub(super) fn heal(&mut self) {
        self.fault = None;
    }

    /// The answer to a look-up, from the places and addresses that the name server publishes.
    pub(super) fn look_up(&mut self, now: Ns, published: &[(usize, SocketAddr)]) -> BTreeSet<SocketAddr> {
        match self.fault.filter(|(_, until)| now < *until) {
            None => {
                self.last = published.iter().map(|(_, address)| *address).collect();
                self.last.clone()
            }
            Some((DnsFault::Stale, _)) => self.last.clone(),
            Some((DnsFault::Partial(places), _)) => {
                let named = published.iter().filter(|(place, _)| places >> place & 1 == 1);
                named.map(|(_, address)| *address).collect()
            }
            Some((DnsFault::Empty, _)) => BTreeSet::new(),
        }
    }
}
