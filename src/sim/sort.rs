//! The sorts of faults: what runs draw from, and what is counted.

use super::air::Effect;
use super::disk::Leaves;
use super::faults::{Kind, Shape};

/// Declares the sorts, in the order in which they are drawn and printed.
macro_rules! sorts {
    ($($name:ident $text:literal,)*) => {
        /// A sort of fault.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Sort {
            $($name,)*
        }

        impl Sort {
            /// All of them.
            pub(super) const ALL: &[Sort] = &[$(Sort::$name,)*];

            /// Its name in what is printed.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Sort::$name => $text,)*
                }
            }
        }
    };
}

sorts! {
    Crash "crash",
    HostGone "host_gone",
    CrashInWrite "crash_in_write",
    FailedWrite "failed_write",
    TornWrite "torn_write",
    SlowDisk "slow_disk",
    Stall "stall",
    Pause "pause",
    Leave "leave",
    Join "join",
    Partition "partition",
    PartialPartition "partial_partition",
    OneWayPartition "one_way_partition",
    Loss "loss",
    Duplication "duplication",
    Reordering "reordering",
    Delay "delay",
    Reset "reset",
    RefusedInError "refused_in_error",
    ClockRate "clock_rate",
    Slew "slew",
    Suspend "suspend",
    WallJump "wall_jump",
    Dns "dns",
    VotersChanged "voters_changed",
    LeaseChanged "lease_changed",
}

impl Kind {
    /// What it is counted as.
    pub(super) fn sort(&self) -> Sort {
        match self {
            Kind::Crash { host_gone: false, .. } => Sort::Crash,
            Kind::Crash { host_gone: true, .. } => Sort::HostGone,
            Kind::CrashInWrite { .. } => Sort::CrashInWrite,
            Kind::FailedWrite { leaves: Leaves::Old, .. } => Sort::FailedWrite,
            Kind::FailedWrite { .. } => Sort::TornWrite,
            Kind::SlowDisk { .. } => Sort::SlowDisk,
            Kind::Stall { .. } => Sort::Stall,
            Kind::Pause { .. } => Sort::Pause,
            Kind::Leave { .. } => Sort::Leave,
            Kind::Join { .. } => Sort::Join,
            Kind::Cut { shape: Shape::Split, .. } => Sort::Partition,
            Kind::Cut { shape: Shape::Partial, .. } => Sort::PartialPartition,
            Kind::Cut { shape: Shape::OneWay, .. } => Sort::OneWayPartition,
            Kind::Disturb { effect: Effect::Lose(_), .. } => Sort::Loss,
            Kind::Disturb { effect: Effect::Duplicate(..), .. } => Sort::Duplication,
            Kind::Disturb { effect: Effect::Reorder(_), .. } => Sort::Reordering,
            Kind::Disturb { effect: Effect::Slow(_), .. } => Sort::Delay,
            Kind::Reset { .. } => Sort::Reset,
            Kind::Misjudge { .. } => Sort::RefusedInError,
            Kind::Rate { .. } => Sort::ClockRate,
            Kind::Slew { .. } => Sort::Slew,
            Kind::Suspend { .. } => Sort::Suspend,
            Kind::WallJump { .. } => Sort::WallJump,
            Kind::Dns { .. } => Sort::Dns,
            Kind::Revote { .. } => Sort::VotersChanged,
            Kind::ChangeLease { .. } => Sort::LeaseChanged,
        }
    }
}

/// What happened in runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Faults, by [`Sort`].
    faults: [u64; Sort::ALL.len()],
    /// Disks that were lost.
    pub(super) disks_lost: u64,
    /// Leaders elected.
    pub(super) elections: u64,
}

impl Counts {
    pub(super) fn fault(&mut self, sort: Sort) {
        self.faults[sort as usize] += 1;
    }

    /// How often each sort of fault occurred.
    pub(super) fn faults(&self) -> impl Iterator<Item = (Sort, u64)> {
        Sort::ALL.iter().copied().zip(self.faults)
    }

    pub(super) fn disk_lost(&mut self) {
        self.disks_lost += 1;
    }

    pub(super) fn add(&mut self, other: &Counts) {
        for (sum, more) in self.faults.iter_mut().zip(other.faults) {
            *sum += more;
        }
        self.disks_lost += other.disks_lost;
        self.elections += other.elections;
    }
}
