//! Clauses that tests leave out of the rules; nothing of it is in a build that is not for tests.

use super::{Machine, Mutation};

impl Machine {
    /// Whether a test has left this clause out.
    #[cfg(any(test, feature = "mutations"))]
    pub(super) fn mutant(&self, clause: Mutation) -> bool {
        self.mutation == Some(clause)
    }

    #[cfg(not(any(test, feature = "mutations")))]
    #[allow(clippy::unused_self)] // As the one for tests.
    pub(super) fn mutant(&self, _: Mutation) -> bool {
        false
    }

    /// Which clause a test has left out, for use where this machine is borrowed.
    #[cfg(any(test, feature = "mutations"))]
    pub(super) fn without(&self) -> impl Fn(Mutation) -> bool + Copy + use<> {
        let left_out = self.mutation;
        move |clause| left_out == Some(clause)
    }

    #[cfg(not(any(test, feature = "mutations")))]
    #[allow(clippy::unused_self)] // As the one for tests.
    pub(super) fn without(&self) -> impl Fn(Mutation) -> bool + Copy + use<> {
        |_| false
    }

    /// Leaves a clause out, to see that it is missed.
    #[doc(hidden)]
    #[cfg(any(test, feature = "mutations"))]
    pub fn mutate(&mut self, clause: Mutation) {
        self.mutation = Some(clause);
    }
}
