//! The driver's clock for the machine's timers.

use crate::election::{Moment, Timer};
use std::collections::BTreeMap;
use std::time::Duration;

/// When each armed timer is due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<Timer, Moment>,
}

impl Timers {
    pub(super) fn arm(&mut self, timer: Timer, now: Moment, after: Duration) {
        self.due.insert(timer, now.plus(after));
    }

    pub(super) fn disarm(&mut self, timer: Timer) {
        self.due.remove(&timer);
    }

    /// The timer that is due first, and when.
    pub(super) fn next(&self) -> Option<(Timer, Moment)> {
        self.due.iter().map(|(timer, due)| (*timer, *due)).min_by_key(|(_, due)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_timer_is_the_one_that_is_due_first() {
        let mut timers = Timers::default();
        let now = Moment(Duration::from_secs(7));
        timers.arm(Timer::Silence, now, Duration::from_millis(30));
        timers.arm(Timer::Heartbeat, now, Duration::from_millis(20));
        assert_eq!(timers.next().map(|(t, _)| t), Some(Timer::Heartbeat));
        timers.arm(Timer::Heartbeat, now, Duration::from_millis(40));
        assert_eq!(timers.next(), Some((Timer::Silence, now.plus(Duration::from_millis(30)))));
        timers.disarm(Timer::Silence);
        timers.disarm(Timer::Heartbeat);
        assert_eq!(timers.next(), None);
    }
}
