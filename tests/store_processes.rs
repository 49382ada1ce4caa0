//! What is promised of `bellwether::store` when a process is killed, or has used up its open files.
//!
//! Apart from the other tests of the store, and one at a time: until its exec, a process that a test starts
//! holds copies of all descriptors, and with them the locks of dropped stores.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use bellwether::election::{Epoch, KnownPeers, ProcessId, Record};
use bellwether::store::{Holder, OpenError, Store};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use uuid::Uuid;

const SAVES: u64 = 100;
/// More than the harness, the store and its files have open.
const DESCRIPTORS_MAX: u64 = 64;

/// From now on this process may have few files open.
fn limit() {
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS_MAX), ..getrlimit(Resource::Nofile) })
        .unwrap();
}

/// Opens files until no more can be.
fn use_up(open: &mut Vec<File>) {
    loop {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::MFILE), "{error}");
                return;
            }
        }
    }
}

fn known(k: u64) -> KnownPeers {
    KnownPeers { cluster: format!("web-{k}"), leader: None, members: vec![] }
}

fn record(epoch: u64) -> Record {
    Record { cluster: "web".to_owned(), id: ProcessId(Uuid::nil()), epoch: Epoch(epoch), vote: None }
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This test program again, running only the named test, which finds the folder in its environment.
fn process(test: &str, dir: &Path) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture", "--test-threads=1"]).env("STORE_TEST_FOLDER", dir);
    program
}

/// A process that saves one epoch after the other is killed at some moment: what it had said to be durable is
/// there, and its lock is gone. (That syncs come in the right order cannot be seen so: the system outlives
/// the process.)
#[test]
fn a_killed_process_leaves_what_it_had_saved() {
    if let Some(dir) = std::env::var_os("STORE_TEST_FOLDER") {
        let (mut store, found) = Store::open(Path::new(&dir)).unwrap();
        let mut out = std::io::stdout().lock();
        // Bounded, in case no test kills it.
        for epoch in (found.map_or(0, |record| record.epoch.0) + 1..).take(100_000) {
            store.save(&record(epoch)).unwrap();
            if writeln!(out, "saved {epoch}").is_err() {
                return;
            }
        }
        return;
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut epoch_min = 0;
    for round in 0..5 {
        let mut child = process("a_killed_process_leaves_what_it_had_saved", dir.path());
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut saved = lines.by_ref().filter_map(|line| line.unwrap().strip_prefix("saved ")?.parse().ok());
        for _ in 0..=round * 7 {
            epoch_min = saved.next().unwrap();
        }
        let error = Store::open(dir.path()).unwrap_err();
        let holder = Holder(Some(child.id()));
        assert!(matches!(&error, OpenError::Locked { holder: seen, .. } if *seen == holder), "{error:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        epoch_min = saved.last().unwrap_or(epoch_min);
        let found: u64 = Store::open(dir.path()).unwrap().1.unwrap().epoch.0;
        assert!((epoch_min..=epoch_min + 1).contains(&found), "{epoch_min} was saved, {found} is there");
    }
}

/// Saves in a process of its own, since the limit is that of all threads.
fn in_a_process(test: &str, saves: impl Fn(&Path)) {
    if let Some(dir) = std::env::var_os("STORE_TEST_FOLDER") {
        return saves(Path::new(&dir));
    }
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let output = process(test, dir.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (store, found) = Store::open(dir.path()).unwrap();
    assert_eq!(found, Some(record(SAVES)));
    assert_eq!(store.peers_file().read().unwrap(), Some(known(SAVES)));
}

/// Threads take every descriptor that becomes free, as connections do in a flood.
#[test]
fn a_save_needs_no_descriptor_that_another_thread_could_take() {
    in_a_process("a_save_needs_no_descriptor_that_another_thread_could_take", |dir| {
        let (mut store, _) = Store::open(dir).unwrap();
        let mut peers = store.peers_file();
        // The first ones make the files.
        store.save(&record(1)).unwrap();
        peers.write(&known(1)).unwrap();
        limit();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut open = Vec::new();
                    while !done.load(Ordering::Acquire) {
                        use_up(&mut open);
                    }
                });
            }
            while File::open("/dev/null").is_ok() {}
            let failed = (2..=SAVES).find_map(|k| {
                let saved = store.save(&record(k)).map_err(|error| error.to_string());
                saved.and_then(|()| peers.write(&known(k)).map_err(|error| error.to_string())).err()
            });
            done.store(true, Ordering::Release);
            assert_eq!(failed, None);
        });
    });
}

/// As on a file system that cannot exchange two names, and as at the first save of a folder.
#[test]
fn without_an_exchange_the_next_file_takes_the_descriptor_of_the_former_one() {
    in_a_process("without_an_exchange_the_next_file_takes_the_descriptor_of_the_former_one", |dir| {
        let (mut store, _) = Store::open(dir).unwrap();
        let mut peers = store.peers_file();
        limit();
        let mut open = Vec::new();
        use_up(&mut open);
        for k in 1..=SAVES {
            store.save(&record(k)).unwrap();
            peers.write(&known(k)).unwrap();
            if k < SAVES {
                // There is nothing to exchange names with then.
                fs::remove_file(dir.join("bellwether.record")).unwrap();
                fs::remove_file(dir.join("bellwether.peers")).unwrap();
            }
        }
        use_up(&mut open);
    });
}
