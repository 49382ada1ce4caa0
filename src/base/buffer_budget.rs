//! A budget of bytes that many buffers share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a buffer is filled by. None of them can use up what another one needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// A peer at an address that discovery names: it may have all that is left.
    Named,
    /// Any other peer: together they have a quarter.
    Stranger,
    /// A client of the status port: together they have a quarter.
    Client,
}

/// How many bytes all buffers together may hold that others fill or empty: unfinished frames, messages that
/// wait, and replies on their way. Clones are the same budget.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Taken>);

#[derive(Debug)]
struct Taken {
    bytes_max: usize,
    /// What is taken, by [`Holder`].
    bytes: Mutex<[usize; 3]>,
}

/// What one buffer has of a [`Budget`]; given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    holder: Holder,
    bytes: usize,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes_max: usize) -> Budget {
        Budget(Arc::new(Taken { bytes_max, bytes: Mutex::default() }))
    }

    /// A share of no bytes yet.
    pub fn share(&self, holder: Holder) -> Share {
        Share { budget: self.clone(), holder, bytes: 0 }
    }

    /// A share of so many bytes; none: they are not left.
    pub fn take(&self, holder: Holder, bytes: usize) -> Option<Share> {
        let mut share = self.share(holder);
        share.resize(bytes).then_some(share)
    }

    fn taken(&self) -> MutexGuard<'_, [usize; 3]> {
        // Nothing can panic while it is locked.
        self.0.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Makes it this large. False: so many bytes are not left, and it is as large as before.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let mut taken = self.budget.taken();
        let bytes_max = self.budget.0.bytes_max;
        let of_holder = taken[self.holder as usize] - self.bytes + bytes;
        let of_all = taken.iter().sum::<usize>() - self.bytes + bytes;
        let of_holder_max = match self.holder {
            Holder::Named => bytes_max,
            Holder::Stranger => bytes_max / 4,
            Holder::Client => bytes_max / 4,
        };
        let fits = bytes <= self.bytes || of_all <= bytes_max && of_holder <= of_holder_max;
        if fits {
            taken[self.holder as usize] = of_holder;
            drop(taken);
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_are_no_larger_than_the_budget() {
        let budget = Budget::new(100);
        let mut first = budget.take(Holder::Named, 60).unwrap();
        assert!(budget.take(Holder::Named, 41).is_none());
        let second = budget.take(Holder::Named, 40).unwrap();
        assert!(!first.resize(61) && first.resize(10));
        assert!(budget.take(Holder::Named, 50).is_some(), "what was not kept is free again");
        drop(second);
        assert!(first.resize(100));
    }

    #[test]
    fn strangers_and_clients_leave_a_part_to_named_peers() {
        let budget = Budget::new(100);
        assert!(budget.take(Holder::Stranger, 26).is_none() && budget.take(Holder::Client, 26).is_none());
        let _strangers = budget.take(Holder::Stranger, 25).unwrap();
        let _clients = budget.take(Holder::Client, 25).unwrap();
        assert!(budget.take(Holder::Stranger, 1).is_none() && budget.take(Holder::Client, 1).is_none());
        assert!(budget.take(Holder::Named, 50).is_some());
    }
}
