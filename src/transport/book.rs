//! From links to peers: a peer is connected from its first link to its last.

use super::Report;
use crate::election::{Event, Incarnation, ProcessId};
use std::collections::BTreeMap;

/// Counts the links of each peer, on the driver's thread. Counting commutes, so it does not matter that the threads of
/// two links of one peer report in any order.
#[derive(Debug, Default)]
pub struct Book {
    open: BTreeMap<(ProcessId, u64), u32>,
}

impl Book {
    /// The event that a report amounts to, if it is one.
    pub fn event(&mut self, report: Report) -> Option<Event> {
        match report {
            Report::Opened(peer) => {
                *self.open.entry(key(peer.id, peer.incarnation)).or_insert(0) += 1;
                // Also told of a further link: it may bring a new address.
                Some(Event::LinkUp(peer))
            }
            Report::Closed { id, incarnation, crashed } => {
                let last = self.close(key(id, incarnation));
                if crashed {
                    Some(Event::Crashed { id, incarnation })
                } else {
                    last.then_some(Event::LinkDown { id, incarnation })
                }
            }
            Report::Refused(address) => Some(Event::Refused(address)),
            Report::Received { from, message } => Some(Event::Received { from, message }),
            Report::ReachedSelf(address) => Some(Event::ReachedSelf(address)),
            Report::Advertise(address) => Some(Event::Advertise(address)),
        }
    }

    /// Whether that was the last link.
    fn close(&mut self, key: (ProcessId, u64)) -> bool {
        let Some(count) = self.open.get_mut(&key) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.open.remove(&key);
        }
        last
    }
}

fn key(id: ProcessId, incarnation: Incarnation) -> (ProcessId, u64) {
    (id, incarnation.0)
}
