//! A memory cgroup for each process, as Kubernetes makes one for the sidecar.

use std::fs;
use std::path::{Path, PathBuf};

/// The limit that the chart sets.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The groups of some processes. They go with this value, which has to outlive the processes.
#[derive(Default)]
pub struct MemoryGroups(Vec<PathBuf>);

impl MemoryGroups {
    /// Gives each process a group of its own. Says loudly where that is not possible: without root, or
    /// without the memory controller.
    pub fn confine(&mut self, pids: impl Iterator<Item = u32>) {
        for pid in pids {
            match confine(pid) {
                Ok(folder) => self.0.push(folder),
                Err(why) => return println!("!!! NOT IN A MEMORY CGROUP of {BYTES_MAX} bytes: {why}"),
            }
        }
        println!("{} processes, each in a memory cgroup of {BYTES_MAX} bytes", self.0.len());
    }
}

impl Drop for MemoryGroups {
    fn drop(&mut self) {
        self.0.iter().for_each(|folder| _ = fs::remove_dir(folder));
    }
}

fn confine(pid: u32) -> std::io::Result<PathBuf> {
    let (root, limit) = match Path::new("/sys/fs/cgroup/memory").is_dir() {
        true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        false => {
            fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
            ("/sys/fs/cgroup", "memory.max")
        }
    };
    let folder = Path::new(root).join(format!("bellwether-hostile-{pid}"));
    fs::create_dir(&folder)?;
    fs::write(folder.join(limit), BYTES_MAX.to_string())
        .and_then(|()| fs::write(folder.join("cgroup.procs"), pid.to_string()))
        .inspect_err(|_| _ = fs::remove_dir(&folder))?;
    Ok(folder)
}
