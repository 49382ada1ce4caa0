//! `bellwether watch`: a line for each change, or a command.

use super::api::{Api, Trouble};
use super::changes::{Changes, Told};
use super::{EXIT_BAD_CONFIGURATION, EXIT_OWN_ERROR, failed, warn};
use crate::base::duration::show;
use crate::config::WatchArgs;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// "The command is there and cannot be run", and "there is no such command", as `env` and `timeout` say it.
const EXIT_NOT_RUN: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;
/// A signal that ends a program counts as this and its number.
const EXIT_SIGNAL: i32 = 128;
/// How long one question may wait for a change; it waits for less.
const ALWAYS: Duration = Duration::MAX;
/// Between two questions to a sidecar that does not answer.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Tells of each change until it is ended.
pub fn run(args: &WatchArgs) -> ExitCode {
    let api = match Api::at(args.url.as_deref()) {
        Ok(api) => api,
        Err(trouble) => return failed(&trouble, EXIT_BAD_CONFIGURATION),
    };
    let mut teller = match Teller::new(args) {
        Ok(teller) => teller,
        Err(error) => return failed(&format!("the system refuses a thread: {error}"), EXIT_OWN_ERROR),
    };
    let mut changes = Changes::of(&api);
    // The epoch that was told of last, while the sidecar is silent.
    let mut silent = None;
    let mut epoch = 0;
    loop {
        let told = match changes.next(ALWAYS) {
            Ok(None) if silent.is_some() => changes.state().map(Some),
            told => told,
        };
        let result = match told {
            Ok(None) => Ok(()),
            Ok(Some(told)) => {
                silent = None;
                epoch = told.parts.epoch;
                teller.tell(&told)
            }
            Err(trouble) => {
                let first = silent.replace(epoch).is_none();
                let result = if first { teller.tell_silent(&api, epoch, &trouble) } else { Ok(()) };
                std::thread::sleep(RETRY_EVERY);
                result
            }
        };
        if let Err(end) = result {
            return end.say();
        }
    }
}

/// Why watching ends.
enum End {
    /// The reader of the lines has gone: it has read enough.
    NotRead,
    /// The command could not be started.
    NotStarted(String, io::Error),
}

impl End {
    fn say(self) -> ExitCode {
        match self {
            End::NotRead => ExitCode::SUCCESS,
            End::NotStarted(command, error) => {
                let missing = error.kind() == ErrorKind::NotFound;
                let code = if missing { EXIT_NOT_FOUND } else { EXIT_NOT_RUN };
                failed(&format!("cannot run {command}: {error}; give a program after --"), code)
            }
        }
    }
}

/// The process group of the command that runs.
type Running = Arc<Mutex<Option<Pid>>>;

struct Teller {
    command: Vec<OsString>,
    timeout: Duration,
    running: Running,
}

impl Teller {
    fn new(args: &WatchArgs) -> io::Result<Teller> {
        let running = Running::default();
        if !args.command.is_empty() {
            pass_signals_on(Arc::clone(&running))?;
        }
        Ok(Teller { command: args.command.clone(), timeout: args.exec_timeout, running })
    }

    /// The sidecar does not answer, so it counts as one that knows no leader.
    fn tell_silent(&mut self, api: &Api, epoch: u64, why: &Trouble) -> Result<(), End> {
        warn(&format!("{why}; asking again each second"));
        let record = json!({"leader": null, "is_leader": false, "epoch": epoch, "unreachable": api.base()});
        match record {
            Value::Object(record) => {
                self.tell_record(&record, &["", &epoch.to_string(), "", "false", "true"])
            }
            _ => Ok(()),
        }
    }

    fn tell(&mut self, told: &Told) -> Result<(), End> {
        let parts = &told.parts;
        let leader = parts.leader.as_ref().map_or("", |leader| &leader.name);
        let (leads, missed) = (parts.is_leader.to_string(), parts.missed.to_string());
        self.tell_record(&told.record, &[&parts.version, &parts.epoch.to_string(), leader, &leads, &missed])
    }

    /// `values`: those of the command's variables, in their order.
    fn tell_record(&mut self, record: &Map<String, Value>, values: &[&str; 5]) -> Result<(), End> {
        // Texts of peers are escaped by JSON, and no terminal has to show them.
        let line = format!("{}\n", Value::Object(record.clone()));
        let Some((program, arguments)) = self.command.split_first() else {
            let mut out = io::stdout().lock();
            return out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(|_| End::NotRead);
        };
        const NAMES: [&str; 5] = ["VERSION", "EPOCH", "LEADER", "IS_LEADER", "MISSED"];
        let variables = NAMES.iter().zip(values).map(|(name, value)| (format!("BELLWETHER_{name}"), *value));
        let mut command = Command::new(program);
        command.args(arguments).envs(variables).stdin(Stdio::piped()).process_group(0);
        let name = program.to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| End::NotStarted(name.clone(), error))?;
        match self.wait(child, &line) {
            Ok(Some(status)) if status.success() => {}
            Ok(Some(status)) => warn(&format!("{name} has failed ({status}); the next change runs it again")),
            Ok(None) => {
                let timeout = show(self.timeout);
                warn(&format!("{name} was killed after {timeout} (--exec-timeout); the next change runs it"));
            }
            Err(error) => warn(&format!("cannot wait for {name}: {error}")),
        }
        Ok(())
    }

    /// Waits until the command has ended. None: it was killed, with all of its group.
    fn wait(&self, mut child: Child, line: &str) -> io::Result<Option<ExitStatus>> {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        *lock(&self.running) = group;
        let stdin = child.stdin.take();
        let (ended, end) = channel();
        let in_time = std::thread::scope(|scope| {
            // A command may not read, and may end before all is written.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(line.as_bytes())));
            scope.spawn(move || {
                // It is not reaped here: until it is, its number is no other process's.
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let waited = group.map(|pid| waitid(WaitId::Pid(pid), options));
                let _ = ended.send(waited.is_some());
            });
            let in_time = end.recv_timeout(self.timeout) != Err(RecvTimeoutError::Timeout);
            if let Some(group) = group.filter(|_| !in_time) {
                // It may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            in_time
        });
        *lock(&self.running) = None;
        let status = child.wait()?;
        Ok(in_time.then_some(status))
    }
}

fn lock(running: &Running) -> MutexGuard<'_, Option<Pid>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes SIGTERM and SIGINT on to the command that runs, and ends.
fn pass_signals_on(running: Running) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(number) = signals.forever().next() {
            let signal = if number == SIGTERM { Signal::TERM } else { Signal::INT };
            if let Some(group) = *lock(&running) {
                let _ = kill_process_group(group, signal);
            }
            std::process::exit(EXIT_SIGNAL + number);
        }
    })?;
    Ok(())
}
