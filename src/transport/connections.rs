//! From links to peers: a peer is connected from its first link to its last.

use super::Report;
use crate::election::{Event, Incarnation, ProcessId};
use std::collections::BTreeMap;

/// Counts the links of each peer, on the driver's thread. Counting commutes, so it does not matter that the
/// threads of two links of one peer report in any order.
#[derive(Debug, Default)]
pub struct Connections {
    open: BTreeMap<(ProcessId, u64), u32>,
    /// Which incarnation of each connected peer opened the latest link. The thread of a former incarnation's
    /// link may report after that. Its report is dropped: its Leave would be taken for the new incarnation's.
    latest: BTreeMap<ProcessId, Incarnation>,
}

impl Connections {
    /// The event that a report amounts to, if it is one.
    pub fn event(&mut self, report: Report) -> Option<Event> {
        match report {
            Report::Opened(peer) => {
                *self.open.entry(key(peer.id, peer.incarnation)).or_insert(0) += 1;
                self.latest.insert(peer.id, peer.incarnation);
                // Also told of a further link: it may bring a new address.
                Some(Event::LinkUp(peer))
            }
            Report::Closed { id, incarnation, crashed } => {
                let last = self.close(key(id, incarnation));
                if last && self.latest.get(&id) == Some(&incarnation) {
                    self.latest.remove(&id);
                }
                if crashed {
                    Some(Event::Crashed { id, incarnation })
                } else {
                    last.then_some(Event::LinkDown { id, incarnation })
                }
            }
            Report::Event(event) => Some(event),
            Report::Received { from, incarnation, message, _held: _ } => {
                let current = self.latest.get(&from) == Some(&incarnation);
                current.then_some(Event::Received { from, message })
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Budget, Holder};
    use crate::election::{Body, Epoch, Message, Peer, Priority};
    use uuid::Uuid;

    const ID: ProcessId = ProcessId(Uuid::from_u128(7));

    fn opened(life: u64) -> Report {
        Report::Opened(Peer {
            id: ID,
            incarnation: Incarnation(life),
            name: "p7".to_owned(),
            address: ([127, 0, 0, 1], 4041).into(),
            priority: Priority::DEFAULT,
            revision: String::new(),
        })
    }

    fn closed(life: u64) -> Report {
        Report::Closed { id: ID, incarnation: Incarnation(life), crashed: false }
    }

    fn leave(life: u64) -> Report {
        let message = Message {
            epoch: Epoch(1),
            priority: Priority::DEFAULT,
            body: Body::Leave { version: None, id: ID },
        };
        let held = Budget::new(0).share(Holder::Named);
        Report::Received { from: ID, incarnation: Incarnation(life), message, _held: held }
    }

    #[test]
    fn a_peer_is_connected_from_its_first_link_to_its_last() {
        let mut connections = Connections::default();
        assert!(matches!(connections.event(opened(1)), Some(Event::LinkUp(_))));
        assert!(matches!(connections.event(opened(1)), Some(Event::LinkUp(_))));
        assert!(connections.event(closed(1)).is_none());
        assert!(matches!(connections.event(leave(1)), Some(Event::Received { .. })));
        assert!(matches!(connections.event(closed(1)), Some(Event::LinkDown { .. })));
        assert!(connections.event(closed(1)).is_none());
        assert!(
            connections.open.is_empty() && connections.latest.is_empty(),
            "nothing is kept of a process that is gone"
        );
    }

    #[test]
    fn what_a_former_incarnation_said_is_not_delivered_after_the_next_one_has_come() {
        let mut connections = Connections::default();
        connections.event(opened(1));
        // The new link's thread closes the old link and reports both; the old one's thread comes late.
        connections.event(closed(1));
        connections.event(opened(2));
        assert!(connections.event(leave(1)).is_none());
        assert!(connections.event(closed(1)).is_none());
        assert!(matches!(connections.event(leave(2)), Some(Event::Received { .. })));
    }
}
