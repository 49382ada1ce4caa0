//! The machine's timers, as data: each runs at most once at a time.

/// Which timer. The driver owns the clock; the machine arms and disarms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// At a start: the set of peers has not changed for the stable margin.
    Margin,
    /// At a start: this process does not wait for expected members any longer.
    Start,
    /// The process that ranks highest, or the successor, has not announced itself.
    Announcement,
    /// No process has answered this process's Election.
    Answer,
    /// A process that answered has not announced a coordinator.
    Coordinator,
    /// The leader has been silent for the failure timeout.
    Silence,
    /// A leader's next round of heartbeats is due.
    Heartbeat,
    /// A member of higher priority has been alive for the preemption delay.
    Preempt,
    /// The successor has not announced itself; this process leaves all the same.
    Leave,
    /// What an operation waits for has not happened yet.
    Operation,
    /// This process has resigned for a while, which is over.
    Aside,
    /// The application's word is over, or it has been healthy for long enough.
    Application,
    /// The holds that a resignation waits for may be over, or the successor that was asked again is silent.
    Hold,
    /// `majority`: the leader's lease is over.
    Lease,
    /// `majority`: a candidate asks for pre-votes, or asks again the voters whose promises are over.
    Retry,
    /// `majority`: a voter without a record asks again what it has to know.
    Recover,
    /// `majority`: a restarted voter has waited until every promise that it may have forgotten is over.
    Grace,
}

impl Timer {
    /// Whether the timer goes on when a process changes its phase: it is about the voter or an operation, in
    /// any phase.
    pub(in crate::election) fn outlives_phases(self) -> bool {
        matches!(self, Timer::Recover | Timer::Grace | Timer::Operation | Timer::Aside | Timer::Application)
    }

    /// All of them.
    pub const ALL: [Timer; 17] = [
        Timer::Margin,
        Timer::Start,
        Timer::Announcement,
        Timer::Answer,
        Timer::Coordinator,
        Timer::Silence,
        Timer::Heartbeat,
        Timer::Preempt,
        Timer::Leave,
        Timer::Operation,
        Timer::Aside,
        Timer::Application,
        Timer::Hold,
        Timer::Lease,
        Timer::Retry,
        Timer::Recover,
        Timer::Grace,
    ];
}
