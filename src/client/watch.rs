//! `bellwether watch`: a line for each change, or a command.

use super::api::{Api, Trouble};
use super::changes::{Changes, POLL, Told};
use super::signals::Signalled;
use super::{EXIT_BAD_CONFIGURATION, EXIT_NOT_FOUND, EXIT_NOT_RUN, EXIT_OWN_ERROR, failed, warn};
use crate::base::duration::show;
use crate::config::WatchArgs;
use crate::telemetry::escape::is_plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Serialize;
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Between two questions to a sidecar that does not answer.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// How long a command may take to end once it is killed.
const KILL_LONGEST: Duration = Duration::from_secs(5);

/// Tells of each change until it is ended.
pub fn run(args: &WatchArgs) -> ExitCode {
    let api = match Api::at(args.url.as_deref()) {
        Ok(api) => api,
        Err(trouble) => return failed(&trouble, EXIT_BAD_CONFIGURATION),
    };
    let mut teller = match Signalled::watch() {
        Ok(signalled) => Teller::new(args, signalled),
        Err(error) => return failed(&format!("the system refuses a thread: {error}"), EXIT_OWN_ERROR),
    };
    let (mut changes, mut silent, mut epoch) = (Changes::of(&api), false, 0);
    loop {
        let told = match changes.next(POLL) {
            Ok(None) if silent => changes.state().map(Some),
            told => told,
        };
        let result = match told {
            Ok(None) => teller.check_reader(),
            Ok(Some(told)) => {
                silent = false;
                epoch = told.parts.epoch;
                teller.tell(&told)
            }
            Err(trouble) => {
                let result =
                    if silent { teller.check_reader() } else { teller.tell_silent(&api, epoch, &trouble) };
                silent = true;
                std::thread::sleep(RETRY_EVERY);
                result
            }
        };
        if let Some(code) = teller.signalled.end() {
            return code;
        }
        if let Err(end) = result {
            return end.say();
        }
    }
}

/// Why watching ends.
enum End {
    /// The reader of the lines has gone: it has read enough.
    Unread,
    /// The lines cannot be written.
    Unwritten(io::Error),
    /// The command could not be started.
    NoCommand(String, io::Error),
    /// The command does not end, though it was killed.
    Endless(String),
}

impl End {
    fn say(self) -> ExitCode {
        match self {
            End::Unread => ExitCode::SUCCESS,
            End::Unwritten(error) => failed(&format!("cannot write a line: {error}"), EXIT_OWN_ERROR),
            End::NoCommand(command, error) => {
                let missing = error.kind() == ErrorKind::NotFound;
                let code = if missing { EXIT_NOT_FOUND } else { EXIT_NOT_RUN };
                failed(&format!("cannot run {command}: {error}; give a program after --"), code)
            }
            End::Endless(command) => {
                let why = "does not end though it was killed; end it, and start watch again";
                failed(&format!("{command} {why}"), EXIT_OWN_ERROR)
            }
        }
    }
}

struct Teller {
    command: Vec<OsString>,
    timeout: Duration,
    signalled: Signalled,
    /// Whether the command was started once. After that no failure ends this.
    started: bool,
}

impl Teller {
    fn new(args: &WatchArgs, signalled: Signalled) -> Teller {
        Teller { command: args.command.clone(), timeout: args.exec_timeout, signalled, started: false }
    }

    /// Whether the reader of the lines is still there.
    fn check_reader(&self) -> Result<(), End> {
        let stdout = io::stdout();
        let mut sockets = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone =
            poll(&mut sockets, Some(&at_once)).is_ok() && sockets[0].revents().intersects(PollFlags::ERR);
        if gone && self.command.is_empty() { Err(End::Unread) } else { Ok(()) }
    }

    /// The sidecar does not answer, so it counts as one that knows no leader.
    fn tell_silent(&mut self, api: &Api, epoch: u64, why: &Trouble) -> Result<(), End> {
        warn(&format!("{why}; asking again each second"));
        let record = json!({"leader": null, "is_leader": false, "epoch": epoch, "unreachable": api.base()});
        self.tell_record(&record, &["", &epoch.to_string(), "", "false", "true"])
    }

    fn tell(&mut self, told: &Told) -> Result<(), End> {
        let parts = &told.parts;
        let leader = parts.leader.as_ref().map_or("", |leader| &leader.name);
        let (leads, missed) = (parts.leads().to_string(), parts.missed.to_string());
        self.tell_record(&told.record, &[&parts.version, &parts.epoch.to_string(), leader, &leads, &missed])
    }

    /// `values`: those of the command's variables, in their order.
    fn tell_record(&mut self, record: &impl Serialize, values: &[&str; 5]) -> Result<(), End> {
        let line = line(record);
        let Some((program, arguments)) = self.command.split_first() else {
            let mut out = io::stdout().lock();
            return out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
                if error.kind() == ErrorKind::BrokenPipe { End::Unread } else { End::Unwritten(error) }
            });
        };
        const NAMES: [&str; 5] = ["VERSION", "EPOCH", "LEADER", "IS_LEADER", "MISSED"];
        let variables = NAMES.iter().zip(values).map(|(name, value)| (format!("BELLWETHER_{name}"), *value));
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments).envs(variables).process_group(0);
        match self.start(&mut command, &line) {
            Ok(child) => {
                self.started = true;
                self.wait(&name, child)
            }
            Err(error) if self.started => {
                warn(&format!("cannot run {name}: {error}; the next change runs it again"));
                Ok(())
            }
            Err(error) => Err(End::NoCommand(name, error)),
        }
    }

    /// Starts the command with this line on its standard input. From then on it gets signals.
    fn start(&self, command: &mut Command, line: &str) -> io::Result<Child> {
        // No pipe: a command need not read, and may leave the reading to others.
        let mut stdin = File::from(memfd_create("change", MemfdFlags::CLOEXEC)?);
        stdin.write_all(line.as_bytes())?;
        stdin.rewind()?;
        let mut target = self.signalled.lock();
        let child = command.stdin(Stdio::from(stdin)).spawn()?;
        target.group = Some(Pid::from_child(&child));
        Ok(child)
    }

    /// Waits until the command has ended, and kills it where it does not.
    fn wait(&self, name: &str, mut child: Child) -> Result<(), End> {
        let group = Pid::from_child(&child);
        let (ended, end) = channel();
        let waits = std::thread::Builder::new().name("waits".to_owned()).spawn(move || {
            // It is not reaped here: until it is, its number is no other process's.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(group), options), Err(rustix::io::Errno::INTR)) {}
            let _ = ended.send(());
        });
        let late = |within| end.recv_timeout(within) == Err(RecvTimeoutError::Timeout);
        // Without a thread that waits there is no time limit either: the command is killed at once.
        let killed = waits.is_err() || late(self.timeout);
        if killed {
            // A group that is another user's now, or another group by now: at least the command itself.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.kill();
            if late(KILL_LONGEST) {
                return Err(End::Endless(name.to_owned()));
            }
        }
        self.signalled.lock().group = None;
        if let Ok(thread) = waits {
            // The thread has told of the end, and has nothing left to do.
            let _ = thread.join();
        }
        self.say(name, killed, child.wait());
        Ok(())
    }

    fn say(&self, name: &str, killed: bool, status: io::Result<ExitStatus>) {
        match status {
            Ok(_) if killed => {
                let timeout = show(self.timeout);
                warn(&format!("{name} was killed after {timeout} (--exec-timeout); the next change runs it"));
            }
            Ok(status) if status.success() => {}
            Ok(status) => warn(&format!("{name} has failed ({status}); the next change runs it again")),
            Err(error) => warn(&format!("cannot wait for {name}: {error}")),
        }
    }
}

/// A record as one line of JSON. What a terminal may act on is escaped.
fn line(record: &impl Serialize) -> String {
    // Its keys are texts.
    let json = serde_json::to_string(record).unwrap_or_default();
    let mut line = String::with_capacity(json.len() + 1);
    for letter in json.chars() {
        if is_plain(letter) {
            line.push(letter);
        } else {
            // Only a string of JSON has such letters.
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(line, "\\u{unit:04x}");
            }
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    #[test]
    fn a_line_is_the_same_json_and_a_terminal_acts_on_none_of_it() {
        let text = "a\u{9b}31m \u{202e}b\n\u{7f} \u{e0001} \u{1b}]0;x ünï \"c\"";
        let record = Map::from_iter([("name".to_owned(), Value::from(text))]);
        let line = line(&record);
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["name"], text);
        assert!(line.trim_end_matches('\n').chars().all(is_plain), "{line:?}");
        assert!(line.contains("ünï"), "{line:?}");
    }
}
