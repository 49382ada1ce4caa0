//! The flags of `bellwether resign`, `transfer`, `cordon` and `uncordon`, and `--control-socket`, which they
//! share with `run`.

use super::value_parsers::Output;
use crate::base::duration::parse_positive;
use crate::election::{NAME_BYTES_MAX, Operation};
use core::net::SocketAddr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The longest path of a socket, in bytes: `sun_path` of unix(7), which ends in a zero. An abstract name,
/// which begins with one, may be as long.
const SOCKET_BYTES_MAX: usize = 107;
/// The port of `--http` where neither a flag nor the environment says another.
const HTTP_PORT: u16 = 4040;

pub const RESIGN_LONG: &str = "\
Has the leader here resign, in favour of the member that ranks next.

The process resigns only when another one can take over, and runs on as a follower. It does not stand again \
for --for. A restart of the sidecar forgets that, and `bellwether uncordon` ends it. The command waits until \
another process leads, or says why none does.";

pub const RESIGN_EXAMPLES: &str = "\
Examples:
  bellwether resign
  bellwether resign --for 10m --timeout 30s
  kubectl exec POD -c bellwether -- bellwether resign

Exit codes:
  0  done: another process leads
  1  not reachable, or the answer makes no sense
  2  bad configuration
  3  not done, and the process says why";

pub const TRANSFER_LONG: &str = "\
Has the leader here resign in favour of the member with this name.

With --safety majority it resigns only once that member would win. The process does not stand again before \
the failure timeout (--lease) is over. So a better one does not take leadership back at once. A restart of \
the sidecar forgets that. The command waits until that member leads, or says why it does not.";

pub const TRANSFER_EXAMPLES: &str = "\
Examples:
  bellwether transfer --to web-1
  kubectl exec POD -c bellwether -- bellwether transfer --to web-1

Exit codes:
  0  done: that member leads
  1  not reachable, or the answer makes no sense
  2  bad configuration
  3  not done, and the process says why";

pub const CORDON_LONG: &str = "\
Keeps the process here from leading: it runs on and votes, and does not stand.

A leader resigns first, and only when another process can take over. `bellwether uncordon` ends it, and a \
restart of the sidecar forgets it. A process that must never lead is given --priority 0.";

pub const CORDON_EXAMPLES: &str = "\
Examples:
  bellwether cordon
  kubectl exec POD -c bellwether -- bellwether cordon

Exit codes:
  0  done; of a leader: another process leads
  1  not reachable, or the answer makes no sense
  2  bad configuration
  3  not done, and the process says why";

pub const UNCORDON_LONG: &str = "\
Lets the process here lead again, after `bellwether cordon` or within the time of `bellwether resign --for`.

It does not take leadership back by that. --preempt says when a better process takes over.";

pub const UNCORDON_EXAMPLES: &str = "\
Examples:
  bellwether uncordon
  kubectl exec POD -c bellwether -- bellwether uncordon

Exit codes:
  0  done
  1  not reachable, or the answer makes no sense
  2  bad configuration
  3  not done, and the process says why";

/// What all of the commands have.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct Asking {
    /// The sidecar's --control-socket (default: @bellwether-PORT, with the port of BELLWETHER_HTTP or 4040)
    #[arg(long, env = "BELLWETHER_CONTROL_SOCKET", value_name = "SOCKET")]
    control_socket: Option<ControlSocket>,

    /// How long to wait until it is done
    ///
    /// The process gives up by then, and says how far it has come.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_positive)]
    timeout: Duration,

    /// How the answer is printed
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value = "table")]
    output: Output,
}

#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct ResignFlags {
    /// For how long it does not stand again; a restart forgets it [default: the failure timeout, --lease]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_positive)]
    pub(super) stand_aside: Option<Duration>,

    #[command(flatten)]
    pub(super) asking: Asking,
}

#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct TransferFlags {
    /// The member's name, as `bellwether status` shows it
    #[arg(long, value_name = "NAME", value_parser = member_name)]
    pub(super) to: String,

    #[command(flatten)]
    pub(super) asking: Asking,
}

/// What `bellwether resign`, `transfer`, `cordon` or `uncordon` is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperateArgs {
    /// What the process is to do.
    pub operation: Operation,
    /// How long for it at most.
    pub within: Duration,
    /// Where the process is asked.
    pub socket: ControlSocket,
    /// How the answer is printed.
    pub output: Output,
}

impl OperateArgs {
    pub(super) fn new(operation: Operation, asking: Asking) -> OperateArgs {
        let Asking { control_socket, timeout, output } = asking;
        let http = std::env::var("BELLWETHER_HTTP").ok();
        let socket = control_socket.unwrap_or_else(|| ControlSocket::of_port(http_port(http.as_deref())));
        OperateArgs { operation, within: timeout, socket, output }
    }
}

/// The port of a process that was given this as `--http`.
fn http_port(http: Option<&str>) -> u16 {
    http.and_then(|http| http.parse::<SocketAddr>().ok()).map_or(HTTP_PORT, |http| http.port())
}

/// Reads the name of a member.
fn member_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("write the name of a member, as `bellwether status` shows it".to_owned()),
        long if long.len() > NAME_BYTES_MAX => {
            Err(format!("{} bytes long, and a member's name has at most {NAME_BYTES_MAX}", long.len()))
        }
        name => Ok(name.to_owned()),
    }
}

/// `--control-socket`: where operators reach a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlSocket {
    /// Nowhere.
    Off,
    /// A file; its path is absolute, and fits into a socket's address.
    Path(PathBuf),
    /// A name in the network namespace (unix(7), "abstract"), which takes no file.
    Abstract(String),
}

impl ControlSocket {
    /// Where a process is reached that answers HTTP on this port, unless it is told otherwise.
    pub fn of_port(http: u16) -> ControlSocket {
        ControlSocket::Abstract(format!("bellwether-{http}"))
    }
}

impl FromStr for ControlSocket {
    type Err = String;

    fn from_str(text: &str) -> Result<ControlSocket, String> {
        let name = text.strip_prefix('@');
        let bytes = name.unwrap_or(text).len();
        if bytes > SOCKET_BYTES_MAX {
            return Err(format!(
                "{bytes} bytes long, and a socket's path or name has at most {SOCKET_BYTES_MAX}; write a \
                 shorter one"
            ));
        }
        match name {
            _ if text.chars().any(char::is_control) => {
                Err("it has control characters in it; write it in plain characters".to_owned())
            }
            Some(name) if !name.is_empty() => Ok(ControlSocket::Abstract(name.to_owned())),
            None if text == "none" => Ok(ControlSocket::Off),
            None if text.starts_with('/') => Ok(ControlSocket::Path(PathBuf::from(text))),
            _ => Err("write an absolute path, @NAME for a socket without a file, or none".to_owned()),
        }
    }
}

impl fmt::Display for ControlSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlSocket::Off => f.write_str("none"),
            ControlSocket::Path(path) => write!(f, "{}", path.display()),
            ControlSocket::Abstract(name) => write!(f, "@{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_a_path_a_name_or_none() {
        for text in ["none", "/run/bellwether.sock", "@bellwether-4040", "@/a"] {
            assert_eq!(text.parse::<ControlSocket>().map(|socket| socket.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(ControlSocket::of_port(4040).to_string(), "@bellwether-4040");
        for (text, words) in [
            ("", "an absolute path"),
            ("@", "an absolute path"),
            ("run/a.sock", "an absolute path"),
            ("off", "or none"),
            ("/a\n", "control characters"),
            (&format!("/{}", "a".repeat(107)), "108 bytes"),
            (&format!("@{}", "a".repeat(108)), "108 bytes"),
        ] {
            let error = text.parse::<ControlSocket>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(format!("/{}", "a".repeat(106)).parse::<ControlSocket>().is_ok());
        assert!(format!("@{}", "a".repeat(107)).parse::<ControlSocket>().is_ok());
    }

    #[test]
    fn the_default_is_that_of_the_process_here() {
        for (http, port) in
            [(None, 4040), (Some(""), 4040), (Some("[::]:8080"), 8080), (Some("127.0.0.1:1"), 1)]
        {
            assert_eq!(http_port(http), port, "{http:?}");
        }
    }
}
