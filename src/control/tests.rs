//! The control path in one process: the server, and callers of all kinds.

use super::answer::Answer;
use super::request::{BYTES_MAX, Request, encode};
use super::server::{OPERATORS_MAX, RECEIVE_DEADLINE};
use super::socket::connect;
use super::*;
use crate::config::ControlSocket;
use crate::election::{Operation, OperationRefusal};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(10);

/// A server that answers each request as told.
struct Side {
    socket: ControlSocket,
    _file: Option<SocketFile>,
    _folder: TempDir,
}

fn serving(operators: Operators) -> Side {
    let folder = tempfile::tempdir().unwrap();
    let socket = ControlSocket::Path(folder.path().join("control.sock"));
    let file = serve(bind(&socket).unwrap().unwrap(), operators).unwrap();
    Side { socket, _file: file, _folder: folder }
}

/// A server that is busy with each request until it is let go.
fn holding() -> (Side, Receiver<Request>, Sender<()>) {
    let (asked, has_asked) = channel();
    let (let_go, release) = channel::<()>();
    let (asked, release) = (Mutex::new(asked), Mutex::new(release));
    let side = serving(Box::new(move |request| {
        asked.lock().unwrap().send(request).unwrap();
        let _ = release.lock().unwrap().recv();
        Ok(Err(OperationRefusal::Busy))
    }));
    (side, has_asked, let_go)
}

fn cordon() -> Vec<u8> {
    encode(&Request { operation: Operation::Cordon, within: PATIENCE })
}

impl Side {
    fn connect(&self) -> UnixStream {
        let stream = connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// What this is answered.
    fn ask(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has read enough may have closed already.
        let _ = stream.write_all(bytes);
        answer(stream)
    }
}

fn answer(mut stream: UnixStream) -> Answer {
    let mut line = Vec::new();
    let _ = stream.read_to_end(&mut line);
    serde_json::from_slice(&line).unwrap_or_else(|_| panic!("{:?}", String::from_utf8_lossy(&line)))
}

fn refusing(refusal: OperationRefusal) -> Operators {
    Box::new(move |_| Ok(Err(refusal.clone())))
}

#[test]
fn a_request_is_carried_out_and_answered_in_one_line() {
    let (asked, has_asked) = channel();
    let asked = Mutex::new(asked);
    let side = serving(Box::new(move |request| {
        asked.lock().unwrap().send(request).unwrap();
        Ok(Err(OperationRefusal::NoLeader))
    }));
    let request = Request { operation: Operation::Transfer { to: "web-1".to_owned() }, within: PATIENCE };
    let answer = side.ask(&encode(&request));
    assert_eq!(has_asked.try_recv(), Ok(request));
    assert_eq!((answer.done, answer.operation.as_deref()), (false, Some("transfer")));
    assert_eq!(answer.reason.as_deref(), Some("no_leader"));
    // A second request of a connection is not read.
    let twice = [cordon(), cordon()].concat();
    assert_eq!(side.ask(&twice).reason.as_deref(), Some("no_leader"));
    assert!(has_asked.try_recv().is_ok() && has_asked.try_recv().is_err());
}

#[test]
fn an_election_that_does_not_answer_is_told_of() {
    for (why, reason) in [(Unanswered::Stopping, "stopping"), (Unanswered::Stuck, "stuck")] {
        let answer = serving(Box::new(move |_| Err(why))).ask(&cordon());
        assert_eq!((answer.operation.as_deref(), answer.reason.as_deref()), (Some("cordon"), Some(reason)));
    }
}

#[test]
fn bytes_that_are_no_request_are_refused() {
    let side = serving(Box::new(|_| panic!("nothing is asked")));
    let endless = vec![b' '; 1024 * BYTES_MAX];
    for (bytes, words) in [
        (&b"GET /leader HTTP/1.1\r\nHost: a\r\n\r\n"[..], "send a line such as"),
        (b"\n", "send a line such as"),
        (b"{\"operation\":\"exit\",\"timeout_ms\":1}\n", "there is no operation \"exit\""),
        (&endless, "longer than 4096 bytes"),
    ] {
        let answer = side.ask(bytes);
        assert_eq!((answer.done, answer.reason.as_deref()), (false, Some("bad_request")));
        assert!(answer.message.contains(words), "{}", answer.message);
    }
}

#[test]
fn a_caller_that_closes_its_side_has_ended_its_line() {
    let side = serving(refusing(OperationRefusal::NoLeader));
    let mut stream = side.connect();
    stream.write_all(cordon().strip_suffix(b"\n").unwrap()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(answer(stream).reason.as_deref(), Some("no_leader"));
    // One that says nothing at all gets nothing.
    let mut silent = side.connect();
    silent.shutdown(Shutdown::Write).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_caller_that_says_nothing_loses_its_place_in_time() {
    let side = serving(refusing(OperationRefusal::NoLeader));
    let begun = Instant::now();
    let mut trickling = side.connect();
    let silent: Vec<UnixStream> = (1..OPERATORS_MAX).map(|_| side.connect()).collect();
    thread::scope(|scope| {
        let mut half = trickling.try_clone().unwrap();
        scope.spawn(move || {
            while half.write_all(b" ").is_ok() && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(50));
            }
        });
        for stream in silent {
            assert_eq!(answer(stream).reason.as_deref(), Some("bad_request"));
        }
        let mut line = [0; 1024];
        let bytes = trickling.read(&mut line).unwrap();
        assert!(String::from_utf8_lossy(&line[..bytes]).contains("no request came within 2s"));
    });
    assert!(begun.elapsed() < RECEIVE_DEADLINE * 2, "{:?}", begun.elapsed());
    assert_eq!(side.ask(&cordon()).reason.as_deref(), Some("no_leader"), "and the places are free again");
}

#[test]
fn as_many_operators_are_served_as_there_are_places() {
    let (side, has_asked, let_go) = holding();
    let served: Vec<UnixStream> = (0..OPERATORS_MAX)
        .map(|_| {
            let mut stream = side.connect();
            stream.write_all(&cordon()).unwrap();
            stream
        })
        .collect();
    // The first holds the lock of the test's operators, so that the others wait in theirs.
    has_asked.recv_timeout(PATIENCE).unwrap();
    for _ in 0..3 {
        let answer = side.ask(&cordon());
        assert_eq!(answer.reason.as_deref(), Some("busy"));
        assert!(answer.message.contains("ask again"), "{}", answer.message);
    }
    drop(let_go);
    for stream in served {
        assert_eq!(answer(stream).reason.as_deref(), Some("busy"), "the election's own answer");
    }
}
