//! What a process proves itself with, and how strictly it asks the same of others. The file may change while
//! the process runs.

use super::{Keys, SecretError, read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which connections count (`--peer-auth`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerAuth {
    /// All are in clear, and prove nothing.
    Off,
    /// This process dials with a proof, and in clear where the peer knows none. It accepts both. This
    /// protects against no attacker: it is a step between the other two.
    Permissive,
    /// Only those whose peer has proved itself.
    Required,
}

/// The proof of this process and what it accepts of others, as of the latest reading.
pub struct Credentials {
    mode: PeerAuth,
    election: String,
    file: Option<PathBuf>,
    present: Mutex<Present>,
}

struct Present {
    keys: Option<Arc<Keys>>,
    /// What the file looked like when it was last read, whatever was in it.
    seen: Option<Appearance>,
}

/// By which a change of a file shows: device, inode, time of the last change, and size. A mounted Secret
/// changes by a symbolic link, and so in its inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Appearance(u64, u64, i64, i64, u64);

/// What a look at the file brought.
#[derive(Debug)]
pub enum Reading {
    /// Nothing new.
    Unchanged,
    /// Other keys: from now on they count.
    Changed(Arc<Keys>),
    /// The file cannot be used. The keys before it still count.
    Failed(SecretError),
}

impl Credentials {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// Where it holds no usable secret.
    pub fn open(mode: PeerAuth, file: Option<PathBuf>, election: &str) -> Result<Credentials, SecretError> {
        let present = match &file {
            Some(path) if mode != PeerAuth::Off => {
                let seen = appearance(path);
                Present { keys: Some(Arc::new(keys(path, election)?)), seen }
            }
            _ => Present { keys: None, seen: None },
        };
        Ok(Credentials { mode, election: election.to_owned(), file, present: Mutex::new(present) })
    }

    /// No proof, as on loopback.
    pub fn none() -> Credentials {
        let present = Mutex::new(Present { keys: None, seen: None });
        Credentials { mode: PeerAuth::Off, election: String::new(), file: None, present }
    }

    /// How strict it is.
    pub fn mode(&self) -> PeerAuth {
        self.mode
    }

    /// The keys that count now; none: connections are in clear.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.present().keys.clone()
    }

    /// Looks whether the file has changed, and reads it then. It is read again if it changes meanwhile, at
    /// the next look.
    pub fn look(&self) -> Reading {
        let Some(path) = self.file.as_deref().filter(|_| self.mode != PeerAuth::Off) else {
            return Reading::Unchanged;
        };
        let seen = appearance(path);
        if seen == self.present().seen {
            return Reading::Unchanged;
        }
        let read = keys(path, &self.election);
        let mut present = self.present();
        present.seen = seen;
        match read {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let same = present.keys.as_ref().is_some_and(|old| old.fingerprints() == keys.fingerprints());
                present.keys = Some(Arc::clone(&keys));
                if same { Reading::Unchanged } else { Reading::Changed(keys) }
            }
            Err(error) => Reading::Failed(error),
        }
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        // Each change is one assignment after the other, and each state in between is a sound one.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keys(path: &Path, election: &str) -> Result<Keys, SecretError> {
    Keys::of_secrets(&read(path)?, election)
        .map_err(|source| SecretError::Unusable { path: path.to_owned(), source })
}

/// None: it is not there, or cannot be looked at.
fn appearance(path: &Path) -> Option<Appearance> {
    let file = std::fs::metadata(path).ok()?;
    Some(Appearance(file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
}
