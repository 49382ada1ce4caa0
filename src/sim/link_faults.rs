//! What the network does to messages on their way from one place to another, and between which places nothing
//! passes.

use super::clock::Ns;
use crate::election::{Body, Message};
use std::fmt;
use std::ops::{Index, IndexMut};

/// The most places of a run.
pub(super) const PLACES_MAX: usize = 32;

/// Places, as bits.
pub(super) type Places = u32;

/// Ordered pairs of places: of each place, to which others, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pairs([Places; PLACES_MAX]);

impl Pairs {
    /// All pairs.
    pub(super) const ALL: Pairs = Pairs([Places::MAX; PLACES_MAX]);

    pub(super) fn one_way(from: usize, to: usize) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.0[from] = 1 << to;
        pairs
    }

    pub(super) fn both(a: usize, b: usize) -> Pairs {
        Pairs::one_way(a, b).and(Pairs::one_way(b, a))
    }

    /// From this place to all others.
    pub(super) fn from(from: usize) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.0[from] = !(1 << from);
        pairs
    }

    /// From all other places to this one.
    pub(super) fn to(to: usize) -> Pairs {
        let mut pairs = Pairs([1 << to; PLACES_MAX]);
        pairs.0[to] = 0;
        pairs
    }

    /// Everything between these places and all others.
    pub(super) fn split(side: Places) -> Pairs {
        Pairs(std::array::from_fn(|place| if side >> place & 1 == 1 { !side } else { side }))
    }

    pub(super) fn and(self, other: Pairs) -> Pairs {
        Pairs(std::array::from_fn(|place| self.0[place] | other.0[place]))
    }

    /// Those among this number of first places.
    pub(super) fn among(self, places: usize) -> impl Iterator<Item = (usize, usize)> {
        let ways = (0..places).flat_map(move |from| (0..places).map(move |to| (from, to)));
        ways.filter(move |(from, to)| self.0[*from] >> to & 1 == 1)
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Pairs::ALL {
            return f.write_str("all");
        }
        let ways = self.among(PLACES_MAX).map(|(from, to)| format!("{from}>{to}"));
        write!(f, "[{}]", ways.collect::<Vec<_>>().join(" "))
    }
}

/// One value for each ordered pair of places.
#[derive(Debug)]
pub(super) struct Table<T> {
    places: usize,
    cells: Vec<T>,
}

impl<T: Default> Table<T> {
    pub(super) fn new(places: usize) -> Table<T> {
        Table { places, cells: std::iter::repeat_with(T::default).take(places * places).collect() }
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = [T];

    fn index(&self, from: usize) -> &[T] {
        &self.cells[from * self.places..][..self.places]
    }
}

impl<T> IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, from: usize) -> &mut [T] {
        &mut self.cells[from * self.places..][..self.places]
    }
}

/// Kinds of messages, as bits in the order of [`Body::NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Classes(u32);

impl Classes {
    /// All messages.
    pub(super) const ALL: Classes = Classes(u32::MAX);

    /// Those of this name, one of [`Body::NAMES`].
    pub(super) fn of(name: &str) -> Classes {
        Classes(Body::NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at))
    }

    pub(super) fn and(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    pub(super) fn has(self, message: &Message) -> bool {
        self == Classes::ALL || self.0 & Classes::of(message.body.name()).0 != 0
    }
}

/// What the network does to some messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// So many in a thousand are lost.
    Lose(u16),
    /// So many in a thousand arrive twice, the second one later by up to so much.
    Duplicate(u16, Ns),
    /// Each is later by up to so much, whatever was sent before.
    Reorder(Ns),
    /// Each is later by so much, and so is what follows it.
    Slow(Ns),
}

/// An effect on a way between two places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Disturbance {
    pub(super) effect: Effect,
    pub(super) classes: Classes,
    pub(super) until: Ns,
}

/// The most disturbances of one way at a time; the oldest ends for a further one.
const DISTURBANCES_MAX: usize = 4;

/// The way from one place to another.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkFaults {
    /// How many cuts are on it that hold messages back, as a broken connection's sender does until it heals
    /// or times out.
    pub(super) holding: u8,
    /// How many cuts are on it that swallow messages and keep connections.
    pub(super) swallowing: u8,
    pub(super) disturbances: Vec<Disturbance>,
}

/// When the copies of a message arrive, at most two.
pub(super) type Arrivals = [Option<Ns>; 2];

impl LinkFaults {
    /// Whether nothing passes.
    pub(super) fn cut(&self) -> bool {
        self.holding > 0 || self.swallowing > 0
    }

    pub(super) fn disturb(&mut self, now: Ns, disturbance: Disturbance) {
        self.disturbances.retain(|d| now < d.until);
        if self.disturbances.len() == DISTURBANCES_MAX {
            self.disturbances.remove(0);
        }
        self.disturbances.push(disturbance);
    }

    /// When a message that leaves now arrives, if it does. `fifo` is when the latest one before it arrives.
    pub(super) fn arrivals(
        &self,
        now: Ns,
        delay: Ns,
        message: &Message,
        fifo: &mut Ns,
        random: &mut fastrand::Rng,
    ) -> Arrivals {
        let chance = |permille: u16, random: &mut fastrand::Rng| random.u16(0..1000) < permille;
        let mut at = now + delay;
        let (mut in_order, mut again) = (true, None);
        for d in self.disturbances.iter().filter(|d| now < d.until && d.classes.has(message)) {
            match d.effect {
                Effect::Lose(permille) if chance(permille, random) => return [None, None],
                Effect::Duplicate(permille, most) if chance(permille, random) => {
                    again = Some(random.u64(0..=most));
                }
                Effect::Lose(_) | Effect::Duplicate(..) => {}
                Effect::Reorder(most) => (at, in_order) = (at + random.u64(0..=most), false),
                Effect::Slow(late) => {
                    at += late;
                    // A message that is slow by its kind lets others pass.
                    in_order &= d.classes == Classes::ALL;
                }
            }
        }
        if in_order {
            at = at.max(*fifo);
            *fifo = at;
        }
        [Some(at), again.map(|later| at + later)]
    }
}
