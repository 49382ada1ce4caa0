//! A fault as data: what goes wrong, where, when and for how long.

use super::clock::{MS, Ns};
use super::disk::{CrashPoint, Leaves};
use super::dns::DnsFault;
use super::link_faults::{Classes, Effect, Places};
use super::target::{Between, Cue, Target};
use std::fmt;
use std::time::Duration;

/// One fault of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// When it begins, or begins to wait for its cue.
    pub(super) at: Ns,
    /// What it waits for, and how long after that it begins.
    pub(super) cue: Option<(Cue, Ns)>,
    /// For how long: a window, a pause, or the time until a process is started again.
    pub(super) lasts: Ns,
    pub(super) kind: Kind,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A process ends with no word. A write under way is durable, or not.
    Crash { target: Target, kept: bool, disk_lost: bool, moves: bool, host_gone: bool },
    /// A process ends in the middle of the next batch that begins with a write.
    CrashInWrite { target: Target, point: CrashPoint, disk_lost: bool },
    /// The next write fails, and so the process stops itself.
    FailedWrite { target: Target, leaves: Leaves },
    /// Writes take so long.
    SlowDisk { target: Target, takes: Ns },
    /// The driver is held up in the middle of its next turn.
    Stall { target: Target, before_status: bool },
    /// A process is stopped and goes on later.
    Pause { target: Target },
    /// A process is told to stop, and is started again later: a rollout, or a pod that moves.
    Leave { target: Target, moves: bool },
    /// A further process, which leaves again.
    Join { place: usize },
    /// A process is started, or started again, with these places as its `--voters`, by bits.
    Revote { place: usize, voters: Places },
    /// A process has another `--lease` from its next start on. If it runs, it is started again. In error: no
    /// other process gets that lease, which a first start does not have to survive.
    ChangeLease { place: usize, lease: Duration, in_error: bool },
    /// An operator asks a process for something.
    Operate { target: Target, asks: Asks },
    /// Nothing passes.
    Cut { between: Between, shape: Shape, swallows: bool },
    /// Something happens to messages of some kinds.
    Disturb { between: Between, classes: Classes, effect: Effect },
    /// A connection breaks.
    Reset { a: Target, b: Target },
    /// A connection breaks, and something on the path refuses a dial in the name of a live process.
    Misjudge { target: Target, of: Target },
    /// A clock runs at another rate.
    Rate { target: Target, ppm: i32 },
    /// CLOCK_BOOTTIME is slewed by so much from now on.
    Slew { target: Target, ppm: i32 },
    /// The host is suspended.
    Suspend { target: Target },
    /// The wall clock jumps.
    WallJump { target: Target, ahead_ms: i64 },
    /// Look-ups go wrong.
    Dns { target: Target, fault: DnsFault },
}

impl Kind {
    /// Whether an application turns sick.
    pub(super) fn sickens(&self) -> bool {
        matches!(self, Kind::Operate { asks: Asks::Sicken, .. })
    }
}

/// What an operator asks for, before it is known of which process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asks {
    /// To resign for that long.
    Resign { aside: Duration },
    /// To transfer leadership.
    Transfer { to: Target },
    /// To be cordoned, until the time of the fault is over.
    Cordon,
    /// Nothing: its application is sick for that time.
    Sicken,
}

/// Which connections a cut is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Two sides.
    Split,
    /// Some pairs.
    Partial,
    /// One direction of a pair.
    OneWay,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {} ms", self.kind, self.lasts / MS)
    }
}
