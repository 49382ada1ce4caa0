//! What applications ask, each on a connection of its own that ends with the answer, or is a lifeline.
//!
//! A request is read on the listener's thread, which must not wait. A thread of its own asks the driver, and
//! sends each answer as it is, however late: a question that is asked again would be a second hold.

use super::app_clients::{Asked, Unheld, busy};
use super::lifelines::{self, Lifelines};
use super::response::{Response, encode_last, no_content};
use super::{Source, holds};
use crate::election::HOLDS_MAX;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many requests wait for the driver at a time. All holders of a pod may ask at once.
const WAITING_MAX: usize = HOLDS_MAX;
/// A request that has waited for longer is not asked: its client is gone, or takes the hold for none.
const PATIENCE: Duration = Duration::from_secs(2);
const STACK_BYTES: usize = 256 * 1024;

/// One request that waits for the driver: its connection, and since when.
type Waiting = (TcpStream, Asked, Instant);
type Worker = (SyncSender<Waiting>, JoinHandle<()>);

/// Those that wait, and the thread that asks for them. It starts with the first.
pub(super) struct Applications<S: Source> {
    source: Arc<S>,
    lifelines: Arc<Lifelines<S>>,
    worker: Option<Worker>,
}

impl<S: Source> Applications<S> {
    pub(super) fn new(source: Arc<S>) -> Applications<S> {
        let lifelines = Arc::new(Lifelines::new(Arc::clone(&source)));
        Applications { source, lifelines, worker: None }
    }

    /// Asks the driver, and answers on this connection, which is closed after that.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn ask(&mut self, stream: TcpStream, asked: Asked) -> io::Result<()> {
        let sender = match &self.worker {
            Some((sender, _)) => sender,
            None => &self.worker.insert(start(Arc::clone(&self.source), Arc::clone(&self.lifelines))?).0,
        };
        if let Err(TrySendError::Full(waiting) | TrySendError::Disconnected(waiting)) =
            sender.try_send((stream, asked, Instant::now()))
        {
            self.source.answered(path(asked), 503, Duration::ZERO);
            say(&waiting.0, busy());
        }
        Ok(())
    }
}

impl<S: Source> Drop for Applications<S> {
    /// The thread ends once it has answered those that wait.
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.worker.take() {
            drop(sender);
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

fn start<S: Source>(source: Arc<S>, lifelines: Arc<Lifelines<S>>) -> io::Result<Worker> {
    let (sender, waiting): (_, Receiver<Waiting>) = sync_channel(WAITING_MAX);
    let work = move || {
        for (stream, asked, begun) in waiting {
            let late = begun.elapsed() > PATIENCE;
            let response = match asked {
                Asked::Hold(request) => {
                    let answered = if late { Err(Unheld::Busy) } else { source.hold(request) };
                    holds::answer(request, answered, &source.observe(), &*source)
                }
                _ if late => busy(),
                Asked::Sign(sign) => source.sign(sign).map_or_else(|_| busy(), |()| no_content()),
                Asked::Lifeline => {
                    let status = lifelines.open(stream);
                    source.answered(path(asked), status, begun.elapsed());
                    continue;
                }
            };
            source.answered(path(asked), response.status_code().0, begun.elapsed());
            say(&stream, response);
        }
    };
    let thread =
        thread::Builder::new().name("applications".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
    Ok((sender, thread))
}

/// As which path a request is counted.
fn path(asked: Asked) -> &'static str {
    match asked {
        Asked::Hold(_) => holds::PATH,
        Asked::Sign(_) => lifelines::ALIVE,
        Asked::Lifeline => lifelines::LIFELINE,
    }
}

/// Sends the last reply of a connection, without waiting: it is shorter than what the kernel keeps for a
/// client. A client that has taken no earlier reply loses this one, and not its hold.
fn say(mut stream: &TcpStream, response: Response) {
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    let _ = stream.write_all(&encode_last(response));
    let _ = stream.shutdown(std::net::Shutdown::Write);
}
