//! Where peers were: a JSON file beside the record, which a starting process asks first.
//!
//! It is replaced as a whole, by a rename, and never synced: after a loss of power it may be an older one or
//! damaged. A process that cannot read it starts without it, and a process that cannot write it goes on.

use super::atomic_file::{Durability, Names, ReplacedFile};
use super::error::PeersError;
use super::folder::{AccessError, Folder};
use super::format::one_line;
use crate::election::{KnownPeers, LimitError, check_cluster, check_entries};
use std::path::PathBuf;
use std::sync::Arc;

/// The longest such file, in bytes. The most members with the longest names need about 235 KiB.
pub const PEERS_BYTES_MAX: usize = 512 * 1024;

const NAMES: Names = Names { file: "bellwether.peers", temporary: "bellwether.peers.tmp" };

/// The file of known peers in a state folder.
#[derive(Debug)]
pub struct PeersFile {
    path: PathBuf,
    file: ReplacedFile,
}

impl PeersFile {
    /// That of this folder, which this process has locked.
    pub(super) fn new(folder: Arc<Folder>) -> PeersFile {
        let path = folder.path(NAMES.file);
        let mut file = ReplacedFile::new(folder, NAMES, None);
        file.prepare();
        PeersFile { path, file }
    }

    /// What was last written; none: there is no file.
    ///
    /// # Errors
    /// If it cannot be read, may not be used, or is damaged.
    pub fn read(&self) -> Result<Option<KnownPeers>, PeersError> {
        let file = || self.path.clone();
        let read = self.file.read(PEERS_BYTES_MAX).map_err(|error| match error {
            AccessError::Untrusted(untrusted) => untrusted.into(),
            AccessError::Io(source) => PeersError::Io { file: file(), attempt: "read", source },
        });
        read?
            .map(|bytes| from_bytes(&bytes).map_err(|why| PeersError::Damaged { file: file(), why }))
            .transpose()
    }

    /// Replaces the file. It may wait for the disk.
    ///
    /// # Errors
    /// If it cannot be written; the former file stays then.
    pub fn write(&mut self, known: &KnownPeers) -> Result<(), PeersError> {
        let file = || self.path.clone();
        let bytes = to_bytes(known).map_err(|source| PeersError::Limit { file: file(), source })?;
        let replaced = self.file.replace(&bytes, Durability::Volatile);
        replaced.map_err(|(attempt, source)| PeersError::Io { file: file(), attempt, source })
    }
}

/// Known peers as the bytes of their file.
// JSON cannot express maps whose keys are no strings, and a `Serialize` may refuse its value; there is
// neither.
#[allow(clippy::expect_used)]
fn to_bytes(known: &KnownPeers) -> Result<Vec<u8>, LimitError> {
    check(known)?;
    let mut json = serde_json::to_vec_pretty(known).expect("invariant: known peers can be serialised");
    json.push(b'\n');
    // The limits checked above keep every list below this; `tests/store.rs` has the largest.
    assert!(json.len() <= PEERS_BYTES_MAX, "invariant: known peers are at most {PEERS_BYTES_MAX} bytes");
    Ok(json)
}

/// The known peers in the bytes of a file, or what is wrong with them.
pub fn from_bytes(bytes: &[u8]) -> Result<KnownPeers, String> {
    if bytes.len() > PEERS_BYTES_MAX {
        return Err(format!("it is longer than {PEERS_BYTES_MAX} bytes"));
    }
    let known: KnownPeers = serde_json::from_slice(bytes).map_err(|error| one_line(&error))?;
    check(&known).map_err(|error| error.to_string())?;
    Ok(known)
}

/// The same limits as for what peers send.
fn check(known: &KnownPeers) -> Result<(), LimitError> {
    check_cluster(&known.cluster)?;
    known.leader.iter().try_for_each(|leader| leader.check())?;
    check_entries(&known.members)
}
