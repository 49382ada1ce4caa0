//! The clocks of the program: what the kernel's clocks show, and the two careful clocks that are made of
//! them.
//!
//! A lease is safe if its leader stops before the promises of its voters end. No clock of the kernel measures
//! that alone: CLOCK_BOOTTIME may be slewed (chrony's default allows 8.3 %), and CLOCK_MONOTONIC_RAW stands
//! still while the host is suspended. So a leader goes by the faster of both, and a voter by the slower.

use crate::election::Moment;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time since the host started (CLOCK_BOOTTIME), for deadlines that concern this process alone. It never
/// goes back and also runs while the host is suspended.
pub fn boottime() -> Moment {
    Moment(kernel(ClockId::Boottime))
}

/// A difference of CLOCK_BOOTTIME and CLOCK_MONOTONIC that has grown by more than this is a suspend. Both run
/// at one rate otherwise; two readings are off by [`READING_TAKES_MAX`] each at most.
const SUSPEND_MIN: Duration = Duration::from_millis(10);
/// All clocks are read within this time, or once more: a process may be stopped between two of them.
const READING_TAKES_MAX: Duration = Duration::from_millis(1);
const READING_ATTEMPTS_MAX: u32 = 8;
/// What both careful clocks are ahead of CLOCK_BOOTTIME at first. So `Moment::default()` is longer ago than
/// any setting lasts, also on a host that has just started.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// What the kernel's clocks show. They are read in the order of the fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// CLOCK_MONOTONIC at first.
    pub mono_before: Duration,
    /// CLOCK_BOOTTIME: CLOCK_MONOTONIC and the time for which the host was suspended. Both may be slewed,
    /// alike.
    pub boot: Duration,
    /// CLOCK_MONOTONIC_RAW: it is not slewed, and stands still while the host is suspended.
    pub raw: Duration,
    /// CLOCK_MONOTONIC in the end.
    pub mono_after: Duration,
}

impl Reading {
    /// Reads the kernel's clocks.
    pub fn take() -> Reading {
        Reading::tight(|| Reading {
            mono_before: kernel(ClockId::Monotonic),
            boot: kernel(ClockId::Boottime),
            raw: kernel(ClockId::MonotonicRaw),
            mono_after: kernel(ClockId::Monotonic),
        })
    }

    /// The first reading that did not take long. If there is none, the last one looks like a suspend, which
    /// is careful.
    fn tight(mut read: impl FnMut() -> Reading) -> Reading {
        let mut reading = read();
        for _ in 1..READING_ATTEMPTS_MAX {
            if reading.mono_after.saturating_sub(reading.mono_before) <= READING_TAKES_MAX {
                break;
            }
            reading = read();
        }
        reading
    }
}

/// Two careful clocks, made of readings one after the other. The fast one adds the larger of what
/// CLOCK_BOOTTIME and CLOCK_MONOTONIC_RAW have advanced by, the slow one the smaller. Sums of these stay on
/// the careful side.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    last: Reading,
    /// No suspend was seen since this one.
    awake: Reading,
    fast: Moment,
    slow: Moment,
    suspends: u32,
}

impl Clock {
    /// Both clocks show the same at first.
    pub fn new(first: Reading) -> Clock {
        let begin = Moment(first.boot).plus(AHEAD);
        Clock { last: first, awake: first, fast: begin, slow: begin, suspends: 0 }
    }

    /// Goes on to a later reading.
    pub fn turn(&mut self, reading: Reading) {
        let (boot, raw) = self.advanced(&reading);
        self.fast = self.fast.plus(boot.max(raw));
        self.slow = self.slow.plus(boot.min(raw));
        if self.suspended(&reading) {
            self.suspends = self.suspends.saturating_add(1);
            self.awake = reading;
        }
        self.last = reading;
    }

    /// The fast clock at the last turn.
    pub fn fast(&self) -> Moment {
        self.fast
    }

    /// The slow clock at the last turn.
    pub fn slow(&self) -> Moment {
        self.slow
    }

    /// How often a suspend was seen, up to the last turn.
    pub fn suspends(&self) -> u32 {
        self.suspends
    }

    /// The fast clock at a reading since the last turn.
    pub fn fast_at(&self, reading: &Reading) -> Moment {
        let (boot, raw) = self.advanced(reading);
        self.fast.plus(boot.max(raw))
    }

    /// The slow clock at a reading since the last turn.
    pub fn slow_at(&self, reading: &Reading) -> Moment {
        let (boot, raw) = self.advanced(reading);
        self.slow.plus(boot.min(raw))
    }

    /// Whether the host may have been suspended between the last turn and this reading. The time between the
    /// two readings of CLOCK_MONOTONIC counts as a suspend, so that none is missed.
    pub fn suspended(&self, reading: &Reading) -> bool {
        let boot = reading.boot.saturating_sub(self.awake.boot);
        let mono = reading.mono_before.saturating_sub(self.awake.mono_after);
        boot.saturating_sub(mono) > SUSPEND_MIN
    }

    fn advanced(&self, reading: &Reading) -> (Duration, Duration) {
        (reading.boot.saturating_sub(self.last.boot), reading.raw.saturating_sub(self.last.raw))
    }
}

pub(super) fn kernel(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // Both are never negative on these clocks; should a kernel ever say so, zero is the safe reading.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_forward() {
        let earlier = boottime();
        let later = loop {
            let now = boottime();
            assert!(now >= earlier);
            if now > earlier {
                break now;
            }
        };
        assert!(later.since(earlier) < Duration::from_secs(10));
        assert!(earlier > Moment(Duration::from_millis(1)));
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A reading that takes no time.
    fn reading(boot: u64, raw: u64, mono: u64) -> Reading {
        Reading { mono_before: ms(mono), boot: ms(boot), raw: ms(raw), mono_after: ms(mono) }
    }

    #[test]
    fn the_fast_clock_is_never_behind_and_the_slow_one_never_ahead() {
        // What the clocks have advanced by (boot, raw, mono), and then how far both careful clocks are, and
        // the suspends.
        type Row = (&'static str, &'static [(u64, u64, u64)], (u64, u64, u32));
        let table: [Row; 10] = [
            ("even", &[(1000, 1000, 1000), (500, 500, 500)], (1500, 1500, 0)),
            ("slewed forward", &[(1083, 1000, 1083)], (1083, 1000, 0)),
            ("slewed back", &[(917, 1000, 917)], (1000, 917, 0)),
            ("slewed to and fro", &[(1083, 1000, 1083), (917, 1000, 917)], (2083, 1917, 0)),
            ("raw drifts", &[(1000, 1001, 1000), (1000, 1001, 1000)], (2002, 2000, 0)),
            ("suspended", &[(1000, 1000, 1000), (5010, 10, 10)], (6010, 1010, 1)),
            ("suspended twice", &[(3100, 100, 100), (50, 50, 50), (2011, 2000, 2000)], (5161, 2150, 2)),
            ("jitter is no suspend", &[(1010, 1000, 1000)], (1010, 1000, 0)),
            ("short suspends add up", &[(1006, 1000, 1000), (1006, 1000, 1000)], (2012, 2000, 1)),
            ("both stand still", &[(0, 0, 0)], (0, 0, 0)),
        ];
        for (what, turns, (fast, slow, suspends)) in table {
            let (mut boot, mut raw, mut mono) = (70_000, 3_000, 60_000);
            let mut clock = Clock::new(reading(boot, raw, mono));
            let begin = clock.fast();
            assert_eq!(clock.slow(), begin);
            for (boots, raws, monos) in turns {
                (boot, raw, mono) = (boot + boots, raw + raws, mono + monos);
                let next = reading(boot, raw, mono);
                let (ahead, before) = (clock.fast_at(&next), clock.suspends());
                let suspended = clock.suspended(&next);
                clock.turn(next);
                assert_eq!(clock.fast(), ahead, "{what}");
                assert_eq!(clock.suspends() > before, suspended, "{what}");
            }
            let shown = (clock.fast().since(begin), clock.slow().since(begin), clock.suspends());
            assert_eq!(shown, (ms(fast), ms(slow), suspends), "{what}");
        }
    }

    #[test]
    fn a_clock_that_does_not_turn_is_bounded_by_both_clocks() {
        let clock = Clock::new(reading(1000, 1000, 1000));
        // Slewed to and fro: what counts is the sum of each clock since the turn.
        assert_eq!(clock.fast_at(&reading(3000, 3001, 3000)).since(clock.fast()), ms(2001));
        assert_eq!(clock.fast_at(&reading(3083, 3001, 3083)).since(clock.fast()), ms(2083));
        assert!(!clock.suspended(&reading(3083, 3001, 3083)));
        assert!(clock.suspended(&reading(3083, 2001, 2083)));
    }

    #[test]
    fn the_default_moment_is_long_ago_on_a_host_that_has_just_started() {
        let hour = Duration::from_secs(3600);
        assert!(Clock::new(Reading::default()).fast().since(Moment::default()) > hour);
    }

    #[test]
    fn a_reading_that_took_long_is_repeated_and_hides_no_suspend() {
        let slow = Reading { mono_after: ms(1011), ..reading(1011, 1011, 1000) };
        let mut readings = [slow, reading(1012, 1012, 1012), reading(1013, 1013, 1013)].into_iter();
        assert_eq!(Reading::tight(|| readings.next().unwrap()), reading(1012, 1012, 1012));
        let mut attempts = 0;
        let last = Reading::tight(|| {
            attempts += 1;
            slow
        });
        assert_eq!((last, attempts), (slow, READING_ATTEMPTS_MAX));
        // CLOCK_MONOTONIC may have shown 1,000 when CLOCK_BOOTTIME showed 1,011, or 1,011.
        let mut clock = Clock::new(reading(900, 900, 900));
        assert!(clock.suspended(&slow));
        clock.turn(slow);
        assert_eq!(clock.suspends(), 1);
        // From then on the least difference counts that it may have shown: a later suspend is not hidden
        // either.
        assert!(!clock.suspended(&reading(1111, 1111, 1111)));
        assert!(clock.suspended(&reading(1122, 1111, 1111)));
    }

    #[test]
    fn the_kernel_is_read_and_was_not_suspended_meanwhile() {
        let mut clock = Clock::new(Reading::take());
        let begin = clock.fast();
        while clock.fast().since(begin) < ms(2) {
            let reading = Reading::take();
            assert!(reading.mono_after >= reading.mono_before);
            let ahead = clock.fast_at(&reading);
            assert!(ahead >= clock.fast());
            clock.turn(reading);
            assert!(clock.fast().since(begin) >= clock.slow().since(begin));
        }
        assert!(clock.slow() > begin);
    }
}
