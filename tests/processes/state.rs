//! State folders that are missing, damaged, read-only, in use, copied or full.

use crate::harness::{Real, processes, started};
use crate::rounds::PATIENCE;
use crate::wait::within;
use bellwether::election::Epoch;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const RECORD: &str = "bellwether.record";

fn folders(n: usize) -> Vec<TempDir> {
    (0..n).map(|_| tempfile::tempdir().unwrap()).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A cluster with a state folder for each process.
fn with_folders(folders: &[TempDir]) -> Real {
    let mut real = processes(folders.len(), &[]);
    for (place, folder) in folders.iter().enumerate() {
        real.start(place, &["--state-dir", text(folder.path())]).unwrap();
    }
    real
}

#[test]
fn what_cannot_be_a_state_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut real = processes(1, &[]);
    let missing = dir.path().join("missing");
    real.refuses(0, &["--state-dir", text(&missing)], 2, &["ERROR", "does not exist", "--state-dir"]);
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    real.refuses(0, &["--state-dir", text(&file)], 2, &["ERROR", "is not a folder", "--state-dir"]);
    // No process can create a file there, not even root.
    real.refuses(0, &["--state-dir", "/sys/kernel"], 2, &["ERROR", "/sys/kernel", "cannot be written to"]);
}

#[test]
fn a_damaged_record_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join(RECORD);
    fs::write(&record, b"bellwether record format=2 crc32=00000000\n{}").unwrap();
    let mut real = processes(1, &["--state-dir", text(dir.path())]);
    real.refuses(0, &[], 2, &["ERROR", "is not a sound record"]);
    assert_eq!(fs::read(&record).unwrap(), b"bellwether record format=2 crc32=00000000\n{}");
}

/// The checksum is right, and no election could follow: the process says so instead of ending by a panic.
#[test]
fn a_record_whose_epoch_is_too_high_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut real = processes(1, &["--state-dir", text(dir.path())]);
    let cluster = real.cluster().to_owned();
    // The last one is plausible in the year 2087 and later.
    for epoch in [u64::MAX, Epoch::MAX.0, 3_700_000_000_000] {
        let id = "00112233-4455-4677-8899-aabbccddeeff";
        let json = format!("{{\"cluster\": \"{cluster}\", \"id\": \"{id}\", \"epoch\": {epoch}}}");
        let checksum = crc32fast::hash(json.as_bytes());
        let record = format!("bellwether record format=2 crc32={checksum:08x}\n{json}");
        fs::write(dir.path().join(RECORD), record).unwrap();
        real.refuses(0, &[], 2, &["ERROR", "holds the epoch", &epoch.to_string(), "begin anew"]);
    }
}

#[test]
fn a_folder_of_another_cluster_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (mut real, _) = started(1, &["--state-dir", text(dir.path()), "--stable-margin", "0ms"]);
    real.signal(0, Signal::TERM);
    real.end(0);
    let cluster = real.cluster().to_owned();
    real.refuses(0, &["--election", "other"], 2, &["ERROR", &cluster, "other"]);
}

#[test]
fn a_folder_in_use_is_refused_and_its_holder_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut real = processes(2, &["--state-dir", text(dir.path()), "--stable-margin", "0ms"]);
    real.start(0, &[]).unwrap();
    let before = real.agree_among(&[0], 0, PATIENCE).unwrap();
    let holder = real.pid(0).unwrap().to_string();
    real.refuses(1, &[], 2, &["ERROR", "in use by another bellwether", &holder]);
    assert_eq!(real.agree_among(&[0], 0, PATIENCE).unwrap().epoch, before.epoch);
}

/// Another user with write access to the folder could have a file elsewhere cut off, or a record of their own
/// used.
#[test]
fn a_link_in_place_of_a_file_of_the_folder_is_refused() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = elsewhere.path().join("target");
    fs::write(&target, "precious").unwrap();
    let mut real = processes(1, &["--state-dir", text(dir.path())]);
    for name in ["bellwether.lock", RECORD, "bellwether.peers"] {
        let file = dir.path().join(name);
        let _ = fs::remove_file(&file);
        symlink(&target, &file).unwrap();
        real.refuses(0, &[], 2, &["ERROR", text(&file), "is a symbolic link", "must be a regular file"]);
        fs::remove_file(&file).unwrap();
        fs::hard_link(&target, &file).unwrap();
        real.refuses(0, &[], 2, &["ERROR", text(&file), "more than one name", "must have one"]);
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(fs::read_to_string(target).unwrap(), "precious");
}

/// A process logs what is wrong with its file of known peers, and joins all the same.
#[test]
fn damaged_known_peers_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bellwether.peers");
    fs::write(&file, "{").unwrap();
    let (real, _) = started(1, &["--state-dir", text(dir.path()), "--stable-margin", "0ms"]);
    real.logged(0, &["WARN", text(&file), "is damaged", "starts without known peers"]);
    let leads = format!("\"name\": \"{}\"", real.name(0));
    within(PATIENCE, || fs::read_to_string(&file).ok().filter(|known| known.contains(&leads))).unwrap();
}

/// Neither of the two is told of the other, and one knows from its last incarnation where the other is.
#[test]
fn a_restarted_process_asks_where_its_peers_were() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = processes(1, &["--stable-margin", "0ms"]);
    let mut real = processes(1, &[]);
    let (cluster, name) = (other.cluster().to_owned(), other.name(0));
    let address = format!("127.0.0.1:{}", other.ports(0).peer);
    let flags = ["--election", &cluster, "--state-dir", text(dir.path())];
    let follows = |real: &Real| {
        within(PATIENCE, || real.get(0, "/leader").ok().filter(|(_, told)| told.contains(&name)))
    };
    other.start(0, &[]).unwrap();
    other.agree(0, PATIENCE).unwrap();
    real.start(0, &[&flags[..], &["--peers", &address]].concat()).unwrap();
    follows(&real).expect("it is told of the other");
    let file = dir.path().join("bellwether.peers");
    within(PATIENCE, || fs::read_to_string(&file).ok().filter(|known| known.contains(&address))).unwrap();
    for processes in [&mut other, &mut real] {
        processes.kill(0);
        processes.end(0);
    }
    other.start(0, &[]).unwrap();
    other.agree(0, PATIENCE).unwrap();
    real.start(0, &flags).unwrap();
    follows(&real).expect("it remembers the other");
}

/// Three processes that are all killed come back with their ids, and with an epoch above the former.
#[test]
fn ids_and_epochs_survive_a_restart() {
    let dirs = folders(3);
    let mut real = with_folders(&dirs);
    let before = real.agree(0, PATIENCE).unwrap();
    let ids = |real: &Real| -> Vec<String> {
        (0..3).map(|place| own_id(&real.answer(place, "/members").1)).collect()
    };
    let known = ids(&real);
    for place in 0..3 {
        real.kill(place);
    }
    for (place, dir) in dirs.iter().enumerate() {
        real.end(place);
        real.start(place, &["--state-dir", text(dir.path())]).unwrap();
    }
    real.agree(before.epoch, PATIENCE).unwrap();
    assert_eq!(ids(&real), known);
}

fn own_id(members: &str) -> String {
    let members: serde_json::Value = serde_json::from_str(members).unwrap();
    let me = members["members"].as_array().unwrap().iter().find(|m| m["me"] == true).unwrap();
    me["id"].as_str().unwrap().to_owned()
}

/// A copied state folder makes two processes with one id. Every process refuses the copy, with a line that
/// names both, and the leader stays the same, be it the original or another.
#[test]
fn a_process_with_the_id_of_another_is_refused() {
    for leader in [0, 2] {
        let dirs = folders(3);
        let mut real = processes(3, &[]);
        for place in [0, 2] {
            let priority = if place == leader { "200" } else { "100" };
            real.start(place, &["--state-dir", text(dirs[place].path()), "--priority", priority]).unwrap();
        }
        let now = real.agree(0, PATIENCE).unwrap();
        assert_eq!(now.leader, leader);
        fs::copy(dirs[0].path().join(RECORD), dirs[1].path().join(RECORD)).unwrap();
        real.start(1, &["--state-dir", text(dirs[1].path())]).unwrap();
        let (original, copy) = (real.name(0), real.name(1));
        for place in [0, 2] {
            real.logged(place, &["WARN", &copy, &original, "has this id too"]);
        }
        // It is refused by either, and nothing else comes of it.
        let refused = |place| real.metric(place, "bellwether_connections_refused_total");
        within(PATIENCE, || [0, 2].iter().all(|p| refused(*p) >= Some(1.0)).then_some(())).unwrap();
        let at_last = real.agree_among(&[0, 2], 0, PATIENCE).unwrap();
        assert_eq!((at_last.leader, at_last.epoch), (now.leader, now.epoch));
    }
}

/// Its record cannot be made durable, so it may not go on (fail-stop); the others do.
#[test]
#[ignore = "needs root: mounts a small file system"]
fn a_process_whose_disk_is_full_ends_and_the_others_go_on() {
    struct Mounted(TempDir);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0.path()).status();
        }
    }
    let small = Mounted(tempfile::tempdir().unwrap());
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(small.0.path())
        .status()
        .unwrap();
    assert!(mounted.success());
    let mut real = processes(4, &[]);
    for place in 0..3 {
        real.start(place, &[]).unwrap();
    }
    let now = real.agree(0, PATIENCE).unwrap();
    // There is room for the lock and one record, and two files take turns.
    fs::write(small.0.path().join("fill"), vec![0; 56 * 1024]).unwrap();
    real.start(3, &["--state-dir", text(small.0.path())]).unwrap();
    real.kill(now.leader);
    assert_eq!(real.end(3).code(), Some(1));
    real.logged(3, &["ERROR", "could not be written", "No space left on device"]);
    real.end(now.leader);
    real.agree(now.epoch, PATIENCE).unwrap();
}

/// Not even root can write there.
#[test]
#[ignore = "needs root: mounts a file system"]
fn a_read_only_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "ro", "tmpfs"]).arg(dir.path()).status().unwrap();
    assert!(mounted.success());
    let mut real = processes(1, &["--state-dir", text(dir.path())]);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        real.refuses(0, &[], 2, &["ERROR", "cannot be written to", "Read-only file system"]);
    }));
    let _ = Command::new("umount").arg(dir.path()).status();
    refused.unwrap();
}
