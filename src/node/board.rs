//! What the driver publishes and the HTTP thread reads: the latest view, and when the driver last turned.

use crate::election::{Moment, View};
use crate::http::{Snapshot, Source};
use crate::net::boottime;
use crate::telemetry::Metrics;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A driver that has not turned for this long is held to be stuck: `/healthz` fails, and a restart is in order.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// The place between the driver and whoever is asked.
///
/// The view is swapped as a whole, with role, epoch, leader and the lease's deadline in it, so that nobody ever sees the
/// deadline of one epoch with the role of another, as a deadline in an atomic of its own could show. The lock is held for
/// the swap of one pointer. Should the driver be held up just there, whoever asks waits with it and reads the time only
/// afterwards: the answer can come late, but never for a time that is over.
pub(super) struct Board {
    view: Mutex<Arc<View>>,
    /// The moment of the driver's last turn, in nanoseconds of CLOCK_BOOTTIME.
    turned_ns: AtomicU64,
    listening: AtomicBool,
    metrics: Metrics,
}

impl Board {
    pub(super) fn new(view: View, metrics: Metrics) -> Board {
        Board {
            view: Mutex::new(Arc::new(view)),
            turned_ns: AtomicU64::new(0),
            listening: AtomicBool::new(true),
            metrics,
        }
    }

    /// The metrics that it answers with.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Shows a new view. It must be what holds at the turn that is told of next.
    pub(super) fn publish(&self, view: View) {
        let mut view = Arc::new(view);
        std::mem::swap(&mut *self.view.lock().unwrap_or_else(PoisonError::into_inner), &mut view);
        // The lock is free again before the former view is.
    }

    /// The driver has turned: it looked at the time at `at` and has published all that followed from it. The moment is
    /// that of the turn's beginning, so that a pause in the middle of it counts as one.
    pub(super) fn turned(&self, at: Moment, listening: bool) {
        self.listening.store(listening, Ordering::Relaxed);
        self.turned_ns.store(u64::try_from(at.0.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    fn health(&self, now: Moment, turned: Moment) -> Result<(), String> {
        let silent = now.since(turned);
        if silent > STUCK_AFTER {
            return Err(format!("the driver has not turned for {} ms", silent.as_millis()));
        }
        if !self.listening.load(Ordering::Relaxed) {
            return Err("the peer port does not listen".to_owned());
        }
        Ok(())
    }

    /// What holds now. The last turn is read first and the time last: whatever happens in between, a pause of this
    /// thread or of the process included, only makes the answer look older than it is.
    fn snapshot(&self) -> Snapshot {
        let turned = Moment(Duration::from_nanos(self.turned_ns.load(Ordering::Acquire)));
        let view = Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner));
        let now = boottime();
        Snapshot { view, now, turned, health: self.health(now, turned) }
    }
}

/// The board as the HTTP server's source.
pub(super) struct Answers(pub(super) Arc<Board>);

impl Source for Answers {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn metrics(&self) -> String {
        let snapshot = self.0.snapshot();
        self.0.metrics.encode(&snapshot.view, snapshot.now, snapshot.turned)
    }
}

/// The wall clock in milliseconds since 1970, for people; zero if it is set before that.
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
