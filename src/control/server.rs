//! Answers operators. One thread accepts; each connection has a thread of a small pool, and one request.

use super::answer::Answer;
use super::request::{self, BYTES_MAX, BadRequest, Request};
use super::socket::{Bound, Caller, SocketFile};
use crate::base::{LogEvent, RateLimit, boottime, ms};
use crate::election::{Operation, OperationOutcome};
use crate::net::Pool;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How many operators are served at a time. A further one is told to ask again.
pub(super) const OPERATORS_MAX: usize = 4;
/// How long a request may take to arrive.
pub(super) const RECEIVE_DEADLINE: Duration = Duration::from_secs(2);
/// How long the reply may take to leave.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long nothing is accepted after accept(2) failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const STACK_BYTES: usize = 128 * 1024;
/// What callers that are refused can make this process log.
const LOG_LINES: u32 = 6;
const LOG_LINE_EVERY: Duration = Duration::from_secs(10);

/// Carries out what operators ask for. It is called on several threads at a time, and returns within the time
/// that is asked for, and little more.
pub type Operators = Box<dyn Fn(Request) -> Result<OperationOutcome, Unanswered> + Send + Sync>;

/// Why the election has not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// It ends.
    #[error("this process is stopping")]
    Stopping,
    /// It takes no more inputs, or does not answer.
    #[error("the election of this process has not answered in time; look at its /healthz and its log")]
    Stuck,
}

impl Unanswered {
    fn name(self) -> &'static str {
        match self {
            Unanswered::Stopping => "stopping",
            Unanswered::Stuck => "stuck",
        }
    }
}

struct Server {
    operators: Operators,
    log: Mutex<RateLimit>,
}

/// Answers over this socket from now on, until the process ends. The socket's file is there for as long as
/// what is returned.
///
/// # Errors
/// If the operating system refuses a thread.
pub fn serve(bound: Bound, operators: Operators) -> io::Result<Option<SocketFile>> {
    let Bound { listener, file } = bound;
    let log = Mutex::new(RateLimit::new(LOG_LINES, LOG_LINE_EVERY));
    let server = Arc::new(Server { operators, log });
    thread::Builder::new()
        .name("control".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || accept(&listener, &server))?;
    Ok(file)
}

fn accept(listener: &UnixListener, server: &Arc<Server>) {
    let pool = Pool::new("operator", OPERATORS_MAX, 0, STACK_BYTES);
    loop {
        match listener.accept() {
            Ok((stream, _)) => server.take(&pool, stream),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let event = LogEvent::warn("accept_failed").with("listener", "control");
                server.warn(
                    event,
                    format_args!("cannot accept connections of operators: {error}; trying again"),
                );
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

impl Server {
    /// Gives a connection to a thread, if its process may ask. Other users' processes get no thread.
    fn take(self: &Arc<Server>, pool: &Pool, stream: UnixStream) {
        let caller = match Caller::of(&stream) {
            Ok(caller) => caller,
            Err(error) => {
                let event = LogEvent::warn("operation_refused");
                return self.warn(event, format_args!("a caller is refused: {error}"));
            }
        };
        if !caller.may_ask() {
            let Caller { uid, pid } = caller;
            let event = LogEvent::warn("operation_refused").with("uid", uid).with("pid", pid.unsigned_abs());
            self.warn(event, format_args!("a process of another user is refused"));
            return refuse(&stream, "forbidden", "only root and the user of the sidecar may ask");
        }
        let Ok(other) = stream.try_clone() else { return };
        let server = Arc::clone(self);
        if pool.run(move || server.answer(stream, caller)).is_err() {
            refuse(&other, "busy", "other operators are being served; ask again");
        }
    }

    /// Answers one connection and ends it. A caller that does not take its answer is left to itself.
    fn answer(&self, mut stream: UnixStream, caller: Caller) {
        let Caller { uid, pid } = caller;
        let answer = match receive(&mut stream) {
            Ok(Ok(request)) => self.carry_out(request, caller),
            Ok(Err(bad)) => {
                let event =
                    LogEvent::warn("operation_refused").with("uid", uid).with("pid", pid.unsigned_abs());
                self.warn(event, format_args!("an operator's request is refused: {bad}"));
                Answer::refused("bad_request", bad.to_string())
            }
            Err(_) => return,
        };
        let _ = stream.set_write_timeout(Some(WRITE_TIMEOUT)).and_then(|()| stream.write_all(&answer.line()));
    }

    /// Carries out what an operator asks for. The log says which process asks, for what, and what comes of
    /// it.
    fn carry_out(&self, request: Request, caller: Caller) -> Answer {
        let (operation, Caller { uid, pid }) = (request.operation.clone(), caller);
        let name = operation.name();
        let event =
            |event: LogEvent| event.with("operation", name).with("uid", uid).with("pid", pid.unsigned_abs());
        let (to, aside) = match &operation {
            Operation::Transfer { to } => (Some(to.as_str()), None),
            Operation::Resign { stand_aside } => (None, *stand_aside),
            Operation::Cordon | Operation::Uncordon => (None, None),
        };
        let asked = event(LogEvent::info("operation_asked")).with_some("to", to);
        let asked = asked.with_some("for_ms", aside.map(ms));
        asked.say(format_args!("an operator asks: {name}"));
        let begun = boottime();
        let answer = match (self.operators)(request) {
            Ok(outcome) => Answer::new(&operation, &outcome),
            Err(why) => Answer::refused(why.name(), why.to_string()).to(&operation),
        };
        let took = ms(boottime().since(begun));
        let said = &answer.message;
        if answer.done {
            let event = event(LogEvent::info("operation_done")).with("duration_ms", took);
            event.say(format_args!("{name} is done: {said}"));
        } else {
            let event = event(LogEvent::warn("operation_not_done")).with("duration_ms", took);
            event.say(format_args!("{name} is not done: {said}"));
        }
        answer
    }

    /// Logs what others made happen, a few times a minute at most.
    fn warn(&self, event: LogEvent, text: std::fmt::Arguments<'_>) {
        event.say_within_shared(&self.log, text);
    }
}

/// Says why no request is read. It does not wait for the caller, since all others wait meanwhile: the answer
/// fits into an empty socket.
fn refuse(mut stream: &UnixStream, reason: &str, message: &str) {
    let line = Answer::refused(reason, message.to_owned()).line();
    let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&line));
}

/// Receives one request, all of it within the deadline. A caller that closes its side has ended its line.
fn receive(stream: &mut UnixStream) -> io::Result<Result<Request, BadRequest>> {
    let deadline = boottime().plus(RECEIVE_DEADLINE);
    let (mut received, mut buffer) = (Vec::new(), [0; BYTES_MAX]);
    loop {
        match request::parse(&received) {
            Ok(None) => {}
            Ok(Some(request)) => return Ok(Ok(request)),
            Err(bad) => return Ok(Err(bad)),
        }
        let left = deadline.since(boottime());
        if left.is_zero() {
            return Ok(Err(BadRequest::Late(RECEIVE_DEADLINE)));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) if received.is_empty() => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(0) => received.push(b'\n'),
            Ok(bytes) => received.extend_from_slice(&buffer[..bytes]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
}
