//! Bounds how often one kind of thing happens or is logged, whatever causes it.

use crate::election::Moment;
use std::time::Duration;

/// Lets a burst of lines through and then one every so often. What is held back is counted, and the next line
/// that is let through says how many there were.
#[derive(Clone, Debug)]
pub struct RateLimit {
    burst: u32,
    every: Duration,
    left: u32,
    refilled: Moment,
    held_back: u64,
}

impl RateLimit {
    /// At most `burst` lines at once, and one more for each time that `every` passes. Neither may be zero.
    pub fn new(burst: u32, every: Duration) -> RateLimit {
        RateLimit { burst, every, left: burst, refilled: Moment::default(), held_back: 0 }
    }

    /// Whether a line may be logged now; if so, how many were held back since the one before it.
    pub fn allow(&mut self, now: Moment) -> Option<u64> {
        if self.left == self.burst {
            self.refilled = now;
        }
        let passed = now.since(self.refilled).as_nanos() / self.every.as_nanos().max(1);
        let missing = self.burst - self.left;
        match u32::try_from(passed) {
            Ok(passed) if passed < missing => {
                self.left += passed;
                self.refilled = self.refilled.plus(self.every * passed);
            }
            _ => {
                self.left = self.burst;
                self.refilled = now;
            }
        }
        if self.left == 0 {
            self.held_back += 1;
            return None;
        }
        self.left -= 1;
        Some(std::mem::take(&mut self.held_back))
    }

    /// Begins anew, because what comes now is another story than what came before.
    pub fn reset(&mut self) {
        self.left = self.burst;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    #[test]
    fn lets_a_burst_through_and_then_one_a_minute_with_a_count() {
        let mut limit = RateLimit::new(3, Duration::from_secs(60));
        let admitted: Vec<(u64, u64)> =
            (0..200).filter_map(|s| limit.allow(at(s * 1000)).map(|held_back| (s, held_back))).collect();
        assert_eq!(admitted, [(0, 0), (1, 0), (2, 0), (60, 57), (120, 59), (180, 59)]);
    }

    #[test]
    fn fills_up_again_but_not_over() {
        let mut limit = RateLimit::new(2, Duration::from_millis(10));
        assert_eq!((limit.allow(at(0)), limit.allow(at(0)), limit.allow(at(0))), (Some(0), Some(0), None));
        assert_eq!(limit.allow(at(1_000_000)), Some(1));
        assert_eq!((limit.allow(at(1_000_000)), limit.allow(at(1_000_000))), (Some(0), None));
        limit.reset();
        assert_eq!(limit.allow(at(1_000_000)), Some(1));
    }
}
