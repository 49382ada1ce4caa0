//! The state folder, through one descriptor that stays open. Each file is opened by its name in it.

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, Stat, fstat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a new file may be used for, as far as the process's umask allows it.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// What every file is opened with: no other kind of file is waited for.
const OPENED: OFlags = OFlags::NONBLOCK.union(OFlags::CLOEXEC);

/// The state folder, open.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    descriptor: File,
}

impl Folder {
    pub(super) fn open(dir: &Path) -> io::Result<Folder> {
        let mut options = OpenOptions::new();
        let descriptor = options.read(true).custom_flags(OFlags::DIRECTORY.bits() as i32).open(dir)?;
        Ok(Folder { dir: dir.to_owned(), descriptor })
    }

    /// The path of a file in it, for errors.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Opens a file.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        Ok(File::from(openat(&self.descriptor, name, OPENED | flags, MODE)?))
    }

    /// Makes an empty file, in place of any that has this name.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
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
}
