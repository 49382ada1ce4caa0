//! Steps of the program's work, in lines of level trace: where its time goes.

use super::LogEvent;
use super::clock::kernel;
use crate::election::ProcessId;
use core::fmt;
use rustix::time::ClockId;

/// Logs one step, what it is about, and the other process that it concerns. Its time is CLOCK_MONOTONIC in
/// microseconds, which all processes of a host share. At any other level it costs a comparison.
pub fn step(step: &'static str, of: impl fmt::Display, id: Option<ProcessId>) {
    if log::max_level() < log::LevelFilter::Trace {
        return;
    }
    let at_us = u64::try_from(kernel(ClockId::Monotonic).as_micros()).unwrap_or(u64::MAX);
    LogEvent::trace("step")
        .with("step", step)
        .with("of", of.to_string())
        .with_some("id", id.map(|id| id.to_string()))
        .with("at_us", at_us)
        .say("a step of this process's work");
}
