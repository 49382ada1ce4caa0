//! Commands for scripts beside a sidecar: `bellwether exec`, `watch`, `wait`, `alive` and `install`.
//!
//! They ask over the status API. A sidecar that does not answer counts as one that knows no leader.

pub mod alive;
pub mod api;
mod changes;
pub mod exec;
pub mod install;
mod signals;
pub mod wait;
pub mod watch;

use crate::telemetry::escape::escaped;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// "There is something wrong with the flags", as everywhere.
pub(crate) const EXIT_BAD_CONFIGURATION: u8 = 2;
/// "The command itself failed", as `env` and `timeout` say it.
const EXIT_OWN_ERROR: u8 = 125;
/// "The command is there and cannot be run", and "there is no such command", as both say it.
const EXIT_NOT_RUN: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;

/// Says why a command ends.
pub(crate) fn failed(why: &impl Display, code: u8) -> ExitCode {
    say("error", why);
    ExitCode::from(code)
}

/// Says what is wrong while a command goes on.
fn warn(what: &impl Display) {
    say("warning", what);
}

/// The code of a program that a signal has ended: 128 and its number, as shells have it.
fn signal_code(number: i32) -> u8 {
    // Signals have numbers of at most 64.
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

fn say(kind: &str, what: &impl Display) {
    // A reader that has gone changes nothing.
    let _ = writeln!(std::io::stderr(), "{kind}: {}", escaped(&what.to_string()));
}
