//! SIGTERM and its like: they reach the command that runs, and end this one.
//!
//! All commands have a handler: the kernel drops these signals to process 1 of a container that has none.

use super::signal_code;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What signals are for.
#[derive(Default)]
pub(super) struct Target {
    /// The process group of the command that runs, if one does.
    pub(super) group: Option<Pid>,
    /// The signal that has come.
    number: Option<i32>,
}

/// The same for all threads.
#[derive(Clone, Default)]
pub(super) struct Signalled(Arc<Mutex<Target>>);

impl Signalled {
    /// Watches for signals from now on. Without a command that runs, the first ends this process at once.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub(super) fn watch() -> io::Result<Signalled> {
        let (signalled, mut signals) =
            (Signalled::default(), Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT])?);
        let watched = signalled.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for number in signals.forever() {
                let mut target = watched.lock();
                let Some(group) = target.group else { std::process::exit(signal_code(number).into()) };
                let first = target.number.replace(number).is_none();
                let signal = Signal::from_named_raw(number).filter(|_| first).unwrap_or(Signal::KILL);
                // It may have ended just now.
                let _ = kill_process_group(group, signal);
            }
        })?;
        Ok(signalled)
    }

    /// While this is held, no signal is passed on.
    pub(super) fn lock(&self) -> MutexGuard<'_, Target> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How this process ends by the signal that has come, if one has.
    pub(super) fn end(&self) -> Option<ExitCode> {
        self.lock().number.map(|number| ExitCode::from(signal_code(number)))
    }
}
