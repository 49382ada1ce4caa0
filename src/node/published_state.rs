//! What the driver publishes and the HTTP thread reads: the latest status, and when the driver last turned.

use crate::base::{Clock, Reading};
use crate::channel::Credentials;
use crate::election::{HoldRequest, Moment, Sign, Status};
use crate::http::{Feed, Held, PeerKeys, Snapshot, Source, Unheld};
use crate::telemetry::Metrics;
use crate::transport::Announced;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A driver that has not turned for this long is held to be stuck: `/healthz` fails, and a restart is in
/// order.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// The place between the driver and the HTTP thread.
///
/// The status is swapped as a whole, with role, epoch, leader and the lease's deadline in it. So no answer
/// ever has the deadline of one epoch and the role of another, as a deadline in an atomic of its own could
/// show. The lock is held for the swap of a pointer and a clock. If the driver is held up just there, the
/// HTTP thread waits with it and reads the time only afterwards: the answer can come late, but never for a
/// time that is over. The feed has a lock of its own, which is taken before this one; other threads hold it
/// for as long as it takes to read the clocks.
pub(super) struct PublishedState {
    turn: Mutex<Turn>,
    listening: AtomicBool,
    /// Whether this process has taken part since it started. Once it has, a lost quorum changes nothing.
    took_part: AtomicBool,
    /// The last changes of what is published.
    feed: Feed,
    /// What discovery warns of.
    discovery: Mutex<Option<String>>,
    metrics: Metrics,
}

/// The driver's last turn.
struct Turn {
    /// What holds since then.
    status: Arc<Status>,
    /// The driver's clock at the turn's beginning: the fast clock goes on from there.
    begun: Clock,
    /// What processes announce.
    announced: Arc<Announced>,
}

impl PublishedState {
    pub(super) fn new(status: Status, begun: Clock, metrics: Metrics) -> PublishedState {
        let feed = Feed::new(status.me.incarnation);
        PublishedState {
            turn: Mutex::new(Turn { status: Arc::new(status), begun, announced: Arc::default() }),
            listening: AtomicBool::new(true),
            took_part: AtomicBool::new(false),
            feed,
            discovery: Mutex::default(),
            metrics,
        }
    }

    /// The metrics that it answers with.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What discovery warns of from now on; none: nothing.
    pub(super) fn discovery_warns(&self, warning: Option<String>) {
        *self.discovery.lock().unwrap_or_else(PoisonError::into_inner) = warning;
    }

    /// The driver has turned, and this status holds, or still the one before. The clock is that of the turn's
    /// beginning, so that a pause in the middle of the turn counts as one.
    pub(super) fn turned(
        &self,
        begun: Clock,
        status: Option<Status>,
        announced: Arc<Announced>,
        listening: bool,
    ) {
        self.listening.store(listening, Ordering::Relaxed);
        if status.as_ref().is_some_and(|status| status.takes_part(begun.fast(), begun.fast())) {
            self.took_part.store(true, Ordering::Relaxed);
        }
        let mut status = status.map(Arc::new);
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.begun = begun;
        let announced_anew = !Arc::ptr_eq(&turn.announced, &announced);
        turn.announced = announced;
        if let Some(status) = &mut status {
            std::mem::swap(&mut turn.status, status);
        }
        // The lock is free again before the former status is.
        drop(turn);
        if status.is_some() || announced_anew {
            // A change is in the feed before a client can ask for it.
            self.feed.observe(|| self.snapshot());
        }
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

    /// What holds now.
    fn snapshot(&self) -> Snapshot {
        self.snapshot_at(Reading::take)
    }

    /// The last turn is read first and the time last. A pause in between, of this thread or of the process,
    /// only makes the answer look older than it is.
    fn snapshot_at(&self, read: impl FnOnce() -> Reading) -> Snapshot {
        let (status, begun, announced) = {
            let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&turn.status), turn.begun, Arc::clone(&turn.announced))
        };
        let reading = read();
        let now = begun.fast_at(&reading);
        let health = self.health(now, begun.fast());
        // A suspend may have lasted longer than the host has measured. So no answer from before it stands,
        // until the driver has turned.
        let turned = if begun.suspended(&reading) { Moment::default() } else { begun.fast() };
        let took_part = self.took_part.load(Ordering::Relaxed);
        Snapshot { status, now, reading, turned, health, took_part, announced }
    }
}

/// What asks the driver for applications.
pub(super) trait AskDriver: Send + Sync {
    /// Asks for a hold, and waits for the answer.
    fn hold(&self, request: HoldRequest) -> Result<Held, Unheld>;
    /// Hands a sign on, as soon as the driver has room. [`Sign::Watches`] does not wait for room.
    fn sign(&self, sign: Sign) -> Result<(), Unheld>;
}

/// The published state as the HTTP server's source.
pub(super) struct Answers {
    pub(super) state: Arc<PublishedState>,
    pub(super) credentials: Arc<Credentials>,
    /// What asks the driver for applications; none: they may not.
    pub(super) applications: Option<Box<dyn AskDriver>>,
    /// The election's name.
    pub(super) election: String,
}

impl Source for Answers {
    fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    fn feed(&self) -> &Feed {
        &self.state.feed
    }

    fn metrics(&self) -> String {
        let snapshot = self.state.snapshot();
        self.state.metrics.encode(&snapshot.status, snapshot.now, snapshot.turned)
    }

    fn answered(&self, path: &'static str, status: u16, took: Duration) {
        self.state.metrics.answered(path, status, took);
    }

    fn watchers(&self, more: i64) {
        self.state.metrics.watchers(more);
    }

    fn watcher_cut(&self) {
        self.state.metrics.watcher_cut();
    }

    fn election(&self) -> &str {
        &self.election
    }

    fn serves_applications(&self) -> bool {
        self.applications.is_some()
    }

    fn hold(&self, request: HoldRequest) -> Result<Held, Unheld> {
        self.applications.as_ref().map_or(Err(Unheld::Off), |applications| applications.hold(request))
    }

    fn sign(&self, sign: Sign) -> Result<(), Unheld> {
        self.applications.as_ref().map_or(Err(Unheld::Off), |applications| applications.sign(sign))
    }

    fn peer_keys(&self) -> PeerKeys {
        let accepted = self.credentials.keys().map(|keys| keys.fingerprints().to_vec()).unwrap_or_default();
        PeerKeys { accepted, unusable: self.credentials.unusable() }
    }

    fn unproved(&self) -> Option<String> {
        self.credentials.failure()
    }

    fn discovery_warning(&self) -> Option<String> {
        self.state.discovery.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Epoch, Incarnation, Incumbent, Peer, Priority, ProcessId, Role};
    use std::io::Read;
    use std::net::{Ipv4Addr, SocketAddr};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A reading that takes no time, so much after the first one.
    fn reading(boot: u64, raw: u64, mono: u64) -> Reading {
        let mono = ms(7_000 + mono);
        Reading { mono_before: mono, boot: ms(9_000 + boot), raw: ms(5_000 + raw), mono_after: mono }
    }

    /// A published state on which a leader's status stands for 1.5 s.
    fn published_state() -> PublishedState {
        let me = Peer {
            id: ProcessId(uuid::Uuid::from_u128(1)),
            incarnation: Incarnation(1),
            name: "p1".to_owned(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 4041)),
            priority: Priority::DEFAULT,
            revision: String::new(),
        };
        let settings = crate::election::Settings { failure_timeout: ms(1_500), ..Default::default() };
        let status = crate::election::Machine::new(settings, "c".to_owned(), me.clone(), None).status();
        let leader = Some(Incumbent { peer: me, elected_at_ms: 0 });
        let status = Status { role: Role::Leading, leader, ..status };
        PublishedState::new(status, Clock::new(reading(0, 0, 0)), Metrics::new("c"))
    }

    #[test]
    fn an_answer_stands_as_long_as_both_clocks_allow() {
        let table = [
            ("at once", reading(0, 0, 0), true),
            ("in time", reading(1_500, 1_500, 1_500), true),
            ("late", reading(1_501, 1_501, 1_501), false),
            ("slewed back", reading(1_376, 1_501, 1_376), false),
            ("slewed forward", reading(1_501, 1_376, 1_501), false),
            ("suspended for a second at least", reading(1_100, 100, 100), false),
        ];
        for (what, reading, leads) in table {
            let snapshot = published_state().snapshot_at(|| reading);
            assert_eq!(snapshot.status.leads(snapshot.now, snapshot.turned), leads, "{what}");
            assert_eq!(snapshot.health, Ok(()), "{what}");
        }
    }

    #[test]
    fn the_metrics_are_those_of_the_status() {
        let metrics = Answers {
            state: Arc::new(published_state()),
            credentials: Arc::new(Credentials::none()),
            applications: None,
            election: String::new(),
        }
        .metrics();
        assert!(metrics.contains("bellwether_process_info{"), "{metrics}");
    }

    #[test]
    fn watchers_are_counted() {
        let answers = Answers {
            state: Arc::new(published_state()),
            credentials: Arc::new(Credentials::none()),
            applications: None,
            election: String::new(),
        };
        answers.watchers(2);
        answers.watchers(-1);
        answers.watcher_cut();
        let metrics = answers.metrics();
        for line in ["\nbellwether_watchers 1\n", "\nbellwether_watchers_cut_total 1\n"] {
            assert!(metrics.contains(line), "no {line:?} in {metrics}");
        }
    }

    /// The driver has ended.
    struct Gone;

    impl AskDriver for Gone {
        fn hold(&self, _: HoldRequest) -> Result<Held, Unheld> {
            Err(Unheld::Busy)
        }
        fn sign(&self, _: Sign) -> Result<(), Unheld> {
            Err(Unheld::Busy)
        }
    }

    #[test]
    fn applications_are_served_where_the_driver_can_be_asked() {
        let asks: Box<dyn AskDriver> = Box::new(Gone);
        for (applications, serves, refusal) in [(None, false, Unheld::Off), (Some(asks), true, Unheld::Busy)]
        {
            let state = Arc::new(published_state());
            let answers = Answers {
                state,
                credentials: Arc::new(Credentials::none()),
                applications,
                election: String::new(),
            };
            assert_eq!(answers.serves_applications(), serves);
            assert_eq!(answers.hold(HoldRequest::End { hold: 1 }), Err(refusal));
            assert_eq!(answers.sign(Sign::LifelineOpened), Err(refusal));
            let watches = Sign::Watches { valid_for: ms(100) };
            assert_eq!(answers.sign(watches), Err(refusal));
        }
    }

    /// No client has asked in between: what comes and goes is in the feed all the same.
    #[test]
    fn each_published_change_is_in_the_feed() {
        let state = Arc::new(published_state());
        let answers = Answers {
            state: Arc::clone(&state),
            credentials: Arc::new(Credentials::none()),
            applications: None,
            election: String::new(),
        };
        let asks = |target: &'static str| {
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            let (request, _) = crate::http::request::parse(request.as_bytes()).unwrap().unwrap();
            let mut body = String::new();
            crate::http::routes::route(&request, &answers).into_reader().read_to_string(&mut body).unwrap();
            body
        };
        let begun = Clock::new(Reading::take());
        for epoch in 1..=3 {
            let status = Status { epoch: Epoch(epoch), ..(*state.snapshot().status).clone() };
            state.turned(begun, Some(status), Arc::default(), true);
        }
        // A turn without a new status is none.
        state.turned(begun, None, Arc::default(), true);
        let second = asks("/watch?after=0000000000000001-1");
        assert!(second.contains(r#""epoch":2,"#) && second.contains(r#""past":true"#), "{second}");
        assert!(asks("/watch").contains(r#""version":"0000000000000001-3""#), "{}", asks("/watch"));
    }

    #[test]
    fn after_a_suspend_the_next_turn_decides() {
        let published_state = published_state();
        let mut clock = Clock::new(reading(0, 0, 0));
        let woken = reading(1_100, 100, 100);
        clock.turn(woken);
        published_state.turned(clock, None, Arc::default(), true);
        let snapshot = published_state.snapshot_at(|| woken);
        assert!(snapshot.status.leads(snapshot.now, snapshot.turned));
        // The status is what the machine has said in that turn.
        let status = Status { role: Role::Asking, leader: None, ..(*snapshot.status).clone() };
        published_state.turned(clock, Some(status), Arc::default(), true);
        let snapshot = published_state.snapshot_at(|| woken);
        assert_eq!(snapshot.status.role, Role::Asking);
    }

    #[test]
    fn a_driver_that_does_not_turn_is_stuck_after_a_suspend_as_without_one() {
        let published_state = published_state();
        assert_eq!(published_state.snapshot_at(|| reading(5_000, 5_000, 5_000)).health, Ok(()));
        assert!(published_state.snapshot_at(|| reading(5_001, 5_000, 5_001)).health.is_err());
        assert_eq!(published_state.snapshot_at(|| reading(5_000, 10, 10)).health, Ok(()));
        assert!(published_state.snapshot_at(|| reading(5_001, 10, 10)).health.is_err());
    }

    #[test]
    fn the_time_is_read_after_the_turn() {
        let published_state = published_state();
        let mut clock = Clock::new(reading(0, 0, 0));
        let snapshot = published_state.snapshot_at(|| {
            // The driver turns between the two: the answer is that of the turn before, and too old.
            clock.turn(reading(2_000, 2_000, 2_000));
            published_state.turned(clock, None, Arc::default(), true);
            reading(2_000, 2_000, 2_000)
        });
        assert!(!snapshot.status.leads(snapshot.now, snapshot.turned));
    }
}
