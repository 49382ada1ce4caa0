//! Finds addresses where peers may be: a headless Service's DNS name, and peers given one by one.
//!
//! What it finds are candidates to dial, never a proof that a process runs or has ended.
//! It keeps three outcomes of a look-up apart, because they mean different things: addresses were found; the
//! name server says that none is published; no name server gave an answer. Only an answer that names
//! addresses ever replaces what a name stood for.
//!
//! getaddrinfo has no timeout: it blocks for 5 to 20 s when a name server is silent. So all look-ups run on
//! one thread of their own, one at a time. A thread that waits for a report is never blocked, and
//! [`Discovery::stop`] leaves a blocked look-up behind.
//!
//! Names are asked for exactly as they were given. With a trailing dot a name is absolute. Without one it is
//! relative to the search list of `/etc/resolv.conf`, which in a pod costs up to eight queries instead of
//! two. As each family is searched for by itself, it may end at another name than the other one. So prefer a
//! trailing dot.

mod lookup;
mod lookup_log;
mod resolver;

pub use lookup::{CANDIDATES_MAX, Lookup, LookupResult, NameAnswer};
pub use resolver::{Family, Resolution};

use lookup::Sources;
use lookup_log::LookupLog;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far the time between two look-ups is drawn away from the configured one, as a part of it. So pods that
/// start together do not go on asking in step.
const JITTER: f64 = 0.1;

/// Where to look, and how often.
#[derive(Clone, Debug)]
pub struct DiscoverySettings {
    /// The headless Service's name, exactly as it is asked for.
    pub service: Option<String>,
    /// Peers given one by one: a host name or an IP address (IPv6 with or without brackets), and the port.
    /// May include this process.
    pub peers: Vec<(String, u16)>,
    /// The port of peers found through [`service`](DiscoverySettings::service).
    pub peer_port: u16,
    /// From the end of a look-up to the start of the next one, ±10 %.
    pub refresh: Duration,
    /// The same in a hurry. Never longer than `refresh`: a longer one counts as `refresh`.
    pub refresh_hurried: Duration,
}

/// A running discovery. Dropping it is the same as [`stop`](Discovery::stop).
#[derive(Debug)]
pub struct Discovery {
    control: Arc<Control>,
}

/// What the thread is told.
#[derive(Debug)]
struct Control {
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Debug)]
struct Orders {
    hurried: bool,
    stopped: bool,
}

/// Starts to look, at once, and tells `sink` the outcome of every look-up. `sink` is called on the
/// discovery's thread: while it blocks, nothing is looked up. Until [`Discovery::hurry`] says otherwise it is
/// in a hurry, since no peer is known yet.
///
/// Addresses given as such are reported right away, before the first name is asked for, so that a silent name
/// server does not hold them back. Later reports hold them together with what the names stand for.
///
/// # Errors
/// When the operating system refuses another thread; nothing was started then.
pub fn spawn(settings: DiscoverySettings, sink: impl Fn(Lookup) + Send + 'static) -> io::Result<Discovery> {
    spawn_with(settings, resolver::system, sink)
}

fn spawn_with(
    settings: DiscoverySettings,
    mut resolve: impl FnMut(&str, Family) -> Resolution + Send + 'static,
    sink: impl Fn(Lookup) + Send + 'static,
) -> io::Result<Discovery> {
    let control = Arc::new(Control {
        orders: Mutex::new(Orders { hurried: true, stopped: false }),
        changed: Condvar::new(),
    });
    let discovery = Discovery { control: Arc::clone(&control) };
    let mut sources = Sources::new(&settings);
    let mut log = LookupLog::new();
    let run = move || {
        if let Some(lookup) = sources.before_dns() {
            sink(lookup);
        }
        loop {
            let mut lookup = sources.look_up(&mut resolve);
            let ended = Instant::now();
            if control.orders().stopped {
                return;
            }
            lookup.warning = log.tell(&lookup, ended);
            sink(lookup);
            if control.wait_for_next(&settings, ended) {
                return;
            }
        }
    };
    // The handle is dropped on purpose: no thread may ever wait for one that can be stuck in getaddrinfo.
    std::thread::Builder::new().name("discovery".into()).spawn(run)?;
    Ok(discovery)
}

impl Discovery {
    /// Says whether to look every [`refresh_hurried`](DiscoverySettings::refresh_hurried), counted from the
    /// end of the last look-up. Saying the same again changes nothing.
    pub fn hurry(&self, hurried: bool) {
        let mut orders = self.control.orders();
        if orders.hurried != hurried {
            orders.hurried = hurried;
            self.control.changed.notify_all();
        }
    }

    /// Ends it, and returns at once: a look-up under way is left behind, and its outcome dropped. A report
    /// that has already begun may still reach the sink.
    pub fn stop(self) {}
}

impl Drop for Discovery {
    fn drop(&mut self) {
        self.control.orders().stopped = true;
        self.control.changed.notify_all();
    }
}

impl Control {
    /// Nothing that holds this lock can leave it half changed, so a poisoned one is as good as any.
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the next look-up is due, with `hurried` being free to change meanwhile. Returns whether to
    /// stop.
    fn wait_for_next(&self, settings: &DiscoverySettings, ended: Instant) -> bool {
        let factor = jitter();
        let refresh = settings.refresh.mul_f64(factor);
        let refresh_hurried = settings.refresh_hurried.min(settings.refresh).mul_f64(factor);
        let mut orders = self.orders();
        loop {
            if orders.stopped {
                return true;
            }
            let due = if orders.hurried { refresh_hurried } else { refresh };
            let left = due.saturating_sub(ended.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(orders, left);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What to multiply a refresh with: drawn anew for each.
fn jitter() -> f64 {
    1.0 + JITTER * (2.0 * fastrand::f64() - 1.0)
}

#[cfg(test)]
mod tests;
