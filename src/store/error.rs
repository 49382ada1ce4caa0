//! What can go wrong with the state folder, and how to mend it.

use crate::election::{Epoch, LimitError};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the state folder cannot be used. Whatever record was in it is still there, byte for byte.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such folder. It is not created: a mistyped one would silently make a new process.
    #[error("the state folder {} does not exist: create or mount it, or correct --state-dir", dir.display())]
    Missing {
        /// The folder.
        dir: PathBuf,
    },
    /// It is something else than a folder.
    #[error("the state folder {} is not a folder: correct --state-dir", dir.display())]
    NotAFolder {
        /// What was given for a folder.
        dir: PathBuf,
    },
    /// Another process uses it.
    #[error(
        "the state folder {} is in use by another bellwether{holder}: give each process a folder of its own, \
        or stop the other one", dir.display()
    )]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// The process that has it, if that can be told.
        holder: Holder,
    },
    /// Nothing can be written to it.
    #[error(
        "the state folder {} cannot be written to: failed to {attempt}: {source}. The record must be durable \
        before this process may speak, so give it a writable folder with free space", dir.display()
    )]
    NotWritable {
        /// The folder.
        dir: PathBuf,
        /// What was tried.
        attempt: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something in it cannot be read.
    #[error("cannot {attempt} {}: {source}", path.display())]
    Unreadable {
        /// The folder or file.
        path: PathBuf,
        /// What was tried.
        attempt: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// One of its files may be another user's doing.
    #[error("{0}")]
    Untrusted(#[from] Untrusted),
    /// The file is no record, or a damaged one.
    #[error(
        "{} is not a sound record: {why}; it is left as it is. Restore the file as it was last written. Or \
        remove it to start as a new process, with a new id and without the epoch it knew", file.display()
    )]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newer program wrote the record.
    #[error(
        "{} is a record of format {found}, and this bellwether knows formats up to {known}; it is left as it \
        is. Run the newer bellwether that wrote it. Or remove the file to start as a new process, with a new \
        id and without the epoch it knew", file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// An older program wrote the record.
    #[error(
        "{} is a record of format {found}, and this bellwether reads format {known} only; it is left as it \
        is. Run the older bellwether that wrote it. Or begin anew: stop all processes of this cluster, \
        remove {} from every state folder, and start them. Epochs then begin again at 1, so reset what a \
        resource keeps of them",
        file.display(), super::RECORD_FILE
    )]
    Older {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The format that this program knows.
        known: u32,
    },
    /// The record holds an epoch above which no election can follow.
    #[error(
        "{} holds the epoch {found}, and at most {max} is allowed, so that one more election is possible. \
        The file was changed by hand, hostile messages used the epochs up, or the clock of this machine is \
        far behind. The file is left as it is. If the other processes have lower epochs, remove the file to \
        start as a new process. It then has a new id, and not the epoch it knew. Otherwise begin anew: stop \
        all processes of this cluster, remove {} from every state folder, and start them. Epochs then begin \
        again at 1, so reset what a resource keeps of them",
        file.display(), super::RECORD_FILE
    )]
    EpochTooHigh {
        /// The file.
        file: PathBuf,
        /// The record's epoch, or that of its configuration.
        found: Epoch,
        /// The highest allowed.
        max: Epoch,
    },
    /// The record is of another election.
    #[error(
        "{} belongs to the election {found:?}, and this process to the election {expected:?}. Correct \
        --state-dir or --election, or remove the file to start as a new process", file.display()
    )]
    OtherCluster {
        /// The file.
        file: PathBuf,
        /// The record's election.
        found: String,
        /// This process's election.
        expected: String,
    },
    /// The record is another voter's.
    #[error(
        "{} is the record of the voter {found:?}, and this process is {expected:?}. The folder was copied or \
        mounted from another voter, and two processes with one vote could elect two leaders. Correct \
        --state-dir or --name; if this voter's own folder is lost, give it an empty one. It recovers from \
        the other voters", file.display()
    )]
    OtherVoter {
        /// The file.
        file: PathBuf,
        /// The name in the record's vote.
        found: String,
        /// This process's name.
        expected: String,
    },
}

/// The process that has the folder, as it numbered itself; in another container that number means nothing
/// here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder(pub Option<u32>);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) => write!(f, " (process {pid} where it runs)"),
            None => Ok(()),
        }
    }
}

/// A file of the state folder that this process does not use, for another user may have chosen or filled it.
/// It is left as it is.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} {fault}", file.display())]
pub struct Untrusted {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub fault: FileFault,
}

/// What is wrong with a file that this process does not use, and how to mend it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileFault {
    /// It is a symbolic link.
    #[error(
        "is a symbolic link, and a file of the state folder must be a regular file. By a link, another user \
        could have this process read or change any file. It is left as it is. Put the file itself in the \
        link's place, or remove the link, and let no other user write to the folder"
    )]
    Symlink,
    /// It is a folder, a pipe or the like.
    #[error(
        "is not a regular file, and a file of the state folder must be one. It is left as it is. Remove it, \
        and let no other user write to the folder"
    )]
    NotRegular,
    /// It has more than one name (hard links), perhaps one in another folder.
    #[error(
        "is a file with more than one name (hard links), and a file of the state folder must have one. By \
        another name, another user could have this process read or change any file. It is left as it is. \
        Remove the other names, which find -xdev -samefile lists, and let no other user write to the folder"
    )]
    Names,
    /// It belongs to another user than the files that this process makes in the folder.
    #[error(
        "belongs to the user {found}, and must belong to {expected}, the user of this process: another user \
        could have written it. It is left as it is. Run this process as the user {found} (in Kubernetes \
        runAsUser), or give it all files of the folder (chown {expected})"
    )]
    Owner {
        /// The owner, as the system numbers users.
        found: u32,
        /// The owner of the files that this process makes in the folder.
        expected: u32,
    },
}

/// Why the file of known peers was not read or written. A process ends only for one that it may not use.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// It may be another user's doing.
    #[error("{0}")]
    Untrusted(#[from] Untrusted),
    /// The system refused.
    #[error("cannot use {}: failed to {attempt}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What was tried.
        attempt: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It does not hold what this program writes to it.
    #[error("{} is damaged: {why}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The peers are not such that they could be read again. Nothing was written.
    #[error("cannot write {}: {source}", file.display())]
    Limit {
        /// The file.
        file: PathBuf,
        /// What was seen, and what is allowed.
        source: LimitError,
    },
}

/// Why a record is not durable. The file holds the former record or this one, each complete. It cannot be
/// told which of them survives a loss of power. So the process ends without sending what depends on it
/// (fail-stop).
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The system refused.
    #[error("cannot make {} durable: failed to {attempt}: {source}", file.display())]
    Io {
        /// The record's file.
        file: PathBuf,
        /// What was tried.
        attempt: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The record is not one that could be read again. Nothing was written.
    #[error("cannot write {}: {source}", file.display())]
    Limit {
        /// The record's file.
        file: PathBuf,
        /// What was seen, and what is allowed.
        source: LimitError,
    },
    /// An earlier record could not be made durable, so that what is on disk is unknown. Nothing was written.
    #[error("cannot write {}: an earlier attempt failed, and the process should have ended", file.display())]
    AfterFailure {
        /// The record's file.
        file: PathBuf,
    },
}
