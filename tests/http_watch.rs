//! `/watch` and `/sse` over real sockets: what clients are told, in which order, and what they cannot do.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/shown.rs"]
mod shown;
#[path = "support/watch_client.rs"]
mod watch_client;

use bellwether::base::boottime;
use bellwether::election::{Moment, Role, Sign, VoterConfig, Voting};
use bellwether::http::{LIMITS, LOOPBACK_WATCHERS, Server};
use bellwether::net::Limits;
use serde_json::{Value, json};
use shown::{Shown, serve};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use watch_client::Client;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);
const WATCHERS_MAX: usize = 2;
/// All that clients of this host get.
const PLACES: usize = WATCHERS_MAX + LOOPBACK_WATCHERS;

fn served() -> (Server, Arc<Shown>) {
    serve(LIMITS, WATCHERS_MAX)
}

/// Requests that are no stream.
trait Asks {
    fn answer(&mut self) -> (String, Value);
}

impl Asks for Client {
    /// The answer to a request that is no stream: its head and what it says.
    fn answer(&mut self) -> (String, Value) {
        let head = self.head();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    }
}

fn version(number: u64) -> String {
    format!("0000000000000007-{number}")
}

#[test]
fn a_reader_that_keeps_up_sees_every_change_in_order() {
    let (server, shown) = served();
    let mut clients: Vec<Client> =
        (0..8).map(|_| Client::follows(server.local_address(), "/watch", "")).collect();
    for client in &mut clients {
        let (id, state) = client.event();
        assert_eq!((id, &state["epoch"], &state["version"]), (version(1), &json!(1), &json!(version(1))));
    }
    for epoch in 2..=300 {
        shown.elects(epoch);
        if epoch % 30 == 0 {
            for client in &mut clients {
                for seen in epoch - 29.min(epoch - 2)..=epoch {
                    let (id, state) = client.event();
                    assert_eq!((id, &state["epoch"]), (version(seen), &json!(seen)));
                }
            }
        }
    }
    assert_eq!(shown.cut.load(Ordering::Relaxed), 0);
}

#[test]
fn a_stream_goes_on_after_the_event_that_its_reader_has_seen() {
    let (server, shown) = served();
    drop(Client::follows(server.local_address(), "/watch", "").event());
    (2..=5).for_each(|epoch| shown.elects(epoch));
    let mut client =
        Client::follows(server.local_address(), "/watch", &format!("Last-Event-ID: {}\r\n", version(2)));
    for seen in 3..=5 {
        let (id, state) = client.event();
        assert_eq!((id, state["past"] == json!(true)), (version(seen), seen < 5));
    }
    // The parameter counts before the header, and a version of another incarnation was missed.
    let header = format!("Last-Event-ID: {}\r\n", version(2));
    let mut client = Client::follows(server.local_address(), "/watch?after=0000000000000001-2", &header);
    let (id, state) = client.event();
    assert_eq!((id, &state["missed"]), (version(5), &json!(true)));
    shown.elects(6);
    assert_eq!(client.event().1["missed"], Value::Null);
}

#[test]
fn a_long_poll_waits_for_a_change() {
    let (server, shown) = served();
    let (_, state) = Client::asks(server.local_address(), "/watch", "").answer();
    let target = format!("/watch?after={}", state["version"].as_str().unwrap());
    let mut client = Client::asks(server.local_address(), &target, "");
    shown.watched_by(1);
    shown.elects(2);
    let (head, next) = client.answer();
    assert!(head.contains("Connection: close\r\n"), "{head}");
    assert!(head.contains(&format!("ETag: \"{}\"\r\n", version(2))), "{head}");
    assert_eq!((&next["epoch"], &next["past"]), (&json!(2), &Value::Null));
    assert!(client.ended());
    shown.watched_by(0);
    // Without a change it is told the same version.
    let (_, same) =
        Client::asks(server.local_address(), &format!("/watch?after={}&timeout=50ms", version(2)), "")
            .answer();
    assert_eq!((&same["version"], &same["missed"]), (&json!(version(2)), &Value::Null));
}

#[test]
fn the_end_of_a_lease_is_told_without_a_turn_of_the_driver() {
    let (server, shown) = served();
    shown.publish(|status| {
        status.voting = Some(Voting { config: None, not_ready: None, leases_ms: [].into() });
        status.valid_until = Some(boottime().plus(Duration::from_millis(200)));
    });
    let mut client = Client::follows(server.local_address(), "/watch", "");
    let (_, state) = client.event();
    assert_eq!(state["is_leader"], json!(true));
    let left = Duration::from_millis(state["valid_for_ms"].as_u64().unwrap());
    let as_of = Moment(Duration::from_millis(state["as_of"]["boottime_ms"].as_u64().unwrap()));
    let (_, state) = client.event();
    assert_eq!((&state["is_leader"], &state["leader"]), (&json!(false), &Value::Null));
    assert!(boottime() >= as_of.plus(left), "it was told early");
}

/// What was true when it was looked at may be false when it is sent: the thread was held up in between.
#[test]
fn a_state_that_has_grown_old_is_not_told_as_that_of_now() {
    let (server, shown) = served();
    shown.publish(|status| {
        status.voting = Some(Voting { config: None, not_ready: None, leases_ms: [].into() });
        status.valid_until = Some(boottime().plus(Duration::from_millis(300)));
    });
    shown.held_up_ms.store(400, Ordering::Relaxed);
    let mut client = Client::follows(server.local_address(), "/watch", "");
    let (_, state) = client.event();
    assert_eq!((&state["is_leader"], &state["past"]), (&json!(true), &json!(true)), "{state}");
    assert_eq!(client.event().1["is_leader"], json!(false));
}

#[test]
fn a_turn_that_is_held_up_forgets_no_watcher() {
    let (server, shown) = served();
    let mut clients: Vec<Client> =
        (0..8).map(|_| Client::follows(server.local_address(), "/watch", "")).collect();
    for client in &mut clients {
        assert_eq!(client.event().0, version(1));
    }
    for epoch in 2..=5 {
        shown.held_up_ms.store(30, Ordering::Relaxed);
        shown.elects(epoch);
        for client in &mut clients {
            assert_eq!(client.event().0, version(epoch));
        }
    }
}

#[test]
fn a_stream_repeats_the_state_where_its_reader_wants_that() {
    let (server, shown) = served();
    let mut client = Client::follows(server.local_address(), "/watch?every=50ms", "");
    let first = client.event();
    let (id, again) = client.event();
    assert_eq!((&id, &again["version"]), (&first.0, &first.1["version"]));
    let ms = |state: &Value| state["as_of"]["raw_ms"].as_u64().unwrap();
    assert!(ms(&again) > ms(&first.1), "{again}");
    shown.elects(2);
    let changed = std::iter::repeat_with(|| client.event()).take(3).any(|(id, _)| id == version(2));
    assert!(changed);
}

/// Leads for so long still, by leases of `lease_ms` at most.
fn leads(shown: &Shown, lease_ms: u32, left: Duration) {
    let config = Some(VoterConfig::first(BTreeSet::from(["web-0".to_owned()]), lease_ms));
    let voting = Voting { config, not_ready: None, leases_ms: BTreeMap::new() };
    shown.publish(|status| {
        (status.voting, status.valid_until) = (Some(voting), Some(boottime().plus(left)));
    });
}

/// The validities that the driver has heard of so far, in milliseconds.
fn heard(shown: &Shown) -> Vec<u128> {
    let signs = shown.signs.lock().unwrap();
    let valid_for = signs.iter().map(|sign| match sign {
        Sign::Watches { valid_for } => valid_for.as_millis(),
        other => panic!("{other:?}"),
    });
    valid_for.collect()
}

/// What a client is told comes after the driver has heard of it.
#[test]
fn the_driver_hears_how_long_answers_are_to_hold_for_the_applications_here() {
    let (server, shown) = served();
    leads(&shown, 1500, Duration::from_secs(3600));
    let mut kept = Vec::new();
    for (path, expected) in [
        ("/watch?every=60ms", &[][..]),
        // Its answers have no validity.
        ("/sse?every=60ms&valid_for=900ms", &[]),
        ("/watch?every=60ms&valid_for=100ms", &[100]),
        ("/watch?valid_for=60ms", &[100]),
        ("/watch?every=60s&valid_for=500ms", &[100, 500]),
    ] {
        let mut client = Client::follows(server.local_address(), path, "");
        client.event();
        assert_eq!(heard(&shown), expected, "{path}");
        kept.push(client);
    }
    let path = format!("/watch?after={}&timeout=30s&valid_for=700ms", version(shown.epoch()));
    let mut client = Client::asks(server.local_address(), &path, "");
    shown.watched_by(kept.len() + 1);
    shown.elects(2);
    client.answer();
    assert_eq!(heard(&shown), [100, 500, 700]);
}

/// Leases shorten again when no application asks, and a full driver has not heard.
#[test]
fn the_driver_hears_of_validities_again_and_again() {
    let (server, shown) = served();
    leads(&shown, 1500, Duration::from_secs(3600));
    shown.full.store(true, Ordering::Relaxed);
    let mut client = Client::follows(server.local_address(), "/watch?every=50ms&valid_for=100ms", "");
    client.event();
    shown.full.store(false, Ordering::Relaxed);
    let deadline = Instant::now() + PATIENCE;
    while heard(&shown).len() < 2 {
        assert!(Instant::now() < deadline, "{:?}", heard(&shown));
        client.event();
    }
}

/// The driver has leases last longer from its next round on. What is told before that is over too soon.
#[test]
fn what_is_over_too_soon_for_an_application_is_soon_told_again() {
    for (query, first_waits) in [("every=4s", true), ("every=4s&valid_for=2s", false)] {
        let (server, shown) = served();
        leads(&shown, 6_000, Duration::from_millis(1_500));
        let mut client = Client::follows(server.local_address(), &format!("/watch?{query}"), "");
        let (first, again) = (client.event(), client.event());
        // Without that the second event tells of the end of the leadership.
        assert_eq!(again.1["is_leader"], json!(!first_waits), "{query} {first:?} {again:?}");
    }
}

/// The clients of a shell or of Go ask without `after` first.
#[test]
fn the_first_answer_to_an_application_waits_until_leases_are_long_enough() {
    let (server, shown) = served();
    leads(&shown, 6_000, Duration::from_secs(2));
    let mut client = Client::asks(server.local_address(), "/watch?valid_for=4s", "");
    shown.watched_by(1);
    leads(&shown, 6_000, Duration::from_secs(3600));
    let (_, state) = client.answer();
    assert!(state["valid_for_ms"].as_u64().unwrap() > 4_000, "{state}");
    // No lease can be long enough for this one.
    leads(&shown, 6_000, Duration::from_secs(2));
    let mut stream = Client::follows(server.local_address(), "/watch?valid_for=4s", "");
    assert_eq!(stream.event().0, version(1), "it repeats nothing");
    let (_, state) = Client::asks(server.local_address(), "/watch?valid_for=5s", "").answer();
    assert!(state["valid_for_ms"].as_u64().unwrap() < 4_000, "{state}");
}

#[test]
fn only_applications_of_this_pod_say_how_long_answers_are_to_hold() {
    let (server, _shown) = served();
    for header in ["Origin: http://localhost\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let mut client = Client::asks(server.local_address(), "/watch?valid_for=1s", header);
        let (head, body) = client.answer();
        assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
        assert!(body["error"]["message"].as_str().unwrap().contains("not for pages"), "{body}");
    }
}

#[test]
fn an_answer_to_head_has_no_body_where_applications_ask_either() {
    let (server, _shown) = served();
    for path in ["/holds", "/holds/1", "/alive", "/lifeline"] {
        let mut stream = TcpStream::connect(server.local_address()).unwrap();
        stream.write_all(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 4") && answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
}

#[test]
fn clients_of_other_sidecars_are_told_the_name() {
    let (server, shown) = served();
    let (head, state) = Client::asks(server.local_address(), "/", "").answer();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(state["name"], json!("web-0"));
    let mut client = Client::follows(server.local_address(), "/sse", "");
    let (_, state) = client.event();
    assert_eq!((&state["name"], state.as_object().unwrap().len()), (&json!("web-0"), 2));
    assert!(state["last_update"].as_str().unwrap().ends_with('Z'));
    shown.publish(|status| (status.role, status.leader) = (Role::Electing, None));
    assert_eq!(client.event().1["name"], json!(""));
    assert!(Client::asks(server.local_address(), "/", "").answer().0.starts_with("HTTP/1.1 200 "));
}

/// The listener has room for four connections: those that wait take none of it.
#[test]
fn watchers_have_places_of_their_own_and_no_more() {
    let (server, shown) = serve(Limits { connections_max: 4, ..LIMITS }, WATCHERS_MAX);
    let mut clients: Vec<Client> =
        (0..PLACES).map(|_| Client::follows(server.local_address(), "/watch", "")).collect();
    shown.watched_by(PLACES);
    for target in ["/watch?timeout=1s&after=0000000000000007-1", "/sse"] {
        let (head, error) = Client::asks(server.local_address(), target, "").answer();
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After: 1\r\n"), "{head}");
        assert!(error["error"]["message"].as_str().unwrap().contains("--watchers-max"));
    }
    // What is answered at once takes no place.
    assert_eq!(Client::asks(server.local_address(), "/watch", "").answer().1["epoch"], json!(1));
    assert!(Client::asks(server.local_address(), "/healthz", "").answer().0.starts_with("HTTP/1.1 200 "));
    clients.truncate(1);
    shown.watched_by(1);
    Client::follows(server.local_address(), "/watch", "").event();
    // Those that have stayed are told on.
    clients[0].event();
    shown.elects(2);
    assert_eq!(clients[0].event().0, version(2));
}

#[test]
fn a_reader_that_stops_reading_is_cut_off_and_delays_no_other() {
    let (server, shown) = served();
    let slow = Client::follows(server.local_address(), "/watch", "");
    let mut quick = Client::follows(server.local_address(), "/watch", "");
    assert_eq!(quick.event().0, version(1));
    let deadline = Instant::now() + PATIENCE;
    let mut epoch = 1;
    while shown.cut.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < deadline, "after {epoch} changes it is not cut off");
        epoch += 1;
        shown.elects(epoch);
        assert_eq!(quick.event().0, version(epoch));
    }
    shown.watched_by(1);
    drop(slow);
    shown.elects(shown.epoch() + 1);
    assert_eq!(quick.event().0, version(epoch + 1));
    assert_eq!(shown.cut.load(Ordering::Relaxed), 1);
}

/// Few bytes wait for it, and the kernel keeps all of them.
#[test]
fn a_reader_that_takes_nothing_is_cut_off_though_it_owes_little() {
    let (server, shown) = served();
    let stream = TcpStream::connect(server.local_address()).unwrap();
    socket2::SockRef::from(&stream).set_recv_buffer_size(1).unwrap();
    let slow = Client::over(stream, "GET /watch?every=50ms", "Accept: text/event-stream\r\n");
    shown.watched_by(1);
    let began = Instant::now();
    while shown.cut.load(Ordering::Relaxed) == 0 {
        assert!(began.elapsed() < 3 * PATIENCE, "it is not cut off");
        std::thread::yield_now();
    }
    shown.watched_by(0);
    drop(slow);
}

#[test]
fn a_head_is_that_of_what_a_client_would_get() {
    let (server, _) = served();
    for (headers, kind) in [("", "application/json"), ("Accept: text/event-stream\r\n", "text/event-stream")]
    {
        let stream = TcpStream::connect(server.local_address()).unwrap();
        let mut client = Client::over(stream, "HEAD /watch", headers);
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains(kind), "{head}");
    }
}

#[test]
fn a_client_that_goes_on_talking_is_left() {
    let (server, shown) = served();
    let mut client = Client::follows(server.local_address(), "/watch", "");
    shown.watched_by(1);
    // It may be reset while it still writes.
    let _ = client.0.get_mut().write_all(&[b'x'; 64 * 1024]);
    shown.watched_by(0);
    assert!(client.ended());
}

#[test]
fn a_sidecar_that_ends_tells_its_watchers_first() {
    let (server, shown) = served();
    Client::asks(server.local_address(), "/leader", "").answer();
    let target = format!("/watch?after={}&timeout=60s", version(1));
    let mut polling = Client::asks(server.local_address(), &target, "");
    let mut following = Client::follows(server.local_address(), "/watch", "");
    assert_eq!(following.event().0, version(1));
    shown.watched_by(2);
    shown.publish(|status| status.role = Role::Leaving);
    server.stop();
    assert_eq!(polling.answer().1["is_leader"], json!(false));
    assert_eq!(following.event().1["is_leader"], json!(false));
    assert!(polling.ended() && following.ended());
}
