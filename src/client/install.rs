//! `bellwether install`: puts this program onto a volume that an application's container mounts too.

use super::{EXIT_OWN_ERROR, failed};
use crate::config::InstallArgs;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;

/// All may run it, and its owner alone may change it.
const MODE: u32 = 0o755;

/// Why the program is not there. A program that was there before still is.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot install the program in {folder}: {source}; give a folder that is there, and that user {user} may \
     write to"
)]
struct Trouble {
    folder: String,
    source: io::Error,
    user: u32,
}

/// Copies, and says where to.
pub fn run(args: &InstallArgs) -> ExitCode {
    let target = args.folder.join("bellwether");
    match install(&args.folder, &target) {
        Ok(()) => {
            println!("{}", target.display());
            ExitCode::SUCCESS
        }
        Err(source) => {
            let (folder, user) = (args.folder.display().to_string(), rustix::process::getuid().as_raw());
            failed(&Trouble { folder, source, user }, EXIT_OWN_ERROR)
        }
    }
}

/// In one step for all that look: a copy beside it takes its name once all of it is there.
fn install(folder: &Path, target: &Path) -> io::Result<()> {
    let copy = folder.join(format!(".bellwether-{}", std::process::id()));
    let installed = write(&copy).and_then(|()| std::fs::rename(&copy, target));
    if installed.is_err() {
        // It may not be there at all.
        let _ = std::fs::remove_file(&copy);
    }
    installed.and_then(|()| File::open(folder)?.sync_all())
}

fn write(copy: &Path) -> io::Result<()> {
    let mut program = File::open(std::env::current_exe()?)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(copy)?;
    io::copy(&mut program, &mut file)?;
    // Whatever the umask is.
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.sync_all()
}
