//! Waiting for what real processes do.

use std::time::{Duration, Instant};

/// Often enough to see what happens.
const LOOK: Duration = Duration::from_millis(2);

/// Waits for something to come about.
pub fn within<T>(patience: Duration, mut wanted: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        let result = wanted();
        if result.is_some() || Instant::now() > deadline {
            return result;
        }
        std::thread::sleep(LOOK);
    }
}
