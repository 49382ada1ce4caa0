//! Limited places, counted in all and by host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives out places. Clones give out the same ones.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Taken>>);

/// The places that are taken, by host, and apart those of strangers. A host without one has no entry.
#[derive(Default)]
pub struct Taken(BTreeMap<(IpAddr, bool), usize>);

/// A place, which is free again when this is dropped.
pub struct Place {
    places: Places,
    key: (IpAddr, bool),
}

impl Taken {
    /// How many all have.
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    /// How many strangers have.
    pub fn strangers(&self) -> usize {
        self.0.iter().filter(|((_, stranger), _)| *stranger).map(|(_, taken)| taken).sum()
    }

    /// How many a host has.
    pub fn of_host(&self, host: IpAddr) -> usize {
        self.0.range((host, false)..=(host, true)).map(|(_, taken)| taken).sum()
    }
}

impl Places {
    /// A place for this host, if those that are taken leave room for it.
    pub fn take(&self, host: IpAddr, stranger: bool, fits: impl FnOnce(&Taken) -> bool) -> Option<Place> {
        let (mut taken, key) = (self.lock(), (host, stranger));
        if !fits(&taken) {
            return None;
        }
        *taken.0.entry(key).or_default() += 1;
        drop(taken);
        Some(Place { places: self.clone(), key })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing can panic while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        match taken.0.get_mut(&self.key) {
            Some(more) if *more > 1 => *more -= 1,
            _ => drop(taken.0.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_and_nothing_is_kept_of_a_host_without_one() {
        let places = Places::default();
        let (here, there) = (IpAddr::from([198, 18, 0, 1]), IpAddr::from([198, 18, 0, 2]));
        let any = |_: &Taken| true;
        let taken = [(here, false), (here, false), (here, true), (there, true)]
            .map(|(host, stranger)| places.take(host, stranger, any).unwrap());
        let counted = |taken: &Taken| [taken.all(), taken.strangers(), taken.of_host(here)];
        assert_eq!(counted(&places.lock()), [4, 2, 3]);
        assert!(places.take(there, false, |_| false).is_none());
        assert_eq!(places.lock().all(), 4, "a place that was refused counts for none");
        drop(taken);
        assert!(places.lock().0.is_empty());
    }
}
