//! A started sidecar does not outlive its parent, however that ends.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::process::Command;

/// Holds the id of the parent process, whose end ends this one too. It is not one of the program's settings,
/// hence not named like one.
const VARIABLE: &str = "_BELLWETHER_LIFELINE";

/// Makes the process that `command` will start end with this one; more precisely with the thread that starts
/// it.
pub fn attach(command: &mut Command) {
    command.env(VARIABLE, std::process::id().to_string());
}

/// Called at the start of a sidecar: asks the kernel to end it with its parent, if the parent wants that.
/// False: the parent has ended already, and the process should end.
pub fn hold() -> bool {
    let Some(holder) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) else { return true };
    // An unsupported kernel leaves the sidecar running after a killed demo, and does no other harm.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    getppid().map(Pid::as_raw_pid) == Some(holder)
}
