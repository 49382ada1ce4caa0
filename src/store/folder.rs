//! The state folder, through one descriptor that stays open.
//!
//! Each file is opened by its name in the folder, and checked before this process reads or changes it.
//! Another user may be able to write to the folder. That user must not choose which file this process uses,
//! by a link, nor what is in it, by a file of their own.

use super::error::{FileFault, Untrusted};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fstat, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Only its owner reads and writes a file of the folder.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// What every file is opened with: no link is followed, no other kind of file is waited for.
const OPENED: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// The state folder, open.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    descriptor: File,
    /// The owner that its files must have; none: any, for this process is root's.
    owner: Option<Uid>,
}

/// Why a file of the folder was not opened.
#[derive(Debug)]
pub(super) enum AccessError {
    /// It may be another user's doing.
    Untrusted(Untrusted),
    /// The system refused.
    Io(io::Error),
}

impl From<Errno> for AccessError {
    fn from(error: Errno) -> AccessError {
        AccessError::Io(error.into())
    }
}

impl Folder {
    pub(super) fn open(dir: &Path) -> io::Result<Folder> {
        let mut options = OpenOptions::new();
        let descriptor = options.read(true).custom_flags(OFlags::DIRECTORY.bits() as i32).open(dir)?;
        let user = geteuid();
        Ok(Folder { dir: dir.to_owned(), descriptor, owner: Some(user).filter(|user| !user.is_root()) })
    }

    /// The path of a file in it, for errors.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Has files belong to the owner of this one, which this process has made. Some file systems give all
    /// files another owner than the process.
    pub(super) fn own_as(&mut self, made: &File) -> io::Result<()> {
        let uid = fstat(made)?.st_uid;
        self.owner = self.owner.map(|_| Uid::from_raw(uid));
        Ok(())
    }

    /// Opens a regular file that has one name. [`Folder::claim`] has to follow before it is used.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> Result<File, AccessError> {
        let opened = openat(&self.descriptor, name, OPENED | flags, OWNER_ONLY);
        let file = opened.map_err(|error| self.explained(name, error))?;
        let stat = fstat(&file)?;
        let fault = if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            Some(FileFault::NotRegular)
        } else {
            (stat.st_nlink > 1).then_some(FileFault::Names)
        };
        fault.map_or(Ok(()), |fault| self.fault(name, fault))?;
        Ok(File::from(file))
    }

    /// Checks the owner of an open file, and lets only that user read it from now on.
    pub(super) fn claim(&self, name: &str, file: &File) -> Result<(), AccessError> {
        let stat = fstat(file)?;
        self.check_owner(name, &stat)?;
        if Mode::from_raw_mode(stat.st_mode) != OWNER_ONLY {
            // It fails where a file system has no modes of its own, and no user of the machine to keep out.
            let _ = fchmod(file, OWNER_ONLY);
        }
        Ok(())
    }

    /// Makes an empty file, in place of any that has this name.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OPENED | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(File::from(openat(&self.descriptor, name, flags, OWNER_ONLY)?))
    }

    /// Removes a name, if it is there. What a link names stays.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Err(Errno::NOENT) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether this name is this open file's.
    pub(super) fn has(&self, name: &str, file: &File) -> bool {
        let named = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        let same = |(a, b): (Stat, Stat)| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
        named.and_then(|named| Ok((named, fstat(file)?))).is_ok_and(same)
    }

    /// Gives a file another name, in place of any that has that name.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Exchanges the names of two files, in one step. Not every file system can.
    pub(super) fn exchange(&self, a: &str, b: &str) -> io::Result<()> {
        Ok(renameat_with(&self.descriptor, a, &self.descriptor, b, RenameFlags::EXCHANGE)?)
    }

    /// Makes the names of its files durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.descriptor.sync_all()
    }

    fn check_owner(&self, name: &str, stat: &Stat) -> Result<(), AccessError> {
        match self.owner.map(Uid::as_raw) {
            Some(expected) if stat.st_uid != expected => {
                self.fault(name, FileFault::Owner { found: stat.st_uid, expected })
            }
            _ => Ok(()),
        }
    }

    /// Why a file could not be opened, as far as its link or its owner explains it.
    fn explained(&self, name: &str, error: Errno) -> AccessError {
        let explained = match error {
            Errno::LOOP => self.fault(name, FileFault::Symlink),
            Errno::ACCESS | Errno::PERM => statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(Ok(()), |stat| self.check_owner(name, &stat)),
            _ => Ok(()),
        };
        explained.err().unwrap_or(error.into())
    }

    fn fault(&self, name: &str, fault: FileFault) -> Result<(), AccessError> {
        Err(AccessError::Untrusted(Untrusted { file: self.path(name), fault }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root may use any file, so a test that root runs would see nothing otherwise.
    #[test]
    fn a_file_of_another_owner_is_not_claimed() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let file = folder.create("file").unwrap();
        let own = fstat(&file).unwrap().st_uid;
        folder.owner = Some(Uid::from_raw(own + 1));
        let Err(AccessError::Untrusted(untrusted)) = folder.claim("file", &file) else {
            panic!("it is another user's");
        };
        assert_eq!(untrusted.fault, FileFault::Owner { found: own, expected: own + 1 });
        folder.own_as(&file).unwrap();
        assert!(folder.claim("file", &file).is_ok());
        folder.owner = None;
        folder.own_as(&file).unwrap();
        assert_eq!(folder.owner, None, "root stays root");
    }
}
