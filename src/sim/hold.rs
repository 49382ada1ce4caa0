//! A hold, as the simulator sees it from outside.

use super::clock::Ns;
use super::node::{Node, NodeInstance};
use crate::base::Reading;
use std::time::Duration;

/// What the applications of a run were promised.
#[derive(Debug)]
pub(super) struct Applications {
    /// Apart from the run's: runs without applications draw as they did.
    pub(super) random: fastrand::Rng,
    /// For how long one is asked for at most, in milliseconds.
    pub(super) asked_max: u64,
    /// All holds and extensions that may not be over, at most some for each that is out.
    pub(super) holds: Vec<Hold>,
}

/// One promise, from its turn on.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) instance: NodeInstance,
    pub(super) number: u64,
    /// What the host's clocks showed, and for how long it had slept.
    pub(super) taken: Reading,
    pub(super) slept: Ns,
    pub(super) lasts: Duration,
}

impl Hold {
    /// Whether a careful holder still counts on it: one that goes by CLOCK_BOOTTIME, or one that goes by
    /// CLOCK_MONOTONIC_RAW and stops at a suspend. A host that measures whole seconds stops both.
    pub(super) fn counts(&self, process: &Node, whole_seconds: bool, now: Ns) -> bool {
        let reading = process.clock.reading(now);
        let slept = process.clock.slept() != self.slept;
        let by_boot = reading.boot.saturating_sub(self.taken.boot) < self.lasts;
        let by_raw = reading.raw.saturating_sub(self.taken.raw) < self.lasts;
        by_boot && !(slept && whole_seconds) || by_raw && !slept
    }
}
