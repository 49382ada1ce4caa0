//! What the network does to messages on their way from one place to another, and between which places nothing passes.

use super::clock::Ns;
use super::process::PLACES_MAX;

/// Ordered pairs of places, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pairs(pub(super) u64);

impl Pairs {
    fn bit(from: usize, to: usize) -> u64 {
        1 << (from * PLACES_MAX + to)
    }

    pub(super) fn one_way(from: usize, to: usize) -> Pairs {
        Pairs(Pairs::bit(from, to))
    }

    pub(super) fn both(a: usize, b: usize) -> Pairs {
        Pairs(Pairs::bit(a, b) | Pairs::bit(b, a))
    }

    /// Everything between these places, by bits, and all others.
    pub(super) fn split(side: u8) -> Pairs {
        let on = |place: usize| side >> place & 1 == 1;
        let pairs = (0..PLACES_MAX).flat_map(|a| (0..PLACES_MAX).map(move |b| (a, b)));
        pairs.filter(|(a, b)| on(*a) != on(*b)).map(|(a, b)| Pairs::one_way(a, b)).fold(Pairs(0), Pairs::and)
    }

    pub(super) fn and(self, other: Pairs) -> Pairs {
        Pairs(self.0 | other.0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (usize, usize)> {
        (0..PLACES_MAX * PLACES_MAX)
            .filter(move |bit| self.0 >> bit & 1 == 1)
            .map(|bit| (bit / PLACES_MAX, bit % PLACES_MAX))
    }
}

/// Something that the network does until then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Until<T> {
    pub(super) what: T,
    pub(super) until: Ns,
}

impl<T: Copy> Until<T> {
    fn now(&self, now: Ns) -> Option<T> {
        Some(self.what).filter(|_| now < self.until)
    }
}

/// The way from one place to another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Air {
    /// How many cuts are on it that hold messages back, as a broken connection's sender does until it heals or times
    /// out.
    pub(super) holding: u8,
    /// How many cuts are on it that swallow messages and keep connections.
    pub(super) swallowing: u8,
    /// This many messages in a thousand are lost.
    pub(super) loss: Until<u16>,
    /// This many in a thousand arrive twice, the second one later by up to that much.
    pub(super) duplicate: Until<(u16, Ns)>,
    /// Each is later by up to that much, whatever was sent before.
    pub(super) reorder: Until<Ns>,
    /// Each is later by that much.
    pub(super) slow: Until<Ns>,
}

/// When the copies of a message arrive, at most two.
pub(super) type Arrivals = [Option<Ns>; 2];

impl Air {
    /// Whether nothing passes.
    pub(super) fn cut(&self) -> bool {
        self.holding > 0 || self.swallowing > 0
    }

    /// When a message that leaves now arrives, if it does. `fifo` is when the latest one before it arrives.
    pub(super) fn arrivals(&self, now: Ns, delay: Ns, fifo: &mut Ns, random: &mut fastrand::Rng) -> Arrivals {
        let chance = |permille: u16, random: &mut fastrand::Rng| random.u16(0..1000) < permille;
        if self.loss.now(now).is_some_and(|permille| chance(permille, random)) {
            return [None, None];
        }
        let mut at = now + delay + self.slow.now(now).unwrap_or(0);
        match self.reorder.now(now) {
            Some(most) => at += random.u64(0..=most),
            None => {
                at = at.max(*fifo);
                *fifo = at;
            }
        }
        let again = self.duplicate.now(now).filter(|(permille, _)| chance(*permille, random));
        [Some(at), again.map(|(_, most)| at + random.u64(0..=most))]
    }
}
