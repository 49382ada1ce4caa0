//! Clauses that tests leave out of the rules; nothing of it is in a build that is not for tests.

use super::{Machine, Mutation};

impl Machine {
    /// Whether a test has left this clause out.
    #[cfg(test)]
    pub(super) fn mutant(&self, clause: Mutation) -> bool {
        self.mutation == Some(clause)
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)] // As the one for tests.
    pub(super) fn mutant(&self, _: Mutation) -> bool {
        false
    }

    /// Leaves a clause out, to see that it is missed.
    #[cfg(test)]
    pub(crate) fn mutate(&mut self, clause: Mutation) {
        self.mutation = Some(clause);
    }
}
