//! What comes in for a process: it waits while its driver is held up, and the transport decides what is an
//! event.

use super::node::{INBOX_MAX, Input, NodeInstance, place_of};
use super::world::World;
use crate::election::{self, Event};

impl World {
    /// Something for a process's driver, which may be held up.
    pub(super) fn input(&mut self, instance: NodeInstance, input: Input) {
        let process = &mut self.nodes[instance.place];
        if !process.runs_as(instance) {
            return;
        }
        if process.held_up() {
            // The report of an opened or ended link waits for room, however long that takes.
            if process.inbox.len() < INBOX_MAX || matches!(input, Input::Event(_)) {
                process.inbox.push_back(input);
            }
            return;
        }
        self.take(instance.place, input);
    }

    /// The driver takes an input: the transport (`Connections`) decides what is an event.
    pub(super) fn take(&mut self, place: usize, input: Input) {
        let event = match input {
            Input::Message(from, message) => {
                if self.net.connections[place][from.place] != Some(from.start) {
                    return;
                }
                let id = self.nodes[from.place].id_at(from.start);
                let sender = election::Instance { id, incarnation: from.incarnation() };
                self.checker.heard(&self.nodes[place], sender, &message);
                Event::Received { from: id, message }
            }
            Input::Event(event) => match self.connection_event(place, event) {
                Some(event) => event,
                None => return,
            },
        };
        self.feed(place, event);
    }

    fn connection_event(&mut self, place: usize, event: Event) -> Option<Event> {
        let (id, incarnation) = match &event {
            Event::LinkUp(peer) => {
                let start = u32::try_from(peer.incarnation.0).ok();
                self.net.connections[place][place_of(peer.id)] = start;
                return Some(event);
            }
            Event::LinkDown { id, incarnation } | Event::Crashed { id, incarnation } => (*id, *incarnation),
            _ => return Some(event),
        };
        let other = place_of(id);
        let start = u32::try_from(incarnation.0).ok();
        let further = self.net.connected_with(place, other) == start;
        if !further && self.net.connections[place][other] == start {
            self.net.connections[place][other] = None;
        }
        let blip = further && matches!(event, Event::LinkDown { .. });
        Some(event).filter(|_| !blip)
    }
}
