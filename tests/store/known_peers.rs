//! The file of known peers: what is promised of it in `bellwether::store`, from outside.

use super::{fewer_cases, files, folder, record, strategies};
use bellwether::election::{KnownPeers, LimitError};
use bellwether::store::{FileFault, PEERS_BYTES_MAX, PeersError, PeersFile, Store};
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

fn peers_file(dir: &TempDir) -> PathBuf {
    dir.path().join("bellwether.peers")
}

/// The file of known peers in this folder, as a process has it.
fn opened(dir: &TempDir) -> (Store, PeersFile) {
    let (store, _) = Store::open(dir.path()).unwrap();
    let file = store.peers_file();
    (store, file)
}

/// As many peers as there may be, each as large as can be.
fn largest_peers() -> KnownPeers {
    KnownPeers {
        cluster: "\"".repeat(63),
        leader: Some(strategies::largest_peer()),
        members: strategies::largest_entries().to_vec(),
    }
}

proptest! {
    #![proptest_config(fewer_cases())]

    #[test]
    fn known_peers_round_trip(first in strategies::known_peers(), second in strategies::known_peers()) {
        let dir = folder();
        let (store, mut file) = opened(&dir);
        prop_assert_eq!(file.read().unwrap(), None);
        // The second and the third are written where the first and the second were.
        for known in [&first, &second, &first] {
            file.write(known).unwrap();
            prop_assert_eq!(file.read().unwrap(), Some(known.clone()));
        }
        drop((store, file));
        prop_assert_eq!(files(&dir), ["bellwether.peers"]);
    }

    #[test]
    fn any_bytes_for_known_peers_end_nothing(bytes in vec(any::<u8>(), 0..400)) {
        let dir = folder();
        fs::write(peers_file(&dir), bytes).unwrap();
        let (_store, file) = opened(&dir);
        let read = file.read();
        prop_assert!(matches!(read, Err(PeersError::Damaged { .. })), "{:?}", read);
    }
}

#[test]
fn the_largest_list_of_known_peers_fits_and_one_beyond_a_limit_is_neither_written_nor_read() {
    let dir = folder();
    let (_store, mut file) = opened(&dir);
    let largest = largest_peers();
    file.write(&largest).unwrap();
    assert_eq!(file.read().unwrap().as_ref(), Some(&largest));
    let bytes = fs::metadata(peers_file(&dir)).unwrap().len();
    assert!(bytes > 235_000, "the documentation says about 235 KiB: {bytes}");
    assert!(bytes < PEERS_BYTES_MAX as u64 * 3 / 4, "room for fields to come: {bytes}");

    let mut beyond = largest.clone();
    beyond.members.extend_from_within(..1);
    let error = file.write(&beyond).unwrap_err();
    assert!(matches!(error, PeersError::Limit { source: LimitError::Members(257), .. }), "{error:?}");
    assert_eq!(file.read().unwrap().as_ref(), Some(&largest));
    fs::write(peers_file(&dir), serde_json::to_vec(&beyond).unwrap()).unwrap();
    let text = file.read().unwrap_err().to_string();
    assert!(text.ends_with("is damaged: the list names 257 members; at most 256 are allowed"), "{text}");
    let mut longest = serde_json::to_vec(&largest).unwrap();
    longest.resize(PEERS_BYTES_MAX, b' ');
    fs::write(peers_file(&dir), &longest).unwrap();
    assert_eq!(file.read().unwrap(), Some(largest));
    longest.push(b' ');
    fs::write(peers_file(&dir), &longest).unwrap();
    let text = file.read().unwrap_err().to_string();
    assert!(text.ends_with("bellwether.peers is damaged: it is longer than 524288 bytes"), "{text}");
}

#[test]
fn known_peers_that_are_no_regular_file_are_not_waited_for() {
    let dir = folder();
    mknodat(CWD, peers_file(&dir), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (_store, file) = opened(&dir);
    let error = file.read().unwrap_err();
    assert!(matches!(&error, PeersError::Untrusted(why) if why.fault == FileFault::NotRegular), "{error:?}");
}

/// The record does not depend on them.
#[test]
fn known_peers_that_cannot_be_written_are_an_error_and_the_former_ones_stay() {
    let dir = folder();
    let (mut store, mut file) = opened(&dir);
    let known = KnownPeers { cluster: "web".to_owned(), leader: None, members: vec![] };
    file.write(&known).unwrap();
    fs::remove_file(dir.path().join("bellwether.peers.tmp")).unwrap();
    fs::create_dir(dir.path().join("bellwether.peers.tmp")).unwrap();
    let error = file.write(&largest_peers()).unwrap_err();
    assert!(matches!(error, PeersError::Io { .. }), "{error:?}");
    assert_eq!(file.read().unwrap(), Some(known));
    store.save(&record(8)).unwrap();
}
