//! The sorts of faults: what runs draw from, and what is counted.

use super::disk::Leaves;
use super::fault::{Asks, Kind, Shape};
use super::link_faults::Effect;

/// Declares the sorts, in the order in which they are drawn and printed.
macro_rules! sorts {
    ($($name:ident $text:literal,)*) => {
        /// A sort of fault.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum FaultKind {
            $($name,)*
        }

        impl FaultKind {
            /// All of them.
            pub(super) const ALL: &[FaultKind] = &[$(FaultKind::$name,)*];

            /// Its name in what is printed.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(FaultKind::$name => $text,)*
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
    ResignAsked "resign_asked",
    TransferAsked "transfer_asked",
    Cordon "cordon",
    Sicken "application_sick",
}

impl FaultKind {
    /// Whether it is drawn with the others. The rest comes in rows of its own.
    pub(super) fn is_mixed(self) -> bool {
        let rows = [
            FaultKind::LeaseChanged,
            FaultKind::ResignAsked,
            FaultKind::TransferAsked,
            FaultKind::Cordon,
            FaultKind::Sicken,
        ];
        !rows.contains(&self)
    }
}

impl Kind {
    /// What it is counted as.
    pub(super) fn sort(&self) -> FaultKind {
        match self {
            Kind::Crash { host_gone: false, .. } => FaultKind::Crash,
            Kind::Crash { host_gone: true, .. } => FaultKind::HostGone,
            Kind::CrashInWrite { .. } => FaultKind::CrashInWrite,
            Kind::FailedWrite { leaves: Leaves::Old, .. } => FaultKind::FailedWrite,
            Kind::FailedWrite { .. } => FaultKind::TornWrite,
            Kind::SlowDisk { .. } => FaultKind::SlowDisk,
            Kind::Stall { .. } => FaultKind::Stall,
            Kind::Pause { .. } => FaultKind::Pause,
            Kind::Leave { .. } => FaultKind::Leave,
            Kind::Join { .. } => FaultKind::Join,
            Kind::Cut { shape: Shape::Split, .. } => FaultKind::Partition,
            Kind::Cut { shape: Shape::Partial, .. } => FaultKind::PartialPartition,
            Kind::Cut { shape: Shape::OneWay, .. } => FaultKind::OneWayPartition,
            Kind::Disturb { effect: Effect::Lose(_), .. } => FaultKind::Loss,
            Kind::Disturb { effect: Effect::Duplicate(..), .. } => FaultKind::Duplication,
            Kind::Disturb { effect: Effect::Reorder(_), .. } => FaultKind::Reordering,
            Kind::Disturb { effect: Effect::Slow(_), .. } => FaultKind::Delay,
            Kind::Reset { .. } => FaultKind::Reset,
            Kind::Misjudge { .. } => FaultKind::RefusedInError,
            Kind::Rate { .. } => FaultKind::ClockRate,
            Kind::Slew { .. } => FaultKind::Slew,
            Kind::Suspend { .. } => FaultKind::Suspend,
            Kind::WallJump { .. } => FaultKind::WallJump,
            Kind::Dns { .. } => FaultKind::Dns,
            Kind::Revote { .. } => FaultKind::VotersChanged,
            Kind::ChangeLease { .. } => FaultKind::LeaseChanged,
            Kind::Operate { asks: Asks::Resign { .. }, .. } => FaultKind::ResignAsked,
            Kind::Operate { asks: Asks::Transfer { .. }, .. } => FaultKind::TransferAsked,
            Kind::Operate { asks: Asks::Cordon, .. } => FaultKind::Cordon,
            Kind::Operate { asks: Asks::Sicken, .. } => FaultKind::Sicken,
        }
    }
}

/// What happened in runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Faults, by [`FaultKind`].
    faults: [u64; FaultKind::ALL.len()],
    /// Disks that were lost.
    pub(super) disks_lost: u64,
    /// Leaders elected.
    pub(super) elections: u64,
}

impl Counts {
    pub(super) fn fault(&mut self, sort: FaultKind) {
        self.faults[sort as usize] += 1;
    }

    /// How often each sort of fault occurred.
    pub(super) fn faults(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        FaultKind::ALL.iter().copied().zip(self.faults)
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
