//! How many handshakes of the channel are under way, of one host and of strangers.

use crate::base::{RateLimit, boottime};
use crate::net::{Place, Places};
use std::net::IpAddr;
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
    places: Places,
    rate: RateLimit,
}

impl Admission {
    pub(super) fn new() -> Admission {
        Admission { places: Places::default(), rate: RateLimit::new(STRANGERS_BURST, STRANGERS_EVERY) }
    }

    /// A place for a handshake with this host; none: there are too many. `names`: how many of its addresses
    /// discovery names. Only the listener's thread asks.
    pub(super) fn slot(&mut self, host: IpAddr, names: usize) -> Option<Place> {
        let stranger = names == 0;
        let place = self.places.take(host, stranger, |taken| {
            taken.all() < HANDSHAKES_MAX
                && if stranger {
                    taken.strangers() < STRANGERS_MAX
                } else {
                    taken.of_host(host) < HOST_MAX + 2 * names
                }
        });
        place.filter(|_| !stranger || self.rate.allow(boottime()).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All places that a host gets.
    fn all_of(admission: &mut Admission, last: u8, names: usize) -> Vec<Place> {
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
