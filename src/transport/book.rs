//! From links to peers: a peer is connected from its first link to its last.

use super::Report;
use crate::election::{Event, Incarnation, ProcessId};
use std::collections::BTreeMap;

/// Counts the links of each peer, on the driver's thread. Counting commutes, so it does not matter that the threads of
/// two links of one peer report in any order.
#[derive(Debug, Default)]
pub struct Book {
    open: BTreeMap<(ProcessId, u64), u32>,
    /// The life that was connected with last, of each peer that has a link.
    lives: BTreeMap<ProcessId, Incarnation>,
}

impl Book {
    /// The event that a report amounts to, if it is one.
    pub fn event(&mut self, report: Report) -> Option<Event> {
        match report {
            Report::Opened(peer) => {
                self.lives.insert(peer.id, peer.incarnation);
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
            Report::Received { from, incarnation, message } => {
                // What is left of a former life's messages would be taken for the new one's: its Leave above all.
                let former = self.lives.get(&from).is_some_and(|life| *life != incarnation);
                (!former).then_some(Event::Received { from, message })
            }
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
            if self.lives.get(&key.0).is_some_and(|life| life.0 == key.1) {
                self.lives.remove(&key.0);
            }
        }
        last
    }
}

fn key(id: ProcessId, incarnation: Incarnation) -> (ProcessId, u64) {
    (id, incarnation.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Body, Epoch, Message, Peer, Priority};

    #[test]
    fn a_former_life_is_not_heard_any_more() {
        let id = ProcessId(uuid::Uuid::from_u128(7));
        let opened = |life| {
            Report::Opened(Peer {
                id,
                incarnation: Incarnation(life),
                name: "web-0".to_owned(),
                address: ([127, 0, 0, 1], 4041).into(),
                priority: Priority::DEFAULT,
                revision: String::new(),
            })
        };
        let said = |life| {
            let message = Message { epoch: Epoch(1), body: Body::Leave { version: None, id } };
            Report::Received { from: id, incarnation: Incarnation(life), message }
        };
        let closed = |life| Report::Closed { id, incarnation: Incarnation(life), crashed: false };
        let mut book = Book::default();
        book.event(opened(1));
        assert!(book.event(said(1)).is_some());
        book.event(opened(2));
        assert!(book.event(said(1)).is_none(), "the second life is there");
        assert!(book.event(said(2)).is_some());
        book.event(closed(1));
        assert!(book.event(said(2)).is_some(), "the end of the first changes nothing");
        book.event(closed(2));
        assert!(book.lives.is_empty() && book.open.is_empty(), "nothing is kept of who has no link");
    }
}
