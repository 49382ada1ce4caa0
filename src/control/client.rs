//! `bellwether resign`, `transfer`, `cordon` and `uncordon`: asks the sidecar here.
//!
//! The answer comes from another process, so it is bounded in time and size. What it holds is printed with
//! every invisible character spelled out.

use super::answer::Answer;
use super::request::{Request, encode};
use super::socket::connect;
use crate::base::boottime;
use crate::config::{ControlSocket, OperateArgs, Output, show};
use crate::telemetry::escape::{escaped, shortened};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// How much longer than the operator's time the answer is waited for: the process answers when that is over.
const MARGIN: Duration = Duration::from_secs(3);
/// How long the request may take to leave.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest answer that is read: several times that with the longest names.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much of a text that should not be there is shown in an error.
const SHOWN_BYTES_MAX: usize = 200;

/// "The process answers, and has not done it."
const EXIT_NOT_DONE: u8 = 3;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(
        "no process is reached at {socket}: {source}; is bellwether running here? Give its --control-socket, \
         or @bellwether-PORT with the port of its --http"
    )]
    Unreachable { socket: ControlSocket, source: io::Error },
    #[error(
        "permission denied at {socket}: {source}; only root and the user of the sidecar may ask: run this \
         command as one of them"
    )]
    Denied { socket: ControlSocket, source: io::Error },
    #[error(
        "the process at {socket} has not answered: {source}; it may have ended, or does it still: see \
         `bellwether status`"
    )]
    Silent { socket: ControlSocket, source: io::Error },
    #[error(
        "the process at {socket} answers what bellwether does not: {text:?}; is that its --control-socket?"
    )]
    Garbage { socket: ControlSocket, text: String },
}

/// Asks, prints, and says by the exit code whether it is done.
pub fn run(args: &OperateArgs) -> ExitCode {
    let request = Request { operation: args.operation.clone(), within: args.within };
    let answer = match ask(&args.socket, &request) {
        Ok(answer) => answer.harmless(),
        Err(trouble) => {
            eprintln!("error: {}", escaped(&trouble.to_string()));
            return ExitCode::FAILURE;
        }
    };
    // A reader that has gone needs no message, and the exit code still says it.
    match args.output {
        Output::Json => {
            let json = serde_json::to_string_pretty(&answer).unwrap_or_default();
            let _ = writeln!(io::stdout(), "{json}");
        }
        Output::Table if answer.done => {
            let _ = io::stdout().write_all(answer.table().as_bytes());
        }
        Output::Table => eprintln!("error: not done: {}", answer.message),
    }
    if answer.done { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOT_DONE) }
}

/// Asks the process that listens there.
fn ask(socket: &ControlSocket, request: &Request) -> Result<Answer, Trouble> {
    let mut stream = connect(socket).map_err(|source| {
        let socket = socket.clone();
        match source.kind() {
            ErrorKind::PermissionDenied => Trouble::Denied { socket, source },
            _ => Trouble::Unreachable { socket, source },
        }
    })?;
    let silent = |source| Trouble::Silent { socket: socket.clone(), source };
    stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(silent)?;
    // A process that refuses its caller may have answered and closed already.
    let sent = stream.write_all(&encode(request));
    let received = receive(&mut stream, request.within.saturating_add(MARGIN));
    let line = received.map_err(|error| silent(sent.err().unwrap_or(error)))?;
    serde_json::from_slice(&line).map_err(|_| {
        let text = shortened(String::from_utf8_lossy(&line).into_owned(), SHOWN_BYTES_MAX);
        Trouble::Garbage { socket: socket.clone(), text }
    })
}

/// Reads to the end, within this time.
fn receive(stream: &mut UnixStream, within: Duration) -> io::Result<Vec<u8>> {
    let deadline = boottime().plus(within);
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    while received.len() < ANSWER_BYTES_MAX {
        let left = deadline.since(boottime());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, format!("nothing came within {}", show(within))));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => received.extend_from_slice(&buffer[..bytes]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            // What has come before a reset is the answer all the same.
            Err(_) if !received.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    match received.is_empty() {
        true => Err(io::Error::new(ErrorKind::UnexpectedEof, "it has closed the connection")),
        false => Ok(received),
    }
}
