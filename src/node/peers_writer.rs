//! Writes where peers were, on a thread of its own. A disk that stalls must not hold up the driver, which has
//! a lease to renew.

use crate::base::{LogEvent, RateLimit};
use crate::election::KnownPeers;
use crate::store::PeersError;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const STACK_BYTES: usize = 128 * 1024;
/// The first failures of a write that are logged one by one; later ones are logged at most once per
/// [`LOG_LINE_EVERY`].
const LOG_LINES: u32 = 3;
const LOG_LINE_EVERY: Duration = Duration::from_secs(60);

/// The driver's side of that thread. Dropping it ends the thread after what it writes then, and waits for
/// nothing.
pub(super) struct PeersWriter {
    mailbox: Arc<Mailbox>,
}

/// Room for one list. A newer one replaces an older one that has not been written yet.
#[derive(Default)]
struct Mailbox {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Default)]
struct Slot {
    latest: Option<KnownPeers>,
    closed: bool,
}

impl PeersWriter {
    /// Starts the thread, which hands each list to `write`.
    ///
    /// # Errors
    /// If the operating system refuses a thread.
    pub(super) fn spawn(
        mut write: impl FnMut(&KnownPeers) -> Result<(), PeersError> + Send + 'static,
    ) -> io::Result<PeersWriter> {
        let mailbox = Arc::new(Mailbox::default());
        let theirs = Arc::clone(&mailbox);
        let thread = std::thread::Builder::new().name("known-peers".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            let mut limit = RateLimit::new(LOG_LINES, LOG_LINE_EVERY);
            while let Some(latest) = theirs.take() {
                let Err(error) = write(&latest) else { continue };
                let why = "the election goes on, but a restart may not know where its peers were";
                LogEvent::warn("peers_not_written").say_within(&mut limit, format_args!("{error}; {why}"));
            }
        })?;
        Ok(PeersWriter { mailbox })
    }

    /// Has this list written, in place of one that waits. Never waits for the disk.
    pub(super) fn put(&self, list: KnownPeers) {
        let former = self.mailbox.slot().latest.replace(list);
        self.mailbox.changed.notify_one();
        drop(former);
    }
}

impl Drop for PeersWriter {
    fn drop(&mut self) {
        self.mailbox.slot().closed = true;
        self.mailbox.changed.notify_one();
    }
}

impl Mailbox {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        // A panicking thread ends the process in the sidecar; where it doesn't, the slot is valid at every
        // unlock.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest list, as soon as there is one; none: there will be no more.
    fn take(&self) -> Option<KnownPeers> {
        let nothing = |slot: &mut Slot| slot.latest.is_none() && !slot.closed;
        let slot = self.changed.wait_while(self.slot(), nothing);
        slot.unwrap_or_else(PoisonError::into_inner).latest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn list(name: &str) -> KnownPeers {
        KnownPeers { cluster: name.to_owned(), leader: None, members: Vec::new() }
    }

    fn refused() -> PeersError {
        let file = "/state/bellwether.peers".into();
        PeersError::Io { file, attempt: "write", source: io::Error::other("on purpose") }
    }

    #[test]
    fn while_a_write_stalls_the_latest_list_replaces_the_one_that_waits() {
        let (began, has_begun) = channel();
        let (go_on, stalled) = channel::<()>();
        let writer = PeersWriter::spawn(move |list| {
            let _ = began.send(list.cluster.clone());
            let _ = stalled.recv();
            Ok(())
        })
        .unwrap();
        writer.put(list("first"));
        assert_eq!(has_begun.recv_timeout(PATIENCE).as_deref(), Ok("first"));
        let (put, is_put) = channel();
        std::thread::spawn(move || {
            writer.put(list("second"));
            writer.put(list("third"));
            put.send(writer)
        });
        let writer = is_put.recv_timeout(PATIENCE).expect("the writer is not waited for");
        go_on.send(()).unwrap();
        assert_eq!(has_begun.recv_timeout(PATIENCE).as_deref(), Ok("third"));
        // What waits at the end is still written if the process runs that long; nothing waits for it.
        writer.put(list("fourth"));
        drop(writer);
        drop(go_on);
        assert_eq!(has_begun.recv_timeout(PATIENCE).as_deref(), Ok("fourth"));
        assert!(has_begun.recv_timeout(PATIENCE).is_err(), "the thread has ended");
    }

    #[test]
    fn a_write_that_fails_ends_nothing() {
        let (tried, is_tried) = channel();
        let writer = PeersWriter::spawn(move |list| {
            let _ = tried.send(list.cluster.clone());
            Err(refused())
        })
        .unwrap();
        for name in ["first", "second", "third", "fourth", "fifth"] {
            writer.put(list(name));
            assert_eq!(is_tried.recv_timeout(PATIENCE).as_deref(), Ok(name));
        }
    }
}
