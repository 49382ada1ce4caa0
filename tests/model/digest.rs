//! What a state is recognised by: a hash in which moments and rounds are distances.
//!
//! A machine's moments are points on its clock, and its heartbeats have numbers. So no state would ever come
//! again although nothing but time has passed. The model's clocks begin at a number that nothing else
//! reaches, and so do the numbers of heartbeats (which begin where the incarnation says). So a hasher can
//! tell both from all others, and puts in their place how far they are from now and from the latest. Nothing
//! compares an age with much more than the longest lease. Nothing compares a heartbeat with one that was sent
//! longer ago than a late message can come. Older is as good as that old.

use std::hash::{BuildHasher, Hash, Hasher};

/// Where the model's clocks begin, in seconds.
pub const CLOCK_BEGINS: u64 = 1 << 40;
/// How long the model's clocks run at most, in seconds: what lies beyond is no moment.
const CLOCK_RUNS: u64 = 1 << 30;
/// Where the numbers of heartbeats begin.
pub const BEATS_BEGIN: u32 = 1 << 30;

/// From where a process's moments and heartbeats are measured.
#[derive(Clone, Copy)]
pub struct From {
    /// The clock's reading, in seconds.
    pub now: u64,
    /// The latest heartbeat.
    pub beat: u32,
    /// Older than this is the same as this old, in seconds.
    pub oldest: u64,
    /// Longer ago than so many heartbeats is the same as that.
    pub beats: u32,
}

struct Relative {
    hasher: ahash::AHasher,
    from: From,
}

fn hasher() -> ahash::AHasher {
    ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher()
}

impl Hasher for Relative {
    fn finish(&self) -> u64 {
        self.hasher.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        if (CLOCK_BEGINS..CLOCK_BEGINS + CLOCK_RUNS).contains(&number) {
            let since = self.from.now - self.from.oldest;
            self.hasher.write_u64(CLOCK_BEGINS + number.max(since) - since);
        } else {
            self.hasher.write_u64(number);
        }
    }

    fn write_u32(&mut self, number: u32) {
        if (BEATS_BEGIN..2 * BEATS_BEGIN).contains(&number) {
            let since = self.from.beat - self.from.beats;
            self.hasher.write_u32(BEATS_BEGIN + number.max(since) - since);
        } else {
            self.hasher.write_u32(number);
        }
    }
}

/// The hash of what a process holds, or of what is said to or by it.
pub fn relative(what: &impl Hash, from: From) -> u64 {
    let mut hasher = Relative { hasher: hasher(), from };
    what.hash(&mut hasher);
    hasher.finish()
}

/// The hash of something as it is.
pub fn plain(what: &impl Hash) -> u64 {
    let mut hasher = hasher();
    what.hash(&mut hasher);
    hasher.finish()
}
