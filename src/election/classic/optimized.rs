//! `--variant optimized`: an election asks only the process that it must.
//!
//! The highest live process leads in the end. An election asks that process alone, and the next one only
//! where the first is silent: one Election and one answer for each process, and not for each pair.

use super::Classic;
use crate::election::core::Core;
use crate::election::{ProcessId, Rank, Variant};

impl Core<Classic> {
    /// The highest-ranked live processes that outrank this one and may lead: the first `most` of them.
    pub(super) fn highest(&self, most: usize) -> Vec<ProcessId> {
        let me = self.rank();
        let mut higher: Vec<Rank> = self.other_candidates().filter(|rank| rank.outranks(me)).collect();
        higher.sort_unstable_by(|a, b| b.cmp(a));
        higher.into_iter().take(most).map(|rank| rank.id).collect()
    }

    /// Whether no asked process has answered, and another election would ask others.
    pub(super) fn has_others_to_ask(&self) -> bool {
        matches!(self.settings.variant, Variant::Optimized | Variant::Announcer)
            && !self.highest(1).is_empty()
    }
}
