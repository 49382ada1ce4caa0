//! What a state is recognised by: a hash in which moments are distances from now.
//!
//! A machine's moments are points on its clock, so no state would ever come again although nothing but time has
//! passed. The model's clocks begin at a number that nothing else reaches, so a hasher can tell a moment's seconds from every
//! other number, and puts in their place how far away they are. Nothing compares an age with more than the longest of
//! its settings; older is as good as that old.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Where the model's clocks begin, in seconds.
pub const CLOCK_BEGINS: u64 = 1 << 40;
/// How long the model's clocks run at most, in seconds: what lies beyond is no moment.
const CLOCK_RUNS: u64 = 1 << 30;

/// Hashes as [`DefaultHasher`] does, but for moments.
struct Relative {
    hasher: DefaultHasher,
    /// The clock's reading, in seconds.
    now: u64,
    /// Older than this is the same as this old, in seconds.
    oldest: u64,
}

impl Hasher for Relative {
    fn finish(&self) -> u64 {
        self.hasher.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        let moment = (CLOCK_BEGINS..CLOCK_BEGINS + CLOCK_RUNS).contains(&number);
        let seen = if moment { number.max(self.now - self.oldest) - (self.now - self.oldest) } else { number };
        self.hasher.write_u8(moment.into());
        self.hasher.write_u64(seen);
    }
}

/// The hash of what a process with this clock holds.
pub fn relative(what: &impl Hash, now: u64, oldest: u64) -> u64 {
    let mut hasher = Relative { hasher: DefaultHasher::new(), now, oldest };
    what.hash(&mut hasher);
    hasher.finish()
}

/// The hash of what has no moments in it.
pub fn plain(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
