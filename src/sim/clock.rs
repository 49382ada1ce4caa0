//! Global time, which only the simulator knows, and the clocks of one host, which run at their own rates.

use crate::base::Reading;
use std::time::Duration;

/// A moment or a span of global time, in nanoseconds since the start of the run.
pub(super) type Ns = u64;

/// A millisecond of global time.
pub(super) const MS: Ns = 1_000_000;

/// By how many parts in a million CLOCK_MONOTONIC_RAW may run fast or slow. Two clocks at the two ends differ
/// by 1.005 / 0.995. The bound of one in [`DRIFT`](crate::election::DRIFT) just covers that: a leader counts
/// on 0.99 of its lease, and 0.99 × 1.005 < 0.995 × 1.0001.
pub(super) const RATE_PPM_MAX: i32 = 5_000;

/// By how many parts in a million CLOCK_BOOTTIME may be slewed on top of that: what chrony's default
/// (`maxslewrate`) allows.
pub(super) const SLEW_PPM_MAX: i32 = 83_333;

const MILLION: u64 = 1_000_000;
const SECOND: Ns = 1_000 * MS;

/// A duration as global time.
pub(super) fn ns(duration: Duration) -> Ns {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The clocks of one host. CLOCK_MONOTONIC_RAW runs at its own rate, and stands still while the host is
/// suspended. CLOCK_BOOTTIME is slewed on top of that, and counts a suspend as well as the host can measure
/// it. Neither goes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Both run on from here; it lies ahead while the host is suspended.
    since: Ns,
    raw: Ns,
    boot: Ns,
    /// All the time for which the host was suspended, as it has measured it.
    asleep: Ns,
    ppm: i32,
    slew: i32,
    /// The host measures a suspend by the seconds that another clock shows before and after.
    whole_seconds: bool,
    /// What the wall clock is ahead of global time; it may jump, and is shown to people only.
    pub(super) wall_ms: u64,
}

impl Clock {
    /// Clocks that show `local` at the start of the run.
    pub(super) fn new(local: Ns, ppm: i32) -> Clock {
        Clock {
            since: 0,
            raw: local,
            boot: local,
            asleep: 0,
            ppm,
            slew: 0,
            whole_seconds: false,
            wall_ms: 1_800_000_000_000,
        }
        .checked()
    }

    /// As these, on a host that measures suspends in whole seconds, or not.
    pub(super) fn measures_whole_seconds(self, whole_seconds: bool) -> Clock {
        Clock { whole_seconds, ..self }
    }

    /// What the clocks show; while the host is suspended, what they will show when it wakes.
    pub(super) fn reading(&self, now: Ns) -> Reading {
        let boot = self.boot + passed(now.saturating_sub(self.since), self.boot_rate());
        let mono = Duration::from_nanos(boot - self.asleep);
        Reading {
            mono_before: mono,
            boot: Duration::from_nanos(boot),
            raw: Duration::from_nanos(self.raw_at(now)),
            mono_after: mono,
        }
    }

    /// The first global moment, `now` or later, at which one of both has advanced by so much since a reading.
    /// The fast clock has then advanced by as much.
    pub(super) fn when_either(&self, now: Ns, since: &Reading, advanced: Ns) -> Ns {
        let by = |shown: Ns, base: Ns, rate: u64| {
            let ahead = (shown + advanced).saturating_sub(base);
            self.since + (ahead * MILLION).div_ceil(rate)
        };
        let boot = by(ns(since.boot), self.boot, self.boot_rate());
        now.max(boot.min(by(ns(since.raw), self.raw, self.raw_rate())))
    }

    /// The global moment at which CLOCK_MONOTONIC_RAW has run so much further. A lease ends by then, however
    /// CLOCK_BOOTTIME is slewed, and a promise does not end before.
    pub(super) fn when_raw(&self, now: Ns, left: Ns) -> Ns {
        now.max(self.since) + (left * MILLION).div_ceil(self.raw_rate())
    }

    /// From now on CLOCK_MONOTONIC_RAW runs at another rate.
    pub(super) fn change_rate(&mut self, now: Ns, ppm: i32) {
        self.go_on(now);
        *self = Clock { ppm, ..*self }.checked();
    }

    /// From now on CLOCK_BOOTTIME is slewed by so much.
    pub(super) fn slew(&mut self, now: Ns, ppm: i32) {
        self.go_on(now);
        *self = Clock { slew: ppm, ..*self }.checked();
    }

    /// The host is suspended for so long; where it measures whole seconds, for one at least. It need not show
    /// a shorter suspend at all, and no rule covers that.
    pub(super) fn suspend(&mut self, now: Ns, lasts: Ns) -> Ns {
        self.go_on(now);
        let lasts = if self.whole_seconds { lasts.max(SECOND) } else { lasts };
        let wakes = self.since + lasts;
        let measured = if self.whole_seconds {
            (wakes / SECOND - self.since / SECOND) * SECOND
        } else {
            passed(lasts, self.raw_rate())
        };
        self.asleep += measured;
        self.boot += measured;
        self.since = wakes;
        wakes
    }

    /// Whether the host is suspended.
    pub(super) fn suspended(&self, now: Ns) -> bool {
        now < self.since
    }

    /// When it wakes or has woken.
    pub(super) fn wakes(&self) -> Ns {
        self.since
    }

    /// For how long the host has slept altogether, as it has measured that.
    pub(super) fn slept(&self) -> Ns {
        self.asleep
    }

    /// It is suspended no longer.
    pub(super) fn wake(&mut self, now: Ns) {
        self.since = self.since.min(now);
    }

    fn go_on(&mut self, now: Ns) {
        let reading = self.reading(now);
        (self.raw, self.boot) = (ns(reading.raw), ns(reading.boot));
        self.since = self.since.max(now);
    }

    fn raw_at(&self, now: Ns) -> Ns {
        self.raw + passed(now.saturating_sub(self.since), self.raw_rate())
    }

    fn raw_rate(&self) -> u64 {
        MILLION.saturating_add_signed(self.ppm.into())
    }

    fn boot_rate(&self) -> u64 {
        MILLION.saturating_add_signed((self.ppm + self.slew).into())
    }

    fn checked(self) -> Clock {
        assert!(self.ppm.abs() <= RATE_PPM_MAX, "a clock's rate is within the bound");
        assert!(self.slew.abs() <= SLEW_PPM_MAX, "a clock is slewed within the bound");
        self
    }
}

fn passed(time: Ns, rate: u64) -> Ns {
    time * rate / MILLION
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base;

    /// The driver's clock, at the last reading.
    fn driver(clock: &Clock, now: Ns) -> (base::Clock, Reading) {
        let reading = clock.reading(now);
        (base::Clock::new(reading), reading)
    }

    #[test]
    fn a_timer_is_due_when_the_fast_clock_shows_its_time_and_not_before() {
        for ppm in [-RATE_PPM_MAX, -17, 0, 3, RATE_PPM_MAX] {
            for slew in [-SLEW_PPM_MAX, -1, 0, SLEW_PPM_MAX] {
                let mut clock = Clock::new(987_654_321, ppm);
                let (time, last) = driver(&clock, 0);
                clock.slew(700 * MS, slew);
                clock.slew(900 * MS, -slew);
                for now in [900 * MS, 901 * MS, 1_377_777_777] {
                    let advanced = 1_500 * MS;
                    let due = time.fast().plus(Duration::from_nanos(advanced));
                    let at = clock.when_either(now, &last, advanced);
                    let shows = |at| time.fast_at(&clock.reading(at));
                    assert!(shows(at) >= due && shows(at - 1) < due, "{ppm} {slew} {now}");
                    let shown = clock.reading(now);
                    clock.change_rate(now, -ppm);
                    assert_eq!(clock.reading(now), shown);
                }
            }
        }
    }

    #[test]
    fn a_suspend_is_seen_and_the_raw_clock_stands_still() {
        for (whole_seconds, lasts, slept, measured) in [
            (false, 300 * MS, 300 * MS, 300 * MS),
            (false, 2_700 * MS, 2_700 * MS, 2_700 * MS),
            // From 7.1 s on: until 8.1 s at least.
            (true, 300 * MS, SECOND, SECOND),
            (true, 1_800 * MS, 1_800 * MS, SECOND),
            (true, 1_950 * MS, 1_950 * MS, 2 * SECOND),
        ] {
            let mut clock = Clock::new(SECOND, 0).measures_whole_seconds(whole_seconds);
            clock.slew(0, 1_000);
            let now = 7_100 * MS;
            let (mut time, before) = driver(&clock, now);
            let wakes = clock.suspend(now, lasts);
            assert_eq!(wakes - now, slept);
            assert!(clock.suspended(wakes - 1) && !clock.suspended(wakes));
            let woken = clock.reading(wakes);
            assert_eq!(clock.reading(now), woken);
            assert_eq!((woken.raw, woken.mono_after), (before.raw, before.mono_after));
            assert_eq!(woken.boot - before.boot, Duration::from_nanos(measured));
            time.turn(woken);
            assert_eq!(time.suspends(), 1);
            time.turn(clock.reading(wakes + SECOND));
            assert_eq!(time.suspends(), 1);
        }
    }

    #[test]
    fn the_fastest_voters_promise_outlasts_the_slowest_leaders_lease() {
        let lease = 1_500 * MS;
        let counted_on = ns(crate::election::counted(Duration::from_nanos(lease)));
        let leader = Clock::new(0, -RATE_PPM_MAX).when_raw(0, counted_on);
        let voter = Clock::new(0, RATE_PPM_MAX).when_raw(0, lease);
        assert!(leader < voter);
        assert!(voter - leader < MS, "the bound is used to the full: {leader} {voter}");
    }
}
