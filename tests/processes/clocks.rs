//! The wall clock decides nothing: it is shown to people, and a jump of it changes no leader.

use std::path::{Path, PathBuf};

/// Where the wall clock is read: for `elected_at` and the bound on the epochs of messages, and for the log's
/// time stamps.
const READERS: [&str; 2] = ["base/wall_clock.rs", "telemetry/log.rs"];

#[test]
fn no_lease_depends_on_the_wall_clock() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut readers = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read_to_string(&path).unwrap().contains("SystemTime") {
                readers.push(path);
            }
        }
    }
    readers.sort();
    let allowed: Vec<PathBuf> = READERS.iter().map(|file| root.join(file)).collect();
    assert_eq!(readers, allowed, "leases and timers go by base::Clock, which is never set");
}
