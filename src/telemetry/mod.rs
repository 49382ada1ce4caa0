//! The log.

pub mod log;
