//! A file that is replaced as a whole, by a rename, without a descriptor that would have to be opened for it.
//!
//! A process at its limit of open files must still be able to write its vote. So the file that is written
//! next, under a temporary name, is open already. Once it has the file's place, the former one has the
//! temporary name: both stay open, and exchange their names each time. Where the file system cannot exchange
//! names, the former file is closed, and the next one takes its descriptor.

use super::FailedStep;
use super::folder::{AccessError, Folder};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Whether a replacement has to survive a loss of power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Durability {
    /// It is on the disk when the replacement returns.
    Durable,
    /// The system writes it when it likes.
    Volatile,
}

/// The name of a file in the folder, and the name under which its next contents are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) file: &'static str,
    pub(super) temporary: &'static str,
}

/// One file of the folder. Only one value at a time may write it, in the process that has locked the folder.
#[derive(Debug)]
pub(super) struct ReplacedFile {
    folder: Arc<Folder>,
    names: Names,
    /// The file under the temporary name, to be written next.
    next: Option<File>,
    /// The file in place, once this value has written it.
    present: Option<File>,
}

impl ReplacedFile {
    /// `next` is an empty file under the temporary name, if there is one already.
    pub(super) fn new(folder: Arc<Folder>, names: Names, next: Option<File>) -> ReplacedFile {
        ReplacedFile { folder, names, next, present: None }
    }

    /// Opens what the next replacement writes, if it can be.
    pub(super) fn prepare(&mut self) {
        if self.next.is_none() {
            self.next = self.create().ok();
        }
    }

    /// The bytes of the file, of which one more than `bytes_max` at most; none: there is no file.
    pub(super) fn read(&self, bytes_max: usize) -> Result<Option<Vec<u8>>, AccessError> {
        let name = self.names.file;
        let file = match self.folder.open_file(name, OFlags::RDONLY) {
            Err(AccessError::Io(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        self.folder.claim(name, &file)?;
        let mut bytes = Vec::new();
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(AccessError::Io)?;
        Ok(Some(bytes))
    }

    /// Puts these bytes in the file's place. On an error the former file stays, or these bytes are in place
    /// and may not be durable.
    pub(super) fn replace(&mut self, bytes: &[u8], durability: Durability) -> Result<(), FailedStep> {
        let Names { file, temporary } = self.names;
        let written = self.write(bytes, durability)?;
        // Without a present file, or on a file system that cannot exchange, this is no error yet.
        let exchanged = self.present.is_some() && self.folder.exchange(temporary, file).is_ok();
        if !exchanged {
            self.folder.rename(temporary, file).map_err(|error| ("rename the temporary file", error))?;
        }
        if durability == Durability::Durable {
            self.folder.sync().map_err(|error| ("sync the folder", error))?;
        }
        let former = self.present.replace(written);
        self.next = former.filter(|_| exchanged);
        self.prepare();
        Ok(())
    }

    /// Writes these bytes under the temporary name, to see whether that can be done.
    pub(super) fn probe(&mut self, bytes: &[u8]) -> Result<(), FailedStep> {
        self.next = Some(self.write(bytes, Durability::Durable)?);
        self.folder.sync().map_err(|error| ("sync the folder", error))
    }

    /// Fills the temporary file with these bytes, and with nothing else.
    fn write(&mut self, bytes: &[u8], durability: Durability) -> Result<File, FailedStep> {
        // Whatever else has come to have that name is never put in place.
        let next = self.next.take().filter(|next| self.folder.has(self.names.temporary, next));
        let next = next.map_or_else(|| self.create(), Ok)?;
        next.write_all_at(bytes, 0)
            .and_then(|()| next.set_len(bytes.len() as u64))
            .map_err(|error| ("write the temporary file", error))?;
        if durability == Durability::Durable {
            next.sync_all().map_err(|error| ("sync the temporary file", error))?;
        }
        Ok(next)
    }

    /// Makes an empty file under the temporary name. If no descriptor is left, it takes the present file's.
    fn create(&mut self) -> Result<File, FailedStep> {
        create(&self.folder, self.names.temporary).or_else(|_| {
            self.present = None;
            create(&self.folder, self.names.temporary)
        })
    }
}

impl Drop for ReplacedFile {
    fn drop(&mut self) {
        if self.next.as_ref().is_some_and(|next| self.folder.has(self.names.temporary, next)) {
            // The next process removes it otherwise.
            let _ = self.folder.remove(self.names.temporary);
        }
    }
}

/// Makes an empty file under a temporary name, in place of what a former process has left there.
pub(super) fn create(folder: &Folder, temporary: &str) -> Result<File, FailedStep> {
    let step = |attempt| move |error: io::Error| (attempt, error);
    folder.remove(temporary).map_err(step("remove the former temporary file"))?;
    folder.create(temporary).map_err(step("create the temporary file"))
}
