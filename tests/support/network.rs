//! The world's network: links between incarnations of processes, dials, cuts, and what a test does to single
//! messages.

use super::world::{Item, World, id};
use bellwether::election::{Event, Incarnation, Message, Peer, ProcessId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// A process and which of its incarnations.
pub type NodeInstance = (usize, u64);

/// Two processes that cannot reach each other, the lower first.
pub type Cut = (usize, usize);

/// All links, by their ends, the lower first.
pub type Links = BTreeMap<(NodeInstance, NodeInstance), Link>;

/// One connection.
pub struct Link {
    /// Whether each end still holds it to be open.
    up: [bool; 2],
    /// Where each end listened when it was opened.
    addresses: [SocketAddr; 2],
    /// When the latest message to each end arrives: the next one is not earlier.
    latest: [Duration; 2],
    /// What was sent to each end during a cut.
    held: [Vec<Message>; 2],
    /// Counts its cuts; odd while it is cut.
    cut: u64,
    used: Duration,
}

/// What the network does with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    Drop,
    Duplicate,
    /// Later messages overtake it.
    Delay(Duration),
}

/// What is to be done with the next message of a name from one process to another.
#[derive(Clone, Debug)]
pub struct Rule {
    pub from: usize,
    pub to: usize,
    pub name: String,
    pub effect: Effect,
}

fn key(a: NodeInstance, b: NodeInstance) -> (NodeInstance, NodeInstance) {
    (a.min(b), a.max(b))
}

fn side(link: (NodeInstance, NodeInstance), instance: NodeInstance) -> usize {
    usize::from(link.1 == instance)
}

fn other(link: (NodeInstance, NodeInstance), instance: NodeInstance) -> NodeInstance {
    if link.0 == instance { link.1 } else { link.0 }
}

impl World {
    /// The next message of this kind is treated like this.
    pub fn next(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// The rules that no message has met.
    pub fn unmet(&self) -> &[Rule] {
        &self.rules
    }

    fn delay(&mut self) -> Duration {
        let jitter = self.options.jitter.as_micros() as u64;
        self.options.delay + Duration::from_micros(self.random.u64(0..=jitter))
    }

    fn is_cut(&self, a: usize, b: usize) -> bool {
        self.cuts.contains(&(a.min(b), a.max(b)))
    }

    /// A process's Send.
    pub(super) fn send(&mut self, from: NodeInstance, to: ProcessId, address: SocketAddr, message: Message) {
        let named =
            |rule: &Rule| rule.from == from.0 && id(rule.to) == to && rule.name == message.body.name();
        let rule = self.rules.iter().position(named).map(|at| self.rules.remove(at).effect);
        let fate = match rule {
            None => String::new(),
            Some(Effect::Drop) => "  [dropped]".to_string(),
            Some(Effect::Duplicate) => "  [duplicated]".to_string(),
            Some(Effect::Delay(by)) => format!("  [delayed by {by:?}]"),
        };
        self.trace.sent(self.now, from.0, to, &message, &fate);
        let ends = self.links.iter().filter(|(link, l)| {
            (link.0 == from || link.1 == from) && l.up[side(**link, from)] && id(other(**link, from).0) == to
        });
        let link = ends.map(|(link, _)| *link).max_by_key(|link| other(*link, from).1);
        let Some(link) = link else {
            if rule != Some(Effect::Drop) {
                self.dial(from, address, Some((to, message)));
            }
            return;
        };
        match rule {
            Some(Effect::Drop) => {}
            Some(Effect::Delay(by)) => {
                let to = other(link, from);
                self.at(self.now + by, Item::Deliver { link, to, message });
            }
            Some(Effect::Duplicate) => {
                self.transmit(link, from, message.clone());
                self.transmit(link, from, message);
            }
            None => self.transmit(link, from, message),
        }
    }

    fn transmit(&mut self, link: (NodeInstance, NodeInstance), from: NodeInstance, message: Message) {
        let (delay, hold, now) = (self.delay(), self.options.hold, self.now);
        let to = other(link, from);
        let Some(l) = self.links.get_mut(&link) else { return };
        l.used = now;
        let end = side(link, to);
        if l.cut % 2 == 1 {
            if hold {
                l.held[end].push(message);
            }
            return;
        }
        let when = (now + delay).max(l.latest[end]);
        l.latest[end] = when;
        self.at(when, Item::Deliver { link, to, message });
    }

    pub(super) fn deliver(&mut self, link: (NodeInstance, NodeInstance), to: NodeInstance, message: Message) {
        // What is left of a former incarnation's messages ends where the next one's link begins.
        let sender = other(link, to);
        let former = self.links.keys().any(|l| *l == key(to, (sender.0, sender.1 + 1)));
        if !former && self.links.get(&link).is_some_and(|l| l.up[side(link, to)]) {
            let from = id(other(link, to).0);
            self.feed(to, Event::Received { from, message });
        }
    }

    /// One end learns that a link is closed.
    pub(super) fn closed(&mut self, link: (NodeInstance, NodeInstance), end: NodeInstance, event: Event) {
        let Some(l) = self.links.get_mut(&link) else { return };
        let was_up = std::mem::take(&mut l.up[side(link, end)]);
        if !l.up[0] && !l.up[1] {
            self.links.remove(&link);
        }
        if was_up {
            self.feed(end, event);
        }
    }

    /// A process ended: its peers' connections close after what it sent before, as a crash or on purpose.
    pub(super) fn close_all(&mut self, instance: NodeInstance, crashed: bool) {
        for link in self.ends_of(instance) {
            let peer = other(link, instance);
            let when = self.now + self.delay();
            let Some(l) = self.links.get_mut(&link) else { continue };
            l.up[side(link, instance)] = false;
            let when = when.max(l.latest[side(link, peer)]);
            let (id, incarnation) = (id(instance.0), Incarnation(instance.1));
            let event = if crashed {
                Event::Crashed { id, incarnation }
            } else {
                Event::LinkDown { id, incarnation }
            };
            if l.cut % 2 == 0 {
                self.at(when, Item::Close { link, side: peer, event });
            }
        }
    }

    /// A host vanished: its links end only when they time out.
    pub(super) fn cut_off(&mut self, instance: NodeInstance) {
        for link in self.ends_of(instance) {
            self.cut_link(link);
        }
    }

    fn ends_of(&self, instance: NodeInstance) -> Vec<(NodeInstance, NodeInstance)> {
        self.links.keys().filter(|link| link.0 == instance || link.1 == instance).copied().collect()
    }

    fn cut_link(&mut self, link: (NodeInstance, NodeInstance)) {
        let Some(l) = self.links.get_mut(&link) else { return };
        if l.cut % 2 == 0 {
            l.cut += 1;
            let item = Item::LinkTimeout(link, l.cut);
            self.at(self.now + self.options.link_timeout, item);
        }
    }

    pub(super) fn link_timed_out(&mut self, link: (NodeInstance, NodeInstance), cut: u64) {
        if self.links.get(&link).is_some_and(|l| l.cut == cut) {
            self.close_quietly(link);
        }
    }

    fn close_quietly(&mut self, link: (NodeInstance, NodeInstance)) {
        for (end, gone) in [(link.0, link.1), (link.1, link.0)] {
            let event = Event::LinkDown { id: id(gone.0), incarnation: Incarnation(gone.1) };
            self.closed(link, end, event);
        }
    }

    /// Their connection breaks, and a dial is refused in the name of a live process: one takes the other for
    /// dead.
    pub fn misjudge(&mut self, one: usize, other: usize) {
        let (first, second) = ((one, self.node(one).instance), (other, self.node(other).instance));
        let link = key(first, second);
        if self.links.contains_key(&link) {
            self.trace.line(self.now, &format!("+ p{one} takes p{other} for dead"));
            self.closed(link, first, Event::Crashed { id: id(other), incarnation: Incarnation(second.1) });
            self.closed(link, second, Event::LinkDown { id: id(one), incarnation: Incarnation(first.1) });
        }
    }

    /// Neither can reach the other any more.
    pub fn cut(&mut self, a: usize, b: usize) {
        self.cuts.insert((a.min(b), a.max(b)));
        let between = |link: &&(NodeInstance, NodeInstance)| (link.0.0, link.1.0) == (a.min(b), a.max(b));
        let links: Vec<_> = self.links.keys().filter(between).copied().collect();
        for link in links {
            self.cut_link(link);
        }
    }

    /// Each group can reach only itself.
    pub fn partition(&mut self, groups: &[Vec<usize>]) {
        let text: Vec<String> = groups.iter().map(|g| names(g)).collect();
        self.trace.line(self.now, &format!("+ partition {}", text.join(" | ")));
        for (i, group) in groups.iter().enumerate() {
            for a in group {
                for b in groups[i + 1..].iter().flatten() {
                    self.cut(*a, *b);
                }
            }
        }
    }

    /// All can reach all again. What connections that lived through it have kept is delivered.
    pub fn heal(&mut self) {
        self.trace.line(self.now, "+ heal");
        let cuts = std::mem::take(&mut self.cuts);
        let links: Vec<_> = self.links.keys().filter(|l| cuts.contains(&(l.0.0, l.1.0))).copied().collect();
        for link in links {
            if !self.runs(link.0) || !self.runs(link.1) {
                // The process that ended meanwhile cannot close it any more: its host resets it.
                self.close_quietly(link);
                continue;
            }
            let Some(l) = self.links.get_mut(&link).filter(|l| l.cut % 2 == 1) else { continue };
            l.cut += 1;
            let held = std::mem::take(&mut l.held);
            for (messages, from) in held.into_iter().zip([link.1, link.0]) {
                for message in messages {
                    self.transmit(link, from, message);
                }
            }
        }
    }

    /// Dials every address that the process seeks and is not connected with.
    pub(super) fn seek(&mut self, instance: NodeInstance) {
        if self.node(instance.0).paused {
            return;
        }
        for address in self.node(instance.0).seeking.clone() {
            if !self.connected(instance, address) {
                self.dial(instance, address, None);
            }
        }
    }

    fn connected(&self, instance: NodeInstance, address: SocketAddr) -> bool {
        self.links.iter().any(|(link, l)| {
            (link.0 == instance || link.1 == instance)
                && l.up[side(*link, instance)]
                && l.addresses[side(*link, other(*link, instance))] == address
        })
    }

    fn dial(&mut self, from: NodeInstance, address: SocketAddr, message: Option<(ProcessId, Message)>) {
        let dials = &mut self.node_mut(from.0).dials;
        let under_way = dials.contains_key(&address);
        dials.entry(address).or_default().extend(message);
        if !under_way {
            let when = self.now + self.delay() + self.delay();
            self.at(when, Item::Dialled(from, address));
        }
    }

    /// A dial has come to its end.
    pub(super) fn dialled(&mut self, from: NodeInstance, address: SocketAddr) {
        if !self.runs(from) {
            return;
        }
        let waiting = self.node_mut(from.0).dials.remove(&address).unwrap_or_default();
        let there: Vec<usize> =
            self.nodes.iter().filter(|(_, n)| n.address == address).map(|(k, _)| *k).collect();
        let listens = there.iter().copied().find(|k| self.node(*k).machine.is_some());
        let Some(k) = listens else {
            let reachable = there.iter().any(|k| self.node(*k).host_answers && !self.is_cut(from.0, *k));
            if reachable && self.options.evidence {
                self.feed(from, Event::Refused(address));
            }
            return;
        };
        if k == from.0 {
            return self.feed(from, Event::ReachedSelf(address));
        }
        if self.is_cut(from.0, k) || self.node(k).paused || self.node(from.0).paused {
            return;
        }
        let to = (k, self.node(k).instance);
        let link = key(from, to);
        if self.links.get(&link).is_some_and(|l| l.up != [true, true]) {
            // Half of it is closed: that end learns it first.
            return;
        }
        if !self.links.contains_key(&link) {
            self.connect(link);
        } else if self.options.further_links {
            self.introduce(link);
        }
        for (to, message) in waiting {
            if to == id(k) {
                self.transmit(link, from, message);
            }
        }
    }

    fn connect(&mut self, link: (NodeInstance, NodeInstance)) {
        let ends = [link.0, link.1];
        let fresh = Link {
            up: [true, true],
            addresses: ends.map(|instance| self.node(instance.0).address),
            latest: [self.now; 2],
            held: [Vec::new(), Vec::new()],
            cut: 0,
            used: self.now,
        };
        self.links.insert(link, fresh);
        self.at(self.now + self.options.idle_timeout, Item::Idle(link));
        self.introduce(link);
    }

    /// Tells both ends of each other.
    fn introduce(&mut self, link: (NodeInstance, NodeInstance)) {
        let [one, two] = [link.0, link.1].map(|instance| self.introduced(instance));
        // What either side sends on hearing of the other travels after this.
        self.at(self.now, Item::Event(link.0, Event::LinkUp(two)));
        self.at(self.now, Item::Event(link.1, Event::LinkUp(one)));
    }

    fn introduced(&self, instance: NodeInstance) -> Peer {
        let node = self.node(instance.0);
        let mut peer = node.machine.as_ref().unwrap().me().clone();
        if peer.address.ip().is_unspecified() {
            peer.address = node.address;
        }
        peer
    }

    /// Closes a link that neither end seeks or uses.
    pub(super) fn idle(&mut self, link: (NodeInstance, NodeInstance)) {
        let Some(l) = self.links.get(&link) else { return };
        let sought = [(link.0, 1), (link.1, 0)].into_iter().any(|(instance, peer)| {
            self.runs(instance) && self.node(instance.0).seeking.contains(&l.addresses[peer])
        });
        let used = l.used;
        let timeout = self.options.idle_timeout;
        if !sought && self.now >= used + timeout && l.cut % 2 == 0 {
            return self.close_quietly(link);
        }
        let again = (used + timeout).max(self.now + timeout / 4);
        self.at(again, Item::Idle(link));
    }

    /// Whether two processes are connected.
    pub fn linked(&self, a: usize, b: usize) -> bool {
        let link = key((a, self.node(a).instance), (b, self.node(b).instance));
        self.links.get(&link).is_some_and(|l| l.up == [true, true])
    }

    /// The pairs that cannot reach each other.
    pub fn cut_pairs(&self) -> &BTreeSet<Cut> {
        &self.cuts
    }
}

fn names(ks: &[usize]) -> String {
    ks.iter().map(|k| format!("p{k}")).collect::<Vec<_>>().join(" ")
}
