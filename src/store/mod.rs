//! The durable record: what a process keeps over a restart, in one file of a folder that it alone uses.
//!
//! A record is replaced as a whole. The store writes and syncs a temporary file in the same folder, renames
//! it over the record, and syncs the folder. So at any moment, also after a loss of power, the file holds one
//! complete record. After [`Store::save`] has returned it is that one.
//!
//! The folder has the record, the temporary file, and a file that is only there to be locked. That one is
//! never removed: a lock on a removed file would exclude no process. Beside them is what `peers` writes,
//! which is not durable. `folder` says which files are refused, and `atomic_file` why a save opens none.

mod atomic_file;
mod error;
mod folder;
pub mod format;
pub mod peers;

pub use error::{FileFault, Holder, OpenError, PeersError, SaveError, Untrusted};
pub use peers::{PEERS_BYTES_MAX, PeersFile};

use crate::election::{Epoch, Record};
use atomic_file::{Durability, Names, ReplacedFile};
use folder::{AccessError, Folder};
use format::Unreadable;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// The longest record, in bytes of its file. The most voters with the longest names need about 17 KiB; the
/// rest is room for fields to come.
pub const RECORD_BYTES_MAX: usize = 64 * 1024;

const RECORD_FILE: &str = "bellwether.record";
const RECORD_NAMES: Names = Names { file: RECORD_FILE, temporary: "bellwether.record.tmp" };
const LOCK_FILE: &str = "bellwether.lock";

/// What the lock's file is read up to for its holder's process number, in bytes.
const HOLDER_BYTES_MAX: u64 = 16;
/// What is written to a folder without a record, to see whether it can be: a block, so that a full disk
/// shows.
const PROBE_BYTES: usize = 4096;

/// An attempt that failed, and what the system said.
type FailedStep = (&'static str, io::Error);

/// A state folder, locked for as long as this value exists.
#[derive(Debug)]
pub struct Store {
    folder: Arc<Folder>,
    record: ReplacedFile,
    /// Whether a record could not be made durable.
    failed: bool,
    /// Its lock is released when it is closed, also by the death of the process.
    _lock: File,
}

impl Store {
    /// Locks the folder and reads its record; None: it has none, this is a new process.
    ///
    /// Returns only if the folder can be written to: what it holds is written anew, or a probe where it holds
    /// nothing. A process that died before its sync had handed a record only to the system: the write makes
    /// that durable too. Without it, this process could act on a record that a later loss of power takes
    /// back. A record that other users could read is closed to them by the same write.
    ///
    /// On an error the record's file is left as it was.
    pub fn open(dir: &Path) -> Result<(Store, Option<Record>), OpenError> {
        let not_writable =
            |(attempt, source)| OpenError::NotWritable { dir: dir.to_owned(), attempt, source };
        let mut folder = Folder::open(dir).map_err(|error| not_opened(dir, error))?;
        let mut lock = lock(dir, &folder)?;
        let temporary = atomic_file::create(&folder, RECORD_NAMES.temporary).map_err(not_writable)?;
        folder.own_as(&temporary).map_err(|error| not_writable(("look at the temporary file", error)))?;
        let folder = Arc::new(folder);
        let mut record = ReplacedFile::new(Arc::clone(&folder), RECORD_NAMES, Some(temporary));
        folder.claim(LOCK_FILE, &lock).map_err(|error| unreadable(dir, LOCK_FILE, error))?;
        // The number only helps the error message of another process, so a failure to write it is no error
        // here. A later write shows whether the folder can be written to.
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        let found = read(dir, &record)?;
        let written = match &found {
            Some((bytes, _)) => record.replace(bytes, Durability::Durable),
            None => record.probe(&[b' '; PROBE_BYTES]),
        };
        written.map_err(not_writable)?;
        let store = Store { folder, record, failed: false, _lock: lock };
        Ok((store, found.map(|(_, record)| record)))
    }

    /// The file of known peers in this folder. One value at a time may write it, as long as the store exists.
    pub fn peers_file(&self) -> PeersFile {
        PeersFile::new(Arc::clone(&self.folder))
    }

    /// Makes the record durable. After an error the caller ends the process (fail-stop): see [`SaveError`]. A
    /// store that has failed writes nothing any more.
    pub fn save(&mut self, record: &Record) -> Result<(), SaveError> {
        let file = || self.folder.path(RECORD_FILE);
        if self.failed {
            return Err(SaveError::AfterFailure { file: file() });
        }
        let saved = match format::to_bytes(record) {
            Err(source) => Err(SaveError::Limit { file: file(), source }),
            Ok(bytes) => self
                .record
                .replace(&bytes, Durability::Durable)
                .map_err(|(attempt, source)| SaveError::Io { file: file(), attempt, source }),
        };
        self.failed = saved.is_err();
        saved
    }

    /// Whether a record that was read from this folder is of this cluster.
    pub fn check_cluster(&self, record: &Record, cluster: &str) -> Result<(), OpenError> {
        if record.cluster == cluster {
            return Ok(());
        }
        Err(OpenError::OtherCluster {
            file: self.folder.path(RECORD_FILE),
            found: record.cluster.clone(),
            expected: cluster.to_owned(),
        })
    }

    /// Whether peers can believe the epochs of a record that was read from this folder, at this time of the
    /// wall clock, in milliseconds since 1970.
    pub fn check_epochs(&self, record: &Record, wall_ms: u64) -> Result<(), OpenError> {
        let config = record.vote.as_ref().map_or(Epoch::ZERO, |vote| vote.config.version.epoch);
        let (found, max) = (record.epoch.max(config), Epoch::record_max(wall_ms));
        if found <= max {
            return Ok(());
        }
        Err(OpenError::EpochTooHigh { file: self.folder.path(RECORD_FILE), found, max })
    }

    /// Whether a record that was read from this folder is this voter's own. A vote belongs to a name: a
    /// folder that was copied from another voter holds that one's. A record without a vote fits any voter.
    pub fn check_voter(&self, record: &Record, name: &str) -> Result<(), OpenError> {
        match &record.vote {
            Some(vote) if vote.name != name => Err(OpenError::OtherVoter {
                file: self.folder.path(RECORD_FILE),
                found: vote.name.clone(),
                expected: name.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Why the folder itself was not opened.
fn not_opened(dir: &Path, source: io::Error) -> OpenError {
    match source.kind() {
        ErrorKind::NotFound => OpenError::Missing { dir: dir.to_owned() },
        ErrorKind::NotADirectory => OpenError::NotAFolder { dir: dir.to_owned() },
        _ => OpenError::Unreadable { path: dir.to_owned(), attempt: "open the state folder", source },
    }
}

fn unreadable(dir: &Path, name: &str, error: AccessError) -> OpenError {
    match error {
        AccessError::Untrusted(untrusted) => untrusted.into(),
        AccessError::Io(source) => OpenError::Unreadable { path: dir.join(name), attempt: "read", source },
    }
}

/// Takes the folder for this process, or names the process that has it. Does not wait. Nothing is written to
/// the file: whether it may be used is known only when the folder's owner is.
fn lock(dir: &Path, folder: &Folder) -> Result<File, OpenError> {
    let file = folder.open_file(LOCK_FILE, OFlags::RDWR | OFlags::CREATE).map_err(|error| match error {
        AccessError::Untrusted(untrusted) => untrusted.into(),
        AccessError::Io(source) => {
            OpenError::NotWritable { dir: dir.to_owned(), attempt: "open bellwether.lock", source }
        }
    })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
            let holder = read.ok().and_then(|_| text.trim().parse().ok());
            Err(OpenError::Locked { dir: dir.to_owned(), holder: Holder(holder) })
        }
        Err(error) => {
            let path = dir.join(LOCK_FILE);
            Err(OpenError::Unreadable { path, attempt: "lock", source: error.into() })
        }
    }
}

/// The record and the bytes of its file, if there is one.
fn read(dir: &Path, record: &ReplacedFile) -> Result<Option<(Vec<u8>, Record)>, OpenError> {
    let read = record.read(RECORD_BYTES_MAX).map_err(|error| unreadable(dir, RECORD_FILE, error))?;
    let Some(bytes) = read else { return Ok(None) };
    let file = dir.join(RECORD_FILE);
    match format::from_bytes(&bytes) {
        Ok(record) => Ok(Some((bytes, record))),
        Err(Unreadable::EpochTooHigh(found)) => {
            Err(OpenError::EpochTooHigh { file, found, max: Epoch::RECORD_MAX })
        }
        Err(Unreadable::Corrupt(why)) => Err(OpenError::Corrupt { file, why }),
        Err(Unreadable::Newer(found)) => Err(OpenError::Newer { file, found, known: format::FORMAT }),
        Err(Unreadable::Older(found)) => Err(OpenError::Older { file, found, known: format::FORMAT }),
    }
}
