//! The candidates that may still win, as one voter knows them (the candidacy rule, clause 25).

use crate::election::{Moment, ProcessId, Rank};
use std::collections::BTreeMap;
use std::time::Duration;

/// When each contender has asked for a pre-vote. At most one entry a member that is not held failed.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Contenders {
    asked: BTreeMap<ProcessId, (Rank, Moment)>,
}

impl Contenders {
    /// A candidate asks for a pre-vote, and says whether it may still win.
    pub(super) fn hear(&mut self, rank: Rank, contender: bool, now: Moment) {
        if contender {
            self.asked.insert(rank.id, (rank, now));
        } else {
            self.asked.remove(&rank.id);
        }
    }

    /// Forgets a member that is gone.
    pub(super) fn forget(&mut self, id: ProcessId) {
        self.asked.remove(&id);
    }

    /// How long ago the latest contender of higher rank has asked, if that was within this time.
    pub(super) fn better(&self, than: Rank, now: Moment, within: Duration) -> Option<Duration> {
        let better = self.asked.values().filter(|(rank, _)| rank.outranks(than));
        better.map(|(_, at)| now.since(*at)).filter(|ago| *ago < within).min()
    }
}
