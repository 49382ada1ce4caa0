//! The file with the shared secret.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How many secrets a file may hold: the present one, and those of a rotation.
pub const SECRETS_MAX: usize = 3;
/// The fewest bytes of a secret. A stranger that dials sees the public key that is made of it, and may try
/// out guesses at leisure.
pub const SECRET_BYTES_MIN: usize = 32;
/// The longest file, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// Why a file holds no usable secret. No message shows any of it.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read.
    #[error(
        "the file of the peer secret {} cannot be read: {source}; make it readable for this process",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is longer than any such file.
    #[error(
        "the file of the peer secret {} is longer than {FILE_BYTES_MAX} bytes; it holds one to {SECRETS_MAX} \
         lines",
        path.display()
    )]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It has no line, or too many.
    #[error(
        "the file of the peer secret {} has {lines} lines, and one to {SECRETS_MAX} are allowed: the first \
         is sent, all are accepted",
        path.display()
    )]
    Lines {
        /// The file.
        path: PathBuf,
        /// How many lines are not empty.
        lines: usize,
    },
    /// Its secrets make no keys.
    #[error("the file of the peer secret {} makes no keys: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the cryptography says.
        source: rustls::Error,
    },
    /// A line is too short to be secret.
    #[error(
        "line {line} of the file of the peer secret {} has {bytes} bytes, and at least {SECRET_BYTES_MIN} \
         random ones are needed. Where other members run, write the former content back, which they still \
         use. For a new election make them with: head -c 32 /dev/urandom | base64",
        path.display()
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// Which line, from 1 on.
        line: usize,
        /// Its length.
        bytes: usize,
    },
}

/// All of a file; none: it is longer than that.
pub(super) fn bounded(path: &Path, bytes_max: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= bytes_max).then_some(text))
}

/// The secrets of a file, one to [`SECRETS_MAX`], the one to be sent first. White space at the ends of lines
/// and empty lines do not count.
///
/// # Errors
/// Where the file cannot be read, or holds something else.
pub fn read(path: &Path) -> Result<Vec<Vec<u8>>, SecretError> {
    let text = bounded(path, FILE_BYTES_MAX)
        .map_err(|source| SecretError::Unreadable { path: path.to_owned(), source })?
        .ok_or_else(|| SecretError::TooLong { path: path.to_owned() })?;
    let lines: Vec<&[u8]> =
        text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() || lines.len() > SECRETS_MAX {
        return Err(SecretError::Lines { path: path.to_owned(), lines: lines.len() });
    }
    for (index, line) in lines.iter().enumerate() {
        if line.len() < SECRET_BYTES_MIN {
            return Err(SecretError::Short { path: path.to_owned(), line: index + 1, bytes: line.len() });
        }
    }
    Ok(lines.into_iter().map(<[u8]>::to_vec).collect())
}
