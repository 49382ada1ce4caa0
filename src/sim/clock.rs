//! Global time, which only the simulator knows, and the clock of one process, which runs at its own rate.

use crate::election::Moment;
use std::time::Duration;

/// A moment or a span of global time, in nanoseconds since the start of the run.
pub(super) type Ns = u64;

/// A millisecond of global time.
pub(super) const MS: Ns = 1_000_000;

/// By how many parts in a million a clock may run fast or slow. Two clocks at the two ends differ by 1.005 / 0.995, which
/// the bound of one in [`DRIFT`](crate::election::DRIFT) just covers: a leader counts on 0.99 of its lease, and
/// 0.99 × 1.005 < 0.995 × 1.0001.
pub(super) const RATE_PPM_MAX: i32 = 5_000;

const MILLION: u64 = 1_000_000;

/// A duration as global time.
pub(super) fn ns(duration: Duration) -> Ns {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// One process's clock: `local + (1 + ppm / 10^6) × (global - since)`. It never goes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    since: Ns,
    local: Ns,
    rate: u64,
    /// What the wall clock is ahead of global time; it may jump, and is shown to people only.
    pub(super) wall_ms: u64,
}

impl Clock {
    /// A clock that shows `local` at the start of the run.
    pub(super) fn new(local: Ns, ppm: i32) -> Clock {
        Clock { since: 0, local, rate: rate(ppm), wall_ms: 1_800_000_000_000 }
    }

    /// What it shows, in nanoseconds.
    pub(super) fn local(&self, now: Ns) -> Ns {
        self.local + (now - self.since) * self.rate / MILLION
    }

    /// What it shows, as the machine is told it.
    pub(super) fn moment(&self, now: Ns) -> Moment {
        Moment(Duration::from_nanos(self.local(now)))
    }

    /// The first global moment, `now` or later, at which it shows `local` or more.
    pub(super) fn global(&self, now: Ns, local: Ns) -> Ns {
        let ahead = local.saturating_sub(self.local);
        now.max(self.since + (ahead * MILLION).div_ceil(self.rate))
    }

    /// From now on it runs at another rate.
    pub(super) fn change_rate(&mut self, now: Ns, ppm: i32) {
        self.local = self.local(now);
        self.since = now;
        self.rate = rate(ppm);
    }
}

fn rate(ppm: i32) -> u64 {
    assert!(ppm.abs() <= RATE_PPM_MAX, "a clock's rate is within the bound");
    MILLION.saturating_add_signed(ppm.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_due_when_the_clock_shows_its_time_and_not_before() {
        for ppm in [-RATE_PPM_MAX, -17, 0, 3, RATE_PPM_MAX] {
            let mut clock = Clock::new(987_654_321, ppm);
            for now in [0, 1, 999, 5 * MS, 7_777_777_777] {
                let due = clock.local(now) + 1_500 * MS;
                let at = clock.global(now, due);
                assert!(clock.local(at) >= due && clock.local(at - 1) < due, "{ppm} {now}");
                let shown = clock.local(now);
                clock.change_rate(now, -ppm);
                assert_eq!(clock.local(now), shown);
            }
        }
    }

    #[test]
    fn the_fastest_voters_promise_outlasts_the_slowest_leaders_lease() {
        let lease = 1_500 * MS;
        let counted_on = ns(crate::election::counted(Duration::from_nanos(lease)));
        let leader = Clock::new(0, -RATE_PPM_MAX).global(0, counted_on);
        let voter = Clock::new(0, RATE_PPM_MAX).global(0, lease);
        assert!(leader < voter);
        assert!(voter - leader < MS, "the bound is used to the full: {leader} {voter}");
    }
}
