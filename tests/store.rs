//! The durable record: what is promised of it in `bellwether::store`, from outside.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "store/folder.rs"]
mod folder;
#[path = "store/known_peers.rs"]
mod known_peers;
mod strategies;

use bellwether::election::{ConfigVersion, Epoch, LimitError, ProcessId, Record, VoteRecord, VoterConfig};
use bellwether::store::{Holder, OpenError, RECORD_BYTES_MAX, SaveError, Store};
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use uuid::Uuid;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn record_file(dir: &TempDir) -> PathBuf {
    dir.path().join("bellwether.record")
}

fn temporary_file(dir: &TempDir) -> PathBuf {
    dir.path().join("bellwether.record.tmp")
}

fn record(epoch: u64) -> Record {
    Record {
        cluster: "web".to_owned(),
        id: ProcessId(Uuid::from_u128(0x0011_2233_4455_4677_8899_aabb_ccdd_eeff)),
        epoch: Epoch(epoch),
        vote: None,
    }
}

/// That of a voter.
fn voters_record(epoch: u64) -> Record {
    let vote = VoteRecord {
        name: "web-0".to_owned(),
        founding: false,
        firm: false,
        config: VoterConfig {
            version: ConfigVersion { epoch: Epoch(6), version: 2 },
            voters: ["web-0", "web-1", "web-2"].map(str::to_owned).into(),
            lease_ms: 1500,
            bound_ms: 2000,
        },
    };
    Record { vote: Some(vote), ..record(epoch) }
}

/// The bytes of this record's file.
fn file_of(record: &Record) -> Vec<u8> {
    let dir = folder();
    Store::open(dir.path()).unwrap().0.save(record).unwrap();
    fs::read(record_file(&dir)).unwrap()
}

/// A file with a right checksum, whatever is in it.
fn summed(json: &[u8]) -> Vec<u8> {
    let header = format!("bellwether record format=2 crc32={:08x}\n", crc32fast::hash(json));
    [header.as_bytes(), json].concat()
}

fn reopened(dir: &TempDir) -> Option<Record> {
    Store::open(dir.path()).unwrap().1
}

/// The folder's files but the lock's, which is always there.
fn files(dir: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "bellwether.lock")
        .collect();
    names.sort();
    names
}

fn fewer_cases() -> ProptestConfig {
    // Each case syncs a disk several times.
    ProptestConfig::with_cases(64)
}

proptest! {
    #![proptest_config(fewer_cases())]

    #[test]
    fn a_record_round_trips(first in strategies::record(), second in strategies::record()) {
        let dir = folder();
        let (mut store, none) = Store::open(dir.path()).unwrap();
        prop_assert_eq!(none, None);
        store.save(&first).unwrap();
        drop(store);
        let (mut store, found) = Store::open(dir.path()).unwrap();
        prop_assert_eq!(found.as_ref(), Some(&first));
        store.save(&second).unwrap();
        drop(store);
        prop_assert_eq!(reopened(&dir), Some(second));
        prop_assert_eq!(files(&dir), ["bellwether.record"]);
    }

    #[test]
    fn any_bytes_for_a_record_stay_as_they_are(bytes in vec(any::<u8>(), 0..400)) {
        check_any_file(&bytes)?;
    }

    /// The checksum is right, what it sums up is not.
    #[test]
    fn any_bytes_with_a_checksum_stay_as_they_are(
        record in strategies::record(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let file = file_of(&record);
        let header = file.iter().position(|b| *b == b'\n').unwrap() + 1;
        let mut json = file[header..].to_vec();
        for (at, byte) in changes {
            let at = at.index(json.len());
            json[at] = byte;
        }
        check_any_file(&summed(&json))?;
    }

    #[test]
    fn a_damaged_record_is_no_record(
        record in strategies::record(),
        bit in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        let file = file_of(&record);
        let mut flipped = file.clone();
        let bit = bit.index(file.len() * 8);
        flipped[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!check_any_file(&flipped)?, "opened with a flipped bit");
        prop_assert!(!check_any_file(&file[..end.index(file.len())])?, "opened with its end cut off");
    }
}

/// Opens a folder with this file as its record, and says whether that went well; the file is as it was either
/// way.
fn check_any_file(bytes: &[u8]) -> Result<bool, TestCaseError> {
    let dir = folder();
    fs::write(record_file(&dir), bytes).unwrap();
    let opened = Store::open(dir.path());
    prop_assert_eq!(fs::read(record_file(&dir)).unwrap(), bytes);
    match opened {
        Ok((_, found)) => {
            prop_assert!(found.is_some());
            Ok(true)
        }
        Err(OpenError::Corrupt { .. } | OpenError::Newer { .. } | OpenError::EpochTooHigh { .. }) => {
            Ok(false)
        }
        Err(other) => Err(TestCaseError::fail(format!("unexpected: {other}"))),
    }
}

#[test]
fn a_new_folder_has_no_record() {
    let dir = folder();
    assert_eq!(reopened(&dir), None);
    assert_eq!(reopened(&dir), None);
    assert_eq!(files(&dir), [""; 0]);
}

#[test]
fn an_operator_can_read_the_file() {
    let text = String::from_utf8(file_of(&record(7))).unwrap();
    let expected = "\
bellwether record format=2 crc32=ac89bf6b
{
  \"cluster\": \"web\",
  \"id\": \"00112233-4455-4677-8899-aabbccddeeff\",
  \"epoch\": 7
}
";
    assert_eq!(text, expected);
}

#[test]
fn an_operator_can_read_a_vote() {
    let text = String::from_utf8(file_of(&voters_record(7))).unwrap();
    let expected = "\
  \"epoch\": 7,
  \"vote\": {
    \"name\": \"web-0\",
    \"founding\": false,
    \"firm\": false,
    \"config\": {
      \"version\": {
        \"epoch\": 6,
        \"version\": 2
      },
      \"voters\": [
        \"web-0\",
        \"web-1\",
        \"web-2\"
      ],
      \"lease_ms\": 1500,
      \"bound_ms\": 2000
    }
  }
}
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn epochs_are_kept_up_to_the_highest_after_which_an_election_can_follow() {
    let of_config = |epoch| {
        let mut record = voters_record(7);
        record.vote.iter_mut().for_each(|vote| vote.config.version.epoch = Epoch(epoch));
        record
    };
    assert!(Epoch::RECORD_MAX.next() <= Epoch::MAX, "the next one can be announced");
    for epoch in [0, 1, Epoch::RECORD_MAX.0] {
        for record in [record(epoch), of_config(epoch)] {
            let dir = folder();
            Store::open(dir.path()).unwrap().0.save(&record).unwrap();
            assert_eq!(reopened(&dir), Some(record));
        }
    }
    for epoch in [Epoch::MAX.0, Epoch::MAX.0 + 1, u64::MAX] {
        for record in [record(epoch), of_config(epoch)] {
            let dir = folder();
            let error = Store::open(dir.path()).unwrap().0.save(&record).unwrap_err();
            let limit = LimitError::RecordEpoch(Epoch(epoch));
            assert!(matches!(&error, SaveError::Limit { source, .. } if *source == limit), "{error:?}");
            assert_eq!(files(&dir), [""; 0]);

            let bytes = summed(&serde_json::to_vec(&record).unwrap());
            fs::write(record_file(&dir), &bytes).unwrap();
            let error = Store::open(dir.path()).unwrap_err();
            assert!(matches!(&error, OpenError::EpochTooHigh { found: Epoch(e), .. } if *e == epoch));
            let text = error.to_string();
            for part in [
                &format!("{} holds the epoch {epoch}", record_file(&dir).display()),
                "at most 4611686018427387903 is allowed",
                "remove the file to start as a new process",
                "remove bellwether.record from every state folder",
            ] {
                assert!(text.contains(part), "{part:?} is not in: {text}");
            }
            assert_eq!(fs::read(record_file(&dir)).unwrap(), bytes);
        }
    }
}

#[test]
fn the_largest_record_fits() {
    let largest = Record {
        cluster: "\"".repeat(63),
        epoch: Epoch::RECORD_MAX,
        vote: Some(strategies::largest_vote()),
        ..record(0)
    };
    let bytes = file_of(&largest).len();
    assert!(bytes > 16_000, "the documentation says about 17 KiB: {bytes}");
    assert!(bytes < RECORD_BYTES_MAX / 2, "room for fields to come: {bytes}");
    assert!(check_any_file(&file_of(&largest)).unwrap());
}

#[test]
fn an_unusable_record_is_left_as_it_is_and_the_error_says_what_to_do() {
    let sound = file_of(&record(7));
    let oversize = [&sound[..], &vec![b' '; RECORD_BYTES_MAX]].concat();
    let many = "{\"peer\":null},".repeat(3);
    let voting = |change: &dyn Fn(&mut VoteRecord)| {
        let mut record = voters_record(7);
        record.vote.iter_mut().for_each(change);
        summed(&serde_json::to_vec(&record).unwrap())
    };
    let cases = [
        (vec![], "it is empty"),
        (b"\0".repeat(4096), "does not begin"),
        (b"{\"epoch\": 7}".to_vec(), "does not begin"),
        (b"bellwether record format=".to_vec(), "does not begin"),
        (b"bellwether record format=99999999999".to_vec(), "does not begin"),
        (b"bellwether record format=0 crc32=00000000\n".to_vec(), "no format 0"),
        (sound[..30].to_vec(), "first line is incomplete"),
        (sound[..sound.len() - 1].to_vec(), "checksum is ac89bf6b, but"),
        ([&sound[..], b"\n"].concat(), "checksum is ac89bf6b, but"),
        (oversize, "longer than 65536 bytes"),
        (summed(b""), "not what a record is: EOF"),
        (summed(b"[]\n"), "not what a record is: invalid"),
        (summed(many.as_bytes()), "not what a record is"),
        (summed(&b"[".repeat(60_000)), "not what a record is: invalid type"),
        (
            summed(&serde_json::to_vec(&Record { cluster: "c".repeat(64), ..record(7) }).unwrap()),
            "the cluster's name has 64 bytes; at most 63 are allowed",
        ),
        (
            voting(&|vote| vote.name = "n".repeat(254)),
            "the voter's name has 254 bytes; at most 253 are allowed",
        ),
        (
            voting(&|vote| vote.config.voters.clear()),
            "the configuration has 0 voters; from 1 to 31 are allowed",
        ),
        (
            voting(&|vote| vote.config.voters.extend((0..29).map(|k| format!("api-{k}")))),
            "the configuration has 32 voters; from 1 to 31 are allowed",
        ),
        (
            voting(&|vote| vote.config.voters.extend(["\n".to_owned()])),
            "a voter's name has the control character",
        ),
        (
            voting(&|vote| vote.config.bound_ms = 1499),
            "the configuration has a lease of 1500 ms and a bound of 1499 ms; allowed are",
        ),
        (voting(&|vote| vote.config.lease_ms = 0), "the configuration has a lease of 0 ms"),
    ];
    for (bytes, expected) in cases {
        let dir = folder();
        fs::write(record_file(&dir), &bytes).unwrap();
        let error = Store::open(dir.path()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
        for part in
            [expected, record_file(&dir).to_str().unwrap(), "Restore the file", "Or remove it to start"]
        {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        assert_eq!(fs::read(record_file(&dir)).unwrap(), bytes);
        assert_eq!(files(&dir), ["bellwether.record"]);
    }
}

#[test]
fn an_older_record_is_left_as_it_is_and_the_error_says_what_to_do() {
    let dir = folder();
    let older = b"bellwether record format=1 crc32=00000000\n{}";
    fs::write(record_file(&dir), older).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OpenError::Older { found: 1, known: 2, .. }), "{error:?}");
    for part in [
        record_file(&dir).to_str().unwrap(),
        "Run the older bellwether",
        "remove bellwether.record from every state folder",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert_eq!(fs::read(record_file(&dir)).unwrap(), older);
}

#[test]
fn a_newer_record_is_left_as_it_is_and_the_error_says_what_to_do() {
    for rest in ["", " crc32=00000000\n{}", " something else"] {
        let newer = format!("bellwether record format=3{rest}").into_bytes();
        let large = [&newer[..], &vec![b' '; RECORD_BYTES_MAX]].concat();
        for bytes in [newer, large] {
            let dir = folder();
            fs::write(record_file(&dir), &bytes).unwrap();
            let error = Store::open(dir.path()).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, OpenError::Newer { found: 3, known: 2, .. }), "{error:?}");
            for part in
                [record_file(&dir).to_str().unwrap(), "Run the newer bellwether", "Or remove the file"]
            {
                assert!(text.contains(part), "{part:?} is not in: {text}");
            }
            assert_eq!(fs::read(record_file(&dir)).unwrap(), bytes);
        }
    }
}

/// A field that only a newer program knows does not keep an older one from starting.
#[test]
fn an_unknown_field_is_ignored() {
    let dir = folder();
    let json = serde_json::to_string(&record(7)).unwrap().replacen('{', "{\"novelty\": [1],", 1);
    fs::write(record_file(&dir), summed(json.as_bytes())).unwrap();
    assert_eq!(reopened(&dir), Some(record(7)));
}

/// An older version did not say whether a firm promise may be out.
#[test]
fn a_vote_that_does_not_say_so_may_be_firm() {
    let dir = folder();
    let json = serde_json::to_string(&voters_record(7)).unwrap();
    let older = json.replacen("\"firm\":false,", "", 1);
    assert_ne!(older, json);
    fs::write(record_file(&dir), summed(older.as_bytes())).unwrap();
    assert!(reopened(&dir).unwrap().vote.unwrap().firm);
}

#[test]
fn what_is_no_regular_file_is_no_record_and_nobody_waits_for_it() {
    let dir = folder();
    mknodat(CWD, record_file(&dir), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let text = Store::open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("bellwether.record is not a regular file"), "{text}");
    fs::remove_file(record_file(&dir)).unwrap();
    fs::create_dir(record_file(&dir)).unwrap();
    let text = Store::open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("bellwether.record is not a regular file"), "{text}");
}

#[test]
fn a_folder_that_is_none_is_refused() {
    let dir = folder();
    let missing = dir.path().join("missing");
    let error = Store::open(&missing).unwrap_err();
    assert!(matches!(&error, OpenError::Missing { dir } if *dir == missing), "{error:?}");
    assert!(!missing.exists());
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for not_a_folder in [file.clone(), file.join("below")] {
        let error = Store::open(&not_a_folder).unwrap_err();
        assert!(matches!(&error, OpenError::NotAFolder { dir } if *dir == not_a_folder), "{error:?}");
        assert!(error.to_string().contains(not_a_folder.to_str().unwrap()));
    }
}

/// No process may create a file there, not even root's.
#[test]
fn a_folder_that_cannot_be_written_to_is_refused() {
    let error = Store::open(Path::new("/sys/kernel")).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    assert!(error.to_string().contains("/sys/kernel cannot be written to"), "{error}");
}

#[test]
fn a_folder_without_permission_to_write_is_refused() {
    if rustix::process::geteuid().is_root() {
        eprintln!("nothing to see: root may write everywhere");
        return;
    }
    for with_lock_file in [false, true] {
        let dir = folder();
        if with_lock_file {
            Store::open(dir.path()).unwrap().0.save(&record(7)).unwrap();
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let result = Store::open(dir.path());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(result, Err(OpenError::NotWritable { .. })), "{result:?}");
    }
}

#[test]
fn a_folder_of_another_cluster_is_noticed() {
    let dir = folder();
    let (store, _) = Store::open(dir.path()).unwrap();
    store.check_cluster(&record(7), "web").unwrap();
    let text = store.check_cluster(&record(7), "api").unwrap_err().to_string();
    for part in [record_file(&dir).to_str().unwrap(), "\"web\"", "\"api\"", "--election"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn epochs_that_no_peer_believes_are_noticed() {
    const NOW_MS: u64 = 1_800_000_000_000;
    let max = NOW_MS + Epoch::ALWAYS_PLAUSIBLE + Epoch::CLOCK_LEAD_MAX_MS;
    let dir = folder();
    let (store, _) = Store::open(dir.path()).unwrap();
    let of_config = |epoch| {
        let mut record = voters_record(7);
        record.vote.iter_mut().for_each(|vote| vote.config.version.epoch = Epoch(epoch));
        record
    };
    for record in [record(max), of_config(max)] {
        store.check_epochs(&record, NOW_MS).unwrap();
    }
    for record in [record(max + 1), of_config(max + 1)] {
        let text = store.check_epochs(&record, NOW_MS).unwrap_err().to_string();
        for part in [&format!("holds the epoch {}, and at most {max}", max + 1), "the clock of this machine"]
        {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
    // What elections alone have raised does not depend on a clock.
    store.check_epochs(&record(Epoch::ALWAYS_PLAUSIBLE), 0).unwrap();
    assert_eq!(Epoch::record_max(u64::MAX), Epoch::RECORD_MAX);
}

#[test]
fn a_folder_of_another_voter_is_noticed() {
    let dir = folder();
    let (store, _) = Store::open(dir.path()).unwrap();
    store.check_voter(&record(7), "web-1").unwrap();
    store.check_voter(&voters_record(7), "web-0").unwrap();
    let text = store.check_voter(&voters_record(7), "web-1").unwrap_err().to_string();
    for part in [record_file(&dir).to_str().unwrap(), "\"web-0\"", "\"web-1\"", "--state-dir", "--name"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn a_folder_in_use_is_refused_until_it_is_free() {
    let dir = folder();
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.save(&record(7)).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    let me = std::process::id();
    assert!(matches!(&error, OpenError::Locked { holder, .. } if *holder == Holder(Some(me))), "{error:?}");
    let text = error.to_string();
    for part in [dir.path().to_str().unwrap(), &format!("(process {me} where it runs)")] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    // The refused one has taken nothing away.
    assert!(Store::open(dir.path()).is_err());
    store.save(&record(8)).unwrap();
    drop(store);
    assert_eq!(reopened(&dir), Some(record(8)));
}

#[test]
fn a_lock_file_without_a_number_is_no_obstacle() {
    let dir = folder();
    fs::write(dir.path().join("bellwether.lock"), "x".repeat(1000)).unwrap();
    let (_store, _) = Store::open(dir.path()).unwrap();
    assert_eq!(
        fs::read_to_string(dir.path().join("bellwether.lock")).unwrap(),
        format!("{}\n", std::process::id())
    );
    for text in ["", "\n", "word", "-1", "99999999999999999999999"] {
        fs::write(dir.path().join("bellwether.lock"), text).unwrap();
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(&error, OpenError::Locked { holder: Holder(None), .. }), "{error:?}");
    }
}

/// What is on disk after a crash at each step of writing epoch 8 over epoch 7, or of the very first record.
#[test]
fn a_crash_at_any_step_leaves_a_whole_record() {
    let (old, new) = (file_of(&record(7)), file_of(&record(8)));
    let steps: [(&str, Option<&[u8]>); 5] = [
        ("before it is created", None),
        ("created", Some(b"")),
        ("half written", Some(&new[..new.len() / 2])),
        ("written", Some(&new)),
        ("a probe", Some(&[b' '; 4096])),
    ];
    for (step, temporary) in steps {
        for former in [None, Some(&old)] {
            let dir = folder();
            if let Some(former) = former {
                fs::write(record_file(&dir), former).unwrap();
            }
            if let Some(temporary) = temporary {
                fs::write(temporary_file(&dir), temporary).unwrap();
            }
            let (mut store, found) = Store::open(dir.path()).unwrap();
            assert_eq!(found, former.map(|_| record(7)), "{step}");
            // Neither other contents of the temporary file nor another file in its place stop a save.
            fs::write(temporary_file(&dir), "in the way, and longer than a record".repeat(100)).unwrap();
            store.save(&record(8)).unwrap();
            fs::remove_file(temporary_file(&dir)).unwrap();
            store.save(&record(9)).unwrap();
            fs::remove_file(temporary_file(&dir)).unwrap();
            fs::write(temporary_file(&dir), "in the way").unwrap();
            store.save(&record(10)).unwrap();
            drop(store);
            assert_eq!(reopened(&dir), Some(record(10)), "{step}");
            assert_eq!(files(&dir), ["bellwether.record"], "{step}");
        }
    }
}

#[test]
fn after_a_failed_save_nothing_is_written_any_more() {
    let dir = folder();
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.save(&record(7)).unwrap();
    fs::remove_file(temporary_file(&dir)).unwrap();
    fs::create_dir(temporary_file(&dir)).unwrap();
    let error = store.save(&record(8)).unwrap_err();
    assert!(matches!(error, SaveError::Io { .. }), "{error:?}");
    let text = error.to_string();
    let source = error.source().unwrap().to_string();
    for part in [record_file(&dir).to_str().unwrap(), "failed to remove the former temporary file", &source] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    fs::remove_dir(temporary_file(&dir)).unwrap();
    let error = store.save(&record(9)).unwrap_err();
    assert!(matches!(error, SaveError::AfterFailure { .. }), "{error:?}");
    drop(store);
    assert_eq!(reopened(&dir), Some(record(7)));
}

#[test]
fn a_record_that_could_not_be_read_again_is_not_written() {
    let dir = folder();
    let (mut store, _) = Store::open(dir.path()).unwrap();
    let error = store.save(&Record { cluster: "c".repeat(64), ..record(7) }).unwrap_err();
    let limit = LimitError::TooLong { what: "the cluster's name", bytes: 64, bytes_max: 63 };
    assert!(matches!(&error, SaveError::Limit { source, .. } if *source == limit), "{error:?}");
    drop(store);
    assert_eq!(files(&dir), [""; 0]);
}

/// The calls by which a record becomes durable, in the order in which a real process makes them. A loss of
/// power cannot be made here; what it spares depends on this order.
#[test]
#[ignore = "needs strace"]
fn a_record_is_synced_before_the_rename_and_the_folder_after_it() {
    const TEST: &str = "a_record_is_synced_before_the_rename_and_the_folder_after_it";
    if let Some(dir) = std::env::var_os("STORE_TEST_FOLDER") {
        let (mut store, found) = Store::open(Path::new(&dir)).unwrap();
        let first = found.map_or(0, |record| record.epoch.0) + 1;
        for epoch in first..first + 2 {
            store.save(&record(epoch)).unwrap();
            std::io::stdout().write_all(b"saved\n").unwrap();
            std::io::stdout().flush().unwrap();
        }
        return;
    }
    let _alone = alone();
    let dir = folder();
    const CREATED: &str = "create the file";
    const SAVED: [&str; 4] = ["write the file", "sync the file", "rename", "sync the folder"];
    const PROBED: [&str; 4] = [CREATED, SAVED[0], SAVED[1], SAVED[3]];
    // With no record there is a probe at first; with one, it is written anew before this process acts on it.
    // The first rename is followed by the file that is written next. Then two files exchange their names.
    let first = [&PROBED[..], &SAVED, &[CREATED, "say so"], &SAVED, &["say so"]].concat();
    let later = [&[CREATED], &SAVED[..], &[CREATED], &SAVED, &["say so"], &SAVED, &["say so"]].concat();
    for expected in [first, later] {
        let traces = folder();
        let status = Command::new("strace")
            .args([
                "-ff",
                "-y",
                "-e",
                "trace=openat,write,pwrite64,fsync,fdatasync,sync_file_range,renameat,renameat2",
            ])
            .arg("-o")
            .arg(traces.path().join("thread"))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--ignored", "--nocapture", "--test-threads=1"])
            .env("STORE_TEST_FOLDER", dir.path())
            .stdout(Stdio::null())
            .status()
            .expect("strace must be installed to see that records are synced");
        assert!(status.success());
        // One thread does it all, and each thread has a trace of its own.
        let steps = fs::read_dir(traces.path())
            .unwrap()
            .map(|trace| steps(&fs::read_to_string(trace.unwrap().path()).unwrap(), dir.path()))
            .find(|steps| steps.contains(&"rename"));
        assert_eq!(steps.unwrap_or_default(), expected);
    }
}

/// What the calls in a trace do to the record in this folder, in order.
fn steps(trace: &str, dir: &Path) -> Vec<&'static str> {
    let dir = dir.to_str().unwrap();
    let file = format!("{dir}/bellwether.record.tmp");
    let step = |line: &str| {
        let call = line.split_once('(').map_or("", |(call, _)| call);
        let of_file = line.contains(&format!("<{file}>"));
        let of_folder = line.contains(&format!("<{dir}>"));
        match call {
            _ if line.contains(" = -1 ") => None,
            "openat" if of_file => Some("create the file"),
            "pwrite64" if of_file => Some("write the file"),
            "fsync" if of_file => Some("sync the file"),
            "fsync" if of_folder => Some("sync the folder"),
            "renameat" | "renameat2" if of_folder && line.contains("\"bellwether.record.tmp\"") => {
                Some("rename")
            }
            "write" if line.contains("\"saved\\n\"") => Some("say so"),
            _ => None,
        }
    };
    trace.lines().filter_map(step).collect()
}

/// A small disk of its own, gone with this.
struct Disk(TempDir);

impl Disk {
    fn mount(options: &str) -> Disk {
        let dir = folder();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path());
        assert!(mount.status().unwrap().success());
        Disk(dir)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// One test that starts programs at a time: until its exec, a child holds copies of all descriptors, and with
/// them the blocks of removed files and the locks of dropped stores.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
#[ignore = "needs root: mounts a small tmpfs"]
fn a_full_disk_keeps_the_former_record() {
    let _alone = alone();
    let disk = Disk::mount("size=64k");
    let dir = &disk.0;
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.save(&record(7)).unwrap();
    let filler = dir.path().join("filler");
    let _ = fs::write(&filler, vec![0; 64 * 1024]);
    let error = store.save(&voters_record(8)).unwrap_err();
    let text = error.to_string();
    for part in [record_file(dir).to_str().unwrap(), "failed to write the temporary file: No space left"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(matches!(store.save(&record(9)), Err(SaveError::AfterFailure { .. })));
    drop(store);
    fs::remove_file(&filler).unwrap();
    // What the failed one had written is in no process's way.
    let (store, found) = Store::open(dir.path()).unwrap();
    assert_eq!(found, Some(record(7)));
    drop(store);
    assert_eq!(files(dir), ["bellwether.record"]);

    // Both files that take turns have their room after two saves.
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.save(&record(7)).unwrap();
    let _ = fs::write(&filler, vec![0; 64 * 1024]);
    (8..20).for_each(|epoch| store.save(&record(epoch)).unwrap());
    drop(store);
    fs::remove_file(&filler).unwrap();

    // Full to the last block before the start: noticed at the start, with a record and without.
    let before = fs::read(record_file(dir)).unwrap();
    let _ = fs::write(&filler, vec![0; 64 * 1024]);
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(fs::read(record_file(dir)).unwrap(), before);
    fs::remove_file(record_file(dir)).unwrap();
    let _ = fs::write(&filler, vec![0; 128 * 1024]);
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    fs::remove_file(filler).unwrap();
    assert_eq!(reopened(dir), None);
    assert_eq!(files(dir), [""; 0]);
}

#[test]
#[ignore = "needs root: mounts a small tmpfs"]
fn a_read_only_disk_is_refused() {
    let _alone = alone();
    let disk = Disk::mount("size=64k");
    let dir = &disk.0;
    Store::open(dir.path()).unwrap().0.save(&record(7)).unwrap();
    let mut remount = Command::new("mount");
    remount.args(["-o", "remount,ro"]).arg(dir.path());
    assert!(remount.status().unwrap().success());
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    assert!(error.to_string().contains("Read-only file system"), "{error}");
}
