//! Flags and environment, checked into what the program is asked for.
//!
//! `flags` is the contract with scripts and manifests and what `--help` prints. `validate` holds the
//! relations between settings. The rest of the program need not check the resulting [`Config`] again.

mod client;
mod environment;
mod flags;
mod host_port;
#[cfg(feature = "inject")]
mod inject;
#[cfg(feature = "inject")]
mod inject_run_flags;
mod modes;
mod operate;
mod safety;
#[cfg(feature = "sim")]
mod sim;
#[cfg(test)]
mod tests;
mod validate;
mod value_parsers;
mod voters;

pub use crate::base::duration::{LONGEST as DURATION_MAX, show};
pub use crate::telemetry::log::LogFormat;
pub use client::{
    AliveArgs, EXEC_MARGIN, EXEC_RENEWALS, ExecArgs, InstallArgs, OnExit, WaitArgs, WaitFor, WatchArgs,
};
pub use flags::{DemoArgs, StatusArgs};
pub use host_port::{HostError, HostPort};
#[cfg(feature = "inject")]
pub use inject::{Drain, InjectArgs, Only, PeerSecret, Readiness, Workload};
pub use modes::SafetyLevel;
pub use operate::{ControlSocket, OperateArgs};
#[cfg(feature = "sim")]
pub use sim::{SimArgs, SimTask};
pub use value_parsers::{AppClients, AppHealth, Output};

use crate::channel::{PeerAuth, ProofFiles};
use crate::election::{AnnouncedValues, Operation, Priority, Safety, Settings};
use clap::{Args, CommandFactory, FromArgMatches};
use core::net::SocketAddr;
use flags::{ABOUT, Cli, LONG_ABOUT, RunArgs};
use operate::{ResignFlags, TransferFlags};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use validate::{Surroundings, check};

/// The exit code of a configuration that cannot be; clap's own errors have it too.
const EXIT_BAD_CONFIGURATION: u8 = 2;
/// The variables of the downward API that are the defaults of `--name` and `--advertise`.
const POD_NAME: &str = "POD_NAME";
const POD_IP: &str = "POD_IP";

/// A health probe of the application here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// What is probed.
    pub app: AppHealth,
    /// How long from the beginning of one probe to the next.
    pub interval: Duration,
    /// How long one probe may take.
    pub timeout: Duration,
    /// How many in a row have to fail.
    pub failures: u32,
    /// How many in a row have to succeed.
    pub successes: u32,
}

/// The checked configuration of one sidecar. What the flags promise holds: every relation between settings
/// has been checked, every text is of bounded length and free of control characters.
#[derive(Clone, Debug)]
pub struct Config {
    /// Headless Service whose DNS names the peers; a host name in lower case, perhaps with the root's dot.
    pub service: Option<String>,
    /// Peers given one by one, each once; at most [`MEMBERS_MAX`](crate::election::MEMBERS_MAX). This process
    /// may be among them.
    pub peers: Vec<HostPort>,
    /// The peer port of the processes that `service` names; not 0.
    pub peer_port: u16,
    /// Where to listen for peers. Port 0: any free one.
    pub listen: SocketAddr,
    /// Where peers reach this process, if that is known before the first of them is reached; never an
    /// unspecified address or port 0.
    pub advertise: Option<SocketAddr>,
    /// Where to answer HTTP; never where it listens for peers. Port 0: any free one.
    pub http: SocketAddr,
    /// Where operators reach it; none: [`ControlSocket::of_port`] of `http`.
    pub control_socket: Option<ControlSocket>,
    /// For people; not empty, at most [`NAME_BYTES_MAX`](crate::election::NAME_BYTES_MAX) bytes.
    pub name: String,
    /// The election's name (`--election`). Peers of another are refused; not empty, at most
    /// [`CLUSTER_BYTES_MAX`](crate::election::CLUSTER_BYTES_MAX) bytes.
    pub cluster: String,
    /// Where the durable record is; none: nowhere, and a restart is a new process.
    pub state_dir: Option<PathBuf>,
    /// What this process counts for.
    pub priority: Priority,
    /// What the pod was made from; empty when unknown, at most
    /// [`REVISION_BYTES_MAX`](crate::election::REVISION_BYTES_MAX) bytes.
    pub revision: String,
    /// What the machine is told.
    pub settings: Settings,
    /// What this process proves itself with; always there but with [`PeerAuth::Off`].
    pub peer_proof: Option<ProofFiles>,
    /// Which connections between members count.
    pub peer_auth: PeerAuth,
    /// How many bytes all buffers may hold that peers and clients fill.
    pub buffers_max: usize,
    /// How many clients may wait for changes at a time; this host has a few places more.
    pub watchers_max: usize,
    /// How its application is probed; none: it is not.
    pub probe: Option<Probe>,
    /// What it announces to applications.
    pub announce: AnnouncedValues,
    /// Whether applications of this host may ask for what changes something (`--app-clients`).
    pub app_clients: AppClients,
    /// How long opening a connection to a peer may take.
    pub dial_timeout: Duration,
    /// Between two DNS look-ups.
    pub refresh: Duration,
    /// What is logged.
    pub log: log::LevelFilter,
    /// How it is written.
    pub log_format: LogFormat,
}

/// What the program is asked for.
#[derive(Clone, Debug)]
pub enum Command {
    /// To be a sidecar.
    Run(Box<Config>),
    /// To show some.
    Demo(DemoArgs),
    /// To ask one.
    Status(StatusArgs),
    /// To run a command while it leads.
    Exec(ExecArgs),
    /// To tell of its changes.
    Watch(WatchArgs),
    /// To wait for one.
    Wait(WaitArgs),
    /// To copy the program.
    Install(InstallArgs),
    /// Says that the application is healthy.
    Alive(AliveArgs),
    /// To have one resign, and the like.
    Operate(OperateArgs),
    /// To simulate clusters.
    #[cfg(feature = "sim")]
    Sim(SimArgs),
    /// To add sidecars to manifests.
    #[cfg(feature = "inject")]
    Inject(InjectArgs),
}

/// Commands that a build may leave out, as the image's does.
const LEFT_OUT: [&str; 2] = ["inject", "sim"];

/// Parses the command line and the environment. An exit code: there is nothing more to do. The user asked for
/// help (0), or the arguments make no sense (2) and the error has been printed.
pub fn command() -> Result<Command, ExitCode> {
    let asked = parse(std::env::args_os().collect()).map_err(|error| {
        // A reader of the help that has closed its end has read enough.
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_BAD_CONFIGURATION))
    })?;
    let operate = |operation, asking| Ok(Command::Operate(OperateArgs::new(operation, asking)));
    match asked {
        flags::Command::Run(args) => {
            check_variables().map_err(refused)?;
            check(*args, surroundings()).map(|config| Command::Run(Box::new(config))).map_err(refused)
        }
        flags::Command::Demo(args) => Ok(Command::Demo(args)),
        flags::Command::Status(args) => Ok(Command::Status(args)),
        flags::Command::Exec(args) => args.checked().map(Command::Exec).map_err(refused),
        flags::Command::Watch(args) => Ok(Command::Watch(args)),
        flags::Command::Wait(args) => Ok(Command::Wait(args)),
        flags::Command::Install(args) => Ok(Command::Install(args)),
        flags::Command::Alive(args) => Ok(Command::Alive(args)),
        flags::Command::Resign(ResignFlags { stand_aside, asking }) => {
            operate(Operation::Resign { stand_aside }, asking)
        }
        flags::Command::Transfer(TransferFlags { to, asking }) => operate(Operation::Transfer { to }, asking),
        flags::Command::Cordon(asking) => operate(Operation::Cordon, asking),
        flags::Command::Uncordon(asking) => operate(Operation::Uncordon, asking),
        #[cfg(feature = "sim")]
        flags::Command::Sim(flags) => SimArgs::try_from(flags).map(Command::Sim).map_err(refused),
        #[cfg(feature = "inject")]
        flags::Command::Inject(args) => {
            inject_run_flags::check_run_flags(&args).map_err(refused)?;
            args.checked().map(Command::Inject).map_err(refused)
        }
    }
}

/// Says what is wrong with the configuration.
fn refused(why: impl fmt::Display) -> ExitCode {
    eprintln!("error: {why}\n\nFor more information, try 'bellwether --help'.");
    ExitCode::from(EXIT_BAD_CONFIGURATION)
}

/// Parses the arguments, the program's own name first, with the environment behind them.
fn parse(mut args: Vec<OsString>) -> Result<flags::Command, clap::Error> {
    // `run` may be left out: it is meant where nothing is given, or a flag that is not the whole program's.
    let first = args.get(1).map(|first| first.to_string_lossy().into_owned());
    match first.as_deref() {
        Some("-h" | "--help" | "-V" | "--version") => {}
        Some(flag) if flag.starts_with('-') => args.insert(1, "run".into()),
        Some(_) => {}
        None => args = vec!["bellwether".into(), "run".into()],
    }
    // A sidecar keeps the memory that its start has touched: the flags of other commands are left out first.
    if let [_, run, flags @ ..] = &args[..]
        && run == "run"
    {
        let alone = environment::without_empty(run_alone().no_binary_name(true));
        if let Some(run) =
            alone.try_get_matches_from(flags).ok().and_then(|m| RunArgs::from_arg_matches(&m).ok())
        {
            return Ok(flags::Command::Run(Box::new(run)));
        }
    }
    // Parsing uses up what it parses by. A copy, made for errors alone, would stay in the process's memory.
    let command = || environment::without_empty(Cli::command());
    match command().try_get_matches_from(&args) {
        Ok(matches) => Ok(Cli::from_arg_matches(&matches)?.command),
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelp => Err(help(args, error)),
        Err(error) => Err(match first.as_deref() {
            Some(name) if LEFT_OUT.contains(&name) && command().find_subcommand(name).is_none() => {
                Cli::command().error(
                    clap::error::ErrorKind::InvalidSubcommand,
                    format!(
                        "this build has no `{name}`, like that of the image; take the program of a release"
                    ),
                )
            }
            _ => environment::named(error, &command(), &args),
        }),
    }
}

/// The flags of `run` without the rest.
fn run_alone() -> clap::Command {
    RunArgs::augment_args(clap::Command::new("run"))
}

/// The help that was asked for, with everything in it. At the top are also the flags of `run`, and all
/// variables, also those that are set but empty.
fn help(args: Vec<OsString>, asked: clap::Error) -> clap::Error {
    // `augment_args` brings the doc comment of the flags too, in place of the introduction.
    let all = RunArgs::augment_args(Cli::command())
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .subcommand_required(false)
        .override_usage(usage());
    match all.try_get_matches_from(args) {
        Err(help) => help,
        Ok(_) => asked,
    }
}

/// How each command is called, those left out of this build excepted.
fn usage() -> String {
    let mut usage = "bellwether [run] [OPTIONS]".to_owned();
    for command in Cli::command().get_subcommands().map(|command| command.get_name().to_owned()) {
        match command.as_str() {
            "run" => {}
            "watch" => usage += "\n       bellwether watch [OPTIONS] [--exec -- <CMD>...]",
            "wait" => usage += "\n       bellwether wait --for STATE [OPTIONS]",
            "install" => usage += "\n       bellwether install DIR",
            "transfer" => usage += "\n       bellwether transfer --to NAME [OPTIONS]",
            "inject" => usage += "\n       bellwether inject [OPTIONS] [FILE] [-- <RUN FLAGS>...]",
            other => usage += &format!("\n       bellwether {other} [OPTIONS]"),
        }
    }
    usage
}

/// Whether a sidecar's settings may depend on the environment's variable of this name.
pub fn reads(variable: &str) -> bool {
    variable.starts_with(environment::PREFIX) || [POD_NAME, POD_IP].contains(&variable)
}

/// Looks for variables that are meant as settings and are none.
fn check_variables() -> Result<(), environment::UnknownVariables> {
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let set = set.map(|(name, value)| (text(name), text(value)));
    let set = set.filter(|(name, value)| !environment::is_service_url(name, value));
    let set: Vec<String> = set.map(|(name, _)| name).collect();
    // As above: a variable of another command is rare here.
    environment::check(set.iter().cloned(), &environment::known(&run_alone()))
        .or_else(|_| environment::check(set.into_iter(), &environment::known(&Cli::command())))
}

fn surroundings() -> Surroundings {
    Surroundings {
        pod_name: environment::variable(POD_NAME),
        pod_ip: environment::variable(POD_IP),
        host_name: dns_lookup::get_hostname().ok().filter(|name| !name.is_empty()),
    }
}

/// What these flags of `run` become, on a machine called p-0.
#[cfg(test)]
pub(crate) fn checked(flags: &[String]) -> Result<Config, String> {
    let line = ["bellwether", "run", "--name=p-0"].map(OsString::from);
    let parsed = parse(line.into_iter().chain(flags.iter().map(OsString::from)).collect());
    match parsed.map_err(|error| error.to_string())? {
        flags::Command::Run(args) => check(*args, surroundings()).map_err(|error| error.to_string()),
        _ => Err("no flags of run".to_owned()),
    }
}

impl Config {
    /// Where certificates do not say which voter has them.
    fn unbound_names(&self) -> Option<String> {
        let Some(ProofFiles::Certificate(files)) = &self.peer_proof else { return None };
        let voting = matches!(self.settings.safety, Safety::Majority { .. });
        (voting && !files.san.binds_name()).then(|| {
            format!(
                "--peer-san {} is one name for all members: each can vote in another's name; put {{name}} in \
                 it",
                files.san
            )
        })
    }

    /// What is allowed, and yet perhaps not meant: for the log.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.service.is_none() && self.peers.is_empty() {
            warnings.push(
                "no peers: neither --service nor --peers is given, so this process waits to be dialled, and \
                 otherwise leads itself"
                    .to_owned(),
            );
        }
        match self.peer_auth {
            PeerAuth::Off if !self.listen.ip().is_loopback() => warnings.push(
                "members do not prove themselves: any process that reaches the peer port can take part in \
                 the election. Give all members a --peer-secret-file, or certificates by --peer-cert"
                    .to_owned(),
            ),
            PeerAuth::Permissive => warnings.push(
                "--peer-auth permissive protects against nothing: go on to required once all members have \
                 the secret or certificates"
                    .to_owned(),
            ),
            _ => {}
        }
        warnings.extend(self.unbound_names());
        warnings.extend(voters::warning(&self.settings.safety));
        warnings
    }
}
