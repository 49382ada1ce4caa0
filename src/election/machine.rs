//! The machine.

/// The machine.
pub struct Machine;
