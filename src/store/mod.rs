//! The durable record: what a process keeps over a restart, in one file of a folder that it alone uses.
//!
//! A record is replaced as a whole. The store writes and syncs a temporary file in the same folder, renames
//! it over the record, and syncs the folder. So at any moment, also after a loss of power, the file holds one
//! complete record. After [`Store::save`] has returned it is that one.
//!
//! The folder has the record, while it is written the temporary one, and a file that is only there to be
//! locked. That one is never removed: a lock on a removed file would exclude no process. Beside them is what
//! `peers` writes, which is not durable.

mod error;
pub mod format;
pub mod peers;

pub use error::{Holder, OpenError, PeersError, SaveError};
pub use peers::{PEERS_BYTES_MAX, PeersFile};

use crate::election::Record;
use format::Unreadable;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The longest record, in bytes of its file. The most voters with the longest names need about 17 KiB; the
/// rest is room for fields to come.
pub const RECORD_BYTES_MAX: usize = 64 * 1024;

const RECORD_FILE: &str = "bellwether.record";
const TEMPORARY_FILE: &str = "bellwether.record.tmp";
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
    dir: PathBuf,
    /// The folder itself, to sync its entries.
    folder: File,
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
    /// back.
    ///
    /// On an error the record's file is left as it was.
    pub fn open(dir: &Path) -> Result<(Store, Option<Record>), OpenError> {
        let folder = open_folder(dir)?;
        let lock = lock(dir)?;
        let store = Store { dir: dir.to_owned(), folder, failed: false, _lock: lock };
        let found = store.read()?;
        let written = match &found {
            Some((bytes, _)) => store.replace(bytes),
            None => store.probe(),
        };
        written.map_err(|(attempt, source)| OpenError::NotWritable {
            dir: dir.to_owned(),
            attempt,
            source,
        })?;
        Ok((store, found.map(|(_, record)| record)))
    }

    /// Makes the record durable. After an error the caller ends the process (fail-stop): see [`SaveError`]. A
    /// store that has failed writes nothing any more.
    pub fn save(&mut self, record: &Record) -> Result<(), SaveError> {
        let file = || self.dir.join(RECORD_FILE);
        if self.failed {
            return Err(SaveError::AfterFailure { file: file() });
        }
        let saved = match format::to_bytes(record) {
            Err(source) => Err(SaveError::Limit { file: file(), source }),
            Ok(bytes) => self.replace(&bytes).map_err(|(attempt, source)| SaveError::Io {
                file: file(),
                attempt,
                source,
            }),
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
            file: self.dir.join(RECORD_FILE),
            found: record.cluster.clone(),
            expected: cluster.to_owned(),
        })
    }

    /// Whether a record that was read from this folder is this voter's own. A vote belongs to a name: a
    /// folder that was copied from another voter holds that one's. A record without a vote fits any voter.
    pub fn check_voter(&self, record: &Record, name: &str) -> Result<(), OpenError> {
        match &record.vote {
            Some(vote) if vote.name != name => Err(OpenError::OtherVoter {
                file: self.dir.join(RECORD_FILE),
                found: vote.name.clone(),
                expected: name.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The record and the bytes of its file, if there is one.
    fn read(&self) -> Result<Option<(Vec<u8>, Record)>, OpenError> {
        let file = self.dir.join(RECORD_FILE);
        let bytes = match read_bounded(&file, RECORD_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(OpenError::Unreadable { path: file, attempt: "read", source });
            }
        };
        match format::from_bytes(&bytes) {
            Ok(record) => Ok(Some((bytes, record))),
            Err(Unreadable::EpochTooHigh(found)) => Err(OpenError::EpochTooHigh { file, found }),
            Err(Unreadable::Corrupt(why)) => Err(OpenError::Corrupt { file, why }),
            Err(Unreadable::Newer(found)) => Err(OpenError::Newer { file, found, known: format::FORMAT }),
            Err(Unreadable::Older(found)) => Err(OpenError::Older { file, found, known: format::FORMAT }),
        }
    }

    /// Puts these bytes in the record's place, durably.
    fn replace(&self, bytes: &[u8]) -> Result<(), FailedStep> {
        self.write_temporary(bytes)?;
        fs::rename(self.dir.join(TEMPORARY_FILE), self.dir.join(RECORD_FILE))
            .map_err(|error| ("rename bellwether.record.tmp to bellwether.record", error))?;
        self.folder.sync_all().map_err(|error| ("sync the folder", error))
    }

    /// Sees whether the folder can be written to, and leaves nothing behind.
    fn probe(&self) -> Result<(), FailedStep> {
        let written = self.write_temporary(&[b' '; PROBE_BYTES]);
        // Also a half-written one is removed, but the first failure is the one to tell.
        written.and(self.remove_temporary())?;
        self.folder.sync_all().map_err(|error| ("sync the folder", error))
    }

    /// Writes and syncs the temporary file. One that a crash left behind is removed first.
    fn write_temporary(&self, bytes: &[u8]) -> Result<(), FailedStep> {
        self.remove_temporary()?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.dir.join(TEMPORARY_FILE))
            .map_err(|error| ("create bellwether.record.tmp", error))?;
        file.write_all(bytes).map_err(|error| ("write bellwether.record.tmp", error))?;
        file.sync_all().map_err(|error| ("sync bellwether.record.tmp", error))
    }

    fn remove_temporary(&self) -> Result<(), FailedStep> {
        match fs::remove_file(self.dir.join(TEMPORARY_FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(("remove the former bellwether.record.tmp", error))
            }
            _ => Ok(()),
        }
    }
}

/// Opens the folder, to sync it later.
fn open_folder(dir: &Path) -> Result<File, OpenError> {
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::NotFound => OpenError::Missing { dir: dir.to_owned() },
        ErrorKind::NotADirectory => OpenError::NotAFolder { dir: dir.to_owned() },
        _ => OpenError::Unreadable { path: dir.to_owned(), attempt: "open the state folder", source },
    };
    OpenOptions::new().read(true).custom_flags(OFlags::DIRECTORY.bits() as i32).open(dir).map_err(failed)
}

/// Takes the folder for this process, or names the process that has it. Does not wait.
fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(&path)
        .map_err(|source| OpenError::NotWritable {
            dir: dir.to_owned(),
            attempt: "open bellwether.lock",
            source,
        })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
            let holder = read.ok().and_then(|_| text.trim().parse().ok());
            return Err(OpenError::Locked { dir: dir.to_owned(), holder: Holder(holder) });
        }
        Err(error) => {
            return Err(OpenError::Unreadable { path, attempt: "lock", source: error.into() });
        }
    }
    // The number only helps the error message of another process, so a failure to write it is no error here.
    // A later write shows whether the folder can be written to.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// A file's bytes, of which one more than `bytes_max` at most. Does not wait for what is no regular file.
fn read_bounded(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
