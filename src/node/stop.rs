//! What the signals' thread and the driver tell each other.

use std::sync::atomic::AtomicBool;

/// The flags of an orderly end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// A signal has come that the driver has not seen yet. Not one more input: peers must not be able to put
    /// it off by filling the queue.
    pub(super) asked: AtomicBool,
    /// The resignation waits for holds.
    pub(super) waits: AtomicBool,
}
