//! The lifeline of exec: a connection to the sidecar whose end is the application's death. It has a thread of
//! its own, which opens it anew when the sidecar has ended it.

use crate::base::blocking_tcp::await_end;
use crate::client::api::Api;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the sidecar may take to answer, and how long after a failure it is asked again.
const ANSWER_LONGEST: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(200);
/// How long after a refusal.
const REFUSED_AGAIN: Duration = Duration::from_secs(10);
/// How much of an answer's head is read.
const HEAD_BYTES_MAX: usize = 4096;

/// The lifeline, open or not. Its end with the process is the kernel's doing.
pub(super) struct Lifeline(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wanted: bool,
    /// The one that is open, or about to be.
    open: Option<TcpStream>,
}

impl Lifeline {
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(api: Api) -> io::Result<Lifeline> {
        let shared = Arc::<Shared>::default();
        let keeper = Arc::clone(&shared);
        thread::Builder::new().name("lifeline".to_owned()).spawn(move || keeper.keep(&api))?;
        Ok(Lifeline(shared))
    }

    /// Whether it is to be open from now on.
    pub(super) fn want(&self, wanted: bool) {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.wanted, wanted) != wanted {
            if let Some(open) = state.open.take() {
                // The reading thread sees its end.
                let _ = open.shutdown(Shutdown::Both);
            }
            self.0.changed.notify_all();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens it whenever it is wanted, and waits for its end.
    fn keep(&self, api: &Api) {
        loop {
            let mut state = self.lock();
            while !state.wanted {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            match self.hold_open(api) {
                // It takes none: an older one, or one that no application may change. The next one may.
                Ok(false) => thread::sleep(REFUSED_AGAIN),
                // Before a restarted sidecar listens, it is not there.
                Ok(true) | Err(_) => thread::sleep(AGAIN),
            }
        }
    }

    /// Opens one and returns at its end; false: the sidecar takes none.
    fn hold_open(&self, api: &Api) -> io::Result<bool> {
        let stream = api.connect(ANSWER_LONGEST)?;
        // A late answer is one all the same: another question would be another lifeline, and end this one.
        stream.set_write_timeout(Some(ANSWER_LONGEST))?;
        {
            let mut state = self.lock();
            if !state.wanted {
                return Ok(true);
            }
            state.open = Some(stream.try_clone()?);
        }
        let asked = ask(&stream);
        if matches!(asked, Ok(200)) {
            await_end(&stream);
        }
        self.lock().open = None;
        Ok(!matches!(asked?, 403..=405))
    }
}

/// Asks for a lifeline; returns the status of the answer.
fn ask(mut stream: &TcpStream) -> io::Result<u16> {
    stream.write_all(b"POST /lifeline HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match stream.read(&mut byte)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ => head.push(byte[0]),
        }
    }
    let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    status.and_then(|digits| digits.parse().ok()).ok_or_else(|| ErrorKind::InvalidData.into())
}
