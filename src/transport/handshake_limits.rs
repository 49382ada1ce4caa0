//! How many handshakes of the channel are under way, of one host and of strangers.

use crate::base::{RateLimit, boottime};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many handshakes may be under way at a time.
pub(super) const HANDSHAKES_MAX: usize = 64;
/// How many of them strangers may have: processes at addresses that discovery does not name.
const STRANGERS_MAX: usize = HANDSHAKES_MAX / 2;
/// How many a host may have that discovery names, beside two for each of its names. What runs there without a
/// proof, such as an application of the same pod, takes no other member's place.
const HOST_MAX: usize = 16;
/// How often strangers may begin one: so many at once, and then one each time that this passes.
const STRANGERS_BURST: u32 = 200;
const STRANGERS_EVERY: Duration = Duration::from_millis(5);

/// Gives out the slots.
pub(super) struct Admission {
    taken: Arc<Mutex<Taken>>,
    rate: RateLimit,
}

/// At most [`HANDSHAKES_MAX`] of all.
#[derive(Default)]
struct Taken {
    strangers: usize,
    /// Those of each host that discovery names.
    named: HashMap<IpAddr, usize>,
}

/// A handshake's place, which is free again when this is dropped.
pub(super) struct Slot {
    taken: Arc<Mutex<Taken>>,
    /// None: a stranger's.
    named: Option<IpAddr>,
}

impl Admission {
    pub(super) fn new() -> Admission {
        Admission { taken: Arc::default(), rate: RateLimit::new(STRANGERS_BURST, STRANGERS_EVERY) }
    }

    /// A place for a handshake with this host; none: there are too many. `names`: how many of its addresses
    /// discovery names. Only the listener's thread asks.
    pub(super) fn slot(&mut self, host: IpAddr, names: usize) -> Option<Slot> {
        let mut taken = lock(&self.taken);
        let stranger = names == 0;
        let of_host = taken.named.get(&host).copied().unwrap_or(0);
        let full = taken.strangers + taken.named.values().sum::<usize>() >= HANDSHAKES_MAX
            || stranger && taken.strangers >= STRANGERS_MAX
            || !stranger && of_host >= HOST_MAX + 2 * names
            || stranger && self.rate.allow(boottime()).is_none();
        if full {
            return None;
        }
        if stranger {
            taken.strangers += 1;
        } else {
            taken.named.insert(host, of_host + 1);
        }
        Some(Slot { taken: Arc::clone(&self.taken), named: (!stranger).then_some(host) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        let Some(host) = self.named else {
            taken.strangers -= 1;
            return;
        };
        if let Some(of_host) = taken.named.get_mut(&host) {
            *of_host -= 1;
            if *of_host == 0 {
                taken.named.remove(&host);
            }
        }
    }
}

/// Each change is one assignment, so what a thread that panicked has left is whole.
fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All places that a host gets.
    fn all_of(admission: &mut Admission, last: u8, names: usize) -> Vec<Slot> {
        let host = IpAddr::from([198, 18, 0, last]);
        std::iter::from_fn(|| admission.slot(host, names)).take(2 * HANDSHAKES_MAX).collect()
    }

    #[test]
    fn strangers_have_half_of_the_places_and_a_place_is_free_again() {
        let mut admission = Admission::new();
        let strangers = all_of(&mut admission, 1, 0);
        assert_eq!(strangers.len(), STRANGERS_MAX);
        let members = all_of(&mut admission, 2, HANDSHAKES_MAX);
        assert_eq!(members.len(), HANDSHAKES_MAX - STRANGERS_MAX);
        drop(strangers);
        assert_eq!(all_of(&mut admission, 1, 0).len(), STRANGERS_MAX);
        assert_eq!(all_of(&mut admission, 2, HANDSHAKES_MAX).len(), HANDSHAKES_MAX - members.len());
    }

    #[test]
    fn a_named_host_takes_no_place_of_another() {
        let mut admission = Admission::new();
        let (one, two) = (all_of(&mut admission, 1, 1), all_of(&mut admission, 2, 3));
        assert_eq!((one.len(), two.len()), (HOST_MAX + 2, HOST_MAX + 6));
        drop(one);
        assert!(all_of(&mut admission, 2, 3).is_empty());
        assert_eq!(all_of(&mut admission, 1, 1).len(), HOST_MAX + 2);
        assert_eq!(lock(&admission.taken).named.len(), 1, "what has no place is forgotten");
    }

    #[test]
    fn strangers_begin_few_handshakes_a_second() {
        let mut admission = Admission::new();
        let host = IpAddr::from([198, 18, 0, 1]);
        let begun = (0..2 * STRANGERS_BURST).filter(|_| admission.slot(host, 0).is_some()).count();
        // The places are free at once; a slow machine lets a few more in.
        assert!((STRANGERS_BURST as usize..2 * STRANGERS_BURST as usize).contains(&begun), "{begun}");
    }
}
