//! The files of a state folder that other users may write to as well: which are refused, and who may read
//! them.

use super::{alone, files, folder, record, record_file, reopened};
use bellwether::election::KnownPeers;
use bellwether::store::{FileFault, OpenError, PeersError, Store, Untrusted};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The files that a process keeps using, and that it replaces or changes.
const KEPT: [&str; 3] = ["bellwether.lock", "bellwether.record", "bellwether.peers"];
const TEMPORARY: [&str; 2] = ["bellwether.record.tmp", "bellwether.peers.tmp"];

fn known() -> KnownPeers {
    KnownPeers { cluster: "web".to_owned(), leader: None, members: vec![] }
}

/// A folder with all files that are kept.
fn used() -> TempDir {
    let dir = folder();
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.save(&record(7)).unwrap();
    store.peers_file().write(&known()).unwrap();
    drop(store);
    assert_eq!(files(&dir), ["bellwether.peers", "bellwether.record"]);
    dir
}

/// Uses a folder as a starting process does, and says what it refuses.
fn refused(dir: &Path) -> Option<Untrusted> {
    let (store, _) = match Store::open(dir) {
        Err(OpenError::Untrusted(untrusted)) => return Some(untrusted),
        opened => opened.unwrap(),
    };
    match store.peers_file().read() {
        Err(PeersError::Untrusted(untrusted)) => Some(untrusted),
        read => {
            assert_eq!(read.unwrap(), Some(known()));
            None
        }
    }
}

/// Without the check, the lock's target would be cut off, and a record or a list from elsewhere be believed.
#[test]
fn a_link_in_place_of_a_file_is_refused_and_what_it_names_is_left_alone() {
    type Link = fn(&Path, &Path) -> std::io::Result<()>;
    let links: [(Link, FileFault, &[&str]); 2] = [
        (|to, at| symlink(to, at), FileFault::Symlink, &["is a symbolic link", "in the link's place"]),
        (|to, at| fs::hard_link(to, at), FileFault::Names, &["more than one name (hard links)", "-samefile"]),
    ];
    for name in KEPT {
        for (link, fault, parts) in links {
            let (dir, elsewhere) = (used(), folder());
            let (file, target) = (dir.path().join(name), elsewhere.path().join("target"));
            fs::rename(&file, &target).unwrap();
            link(&target, &file).unwrap();
            let before = (fs::read(&target).unwrap(), fs::metadata(&target).unwrap().mode());
            let untrusted = refused(dir.path()).unwrap_or_else(|| panic!("{name}: {fault:?}"));
            assert_eq!(untrusted, Untrusted { file: file.clone(), fault });
            let text = untrusted.to_string();
            for part in parts.iter().chain(&[file.to_str().unwrap(), "let no other user write"]) {
                assert!(text.contains(part), "{part:?} is not in: {text}");
            }
            assert_eq!((fs::read(&target).unwrap(), fs::metadata(&target).unwrap().mode()), before);
            // Once it is mended as the message says, the process starts.
            fs::remove_file(&file).unwrap();
            fs::rename(&target, &file).unwrap();
            assert_eq!(refused(dir.path()), None);
        }
    }
}

#[test]
fn a_link_to_nothing_makes_no_file() {
    for name in KEPT {
        let (dir, elsewhere) = (used(), folder());
        let target = elsewhere.path().join("target");
        fs::remove_file(dir.path().join(name)).unwrap();
        symlink(&target, dir.path().join(name)).unwrap();
        assert_eq!(refused(dir.path()).map(|untrusted| untrusted.fault), Some(FileFault::Symlink));
        assert!(!target.exists(), "{name}");
    }
}

/// What has a temporary name is removed, as what a crash left is, and its target stays.
#[test]
fn a_link_in_place_of_a_temporary_file_is_not_followed() {
    for name in TEMPORARY {
        let (dir, elsewhere) = (used(), folder());
        let (soft, hard) = (elsewhere.path().join("soft"), elsewhere.path().join("hard"));
        fs::write(&soft, "precious").unwrap();
        fs::write(&hard, "precious").unwrap();
        let at = dir.path().join(name);
        symlink(&soft, &at).unwrap();
        let (mut store, _) = Store::open(dir.path()).unwrap();
        let mut peers = store.peers_file();
        let mut write = || {
            store.save(&record(8)).unwrap();
            peers.write(&known()).unwrap();
        };
        write();
        fs::remove_file(&at).unwrap();
        fs::hard_link(&hard, &at).unwrap();
        write();
        fs::remove_file(&at).unwrap();
        symlink(&soft, &at).unwrap();
        write();
        drop((store, peers));
        assert_eq!(reopened(&dir), Some(record(8)));
        for target in [soft, hard] {
            assert_eq!(fs::read_to_string(target).unwrap(), "precious", "{name}");
        }
    }
}

#[test]
fn only_the_owner_reads_and_writes_the_files_also_those_of_an_older_version() {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    for before in [0o600, 0o644, 0o666] {
        let dir = used();
        for name in KEPT {
            fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(before)).unwrap();
        }
        assert_eq!(refused(dir.path()), None, "an upgrade does not fail");
        let (store, _) = Store::open(dir.path()).unwrap();
        let _peers = store.peers_file();
        for name in KEPT.iter().chain(&TEMPORARY) {
            assert_eq!(mode(&dir.path().join(name)), 0o600, "{name} was {before:o}");
        }
    }
}

/// The user of the next test's process.
const USER: u32 = 65_534;

/// As a user who may read and replace the file, as in a pod with an fsGroup, and as one who may not.
#[test]
#[ignore = "needs root: has files of several users"]
fn a_file_of_another_user_is_refused_but_by_root() {
    const TEST: &str = "folder::a_file_of_another_user_is_refused_but_by_root";
    if let Some(dir) = std::env::var_os("STORE_TEST_FOLDER") {
        match refused(Path::new(&dir)) {
            Some(untrusted) => println!("refused: {untrusted}"),
            None => println!("opened"),
        }
        return;
    }
    let _alone = alone();
    // The other user may not be able to reach this program where it is.
    let program = folder();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = program.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let told = |dir: &TempDir| {
        let mut other = Command::new(&copy);
        other.args(["--exact", TEST, "--ignored", "--nocapture"]).env("STORE_TEST_FOLDER", dir.path());
        other.uid(USER).gid(USER);
        String::from_utf8(other.output().unwrap().stdout).unwrap()
    };
    for name in KEPT {
        for mode in [0o666, 0o600] {
            let dir = used();
            for own in KEPT.iter().filter(|own| **own != name).map(|own| dir.path().join(own)) {
                chown(own, Some(USER), Some(USER)).unwrap();
            }
            chown(dir.path(), Some(USER), Some(USER)).unwrap();
            let file = dir.path().join(name);
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let before = fs::read(&file).unwrap();
            let text = told(&dir);
            let refusal =
                format!("refused: {} belongs to the user 0, and must belong to 65534", file.display());
            for part in [&refusal, "runAsUser", "chown 65534"] {
                assert!(text.contains(part), "{mode:o}: {part:?} is not in: {text}");
            }
            assert_eq!(fs::read(&file).unwrap(), before, "{name}");
            chown(&file, Some(USER), Some(USER)).unwrap();
            assert!(told(&dir).contains("opened"), "{name} is its own now");
            assert_eq!(refused(dir.path()), None, "root may use another user's files");
            assert_eq!(fs::metadata(record_file(&dir)).unwrap().uid(), 0, "it has written the record anew");
        }
    }
}
