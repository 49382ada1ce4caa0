//! What the command has become: its process, and all that it has left behind.
//!
//! exec is their subreaper: an orphan becomes its child, whatever session or group it has made for itself.

use super::plan::Code;
use crate::client::signal_code;
use crate::config::ExecArgs;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Where the kernel shows all processes.
const PROC: &str = "/proc";

/// From now on the orphans of this process's descendants become its children.
///
/// # Errors
/// The kernel does not do that, or does not show processes.
pub(super) fn adopt() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    parents().map(drop)
}

/// Starts the command, which ends with this process. It has to be called by a thread that lives as long.
pub(super) fn start(args: &ExecArgs, variables: &[(&str, String)]) -> io::Result<Pid> {
    let own = getpid().as_raw_nonzero().to_string();
    let mut step = Command::new(PathBuf::from(PROC).join("self/exe"));
    step.args(["exec", "--child-of", &own, "--"]).args(&args.command);
    // A terminal's signals come to exec alone, which passes them on.
    step.process_group(0);
    step.envs(variables.iter().map(|(name, value)| (name, value)));
    // Its end is seen by `reap`, as that of its descendants.
    step.spawn().map(|child| Pid::from_child(&child))
}

/// The step between exec and its command: asks the kernel to be killed with exec, and becomes the command.
/// Returns why it could not.
pub(super) fn become_command(args: &ExecArgs, parent: i32) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // exec may have ended before this process asked.
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(parent) {
        return io::Error::other("exec has ended");
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    Command::new(program).args(arguments).exec()
}

/// Reaps all children that have ended. Says how the command has ended, if it has, and whether any is left.
pub(super) fn reap(command: Option<Pid>) -> (Option<Code>, bool) {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if Some(pid) == command => {
                let status = ExitStatus::from_raw(status.as_raw());
                let own = status.code().and_then(|number| Code::try_from(number).ok());
                code = Some(own.unwrap_or_else(|| signal_code(status.signal().unwrap_or(0))));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return (code, true),
            Err(_) => return (code, false),
        }
    }
}

/// Sends these to the command, which is not reaped yet, and then to all other descendants that the kernel
/// shows at this moment: to look for those takes time, and a descriptor. Returns one that may not be
/// signalled: it has become another user.
///
/// # Errors
/// The others are not to be found.
pub(super) fn signal(command: Option<Pid>, signals: &[Signal]) -> io::Result<Option<Pid>> {
    let mut refused = None;
    let mut send = |pid: Pid| {
        // Others may have ended just now.
        if signals.iter().any(|signal| kill_process(pid, *signal) == Err(Errno::PERM)) {
            refused = Some(pid);
        }
    };
    command.into_iter().for_each(&mut send);
    let others = descendants(getpid(), parents()?);
    others.into_iter().filter(|pid| Some(*pid) != command).for_each(&mut send);
    Ok(refused)
}

/// Each process and its parent.
fn parents() -> io::Result<Vec<(Pid, Pid)>> {
    let named = fs::read_dir(PROC)?.flatten().filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parent(&stat)?))
    });
    Ok(named.collect())
}

/// Those that descend from a process. A child has a higher number than its parent, unless numbers began anew
/// in between: so one pass finds nearly all, and few passes find all.
fn descendants(from: Pid, mut parents: Vec<(Pid, Pid)>) -> Vec<Pid> {
    parents.sort_unstable_by_key(|(pid, _)| pid.as_raw_nonzero());
    let mut found: Vec<Pid> = Vec::new();
    loop {
        let before = found.len();
        parents.retain(|(pid, parent)| {
            let ours = *parent == from || has(&found, *parent).is_ok();
            if let (true, Err(at)) = (ours, has(&found, *pid)) {
                found.insert(at, *pid);
            }
            !ours
        });
        if found.len() == before {
            return found;
        }
    }
}

/// Where a process is in a sorted list, or would be.
fn has(found: &[Pid], pid: Pid) -> Result<usize, usize> {
    found.binary_search_by_key(&pid.as_raw_nonzero(), |pid| pid.as_raw_nonzero())
}

/// The parent by a line of `/proc/PID/stat`. The program's name stands in parentheses before it, and may have
/// any characters.
fn parent(stat: &[u8]) -> Option<Pid> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let text = str::from_utf8(stat.get(end + 1..)?).ok()?;
    Pid::from_raw(text.split_ascii_whitespace().nth(1)?.parse().ok()?)
}

/// Whether a command can be run: it is looked up before there is a term for it.
///
/// # Errors
/// It is not there, or may not be run.
pub(super) fn look_up(program: &Path) -> io::Result<()> {
    let check = |path: &Path| {
        let metadata = fs::metadata(path)?;
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?;
        if metadata.is_file() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    };
    if program.components().count() > 1 || program.is_absolute() {
        return check(program);
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let nowhere = || format!("it is in no folder of PATH ({})", folders.to_string_lossy());
    let mut result = Err(io::Error::new(io::ErrorKind::NotFound, nowhere()));
    for folder in std::env::split_paths(&folders) {
        match check(&folder.join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => result = Err(error),
            Err(_) => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_program_hides_no_parent() {
        let pid = Pid::from_raw(42);
        assert_eq!(parent(b"7 (sh) S 42 7 7 0"), pid);
        assert_eq!(parent(b"7 (a) R 1 (b) S 42 7"), pid);
        assert_eq!(parent(b"7 (\xff\n) Z 42 7"), pid);
        assert_eq!(parent(b"1 (init) S 0 1"), None);
        assert_eq!(parent(b"7 (sh)"), None);
        assert_eq!(parent(b""), None);
    }

    #[test]
    fn descendants_are_found_whatever_their_numbers() {
        let pid = |number: i32| Pid::from_raw(number).unwrap();
        let found = |pairs: &[(i32, i32)]| {
            let pairs = pairs.iter().map(|(child, parent)| (pid(*child), pid(*parent))).collect();
            let found = descendants(pid(10), pairs);
            found.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect::<Vec<_>>()
        };
        assert_eq!(found(&[(10, 1), (11, 10), (12, 11), (13, 12), (20, 1), (21, 20)]), [11, 12, 13]);
        // Numbers began anew.
        assert_eq!(found(&[(30, 10), (5, 30), (4, 5), (3, 4)]), [3, 4, 5, 30]);
        // The processes changed while they were read: there may be a circle.
        assert_eq!(found(&[(2, 3), (3, 2), (11, 10)]), [11]);
        let chain: Vec<(i32, i32)> = (11..5_000).map(|number| (number, number - 1)).collect();
        assert_eq!(found(&chain).len(), 4_989);
    }

    #[test]
    fn a_program_is_looked_up_as_it_will_be_run() {
        assert!(look_up(Path::new("sh")).is_ok() && look_up(Path::new("/bin/sh")).is_ok());
        let kind = |path: &str| look_up(Path::new(path)).unwrap_err().kind();
        assert_eq!(kind("no-such-program"), io::ErrorKind::NotFound);
        assert_eq!(kind("/no/such/program"), io::ErrorKind::NotFound);
        assert_eq!(kind("/etc/passwd"), io::ErrorKind::PermissionDenied);
        assert_eq!(kind("/"), io::ErrorKind::PermissionDenied);
    }
}
