//! The one clock of the program.

use crate::election::Moment;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time since the machine started. It never goes back and also runs while the machine is suspended
/// (CLOCK_BOOTTIME), so that whoever was paused notices it.
pub fn boottime() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    // Both are never negative on this clock; should a kernel ever say so, zero is the safe reading.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Moment(Duration::new(seconds, nanoseconds))
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
}
