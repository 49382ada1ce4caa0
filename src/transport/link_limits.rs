//! How many links there may be: in all, with strangers, and with one host. A link has its place before it has
//! a thread, and a stranger costs none without one.

use super::{LINKS_MAX, LINKS_PER_HOST_MAX, LINKS_PER_NAME_MAX, LINKS_WITH_STRANGERS_MAX};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives out the places. Clones give out the same ones.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    all: usize,
    strangers: usize,
    by_host: BTreeMap<IpAddr, usize>,
}

/// A link's place, which is free again when this is dropped.
pub(super) struct Place {
    places: Places,
    host: IpAddr,
    stranger: bool,
}

impl Places {
    /// A place for a link with a host, of which discovery names so many addresses; none: there is none left.
    pub(super) fn take(&self, host: IpAddr, names: usize) -> Option<Place> {
        let mut taken = self.lock();
        let of_host = taken.by_host.get(&host).copied().unwrap_or(0);
        let stranger = names == 0;
        let full = taken.all >= LINKS_MAX
            || stranger && taken.strangers >= LINKS_WITH_STRANGERS_MAX
            || of_host >= LINKS_PER_HOST_MAX.saturating_add(names.saturating_mul(LINKS_PER_NAME_MAX));
        if full {
            return None;
        }
        taken.all += 1;
        taken.strangers += usize::from(stranger);
        taken.by_host.insert(host, of_host + 1);
        drop(taken);
        Some(Place { places: self.clone(), host, stranger })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing can panic while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        taken.strangers -= usize::from(self.stranger);
        if let Some(of_host) = taken.by_host.get_mut(&self.host) {
            *of_host -= 1;
            if *of_host == 0 {
                taken.by_host.remove(&self.host);
            }
        }
    }
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
            let mut taken: Vec<Place> = std::iter::from_fn(|| places.take(host(1), names)).collect();
            assert_eq!(taken.len(), most);
            taken.pop();
            assert!(places.take(host(1), names).is_some(), "it is free again");
            drop(taken);
            assert!(places.lock().by_host.is_empty(), "nothing is kept of a host without a link");
        }
    }

    #[test]
    fn strangers_leave_most_places_to_hosts_that_discovery_names() {
        let places = Places::default();
        let strangers: Vec<Place> =
            (0..LINKS_MAX).filter_map(|number| places.take(host(number), 0)).collect();
        assert_eq!(strangers.len(), LINKS_WITH_STRANGERS_MAX);
        let named: Vec<Place> = (0..LINKS_MAX).filter_map(|number| places.take(host(number), 1)).collect();
        assert_eq!(named.len(), LINKS_MAX - LINKS_WITH_STRANGERS_MAX);
    }
}
