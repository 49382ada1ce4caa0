//! The wall clock, for people. No lease and no timer depends on it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock in milliseconds since 1970, for people; zero if it is set before that.
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
