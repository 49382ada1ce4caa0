//! A started sidecar does not outlive who started it, however that ends.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::process::Command;

/// Holds the id of the process whose end is to end this one too. It is not one of the program's settings, hence not
/// named like one.
const VARIABLE: &str = "_BELLWETHER_LIFELINE";

/// Makes the process that `command` will start end with this one; more precisely with the thread that starts it.
pub fn attach(command: &mut Command) {
    command.env(VARIABLE, std::process::id().to_string());
}

/// Called at the start of a sidecar: takes hold of the lifeline, if there is one. False: it is cut already, and the
/// process should end.
pub fn hold() -> bool {
    let Some(holder) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) else { return true };
    // Unsupported kernels leave the sidecar running; only a demo that was killed would notice.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    getppid().map(Pid::as_raw_pid) == Some(holder)
}
