//! Where peers were: a JSON file beside the record, which a starting process asks first.
//!
//! It is replaced as a whole, by a rename, and never synced: after a loss of power it may be an older one or
//! damaged. A process that cannot read it starts without it, and a process that cannot write it goes on.

use super::error::PeersError;
use super::format::one_line;
use super::read_bounded;
use crate::election::{KnownPeers, LimitError, check_cluster, check_entries};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The longest such file, in bytes. The most members with the longest names need about 235 KiB.
pub const PEERS_BYTES_MAX: usize = 512 * 1024;

const PEERS_FILE: &str = "bellwether.peers";
const TEMPORARY_FILE: &str = "bellwether.peers.tmp";

/// The file of known peers in a state folder.
#[derive(Clone, Debug)]
pub struct PeersFile {
    file: PathBuf,
    temporary: PathBuf,
}

impl PeersFile {
    /// That of this folder. Only the process that holds the folder's [`Store`](super::Store) may write it.
    pub fn new(dir: &Path) -> PeersFile {
        PeersFile { file: dir.join(PEERS_FILE), temporary: dir.join(TEMPORARY_FILE) }
    }

    /// What was last written; none: there is no file.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn read(&self) -> Result<Option<KnownPeers>, PeersError> {
        match read_bounded(&self.file, PEERS_BYTES_MAX) {
            Ok(bytes) => match from_bytes(&bytes) {
                Ok(known) => Ok(Some(known)),
                Err(why) => Err(PeersError::Damaged { file: self.file.clone(), why }),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PeersError::Io { file: self.file.clone(), attempt: "read", source }),
        }
    }

    /// Replaces the file. It may wait for the disk.
    ///
    /// # Errors
    /// If it cannot be written; the former file stays then.
    pub fn write(&self, known: &KnownPeers) -> Result<(), PeersError> {
        let bytes =
            to_bytes(known).map_err(|source| PeersError::Limit { file: self.file.clone(), source })?;
        let failed = |attempt| move |source| PeersError::Io { file: self.file.clone(), attempt, source };
        // What a process that ended in the middle has left.
        remove(&self.temporary).map_err(failed("remove the former temporary file of"))?;
        fs::write(&self.temporary, bytes).map_err(failed("write the temporary file of"))?;
        fs::rename(&self.temporary, &self.file).map_err(failed("replace"))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
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
