//! How many handshakes of the channel are under way, and how many strangers may begin one.

use crate::base::{RateLimit, boottime};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many handshakes may be under way at a time.
pub(super) const HANDSHAKES_MAX: usize = 64;
/// How many of them strangers may have: processes at addresses that discovery does not name.
const STRANGERS_MAX: usize = HANDSHAKES_MAX / 2;
/// How often strangers may begin one: so many at once, and then one each time that this passes.
const STRANGERS_BURST: u32 = 200;
const STRANGERS_EVERY: Duration = Duration::from_millis(5);

/// Gives out the slots.
pub(super) struct Admission {
    taken: Arc<Taken>,
    rate: RateLimit,
}

#[derive(Default)]
struct Taken {
    all: AtomicUsize,
    strangers: AtomicUsize,
}

/// A handshake's place, which is free again when this is dropped.
pub(super) struct Slot {
    taken: Arc<Taken>,
    stranger: bool,
}

impl Admission {
    pub(super) fn new() -> Admission {
        Admission { taken: Arc::default(), rate: RateLimit::new(STRANGERS_BURST, STRANGERS_EVERY) }
    }

    /// A place for a handshake; none: there are too many. Only the listener's thread asks.
    pub(super) fn slot(&mut self, stranger: bool) -> Option<Slot> {
        let Taken { all, strangers } = &*self.taken;
        let full = all.load(Ordering::Relaxed) >= HANDSHAKES_MAX
            || stranger && strangers.load(Ordering::Relaxed) >= STRANGERS_MAX
            || stranger && self.rate.allow(boottime()).is_none();
        if full {
            return None;
        }
        all.fetch_add(1, Ordering::Relaxed);
        strangers.fetch_add(usize::from(stranger), Ordering::Relaxed);
        Some(Slot { taken: Arc::clone(&self.taken), stranger })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.taken.all.fetch_sub(1, Ordering::Relaxed);
        self.taken.strangers.fetch_sub(usize::from(self.stranger), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_have_half_of_the_places_and_a_place_is_free_again() {
        let mut admission = Admission::new();
        let strangers: Vec<Slot> = std::iter::from_fn(|| admission.slot(true)).take(HANDSHAKES_MAX).collect();
        assert_eq!(strangers.len(), STRANGERS_MAX);
        let members: Vec<Slot> = std::iter::from_fn(|| admission.slot(false)).take(HANDSHAKES_MAX).collect();
        assert_eq!(members.len(), HANDSHAKES_MAX - STRANGERS_MAX);
        drop(strangers);
        assert!(admission.slot(true).is_some() && admission.slot(false).is_some());
    }

    #[test]
    fn strangers_begin_few_handshakes_a_second() {
        let mut admission = Admission::new();
        let begun = (0..2 * STRANGERS_BURST).filter(|_| admission.slot(true).is_some()).count();
        // The places are free at once; a slow machine lets a few more in.
        assert!((STRANGERS_BURST as usize..2 * STRANGERS_BURST as usize).contains(&begun), "{begun}");
    }
}
