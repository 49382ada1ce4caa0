//! The flags of the commands for scripts: `bellwether watch`, `wait` and `install`.

use crate::base::duration::parse_positive;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
  124  it did not come in time";

pub const INSTALL_EXAMPLES: &str = "\
Examples:
  bellwether install /shared

Exit codes:
  0    it is there
  2    bad configuration
  125  it could not be written";

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

/// What `bellwether install` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct InstallArgs {
    /// The folder where `bellwether` is written, in one step, for all to run
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
