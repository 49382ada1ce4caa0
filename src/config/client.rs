//! The flags of the commands for scripts: `bellwether exec`, `watch`, `wait`, `alive` and `install`.

use crate::base::duration::{parse, parse_positive, show};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What exec keeps at the end of a hold for its own timers, at least.
pub const EXEC_MARGIN: Duration = Duration::from_millis(100);
/// How often a hold is renewed while it lasts.
pub const EXEC_RENEWALS: u32 = 10;

pub const EXEC_LONG: &str = "\
Runs a command while the process here leads, under a hold: no other member leads before the command has \
ended, with all its descendants.

A loss ends the command and not exec, which waits until it leads again. Some sidecars grant no hold: those \
of classic, and those with --crash-evidence release or --app-clients none. They are asked whether they \
lead. Two commands can run at once then, and a warning says so.";

pub const EXEC_EXAMPLES: &str = "\
Examples:
  bellwether exec -- ./worker
  bellwether exec --once -- ./migrate

The command's variables: BELLWETHER_EPOCH, BELLWETHER_ELECTION, BELLWETHER_NAME, BELLWETHER_URL.
SIGTERM, SIGINT and SIGQUIT end the command, then exec. SIGHUP, SIGUSR1, SIGUSR2 and SIGWINCH only reach it.

Exit codes:
  2    bad configuration
  75   leadership was lost (--once)
  125  an error of its own
  126  the command cannot be run
  127  there is no such command
  128 and the number of a signal that has ended it or its command
  else that of the command";

pub const WATCH_LONG: &str = "\
Tells of each change of the leader: a JSON line, as /watch answers it, or a command with --exec.

The first line is the state at the start. A sidecar that refuses, or does not answer within a second, counts \
as one that knows no leader. The line then has \"unreachable\", and the state follows once it answers again.";

pub const WATCH_EXAMPLES: &str = "\
Examples:
  bellwether watch
  bellwether watch --exec -- ./on-change.sh

The command gets the line on its standard input. Its variables:
  BELLWETHER_VERSION, BELLWETHER_EPOCH, BELLWETHER_LEADER
  BELLWETHER_IS_LEADER  true or false; false for a change that another one has followed
  BELLWETHER_MISSED     true or false
One command runs at a time, in the order of the changes. It gets the signals that watch gets.

Exit codes:
  0    the reader of the lines has gone
  2    bad configuration
  125  an error of its own
  126  the command cannot be run
  127  there is no such command
  128 and the number of a signal that has ended it";

pub const WAIT_EXAMPLES: &str = "\
Examples:
  bellwether wait --for leader
  bellwether wait --for leading --timeout 10m && run-the-migration

Exit codes:
  0    it is there
  2    bad configuration
  124  it did not come in time
  125  an error of its own
  128 and the number of a signal that has ended it";

pub const ALIVE_EXAMPLES: &str = "\
Examples:
  bellwether alive --ttl 10s
  while check-my-application; do bellwether alive --ttl 10s; sleep 3; done

From the first time on the process here leads only while the time of the last one is not over. It has to run \
in the pod of the sidecar.

Exit codes:
  0    the sidecar has taken it
  2    bad configuration
  125  it has not";

pub const INSTALL_EXAMPLES: &str = "\
Examples:
  bellwether install /shared

Exit codes:
  0    it is there
  2    bad configuration
  125  it could not be written";

/// What follows when the command ends by itself.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnExit {
    /// Another process may lead; the command runs again after a pause, once this one leads again
    Resign,
    /// The command runs again after a pause, under the same hold
    Restart,
    /// exec ends with the command's code
    Exit,
}

/// What `bellwether exec` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct ExecArgs {
    /// Status API to ask [default: this machine's, http://127.0.0.1:4040, or where BELLWETHER_HTTP says]
    #[arg(long, env = "BELLWETHER_URL", value_name = "URL")]
    pub url: Option<String>,

    /// For how long to ask to hold leadership, renewed at each tenth of it; --hold-max and the lease of the
    /// sidecar bound it
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_positive)]
    pub hold: Duration,

    /// How long the command may take to end after SIGTERM, before SIGKILL, where its hold is not renewed
    #[arg(long, value_name = "DURATION", default_value = "300ms", value_parser = parse)]
    pub stop_grace: Duration,

    /// What follows when the command ends by itself; pauses double from 1s to 60s
    #[arg(long, value_name = "WHAT", value_enum, default_value = "resign")]
    pub on_exit: OnExit,

    /// Run the command once, and end with its code
    #[arg(long)]
    pub once: bool,

    /// The command, a program and its arguments: no shell reads them
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,

    /// The step between exec and its command: the number of the process that it has to end with.
    #[arg(long, hide = true)]
    pub child_of: Option<i32>,
}

impl ExecArgs {
    /// # Errors
    /// The hold is too short for the grace.
    pub(super) fn checked(self) -> Result<ExecArgs, String> {
        // The grace, the margin and two renewals; an answer takes a part of another one.
        let needs = self.stop_grace.saturating_add(EXEC_MARGIN);
        let least = needs.saturating_mul(EXEC_RENEWALS) / (EXEC_RENEWALS - 3);
        if self.hold >= least {
            return Ok(self);
        }
        let (hold, grace, margin) = (show(self.hold), show(self.stop_grace), show(EXEC_MARGIN));
        let least = least.as_millis() + 1;
        Err(format!(
            "--hold {hold} is too short for --stop-grace {grace}: it has to last for the grace, {margin} and \
             three renewals. Give a --hold of at least {least}ms, and the sidecar a --hold-max and a --lease \
             for it, or a shorter --stop-grace"
        ))
    }
}

/// What `bellwether watch` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct WatchArgs {
    /// Status API to ask [default: this machine's, http://127.0.0.1:4040, or where BELLWETHER_HTTP says]
    #[arg(long, env = "BELLWETHER_URL", value_name = "URL")]
    pub url: Option<String>,

    /// Run a command for each change, in place of a line
    #[arg(long, requires = "command")]
    exec: bool,

    /// After how long the command is killed, with all of its process group
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_positive)]
    pub exec_timeout: Duration,

    /// The command, a program and its arguments: no shell reads them
    #[arg(last = true, requires = "exec", value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What `bellwether wait` waits for.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitFor {
    /// A leader, this process or another
    Leader,
    /// This process leads
    Leading,
    /// Another process leads
    Following,
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitFor::Leader => "a leader",
            WaitFor::Leading => "the leadership of this process",
            WaitFor::Following => "the leadership of another process",
        })
    }
}

/// What `bellwether wait` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct WaitArgs {
    /// Status API to ask [default: this machine's, http://127.0.0.1:4040, or where BELLWETHER_HTTP says]
    #[arg(long, env = "BELLWETHER_URL", value_name = "URL")]
    pub url: Option<String>,

    /// What to wait for; a sidecar that does not answer yet is waited for too
    #[arg(long = "for", value_name = "STATE", value_enum)]
    pub wanted: WaitFor,

    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_positive)]
    pub timeout: Duration,
}

/// What `bellwether alive` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct AliveArgs {
    /// Status API to tell [default: this machine's, http://127.0.0.1:4040, or where BELLWETHER_HTTP says]
    #[arg(long, env = "BELLWETHER_URL", value_name = "URL")]
    pub url: Option<String>,

    /// For how long the application is healthy, at most 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_positive)]
    pub ttl: Duration,
}

/// What `bellwether install` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct InstallArgs {
    /// The folder where `bellwether` is written, in one step, for all to run
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
