//! `bellwether install`: puts this program onto a volume that an application's container mounts too.

use super::{EXIT_OWN_ERROR, failed};
use crate::config::InstallArgs;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;
use uuid::Uuid;

/// All may run it, and its owner alone may change it.
const MODE: u32 = 0o755;

/// Why the program is not there. A program that was there before still is.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot install the program in {folder}: {source}; give a folder that is there, with room, and that user \
     {user} may write to"
)]
struct Trouble {
    folder: String,
    source: io::Error,
    user: u32,
}

/// Copies the program, and prints its new path.
pub fn run(args: &InstallArgs) -> ExitCode {
    let target = args.folder.join("bellwether");
    match install(&args.folder, &target) {
        Ok(()) => {
            // A reader that has gone changes nothing.
            let _ = writeln!(io::stdout(), "{}", target.display());
            ExitCode::SUCCESS
        }
        Err(source) => {
            let (folder, user) = (args.folder.display().to_string(), rustix::process::getuid().as_raw());
            failed(&Trouble { folder, source, user }, EXIT_OWN_ERROR)
        }
    }
}

/// Writes a copy beside the target, then renames it: a reader sees the old program or the new one.
fn install(folder: &Path, target: &Path) -> io::Result<()> {
    // Two containers may be at it, each with the process number 1.
    let copy = folder.join(format!(".bellwether-{}", Uuid::new_v4().simple()));
    let installed = write(&copy).and_then(|()| std::fs::rename(&copy, target));
    if installed.is_err() {
        // It may not be there at all.
        let _ = std::fs::remove_file(&copy);
    } else {
        // The program is there. A file system that cannot sync a folder may lose it with the machine's power.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    installed
}

fn write(copy: &Path) -> io::Result<()> {
    // Also where the program was replaced or removed since.
    let mut program = File::open("/proc/self/exe")?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(copy)?;
    io::copy(&mut program, &mut file)?;
    // Whatever the umask is.
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.sync_all()
}
