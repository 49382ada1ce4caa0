//! Modes that are a choice of a few, as flags and help name them.

/// What `--safety` promises.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SafetyLevel {
    /// The published algorithm: while messages arrive in bounded time and processes crash cleanly, there is
    /// one leader. A network partition gives one leader per side. When it heals, one of them wins with a new
    /// epoch
    Classic,
    /// At every instant at most one process answers that it leads, also in a partition or after a pause. A
    /// leader holds a lease that a majority of --voters renews (the rates of any two clocks may differ by 1
    /// %). It costs: no process leads where no majority is connected. The first start, or a voter that has
    /// lost its disk, waits for the others. It requires --voters and --state-dir
    Majority,
}

/// How a leader chooses its lease.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseMode {
    /// Each lease is --lease
    Fixed,
    /// A leader asks for 100 ms and twice the worst delay of the last five minutes. Its own lateness counts.
    /// The lease is at least --lease-min, and at most --lease
    Adaptive,
}
