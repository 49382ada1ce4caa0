//! How many links there may be: in all, with strangers, and with one host. A link has its place before it has
//! a thread, and a stranger costs none without one.

use super::{LINKS_MAX, LINKS_PER_HOST_MAX, LINKS_PER_NAME_MAX, LINKS_WITH_STRANGERS_MAX};
use crate::net::{Place, Places};
use std::net::IpAddr;

/// A place for a link with a host; none: there is none left. `names`: how many of its addresses discovery
/// names.
pub(super) fn take(places: &Places, host: IpAddr, names: usize) -> Option<Place> {
    let stranger = names == 0;
    let of_host_max = LINKS_PER_HOST_MAX.saturating_add(names.saturating_mul(LINKS_PER_NAME_MAX));
    places.take(host, stranger, |taken| {
        taken.all() < LINKS_MAX
            && (!stranger || taken.strangers() < LINKS_WITH_STRANGERS_MAX)
            && taken.of_host(host) < of_host_max
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn host(number: usize) -> IpAddr {
        Ipv4Addr::from(u32::try_from(number).unwrap()).into()
    }

    #[test]
    fn a_host_has_as_many_places_as_it_has_names_and_a_few_more() {
        for (names, most) in [(0, LINKS_PER_HOST_MAX), (3, LINKS_PER_HOST_MAX + 3 * LINKS_PER_NAME_MAX)] {
            let places = Places::default();
            let mut taken: Vec<Place> = std::iter::from_fn(|| take(&places, host(1), names)).collect();
            assert_eq!(taken.len(), most);
            taken.pop();
            assert!(take(&places, host(1), names).is_some(), "it is free again");
        }
    }

    #[test]
    fn strangers_leave_most_places_to_hosts_that_discovery_names() {
        let places = Places::default();
        let strangers: Vec<Place> =
            (0..LINKS_MAX).filter_map(|number| take(&places, host(number), 0)).collect();
        assert_eq!(strangers.len(), LINKS_WITH_STRANGERS_MAX);
        let named: Vec<Place> = (0..LINKS_MAX).filter_map(|number| take(&places, host(number), 1)).collect();
        assert_eq!(named.len(), LINKS_MAX - LINKS_WITH_STRANGERS_MAX);
    }
}
