//! The driver's clock for the machine's timers.

use crate::election::{Moment, Timer};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
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

/// How many inputs are taken before a timer that is due has its turn, and for how long, however many wait. An
/// input may take milliseconds: when a member joins a large cluster, the leader tells all others.
const INPUTS_IN_A_ROW_MAX: u32 = 256;
const INPUTS_IN_A_ROW_LONGEST: Duration = Duration::from_millis(100);
/// A timer that is noticed this late says that the whole process was held up. The messages that would have
/// stopped it may not have been read yet: they get [`GRACE`] first.
const LATE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(20);

/// How long inputs go before the timer that is due: since the last timer or turn that had its own.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Inputs since then while a timer was due, and the moment of the first.
    in_a_row: u32,
    due_since: Option<Moment>,
    /// Since when a late timer waits for inputs. It waits for the first ones and for those that follow them
    /// together, or inputs that trickle in would hold it up for seconds.
    late_since: Option<Moment>,
}

impl Patience {
    /// How long to wait for the next input, `turn_every` at most; none: the timer that is due has its turn.
    fn wait(&mut self, now: Moment, next: Option<(Timer, Moment)>, turn_every: Duration) -> Option<Duration> {
        let wait = next.map_or(turn_every, |(_, due)| due.since(now)).min(turn_every);
        if !wait.is_zero() {
            *self = Patience::default();
            return Some(wait);
        }
        let due_since = *self.due_since.get_or_insert(now);
        if self.in_a_row >= INPUTS_IN_A_ROW_MAX || now.since(due_since) >= INPUTS_IN_A_ROW_LONGEST {
            return None;
        }
        self.in_a_row += 1;
        if !is_late(now, next) {
            return Some(Duration::ZERO);
        }
        let since = *self.late_since.get_or_insert(now);
        Some(GRACE.saturating_sub(now.since(since)))
    }

    /// The next input; none: a timer or a turn is due. Inputs come first, so that a heartbeat that has
    /// arrived stops the timer that would have missed it.
    pub(super) fn next_input<T>(
        &mut self,
        inputs: &Receiver<T>,
        mut now: impl FnMut() -> Moment,
        next: Option<(Timer, Moment)>,
        turn_every: Duration,
    ) -> Option<T> {
        let mut wait = self.wait(now(), next, turn_every);
        while let Some(longest) = wait {
            wait = match inputs.recv_timeout(longest) {
                Ok(input) => return Some(input),
                Err(RecvTimeoutError::Timeout) => self.wait_on(now(), next),
                Err(RecvTimeoutError::Disconnected) => None,
            };
        }
        *self = Patience::default();
        None
    }

    /// No input came until a timer or a turn was due. If the process was held up meanwhile, so were the
    /// threads that read the inputs: how long to wait for them once more.
    fn wait_on(&mut self, now: Moment, next: Option<(Timer, Moment)>) -> Option<Duration> {
        let held_up = self.late_since.is_none() && is_late(now, next);
        held_up.then(|| {
            self.late_since = Some(now);
            GRACE
        })
    }
}

/// Whether the timer that is due first is noticed late. No message stops a heartbeat, and others wait for it.
fn is_late(now: Moment, next: Option<(Timer, Moment)>) -> bool {
    next.is_some_and(|(timer, due)| timer != Timer::Heartbeat && now.since(due) > LATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each input takes 5 ms here.
    #[test]
    fn inputs_that_take_long_do_not_hold_up_a_timer() {
        let mut patience = Patience::default();
        let due = Moment(Duration::from_secs(7));
        let mut now = due;
        while patience.wait(now, Some((Timer::Silence, due)), Duration::from_secs(1)).is_some() {
            now = now.plus(Duration::from_millis(5));
        }
        assert!(now.since(due) <= INPUTS_IN_A_ROW_LONGEST, "{:?}", now.since(due));
    }

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

    const TURN_EVERY: Duration = Duration::from_millis(250);

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    fn silence(due: u64) -> Option<(Timer, Moment)> {
        Some((Timer::Silence, at(due)))
    }

    #[test]
    fn inputs_are_waited_for_until_a_timer_or_a_turn_is_due() {
        let mut patience = Patience::default();
        assert_eq!(patience.wait(at(0), None, TURN_EVERY), Some(TURN_EVERY));
        assert_eq!(patience.wait(at(0), silence(900), TURN_EVERY), Some(TURN_EVERY));
        assert_eq!(patience.wait(at(0), silence(30), TURN_EVERY), Some(Duration::from_millis(30)));
    }

    #[test]
    fn inputs_that_wait_go_before_a_timer_that_is_due_but_not_for_ever() {
        let mut patience = Patience::default();
        for _ in 0..INPUTS_IN_A_ROW_MAX {
            assert_eq!(patience.wait(at(5), silence(0), TURN_EVERY), Some(Duration::ZERO));
        }
        assert_eq!(patience.wait(at(5), silence(0), TURN_EVERY), None);
    }

    /// The heartbeat arrives while the process is held up in its wait.
    #[test]
    fn an_input_that_came_in_a_stall_goes_before_a_late_timer() {
        for (woken, expected) in [(at(100), Some("heartbeat")), (at(31), None)] {
            let (sender, inputs) = std::sync::mpsc::channel();
            let (mut looks, mut patience) = (0, Patience::default());
            let now = || {
                looks += 1;
                if looks == 1 {
                    return at(0);
                }
                if expected.is_some() {
                    sender.send("heartbeat").unwrap();
                }
                woken
            };
            assert_eq!(patience.next_input(&inputs, now, silence(30), TURN_EVERY), expected);
        }
    }

    #[test]
    fn a_process_that_was_held_up_while_it_waited_waits_once_more() {
        let mut patience = Patience::default();
        let wait = patience.wait(at(0), silence(30), TURN_EVERY);
        assert_eq!(wait, Some(Duration::from_millis(30)));
        assert_eq!(patience.wait_on(at(31), silence(30)), None, "in time");
        assert_eq!(patience.wait_on(at(250), None), None, "a turn is due");
        assert_eq!(patience.wait_on(at(100), Some((Timer::Heartbeat, at(30)))), None);
        assert_eq!(patience.wait_on(at(100), silence(30)), Some(GRACE));
        assert_eq!(patience.wait_on(at(120), silence(30)), None, "once");
        // An input came in between, and did not stop the timer.
        assert_eq!(patience.wait(at(110), silence(30), TURN_EVERY), Some(Duration::from_millis(10)));
        assert_eq!(patience.wait_on(at(120), silence(30)), None);
    }

    #[test]
    fn inputs_that_trickle_in_hold_a_late_timer_up_for_one_grace() {
        let mut patience = Patience::default();
        // The process was held up for 100 ms, and then there is an input every 15 ms.
        assert_eq!(patience.wait(at(100), silence(0), TURN_EVERY), Some(GRACE));
        assert_eq!(patience.wait(at(115), silence(0), TURN_EVERY), Some(Duration::from_millis(5)));
        // What is there already is taken still, and then the timer has its turn.
        assert_eq!(patience.wait(at(121), silence(0), TURN_EVERY), Some(Duration::ZERO));
    }

    #[test]
    fn a_late_heartbeat_waits_for_no_input() {
        let mut patience = Patience::default();
        let late = Some((Timer::Heartbeat, at(0)));
        assert_eq!(patience.wait(at(100), late, TURN_EVERY), Some(Duration::ZERO));
    }
}
