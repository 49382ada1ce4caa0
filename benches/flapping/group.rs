//! A control group: how much of the processor its processes get.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where control groups are: version 2, and the controller of version 1.
const UNIFIED: &str = "/sys/fs/cgroup";
const CPU: &str = "/sys/fs/cgroup/cpu";

/// What a group gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A group's own weight, 100.
    Normal,
    /// What all containers of a node without CPU requests get together: 2 shares, of which other groups have
    /// 1,024. Version 2 has no less than a weight of 1.
    Least,
    /// 10 ms in each 100 ms.
    Quota10,
}

/// The group. Dropping it ends all processes in it.
pub struct Group {
    folder: PathBuf,
    load: Option<Child>,
}

impl Group {
    /// A group without processes.
    ///
    /// # Errors
    /// Without root, or without the controller.
    pub fn new(name: &str, limit: Limit) -> Result<Group, String> {
        let unified = Path::new(UNIFIED).join("cgroup.controllers").exists();
        let parent = Path::new(if unified { UNIFIED } else { CPU });
        let folder = parent.join(format!("bellwether-{}-{name}", std::process::id()));
        let failed = |error| format!("no control group {} (it takes root): {error}", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let group = Group { folder: folder.clone(), load: None };
        let settings: &[(&str, &str)] = match (limit, unified) {
            (Limit::Normal, _) => &[],
            (Limit::Least, true) => &[("cpu.weight", "1")],
            (Limit::Least, false) => &[("cpu.shares", "2")],
            (Limit::Quota10, true) => &[("cpu.max", "10000 100000")],
            (Limit::Quota10, false) => &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "10000")],
        };
        for (file, value) in settings {
            fs::write(folder.join(file), value).map_err(|error| format!("{file}: {}", failed(error)))?;
        }
        Ok(group)
    }

    /// Moves a process, with all its threads, into the group.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn add(&self, pid: u32) -> Result<(), String> {
        let procs = self.procs();
        fs::write(&procs, pid.to_string()).map_err(|error| format!("{}: {error}", procs.display()))
    }

    /// Runs a command of the shell in the group, with all that it starts, for this long at most.
    ///
    /// # Errors
    /// Where the shell cannot be started.
    pub fn load(&mut self, command: &str, at_most: Duration) -> Result<(), String> {
        let script = format!("echo $$ >\"$1\" && exec timeout --signal=KILL \"$2\" sh -c '{command}'");
        let seconds = at_most.as_secs().to_string();
        let child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(self.procs())
            .arg(seconds)
            .stdin(Stdio::null())
            .spawn();
        self.load = Some(child.map_err(|error| format!("no load: {error}"))?);
        Ok(())
    }

    /// Whether the load goes on.
    pub fn is_loaded(&mut self) -> bool {
        self.load.as_mut().is_some_and(|load| matches!(load.try_wait(), Ok(None)))
    }

    fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let listed = fs::read_to_string(self.procs()).unwrap_or_default();
        for pid in listed.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if let Some(load) = &mut self.load {
            let _ = load.wait();
        }
        // A group is busy for a moment after its last process has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
