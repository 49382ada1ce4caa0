//! Connections between incarnations of processes, as the transport makes them, and the evidence that their
//! ends give.

use super::clock::{MS, Ns};
use super::network::End;
use super::node::{Dial, Input, NodeInstance, Sought, place_at, place_of};
use super::queue::Item;
use super::world::World;
use crate::election::{Event, Message, ProcessId};
use core::net::SocketAddr;
use std::collections::BTreeSet;

/// As in the transport.
const BACKOFF_MIN: Ns = 100 * MS;
const BACKOFF_MAX: Ns = 2_000 * MS;
const DIAL_TIMEOUT: Ns = 200 * MS;
const WAITING_MAX: usize = 16;
/// How long a link that no process seeks or uses stays open.
const IDLE: Ns = 10_000 * MS;
/// The most messages that a cut connection keeps.
const HELD_MAX: usize = 64;

/// The longest time between two dials to an address.
pub(super) const REDIAL_LONGEST: Ns = BACKOFF_MAX * 3 / 2 + DIAL_TIMEOUT;

impl World {
    fn delay(&mut self) -> Ns {
        self.net.delay + if self.net.jitter == 0 { 0 } else { self.random.u64(0..=self.net.jitter) }
    }

    /// Whether a connection between these places could be opened now, were both processes there.
    fn passes(&self, a: usize, b: usize) -> bool {
        !self.net.faults[a][b].cut() && !self.net.faults[b][a].cut()
    }

    fn connected(&self, at: usize, of: NodeInstance) -> bool {
        self.net.ends[at][of.place].is_some_and(|end| end.start == of.start)
    }

    /// A process's Send.
    pub(super) fn send(&mut self, from: usize, to: ProcessId, address: SocketAddr, message: Message) {
        let place = place_of(to);
        let end = self.net.ends[from][place].as_mut();
        match end.filter(|end| self.nodes[place].id_at(end.start) == to) {
            Some(end) => {
                end.used = self.now;
                let to = NodeInstance { place, start: end.start };
                self.transmit(self.nodes[from].instance(), to, message);
            }
            None => self.dial(from, address, Some((to, message))),
        }
    }

    fn transmit(&mut self, from: NodeInstance, to: NodeInstance, message: Message) {
        let delay = self.delay();
        let (a, b) = (from.place, to.place);
        let (holding, swallowing) = (self.net.faults[a][b].holding > 0, self.net.faults[a][b].swallowing > 0);
        if holding {
            if self.net.held[a][b].len() < HELD_MAX {
                self.net.held[a][b].push((from, to, message));
            }
            return self.fall_silent(from, to);
        }
        if self.nodes[b].vanished || self.net.faults[b][a].holding > 0 {
            // It may arrive, but no acknowledgement comes back.
            self.fall_silent(from, to);
        }
        if swallowing || self.nodes[b].vanished {
            return;
        }
        let link = self.net.link(a, b);
        let fifo = &mut self.net.fifo[a][b];
        let arrivals = self.net.faults[a][b].arrivals(self.now, delay, &message, fifo, &mut self.random);
        if let [Some(_), Some(again)] = arrivals {
            self.queue.put(again, Item::Deliver { from, to, link, message: Box::new(message.clone()) });
        }
        if let Some(at) = arrivals[0] {
            self.queue.put(at, Item::Deliver { from, to, link, message: Box::new(message) });
        }
    }

    fn fall_silent(&mut self, at: NodeInstance, of: NodeInstance) {
        let (token, silent) = &mut self.net.silence[at.place][of.place];
        if !std::mem::replace(silent, true) {
            *token += 1;
            let token = *token;
            self.queue.put(self.now + self.net.link_timeout, Item::Unacknowledged { at, of, token });
        }
    }

    /// A message arrives at a host.
    pub(super) fn deliver(&mut self, from: NodeInstance, to: NodeInstance, link: u64, message: Message) {
        if self.nodes[to.place].vanished {
            return;
        }
        if self.nodes[to.place].runs_as(to) && self.connected(to.place, from) {
            if let Some(end) = &mut self.net.ends[to.place][from.place] {
                end.used = self.now;
            }
            return self.input(to, Input::Message(from, message));
        }
        // The process there does not know that connection: its host resets it.
        if !self.net.faults[to.place][from.place].cut() {
            let at = self.now + self.net.delay;
            self.queue.put(at, Item::Closed { at: from, of: to, link, deliberate: false });
        }
    }

    /// What a process sent has not been acknowledged for too long.
    pub(super) fn unacknowledged(&mut self, at: NodeInstance, of: NodeInstance, token: u32) {
        if self.net.silence[at.place][of.place] == (token, true) {
            self.net.silence[at.place][of.place].1 = false;
            self.closed(at, of, false);
        }
    }

    /// Word of a closed connection arrives. It says nothing about a later one between the same two.
    pub(super) fn heard_closed(&mut self, at: NodeInstance, of: NodeInstance, link: u64, deliberate: bool) {
        if self.net.link(at.place, of.place) == link {
            self.closed(at, of, deliberate);
        }
    }

    /// An end learns that its connection is closed. Unless that was announced it dials at once, to see why.
    fn closed(&mut self, at: NodeInstance, of: NodeInstance, deliberate: bool) {
        if !self.nodes[at.place].runs_as(at) || !self.connected(at.place, of) {
            return;
        }
        self.net.ends[at.place][of.place] = None;
        self.net.held[at.place][of.place].clear();
        if deliberate {
            self.input(at, Input::Event(self.link_down(of)));
            return self.seek(at.place);
        }
        let reachable = self.passes(at.place, of.place) && !self.nodes[of.place].vanished;
        let takes = if reachable { 2 * self.delay() } else { DIAL_TIMEOUT };
        self.queue.put(self.now + takes, Item::Evidence { at, of });
    }

    /// What the fresh dial shows. A refusal, or an answer of another incarnation: that one crashed. An answer
    /// of the same one: a blip. Silence: nothing.
    pub(super) fn evidence(&mut self, at: NodeInstance, of: NodeInstance) {
        let (dialler, peer) = (&self.nodes[at.place], &self.nodes[of.place]);
        if !dialler.runs_as(at) {
            return;
        }
        if dialler.paused() {
            return self.queue.put(dialler.paused_until, Item::Evidence { at, of });
        }
        let silent =
            !self.passes(at.place, of.place) || peer.vanished || peer.moved(of.start) || peer.paused();
        let crashed = !silent && !peer.runs_as(of);
        if !silent && peer.runs() {
            self.connect(at.place, of.place);
        }
        let event = if crashed { self.crashed(of) } else { self.link_down(of) };
        self.input(at, Input::Event(event));
        self.seek(at.place);
    }

    /// A process ended. Its peers learn it from its host, if that still answers.
    pub(super) fn hang_up(&mut self, instance: NodeInstance, deliberate: bool) {
        self.net.ends[instance.place].fill(None);
        self.net.connections[instance.place].fill(None);
        self.net.silence[instance.place].iter_mut().for_each(|(_, silent)| *silent = false);
        self.net.held[instance.place].iter_mut().for_each(Vec::clear);
        for place in 0..self.nodes.len() {
            let at = self.nodes[place].instance();
            if self.connected(place, instance)
                && !self.nodes[instance.place].vanished
                && !self.net.faults[instance.place][place].cut()
            {
                let link = self.net.link(place, instance.place);
                let when = (self.now + self.delay()).max(self.net.fifo[instance.place][place]);
                self.queue.put(when, Item::Closed { at, of: instance, link, deliberate });
            }
        }
    }

    /// A connection breaks for both ends.
    pub(super) fn reset(&mut self, a: usize, b: usize) {
        for (one, other) in [(a, b), (b, a)] {
            if let Some(end) = self.net.ends[one][other] {
                self.closed(
                    self.nodes[one].instance(),
                    NodeInstance { place: other, start: end.start },
                    false,
                );
            }
        }
    }

    /// A connection breaks, and something on the path refuses the dial in the name of a live process.
    pub(super) fn misjudge(&mut self, target: usize, peer: usize) {
        let Some(end) = self.net.ends[target][peer].take() else { return };
        let of = NodeInstance { place: peer, start: end.start };
        let back = self.nodes[target].instance();
        if self.connected(peer, back) {
            self.closed(self.nodes[peer].instance(), back, false);
        }
        let event = self.crashed(of);
        self.input(back, Input::Event(event));
        self.input(back, Input::Event(Event::Refused(end.address)));
        self.seek(target);
    }

    /// The machine's Seek.
    pub(super) fn sought(&mut self, place: usize, addresses: &BTreeSet<SocketAddr>) {
        let process = &mut self.nodes[place];
        let known = std::mem::take(&mut process.sought);
        process.sought = addresses
            .iter()
            .map(|address| {
                let fresh = Sought { address: *address, failures: 0, not_before: 0 };
                known.iter().find(|k| k.address == *address).copied().unwrap_or(fresh)
            })
            .collect();
        self.seek(place);
    }

    /// Dials all that is sought and due, and says when to look again.
    pub(super) fn seek(&mut self, place: usize) {
        let now = self.now;
        let process = &self.nodes[place];
        if !process.runs() || process.paused() {
            return;
        }
        let linked = |address| self.net.ends[place].iter().flatten().any(|end| end.address == address);
        let wanting = process
            .sought
            .iter()
            .filter(|s| !linked(s.address) && !process.dials.iter().any(|dial| dial.address == s.address));
        let (mut due, mut next) = (Vec::new(), None::<Ns>);
        for sought in wanting {
            if sought.not_before > now {
                next = Some(next.map_or(sought.not_before, |n| n.min(sought.not_before)));
            } else {
                due.push(sought.address);
            }
        }
        let instance = process.instance();
        if let Some(next) = next.filter(|next| process.seeks_at.is_none_or(|at| at <= now || *next < at)) {
            self.nodes[place].seeks_at = Some(next);
            self.queue.put(next, Item::Seek(instance));
        }
        for address in due {
            self.dial(place, address, None);
        }
    }

    fn dial(&mut self, place: usize, address: SocketAddr, message: Option<(ProcessId, Message)>) {
        let delay = 2 * self.delay();
        let process = &mut self.nodes[place];
        let instance = process.instance();
        let dial = match process.dials.iter_mut().find(|dial| dial.address == address) {
            Some(dial) => dial,
            None => {
                self.queue.put(self.now + delay, Item::Dialled(instance, address));
                process.dials.push(Dial { address, waiting: Vec::new() });
                // Just pushed.
                let last = process.dials.len() - 1;
                &mut process.dials[last]
            }
        };
        dial.waiting.extend(message);
        if dial.waiting.len() > WAITING_MAX {
            dial.waiting.remove(0);
        }
    }

    /// A dial has come to its end.
    pub(super) fn dialled(&mut self, from: NodeInstance, address: SocketAddr) {
        let process = &mut self.nodes[from.place];
        if !process.runs_as(from) {
            return;
        }
        if process.paused() {
            let until = process.paused_until;
            return self.queue.put(until, Item::Dialled(from, address));
        }
        let Some(at) = process.dials.iter().position(|dial| dial.address == address) else { return };
        let waiting = process.dials.swap_remove(at).waiting;
        let there = place_at(address)
            .and_then(|place| self.nodes.get(place))
            .filter(|peer| peer.address() == address && !peer.vanished);
        let reached = there
            .filter(|peer| peer.place == from.place || self.passes(from.place, peer.place) && !peer.paused());
        let (mut linked, mut hopeless) = (false, false);
        match reached.map(|peer| (peer.place, peer.runs())) {
            Some((place, _)) if place == from.place => {
                hopeless = true;
                self.input(from, Input::Event(Event::ReachedSelf(address)));
            }
            Some((_, false)) => self.input(from, Input::Event(Event::Refused(address))),
            Some((place, true)) => {
                linked = true;
                self.connect(from.place, place);
                let (to, id) = (self.nodes[place].instance(), self.nodes[place].id());
                for (_, message) in waiting.into_iter().filter(|(to, _)| *to == id) {
                    self.transmit(from, to, message);
                }
            }
            None => {}
        }
        self.dial_over(from.place, address, linked, hopeless);
    }

    fn dial_over(&mut self, place: usize, address: SocketAddr, linked: bool, hopeless: bool) {
        let jitter = self.random.u64(500..=1500);
        let now = self.now;
        if let Some(sought) = self.nodes[place].sought.iter_mut().find(|s| s.address == address) {
            sought.failures = if linked { 0 } else { (sought.failures + 1).min(10) };
            let backoff =
                if hopeless { 15 * BACKOFF_MAX } else { (BACKOFF_MIN << sought.failures).min(BACKOFF_MAX) };
            sought.not_before = now + backoff * jitter / 1000;
        }
        self.seek(place);
    }

    /// Opens a connection between two live processes and tells both.
    fn connect(&mut self, a: usize, b: usize) {
        let mut told = Vec::with_capacity(4);
        self.net.links += 1;
        let link = self.net.links;
        for (one, other) in [(a, b), (b, a)] {
            let peer = &self.nodes[other];
            let end = End { start: peer.starts, link, address: peer.address(), used: self.now };
            let former = self.net.ends[one][other].replace(end).filter(|former| former.start != end.start);
            self.net.silence[one][other].1 = false;
            let at = self.nodes[one].instance();
            if let Some(former) = former {
                told.push((at, self.crashed(NodeInstance { place: other, start: former.start })));
            }
            told.push((at, Event::LinkUp(self.nodes[other].peer())));
        }
        for (at, event) in told {
            self.input(at, Input::Event(event));
        }
    }

    /// Closes links that neither side seeks and that carried no message for long.
    pub(super) fn close_idle(&mut self, place: usize) {
        for other in 0..self.nodes.len() {
            let Some(end) = self.net.ends[place][other].filter(|end| self.now - end.used > IDLE) else {
                continue;
            };
            let back = self.nodes[place].instance();
            let used = self.net.ends[other][place].is_some_and(|end| self.now - end.used <= IDLE);
            let seeks = |one: usize, address| self.nodes[one].sought.iter().any(|s| s.address == address);
            let address = self.nodes[place].address();
            if used || seeks(place, end.address) || seeks(other, address) {
                continue;
            }
            let of = NodeInstance { place: other, start: end.start };
            self.closed(back, of, true);
            if !self.net.faults[place][other].cut() {
                let at = self.now + self.net.delay;
                self.queue.put(at, Item::Closed { at: of, of: back, link: end.link, deliberate: true });
            }
        }
    }

    fn crashed(&self, instance: NodeInstance) -> Event {
        Event::Crashed {
            id: self.nodes[instance.place].id_at(instance.start),
            incarnation: instance.incarnation(),
        }
    }

    fn link_down(&self, instance: NodeInstance) -> Event {
        Event::LinkDown {
            id: self.nodes[instance.place].id_at(instance.start),
            incarnation: instance.incarnation(),
        }
    }

    /// A cut of this way is over. What connections that lived through it have kept is delivered.
    pub(super) fn release(&mut self, from: usize, to: usize) {
        if self.net.faults[from][to].cut() {
            return;
        }
        self.net.silence[from][to].1 = false;
        self.net.silence[to][from].1 = false;
        for (sender, receiver, message) in std::mem::take(&mut self.net.held[from][to]) {
            if self.nodes[from].runs_as(sender) && self.connected(from, receiver) {
                self.transmit(sender, receiver, message);
            }
        }
    }
}
