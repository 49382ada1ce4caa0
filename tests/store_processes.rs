//! What is promised of `bellwether::store` when a process is killed.
//!
//! Apart from the other tests of the store: until its exec, a process that a test starts holds copies of all
//! descriptors, and with them the locks of dropped stores.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use bellwether::election::{Epoch, ProcessId, Record};
use bellwether::store::{Holder, OpenError, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use uuid::Uuid;

fn record(epoch: u64) -> Record {
    Record { cluster: "web".to_owned(), id: ProcessId(Uuid::nil()), epoch: Epoch(epoch), vote: None }
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
