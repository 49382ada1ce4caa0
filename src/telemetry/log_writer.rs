//! A bounded queue of log lines before a stream that may block: writers never wait for it.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How many lines wait at most; further ones are lost and counted.
pub const LINES_MAX: usize = 1024;

/// The end where lines go in, one with each `write`. Writing never blocks and never fails.
pub struct LogWriter {
    lines: SyncSender<Box<[u8]>>,
    progress: Arc<Progress>,
}

/// How far the queue has come.
#[derive(Default)]
pub struct Progress {
    accepted: AtomicU64,
    lost: AtomicU64,
    written: Mutex<u64>,
    written_more: Condvar,
}

impl LogWriter {
    /// A queue in front of `out`, with a thread that writes. `lost_line` makes the line that says how many
    /// lines were lost; it is written when there is room again.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn new(
        out: impl Write + Send + 'static,
        lost_line: impl Fn(u64) -> Vec<u8> + Send + 'static,
    ) -> io::Result<LogWriter> {
        let (lines, receiver) = sync_channel(LINES_MAX);
        let progress = Arc::new(Progress::default());
        let of_thread = Arc::clone(&progress);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || drain(&receiver, out, &of_thread, lost_line))?;
        Ok(LogWriter { lines, progress })
    }

    /// To wait for what is queued.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.lines.try_send(line.into()) {
            Ok(()) => self.progress.accepted.fetch_add(1, Ordering::SeqCst),
            Err(_) => self.progress.lost.fetch_add(1, Ordering::SeqCst),
        };
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Progress {
    /// Waits until every line that has been accepted so far is written, but no longer than `longest`. Says
    /// whether they are.
    pub fn wait(&self, longest: Duration) -> bool {
        let accepted = self.accepted.load(Ordering::SeqCst);
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.written_more.wait_timeout_while(written, longest, |written| *written < accepted);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Writes lines until the last writer is gone. A line that the stream refuses counts as lost.
fn drain(
    lines: &Receiver<Box<[u8]>>,
    mut out: impl Write,
    progress: &Progress,
    lost_line: impl Fn(u64) -> Vec<u8>,
) {
    let mut since_report = 0;
    loop {
        let next = lines.try_recv();
        // There is room again, or there never is: then it is said now and then all the same.
        if next == Err(TryRecvError::Empty) || since_report == LINES_MAX {
            since_report = 0;
            let lost = progress.lost.swap(0, Ordering::SeqCst);
            if lost > 0 && out.write_all(&lost_line(lost)).is_err() {
                progress.lost.fetch_add(lost, Ordering::SeqCst);
            }
        }
        let line = match next {
            Ok(line) => line,
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => match lines.recv() {
                Ok(line) => line,
                Err(_) => return,
            },
        };
        if out.write_all(&line).is_err() {
            progress.lost.fetch_add(1, Ordering::SeqCst);
        }
        since_report += 1;
        *progress.written.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        progress.written_more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Instant;

    /// A stream that blocks until it is let go, line by line, and shows what was written.
    struct Gate(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Gate {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.send(line.to_vec()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn never_blocks_and_says_what_was_lost() {
        let ((open, gate), (seen, written)) = (channel(), channel());
        let lost_line = |lost| format!("lost {lost}").into_bytes();
        let mut queue = LogWriter::new(Gate(gate, seen), lost_line).unwrap();
        // One line is in the thread's hands, at most; the queue takes LINES_MAX, and the rest is lost.
        let (lines, started) = (LINES_MAX + 500, Instant::now());
        for i in 0..lines {
            queue.write_all(format!("{i}").as_bytes()).unwrap();
        }
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(!queue.progress().wait(Duration::from_millis(1)));
        for _ in 0..=lines {
            let _ = open.send(());
        }
        assert!(queue.progress().wait(Duration::from_secs(10)));
        // The thread may begin late, so that a line has room again behind some that are lost.
        let (mut got, mut lost, mut latest) = (0, 0, None);
        while got + lost < lines {
            let line = String::from_utf8(written.recv_timeout(Duration::from_secs(10)).unwrap()).unwrap();
            match line.strip_prefix("lost ") {
                Some(more) => lost += more.parse::<usize>().unwrap(),
                None => {
                    let number = line.parse::<usize>().ok();
                    assert!(number > latest, "{number:?} after {latest:?}");
                    (got, latest) = (got + 1, number);
                }
            }
        }
        assert!(got >= LINES_MAX, "{got}");
        assert_eq!((got + lost, lost > 0), (lines, true));
    }

    #[test]
    fn survives_a_closed_stream() {
        let ((open, gate), (seen, written)) = (channel(), channel());
        drop((open, written));
        let mut queue = LogWriter::new(Gate(gate, seen), |_| Vec::new()).unwrap();
        queue.write_all(b"gone").unwrap();
        assert!(queue.progress().wait(Duration::from_secs(10)));
    }
}
