//! A process's disk: what is durable, what is being written, and how a write may end.

use super::clock::Ns;
use crate::election::{KnownPeers, Record};

/// What a failed write leaves behind. The store writes a temporary file and renames it, so that the record is
/// the old one or the new one. A damaged one is what a broken disk leaves, and a start refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Leaves {
    /// The record from before.
    Old,
    /// The new one, although the write was reported as failed (the folder's sync failed after the rename).
    New,
    /// Neither: the operator has to remove it, and the process starts without a record.
    Damaged,
}

/// Where in the next batch of actions that begins with a write the process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CrashPoint {
    /// Before anything of it.
    BeforeWrite,
    /// When this many of the actions after the write have been carried out.
    AfterWrite(u8),
}

/// What is on disk, and what will go wrong there.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// What a restart would read.
    pub(super) record: Option<Record>,
    /// Where peers were, for all that was written of it.
    pub(super) known: Option<KnownPeers>,
    /// The next write fails, and leaves this.
    pub(super) failing: Option<Leaves>,
    /// The process ends during the next write.
    pub(super) crash: Option<CrashPoint>,
    /// Writes take this long, until then.
    pub(super) slow: Option<(Ns, Ns)>,
}

/// What became of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// It will be durable after this long.
    After(Ns),
    /// The process ends, and the record is damaged or not.
    Failed {
        /// Whether a start refuses what is there.
        damaged: bool,
    },
}

impl Disk {
    /// Begins to write. With `Written::After(0)` the record is durable; with a longer time [`Disk::finish`]
    /// makes it so.
    pub(super) fn write(&mut self, now: Ns, record: &Record) -> Written {
        match self.failing.take() {
            Some(Leaves::Old) => Written::Failed { damaged: false },
            Some(Leaves::New) => {
                self.record = Some(record.clone());
                Written::Failed { damaged: false }
            }
            Some(Leaves::Damaged) => Written::Failed { damaged: true },
            None => Written::After(self.slow.filter(|(_, until)| now < *until).map_or(0, |(takes, _)| takes)),
        }
    }

    /// The record is durable.
    pub(super) fn finish(&mut self, record: Record) {
        self.record = Some(record);
    }

    /// Nothing goes wrong any more.
    pub(super) fn heal(&mut self) {
        *self = Disk { record: self.record.take(), known: self.known.take(), ..Disk::default() };
    }
}
