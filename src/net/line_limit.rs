//! Bounds what strangers can make this process log.

use crate::election::Moment;
use std::time::Duration;

/// How long a window of [`LineLimit`] is.
const WINDOW: Duration = Duration::from_secs(60);

/// At most so many lines a minute; the others are counted, and the next line that is allowed says how many there were.
///
/// A minute begins with the first line after the last minute's end.
#[derive(Clone, Debug)]
pub struct LineLimit {
    lines_per_minute: u32,
    window_start: Option<Moment>,
    lines: u32,
    left_out: u64,
}

impl LineLimit {
    /// Allows `lines_per_minute` lines in each minute; at least one.
    pub fn new(lines_per_minute: u32) -> LineLimit {
        LineLimit { lines_per_minute: lines_per_minute.max(1), window_start: None, lines: 0, left_out: 0 }
    }

    /// Whether a line may be logged at `now`, and if so how many were left out since the last one that was.
    pub fn allow(&mut self, now: Moment) -> Option<u64> {
        if self.window_start.is_none_or(|start| now.since(start) >= WINDOW) {
            self.window_start = Some(now);
            self.lines = 0;
        }
        if self.lines == self.lines_per_minute {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_so_many_a_minute_and_counts_the_rest() {
        let at = |seconds| Moment(Duration::from_secs(seconds));
        let mut limit = LineLimit::new(2);
        assert_eq!(limit.allow(at(100)), Some(0));
        assert_eq!(limit.allow(at(101)), Some(0));
        assert_eq!(limit.allow(at(102)), None);
        assert_eq!(limit.allow(at(159)), None);
        assert_eq!(limit.allow(at(160)), Some(2));
        assert_eq!(limit.allow(at(161)), Some(0));
        assert_eq!(limit.allow(at(162)), None);
        assert_eq!(limit.allow(at(1000)), Some(1));
    }

    #[test]
    fn allows_at_least_one() {
        assert_eq!(LineLimit::new(0).allow(Moment::default()), Some(0));
    }
}
