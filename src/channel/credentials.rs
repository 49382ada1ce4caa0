//! What a process proves itself with, and how strictly it asks the same of others. The files may change while
//! the process runs.

use super::{CertificateFiles, FilesError, Keys, SecretError, read};
use rustls::pki_types::UnixTime;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often files are read that change meanwhile. Then the next look reads them.
const READINGS_MAX: usize = 3;
/// For how long the latest failure of a proof is told. A member that fails dials more often than that.
const FAILURE_SHOWN: Duration = Duration::from_secs(30);

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

/// Where a process finds what it proves itself with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProofFiles {
    /// A secret that all members share (`--peer-secret-file`).
    Secret(PathBuf),
    /// A certificate, its key, and the authorities.
    Certificate(CertificateFiles),
}

/// Why the files of a proof are of no use.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// Of a secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Of a certificate.
    #[error(transparent)]
    Certificate(#[from] FilesError),
}

impl ProofFiles {
    /// All the files, each of which may change.
    fn paths(&self) -> Vec<&Path> {
        match self {
            ProofFiles::Secret(path) => vec![path],
            ProofFiles::Certificate(files) => vec![&files.cert, &files.key, &files.ca],
        }
    }

    fn keys(&self, election: &str) -> Result<Keys, ProofError> {
        match self {
            ProofFiles::Secret(path) => {
                let unusable = |source| SecretError::Unusable { path: path.clone(), source };
                Ok(Keys::of_secrets(&read(path)?, election).map_err(unusable)?)
            }
            ProofFiles::Certificate(files) => Ok(Keys::of_certificate(files, UnixTime::now())?),
        }
    }
}

/// The proof of this process and what it accepts of others, as of the latest reading.
pub struct Credentials {
    mode: PeerAuth,
    election: String,
    files: Option<ProofFiles>,
    present: Mutex<Present>,
    /// The latest failure of a proof.
    unproved: Mutex<Option<Unproved>>,
}

/// A failure of a proof.
struct Unproved {
    at: Instant,
    /// Discovery names the other side.
    named: bool,
    text: String,
}

#[derive(Default)]
struct Present {
    keys: Option<Arc<Keys>>,
    /// What the files looked like when they were last read, whatever was in them.
    seen: Vec<Option<Appearance>>,
    /// Why the last reading brought nothing of use.
    failed: Option<String>,
}

/// By which a change of a file shows: device, inode, time of the last change (also of its mode), and size. A
/// mounted Secret changes by a symbolic link, and so in its inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Appearance(u64, u64, i64, i64, u64);

/// What a look at the files brought.
#[derive(Debug)]
pub enum Reading {
    /// Nothing new.
    Unchanged,
    /// From now on these keys count. They may be those from before files that could not be used.
    Changed(Arc<Keys>),
    /// The files cannot be used. The keys before them still count.
    Failed(ProofError),
}

impl Credentials {
    /// Reads the files, if there are any.
    ///
    /// # Errors
    /// Where they hold no usable proof.
    pub fn open(
        mode: PeerAuth,
        files: Option<ProofFiles>,
        election: &str,
    ) -> Result<Credentials, ProofError> {
        let files = files.filter(|_| mode != PeerAuth::Off);
        let mut present = Present::default();
        if let Some(files) = &files {
            present.seen = appearances(files);
            present.keys = Some(Arc::new(files.keys(election)?));
        }
        let (election, present) = (election.to_owned(), Mutex::new(present));
        Ok(Credentials { mode, election, files, present, unproved: Mutex::default() })
    }

    /// No proof, as on loopback.
    pub fn none() -> Credentials {
        let (present, unproved) = (Mutex::default(), Mutex::default());
        Credentials { mode: PeerAuth::Off, election: String::new(), files: None, present, unproved }
    }

    /// A process at this address did not prove itself, or this one did not prove itself to it. A stranger's
    /// failure takes the place of no member's, whose host discovery names.
    pub fn failed(&self, remote: SocketAddr, named: bool, why: &dyn fmt::Display) {
        let mut unproved = self.unproved.lock().unwrap_or_else(PoisonError::into_inner);
        if named || !unproved.as_ref().is_some_and(|before| before.named && before.is_shown()) {
            let text = format!("no link with {}: {why}", remote.ip());
            *unproved = Some(Unproved { at: Instant::now(), named, text });
        }
    }

    /// The latest failure of a proof, for people, where it is less than half a minute old.
    pub fn failure(&self) -> Option<String> {
        let unproved = self.unproved.lock().unwrap_or_else(PoisonError::into_inner);
        unproved.as_ref().filter(|failure| failure.is_shown()).map(|failure| failure.text.clone())
    }

    /// How strict it is.
    pub fn mode(&self) -> PeerAuth {
        self.mode
    }

    /// The keys that count now; none: connections are in clear.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.present().keys.clone()
    }

    /// Why the files cannot be used now; none: they can. The keys before them still count.
    pub fn unusable(&self) -> Option<String> {
        self.present().failed.clone()
    }

    /// Looks whether the files have changed, and reads them then. Files that change meanwhile are read again.
    /// So are files of no use: they may be readable now, or valid.
    pub fn look(&self) -> Reading {
        let Some(files) = &self.files else { return Reading::Unchanged };
        let mut seen = appearances(files);
        let read_before = {
            let present = self.present();
            present.seen == seen && present.failed.is_none()
        };
        if read_before {
            return Reading::Unchanged;
        }
        for _ in 0..READINGS_MAX {
            let read = files.keys(&self.election);
            let after = appearances(files);
            if after == seen {
                return self.take(read, seen);
            }
            seen = after;
        }
        Reading::Unchanged
    }

    /// Takes what was read, and what the files looked like.
    fn take(&self, read: Result<Keys, ProofError>, seen: Vec<Option<Appearance>>) -> Reading {
        let mut present = self.present();
        let same_files = present.seen == seen;
        present.seen = seen;
        let failure = read.as_ref().err().map(ToString::to_string);
        let before = std::mem::replace(&mut present.failed, failure);
        let failed_before = before.is_some();
        let keys = match read {
            Ok(keys) => Arc::new(keys),
            // The text alone would not do: that of an expired certificate says for how long.
            Err(_) if failed_before && (same_files || before == present.failed) => return Reading::Unchanged,
            Err(error) => return Reading::Failed(error),
        };
        if let Some(old) = present.keys.as_ref().filter(|old| old.are(&keys)) {
            return if failed_before { Reading::Changed(Arc::clone(old)) } else { Reading::Unchanged };
        }
        present.keys = Some(Arc::clone(&keys));
        Reading::Changed(keys)
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        // Each change is one assignment after the other, and each state in between is a sound one.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unproved {
    fn is_shown(&self) -> bool {
        self.at.elapsed() <= FAILURE_SHOWN
    }
}

/// None: a file is not there, or cannot be looked at.
fn appearances(files: &ProofFiles) -> Vec<Option<Appearance>> {
    let appearance = |path: &&Path| {
        let file = std::fs::metadata(path).ok()?;
        Some(Appearance(file.dev(), file.ino(), file.ctime(), file.ctime_nsec(), file.size()))
    };
    files.paths().iter().map(appearance).collect()
}
