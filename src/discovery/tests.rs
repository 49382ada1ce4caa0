//! The discovery's thread, with scripted answers in place of a name server.

use super::*;
use core::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

/// Longer than anything here takes; only a failing test waits for it.
const DEADLINE: Duration = Duration::from_secs(10);
/// Longer than any test runs.
const NEVER: Duration = Duration::from_secs(3600);

fn settings(refresh: Duration, refresh_hurried: Duration) -> DiscoverySettings {
    DiscoverySettings {
        service: Some("app.".into()),
        peers: Vec::new(),
        peer_port: 4041,
        refresh,
        refresh_hurried,
    }
}

/// A resolver in which each question waits for the test to answer it.
fn questioned()
-> (impl FnMut(&str, Family) -> Resolution + Send + 'static, Receiver<Family>, Sender<Resolution>) {
    let (ask, questions) = channel();
    let (answers, answer) = channel();
    let resolve = move |_: &str, family| {
        ask.send(family).ok();
        answer.recv().unwrap_or(Resolution::Unknown("the test is over".into()))
    };
    (resolve, questions, answers)
}

fn found(last: u8) -> Resolution {
    Resolution::Found([SocketAddr::from(([198, 18, 0, last], 0))].into())
}

fn reports() -> (impl Fn(Lookup) + Send + 'static, Receiver<Lookup>) {
    let (report, reports) = channel();
    (move |lookup| report.send(lookup).unwrap_or(()), reports)
}

#[test]
fn reports_every_look_up() {
    let (sink, reports) = reports();
    let mut last = 0;
    let resolve = move |_: &str, family| {
        last += 1;
        if family == Family::V4 { found(last) } else { Resolution::Empty }
    };
    let brief = Duration::from_millis(1);
    let _discovery = spawn_with(settings(NEVER, brief), resolve, sink).unwrap();
    for last in [1, 3, 5] {
        let wanted = [SocketAddr::from(([198, 18, 0, last], 4041))].into();
        let lookup = reports.recv_timeout(DEADLINE).unwrap();
        assert_eq!(lookup.result, LookupResult::Found(wanted));
    }
}

#[test]
fn looks_again_soon_only_in_a_hurry() {
    let (sink, reports) = reports();
    let brief = Duration::from_millis(1);
    let resolve = |_: &str, _| Resolution::Empty;
    let discovery = spawn_with(settings(NEVER, brief), resolve, sink).unwrap();
    reports.recv_timeout(DEADLINE).unwrap();
    reports.recv_timeout(DEADLINE).unwrap();
    discovery.hurry(false);
    // What was under way when it was told so may still come, and then nothing more.
    let quiet = Duration::from_millis(200);
    let mut more = 0;
    while reports.recv_timeout(quiet).is_ok() {
        more += 1;
        assert!(more < 1000, "still looks often");
    }
    discovery.hurry(true);
    reports.recv_timeout(DEADLINE).unwrap();
}

#[test]
fn a_longer_refresh_in_a_hurry_counts_as_the_ordinary_one() {
    let (sink, reports) = reports();
    let brief = Duration::from_millis(1);
    let _discovery = spawn_with(settings(brief, NEVER), |_: &str, _| Resolution::Empty, sink).unwrap();
    for _ in 0..3 {
        reports.recv_timeout(DEADLINE).unwrap();
    }
}

#[test]
fn asks_one_question_at_a_time_and_is_stopped_while_one_blocks() {
    let (sink, reports) = reports();
    let (resolve, questions, answers) = questioned();
    let discovery = spawn_with(settings(NEVER, NEVER), resolve, sink).unwrap();
    assert_eq!(questions.recv_timeout(DEADLINE), Ok(Family::V4));
    // The resolver is blocked now.
    assert!(questions.try_recv().is_err());
    let began = Instant::now();
    discovery.hurry(false);
    discovery.hurry(true);
    discovery.stop();
    assert!(began.elapsed() < DEADLINE / 10);
    // It comes back at last, and no report follows: the sink is dropped unused.
    answers.send(found(1)).unwrap();
    answers.send(found(2)).ok();
    assert_eq!(reports.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn is_stopped_while_it_waits_and_when_dropped() {
    let (sink, reports) = reports();
    let discovery = spawn_with(settings(NEVER, NEVER), |_: &str, _| Resolution::Empty, sink).unwrap();
    reports.recv_timeout(DEADLINE).unwrap();
    // Nothing shows from outside that it waits now. Without the pause the test would pass as well, and see
    // less.
    std::thread::sleep(Duration::from_millis(50));
    drop(discovery);
    assert_eq!(reports.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn addresses_are_reported_while_the_name_server_is_silent() {
    let (sink, reports) = reports();
    let (resolve, questions, answers) = questioned();
    let mut settings = settings(NEVER, NEVER);
    settings.peers = vec![("198.18.7.7".into(), 5000)];
    let _discovery = spawn_with(settings, resolve, sink).unwrap();
    assert_eq!(questions.recv_timeout(DEADLINE), Ok(Family::V4));
    let given = SocketAddr::from(([198, 18, 7, 7], 5000));
    let lookup = reports.recv_timeout(DEADLINE).unwrap();
    assert_eq!(lookup.result, LookupResult::Found([given].into()));
    answers.send(found(1)).unwrap();
    answers.send(Resolution::Empty).unwrap();
    let lookup = reports.recv_timeout(DEADLINE).unwrap();
    let both = [SocketAddr::from(([198, 18, 0, 1], 4041)), given];
    assert_eq!(lookup.result, LookupResult::Found(both.into()));
}

#[test]
fn addresses_alone_are_reported_every_refresh() {
    let (sink, reports) = reports();
    let brief = Duration::from_millis(1);
    let settings =
        DiscoverySettings { service: None, peers: vec![("::1".into(), 1)], ..settings(brief, brief) };
    let _discovery = spawn_with(settings, |_: &str, _| panic!("asked"), sink).unwrap();
    for _ in 0..3 {
        let lookup = reports.recv_timeout(DEADLINE).unwrap();
        assert!(lookup.complete);
        assert_eq!(lookup.result.name(), "found");
    }
}

#[test]
fn the_refresh_is_drawn_within_a_tenth() {
    let draws: Vec<f64> = (0..1000).map(|_| jitter()).collect();
    assert!(draws.iter().all(|factor| (0.9..=1.1).contains(factor)), "{draws:?}");
    // A thousand draws that all miss one half would be a coin that falls on one side a thousand times.
    assert!(draws.iter().any(|factor| *factor < 1.0));
    assert!(draws.iter().any(|factor| *factor > 1.0));
}

#[test]
fn waits_for_the_refresh() {
    let control =
        Control { orders: Mutex::new(Orders { hurried: false, stopped: false }), changed: Condvar::new() };
    let refresh = Duration::from_millis(50);
    let ended = Instant::now();
    assert!(!control.wait_for_next(&settings(refresh, NEVER), ended));
    let waited = ended.elapsed();
    assert!(waited >= refresh.mul_f64(1.0 - JITTER), "{waited:?}");
}
