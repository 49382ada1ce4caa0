//! A run as data: when each process starts with which settings, and every fault with its moment. All of it is
//! drawn from the seed before anything runs. So a failing run is made smaller by leaving faults out.

use super::clock::Ns;
use super::fault::Fault;
use super::link_faults::Places;
use crate::election::{CrashEvidence, Priority, Safety, Settings};

/// One place of a run.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) settings: Settings,
    pub(super) priority: Priority,
    pub(super) revision: String,
    /// What its clock shows at the start of the run.
    pub(super) clock_ns: Ns,
    pub(super) ppm: i32,
    /// None: it is started by a fault, if at all.
    pub(super) starts_at: Option<Ns>,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The first so many places are those that faults are about; there may be more, for processes that join.
    pub(super) n: usize,
    pub(super) places: Vec<Draft>,
    /// A message's way takes this long, and up to `jitter` longer.
    pub(super) delay: Ns,
    pub(super) jitter: Ns,
    /// How long a connection stays open without an acknowledgement of what was sent.
    pub(super) link_timeout: Ns,
    pub(super) faults: Vec<Fault>,
    /// Rounds and requests ask for any lease from 200 ms to the configuration's, until the faults end.
    pub(super) short_leases: bool,
    /// Hosts measure a suspend in whole seconds.
    pub(super) whole_seconds: bool,
    /// When the faults end.
    pub(super) chaos: Ns,
    /// The places that stay dead after that, by bits.
    pub(super) dead: Places,
}

impl Plan {
    /// Whether the run is about `--safety majority`.
    pub(super) fn majority(&self) -> bool {
        self.places.iter().any(|place| place.settings.safety != Safety::Classic)
    }

    /// Whether evidence of a crash frees promises.
    pub(super) fn releases(&self) -> bool {
        self.places.iter().any(|place| place.settings.crash_evidence == CrashEvidence::Release)
    }
}
