//! Tables: a state of the process, a request, and what is answered.

use super::super::feed::Position;
use super::super::{CHANGES_MAX, Feed, PeerKeys, Snapshot};
use super::*;
use crate::base::Reading;
use crate::election::{
    Candidacy, Complaints, ConfigVersion, Epoch, Incarnation, Incumbent, MemberStatus, Moment, NotReady,
    Peer, Priority, ProcessId, Role, State, Status, VoterConfig, Voting,
};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

mod announced;
mod openapi;

const STANDS_FOR: Duration = Duration::from_millis(1500);

struct Fixed(Snapshot, Feed);

impl Source for Fixed {
    fn snapshot(&self) -> Snapshot {
        self.0.clone()
    }
    fn feed(&self) -> &Feed {
        &self.1
    }
    fn metrics(&self) -> String {
        "# TYPE x gauge\nx 1\n".to_owned()
    }
}

/// A process that proves itself to others, and has met one that does not.
struct Proven(Fixed);

impl Source for Proven {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
    fn feed(&self) -> &Feed {
        self.0.feed()
    }
    fn metrics(&self) -> String {
        self.0.metrics()
    }
    fn peer_keys(&self) -> PeerKeys {
        let unusable = Some("/peer-secret/secret: it is empty".to_owned());
        PeerKeys { accepted: vec!["a1".to_owned(), "b2".to_owned()], unusable }
    }
    fn unproved(&self) -> Option<String> {
        Some("no link with 198.18.0.2: another secret".to_owned())
    }
    fn discovery_warning(&self) -> Option<String> {
        Some("no peer is published".to_owned())
    }
}

fn peer(number: u128, name: &str) -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(number)),
        incarnation: Incarnation(1),
        name: name.to_owned(),
        address: ([198, 18, 0, number as u8], 4041).into(),
        priority: Priority(100 + number as u16),
        revision: String::new(),
    }
}

/// web-1, which follows web-2 or leads, as `role` says.
fn source(role: Role) -> Fixed {
    let (me, other) = (peer(1, "web-1"), peer(2, "web-2"));
    let leader = match role {
        Role::Leading | Role::Resigning => Some(me.clone()),
        Role::Following | Role::Leaving => Some(other.clone()),
        Role::Asking | Role::Electing => None,
    };
    let now = Moment(Duration::from_millis(100_000));
    let status = Status {
        cluster: "web".to_owned(),
        me: me.clone(),
        role,
        epoch: Epoch(7),
        leader: leader.map(|peer| Incumbent { peer, elected_at_ms: 1_762_000_000_123 }),
        members: vec![
            MemberStatus {
                peer: other,
                state: State::Failed,
                last_heard: Some(Moment(Duration::from_millis(99_750))),
                round_trip: Some(Duration::from_micros(1250)),
            },
            MemberStatus { peer: me, state: State::Alive, last_heard: None, round_trip: None },
        ],
        valid_until: None,
        voting: None,
        cut_off: false,
        holds: 0,
        candidacy: Candidacy::default(),
        answer_ttl: STANDS_FOR,
        lease: None,
        worst_delay: None,
        lease_reason: None,
    };
    let reading = Reading { boot: now.0, raw: now.0, mono_before: now.0, mono_after: now.0 };
    let status = Arc::new(status);
    let snapshot = Snapshot {
        status,
        now,
        reading,
        turned: now,
        health: Ok(()),
        took_part: false,
        announced: Arc::default(),
    };
    Fixed(snapshot, Feed::new(Incarnation(0xb)))
}

impl Fixed {
    /// The same in another epoch.
    fn in_epoch(&self, epoch: u64) -> Fixed {
        let mut other = source(self.0.status.role);
        other.0.status = Arc::new(Status { epoch: Epoch(epoch), ..Status::clone(&self.0.status) });
        other
    }
}

fn paused(role: Role) -> Fixed {
    let mut source = source(role);
    source.0.now = source.0.turned.plus(STANDS_FOR + Duration::from_millis(1));
    source
}

/// The same with `--safety majority` and voters web-0, web-1 and web-2, web-0 unknown and web-2 dead. Its
/// lease, or what it has promised, is good for 900.6 ms more.
fn voting(role: Role, not_ready: Option<NotReady>) -> Fixed {
    let mut source = source(role);
    let mut status = Status::clone(&source.0.status);
    status.valid_until = status.leader.is_some().then(|| source.0.now.plus(Duration::from_micros(900_600)));
    let config = VoterConfig {
        version: ConfigVersion { epoch: Epoch(6), version: 2 },
        voters: ["web-0", "web-1", "web-2"].map(str::to_owned).into(),
        lease_ms: 1500,
        bound_ms: 2000,
    };
    let recovering = matches!(not_ready, Some(NotReady::Recovery { .. }));
    let leases_ms = [(status.me.id, 1500)].into();
    status.voting = Some(Voting { config: (!recovering).then_some(config), not_ready, leases_ms });
    source.0.status = Arc::new(status);
    source
}

/// Asked so much later, in microseconds, while the driver turns on.
fn later(mut source: Fixed, us: u64) -> Fixed {
    source.0.now = source.0.now.plus(Duration::from_micros(us));
    source.0.turned = source.0.now;
    source
}

/// Status, headers and body.
type Answer = (u16, Vec<(String, String)>, String);

fn ask(method: Method, target: &str, source: &dyn Source) -> Answer {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let request = Request {
        method,
        path,
        query,
        version_1_0: false,
        keep_alive: true,
        events: false,
        last_event_id: None,
        origin: false,
        loopback_host: true,
    };
    told(route(&request, source))
}

/// Status, headers and body of a response.
fn told(response: Response) -> Answer {
    let headers = response
        .headers()
        .iter()
        .map(|header| (header.field.to_string(), header.value.to_string()))
        .collect();
    let status = response.status_code().0;
    let mut body = String::new();
    response.into_reader().read_to_string(&mut body).unwrap();
    (status, headers, body)
}

fn get(target: &str, source: &dyn Source) -> (u16, Value) {
    let (status, headers, body) = ask(Method::Get, target, source);
    let has = |name: &str, value: &str| headers.contains(&(name.to_owned(), value.to_owned()));
    assert!(has("Cache-Control", "no-store"), "{headers:?}");
    assert!(has("Content-Type", "application/json"), "{headers:?}");
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

#[test]
fn the_leader_is_computed_when_asked() {
    #[rustfmt::skip]
    let table = [
        // state, /leader, /epoch's leader_id, /is-leader, /readyz, /
        (source(Role::Leading), 200, Some(1), 200, 200, "web-1"),
        (source(Role::Following), 200, Some(2), 503, 200, "web-2"),
        (source(Role::Leaving), 200, Some(2), 503, 503, "web-2"),
        (source(Role::Asking), 503, None, 503, 503, ""),
        (source(Role::Electing), 503, None, 503, 503, ""),
        (paused(Role::Leading), 503, None, 503, 503, ""),
        (paused(Role::Following), 503, None, 503, 503, ""),
    ];
    for (source, leader_status, leader_id, is_leader_status, ready_status, name) in table {
        let state = format!("{:?}", source.0);
        let id = leader_id.map(|number| Uuid::from_u128(number).to_string());
        let leads = is_leader_status == 200;

        let (status, body) = get("/leader", &source);
        assert_eq!(status, leader_status, "{state}");
        assert_eq!(body["leader"]["id"], json!(id), "{state}");
        assert_eq!(body["leader"].is_null(), id.is_none(), "{state}");
        assert_eq!(body["is_leader"], json!(leads), "{state}");

        assert_eq!(get("/epoch", &source), (200, json!({"epoch": 7, "leader_id": id})), "{state}");
        assert_eq!(get("/is-leader", &source), (is_leader_status, json!({"is_leader": leads})), "{state}");
        let follows = id.is_some() && !leads;
        let is_follower = (if follows { 200 } else { 503 }, json!({"is_follower": follows}));
        assert_eq!(get("/is-follower", &source), is_follower, "{state}");
        assert_eq!(get("/readyz", &source).0, ready_status, "{state}");
        let (status, body) = get("/", &source);
        assert_eq!((status, &body["name"]), (200, &json!(name)), "{state}");
        assert!(body["last_update"].as_str().unwrap().ends_with('Z'), "{state}");
        for member in get("/members", &source).1["members"].as_array().unwrap() {
            assert_eq!(member["leader"], json!(id.as_deref() == member["id"].as_str()), "{state}");
            assert_eq!(member["me"], json!(member["name"] == "web-1"), "{state}");
        }
    }
}

#[test]
fn the_leader_record_is_exactly_this() {
    assert_eq!(
        get("/leader", &source(Role::Following)).1,
        json!({
            "leader": {
                "id": "00000000-0000-0000-0000-000000000002",
                "name": "web-2",
                "address": "198.18.0.2:4041",
                "priority": 102,
            },
            "is_leader": false,
            "epoch": 7,
            "valid_for_ms": null,
            "elected_at": "2025-11-01T12:26:40.123Z",
            "safety": "classic",
            "version": "000000000000000b-1",
            "as_of": {"monotonic_ms": 100_000, "boottime_ms": 100_000, "raw_ms": 100_000},
        })
    );
    assert_eq!(
        get("/leader", &source(Role::Electing)).1,
        json!({
            "leader": null,
            "is_leader": false,
            "epoch": 7,
            "valid_for_ms": null,
            "elected_at": null,
            "safety": "classic",
            "version": "000000000000000b-1",
            "as_of": {"monotonic_ms": 100_000, "boottime_ms": 100_000, "raw_ms": 100_000},
        })
    );
}

/// What a process shows one after the other: it follows, sees an election, leads, and loses its lease.
fn changes() -> (Fixed, Vec<String>) {
    let mut shown = voting(Role::Following, None);
    let mut versions = Vec::new();
    for next in [voting(Role::Electing, None), voting(Role::Leading, None), shown_later()] {
        versions.push(version(&shown));
        shown.0 = next.0;
    }
    versions.push(version(&shown));
    (shown, versions)
}

/// It leads, and its lease is over.
fn shown_later() -> Fixed {
    later(voting(Role::Leading, None), 900_600)
}

fn version(source: &Fixed) -> String {
    get("/leader", source).1["version"].as_str().unwrap().to_owned()
}

#[test]
fn a_version_is_that_of_the_state() {
    let (source, versions) = changes();
    assert_eq!(versions, [1, 2, 3, 4].map(|number| format!("000000000000000b-{number}")));
    // The times are no part of the state.
    let mut again = later(source, 1000);
    again.0.status = Arc::new(Status { valid_until: None, ..Status::clone(&again.0.status) });
    assert_eq!(version(&again), versions[3]);
    let (_, headers, _) = ask(Method::Get, "/leader", &again);
    let etag = headers.iter().find(|(name, _)| name == "ETag").map(|(_, value)| value.as_str());
    assert_eq!(etag, Some("\"000000000000000b-4\""));
}

#[test]
fn a_watcher_is_told_what_followed_on_the_version_that_it_knows() {
    let (source, versions) = changes();
    let told = |target: &str| {
        let (status, body) = get(target, &source);
        assert_eq!(status, 200, "{target}: {body}");
        body
    };
    let next = |known: usize| told(&format!("/watch?after={}", versions[known]));
    // The last is no leader's: 200 all the same.
    let last = told("/watch");
    assert_eq!((&last["version"], &last["leader"]), (&json!(versions[3]), &Value::Null));
    assert_eq!((&last["past"], &last["missed"]), (&Value::Null, &Value::Null));
    let second = next(0);
    assert_eq!((&second["version"], &second["leader"]), (&json!(versions[1]), &Value::Null));
    let third = next(1);
    assert_eq!((&third["version"], &third["is_leader"]), (&json!(versions[2]), &json!(true)));
    assert_eq!((&third["leader"]["name"], &third["epoch"]), (&json!("web-1"), &json!(7)));
    for past in [second, third] {
        assert_eq!((&past["past"], &past["valid_for_ms"]), (&json!(true), &json!(0)));
    }
    assert_eq!(next(2), last);
    // It knows the latest, and does not want to wait.
    assert_eq!(told(&format!("/watch?after={}&timeout=0s", versions[3])), last);
    for unknown in ["000000000000000b-5", "000000000000000c-1", "b-1", "x", "A.z-9", &"9".repeat(64)] {
        let body = told(&format!("/watch?after={unknown}"));
        assert_eq!((&body["version"], &body["missed"]), (&json!(versions[3]), &json!(true)), "{unknown}");
    }
}

/// A new state must not be told as past because it came between two looks.
#[test]
fn what_a_client_knows_and_the_state_are_looked_at_together() {
    let mut source = voting(Role::Following, None);
    let known = version(&source);
    source.0 = voting(Role::Leading, None).0;
    let (latest, position) = source.feed().look(Some(&known), || source.snapshot());
    let Some(Position::Before(next)) = position else { panic!("{position:?}") };
    assert_eq!(next.number, latest.change.number);
    let (latest, position) = source.feed().look(Some(&next.version), || source.snapshot());
    assert!(matches!(position, Some(Position::Latest)) && latest.change.number == next.number);
}

#[test]
fn changes_that_are_not_kept_are_missed() {
    let mut source = source(Role::Leading);
    let first = version(&source);
    for number in 2..=CHANGES_MAX as u64 + 1 {
        source.0 = source.in_epoch(number).0;
        version(&source);
    }
    assert_eq!(get(&format!("/watch?after={first}"), &source).1["missed"], json!(true));
    let second = get("/watch?after=000000000000000b-2", &source).1;
    assert_eq!((&second["version"], &second["missed"]), (&json!("000000000000000b-3"), &Value::Null));
}

#[test]
fn a_malformed_watch_says_what_is_expected() {
    let source = source(Role::Leading);
    let long = format!("after={}", "9".repeat(65));
    #[rustfmt::skip]
    let table = [
        ("after=", "after is no version"), ("after=a%0Ab", "after is no version"), (&*long, "65 characters"),
        ("after=1&after=2", "after is there twice"), ("after=%F", "badly encoded"),
        ("timeout=61s", "0s to 60s"), ("timeout=5", "write 5s"), ("timeout=", "0s to 60s"),
        ("timeout=1s&timeout=1s", "twice"),
        ("every=1s", "every is for events only"), ("every=49ms", "50ms to 60s"), ("every=61s", "50ms to 60s"),
        ("valid_for=49ms", "50ms to 60s"), ("valid_for=1", "write 1s"),
        ("valid_for=1s&valid_for=1s", "twice"),
    ];
    for (query, words) in table {
        let (status, body) = get(&format!("/watch?{query}"), &source);
        let message = body["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(words), "{query}: {status} {message}");
    }
}

#[test]
fn a_leader_with_an_impossible_clock_has_no_date() {
    let mut source = source(Role::Following);
    let mut status = Status::clone(&source.0.status);
    status.leader.as_mut().unwrap().elected_at_ms = u64::MAX;
    source.0.status = Arc::new(status);
    let (status, body) = get("/leader", &source);
    assert_eq!((status, &body["elected_at"]), (200, &Value::Null));
}

#[test]
fn the_members_are_exactly_these() {
    assert_eq!(
        get("/members", &source(Role::Leading)),
        (
            200,
            json!({"members": [
                {
                    "id": "00000000-0000-0000-0000-000000000002",
                    "name": "web-2",
                    "address": "198.18.0.2:4041",
                    "priority": 102,
                    "state": "failed",
                    "leader": false,
                    "me": false,
                    "last_heard_ms": 250,
                    "round_trip_ms": 1.25,
                },
                {
                    "id": "00000000-0000-0000-0000-000000000001",
                    "name": "web-1",
                    "address": "198.18.0.1:4041",
                    "priority": 101,
                    "state": "alive",
                    "leader": true,
                    "me": true,
                    "last_heard_ms": null,
                    "round_trip_ms": null,
                },
            ]})
        )
    );
}

#[test]
fn the_members_say_what_keeps_this_process_from_leading() {
    let told = |source: &Fixed| {
        let body = get("/members", source).1;
        (body.get("cordoned").cloned(), body.get("resigned_for_ms").cloned())
    };
    assert_eq!(told(&source(Role::Following)), (None, None));
    assert_eq!(told(&cordoned_and_resigned()), (Some(json!(true)), Some(json!(2500))));
    let body = get("/members", &cordoned_and_resigned()).1;
    assert_eq!((&body["unhealthy"], &body["complaints"]), (&json!(true), &json!(["probe", "lifeline"])));
}

/// A follower that an operator has cordoned, and that has resigned for 2.5 s more.
fn cordoned_and_resigned() -> Fixed {
    let mut source = source(Role::Following);
    let aside_until = Some(source.0.now.plus(Duration::from_millis(2500)));
    let complaints = Complaints { probe: true, lifeline: true, ..Complaints::default() };
    Arc::make_mut(&mut source.0.status).candidacy = Candidacy { cordoned: true, aside_until, complaints };
    source
}

#[test]
fn a_standby_answers_as_its_prober_asks() {
    #[rustfmt::skip]
    let table = [
        ("", 503), ("?", 503), ("?x=1", 503), ("?x", 503), ("?%zz=1", 503),
        ("?standby=200", 200), ("?standby=599", 599), ("?x&standby=429&y=1", 429),
        ("?%73tandby=%342%39", 429),
        ("?standby=199", 400), ("?standby=600", 400), ("?standby=", 400), ("?standby", 400),
        ("?standby=0200", 400),
        ("?standby=+20", 400), ("?standby=-20", 400), ("?standby=%2", 400), ("?standby=x", 400),
        ("?standby=429&standby=429", 400), ("?standby=99999999999999999999", 400),
    ];
    for (query, status) in table {
        let (got, body) = get(&format!("/is-leader{query}"), &source(Role::Following));
        assert_eq!(got, status, "{query}");
        assert_eq!(body.get("error").is_some(), status == 400, "{query}: {body}");
        let leading = get(&format!("/is-leader{query}"), &source(Role::Leading)).0;
        assert_eq!(get(&format!("/is-follower{query}"), &source(Role::Leading)).0, status, "{query}");
        assert_eq!(leading, if status == 400 { 400 } else { 200 }, "{query}");
    }
    for status in [204, 205, 304] {
        let (got, _, body) =
            ask(Method::Get, &format!("/is-leader?standby={status}"), &source(Role::Following));
        assert_eq!((got, body.as_str()), (status, ""));
    }
}

#[test]
fn a_process_that_is_not_ready_says_why() {
    #[rustfmt::skip]
    let table = [
        (source(Role::Asking), "asking its peers"),
        (source(Role::Electing), "an election is under way"),
        (source(Role::Leaving), "resigned"),
        (paused(Role::Leading), "has not turned for 1501 ms (at most 1500 ms)"),
    ];
    for (source, why) in table {
        let (status, body) = get("/readyz", &source);
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!((status, &body["error"]["status"]), (503, &json!(503)));
        assert!(message.contains(why), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

/// A member with another secret meets no other: the answer names why, and only where it is not ready.
#[test]
fn a_proof_that_fails_is_named_where_a_process_is_not_ready() {
    let (status, body) = get("/readyz", &Proven(source(Role::Asking)));
    let message = body["error"]["message"].as_str().unwrap();
    assert_eq!(status, 503);
    assert!(message.ends_with("waiting for them; no link with 198.18.0.2: another secret"), "{message}");
    assert_eq!(get("/readyz", &Proven(source(Role::Following))).0, 200);
}

#[test]
fn files_of_no_use_are_named_beside_the_keys_that_count() {
    let keys = get("/members", &Proven(source(Role::Following))).1["peer_keys"].take();
    let unusable = "/peer-secret/secret: it is empty";
    assert_eq!(keys, json!({"sent": "a1", "accepted": ["a1", "b2"], "unusable": unusable}));
}

#[test]
fn what_discovery_warns_of_is_beside_the_members() {
    let warning = |source: &dyn Source| get("/members", source).1["discovery_warning"].take();
    assert_eq!(warning(&Proven(source(Role::Asking))), json!("no peer is published"));
    assert_eq!(warning(&source(Role::Asking)), Value::Null);
}

/// It stays ready when the leader is lost: many applications want a leader for a side job only.
#[test]
fn a_process_that_has_taken_part_stays_ready() {
    let lost = |role| {
        let mut source = later(voting(role, None), 900_600);
        source.0.took_part = true;
        source
    };
    let mut stuck = lost(Role::Following);
    stuck.0.health = Err("the driver has not turned for 5001 ms".to_owned());
    let mut cut_off = source(Role::Leading);
    let mut status = Status::clone(&cut_off.0.status);
    status.cut_off = true;
    cut_off.0.status = Arc::new(status);
    let mut cut_off_later = Fixed(cut_off.0.clone(), Feed::new(Incarnation(0xb)));
    cut_off_later.0.took_part = true;
    #[rustfmt::skip]
    let table = [
        (lost(Role::Leading), 200, 503), (lost(Role::Following), 200, 503), (lost(Role::Asking), 200, 503),
        (lost(Role::Leaving), 503, 503),
        (stuck, 503, 503),
        (source(Role::Following), 200, 200),
        (cut_off, 503, 503), (cut_off_later, 200, 200),
    ];
    for (number, (source, plain, leader_known)) in table.into_iter().enumerate() {
        let got = (get("/readyz", &source).0, get("/readyz?leader=known", &source).0);
        assert_eq!(got, (plain, leader_known), "row {number}");
        for bad in ["leader=", "leader", "leader=unknown", "leader=%2", "leader=known&leader=known"] {
            assert_eq!(get(&format!("/readyz?{bad}"), &source).0, 400, "{bad}");
        }
    }
}

#[test]
fn a_leader_is_named_for_as_long_as_the_lease_lasts() {
    for role in [Role::Leading, Role::Following] {
        for (us, valid_for_ms) in
            [(0, Some(900)), (600, Some(900)), (601, Some(899)), (900_599, Some(0)), (900_600, None)]
        {
            let source = later(voting(role, None), us);
            let (status, body) = get("/leader", &source);
            assert_eq!(body["valid_for_ms"], json!(valid_for_ms), "{role:?} {us}");
            assert_eq!(body["safety"], "majority");
            let leads = valid_for_ms.is_some() && role == Role::Leading;
            assert_eq!(body["is_leader"], leads, "{role:?} {us}");
            assert_eq!(get("/is-leader", &source).0, if leads { 200 } else { 503 }, "{role:?} {us}");
            assert_eq!(body["leader"].is_null(), valid_for_ms.is_none(), "{role:?} {us}");
            assert_eq!(status, if valid_for_ms.is_some() { 200 } else { 503 }, "{role:?} {us}");
            assert_eq!(get("/readyz", &source).0, status, "{role:?} {us}");
        }
    }
    let mut source = voting(Role::Leading, None);
    source.0.now = source.0.turned.plus(STANDS_FOR + Duration::from_millis(1));
    let mut status = Status::clone(&source.0.status);
    status.valid_until = Some(source.0.now.plus(STANDS_FOR));
    source.0.status = Arc::new(status);
    assert_eq!(
        get("/leader", &source).0,
        503,
        "a driver that stands stops a leader though its lease be long"
    );
}

#[test]
fn a_voter_without_a_vote_says_what_it_waits_for() {
    let recovery = NotReady::Recovery {
        missing: vec!["web-0".to_owned(), "web-2".to_owned()],
        differ: vec!["web-1".to_owned()],
        records: None,
    };
    let shrunk = NotReady::Recovery {
        missing: vec!["web-3".to_owned()],
        differ: vec!["web-1".to_owned()],
        records: Some((2, 3)),
    };
    let lost = NotReady::Recovery { missing: Vec::new(), differ: Vec::new(), records: None };
    let half = NotReady::Recovery { missing: Vec::new(), differ: Vec::new(), records: Some((1, 2)) };
    let none = NotReady::Recovery { missing: Vec::new(), differ: Vec::new(), records: Some((0, 2)) };
    let enough = NotReady::Recovery { missing: Vec::new(), differ: Vec::new(), records: Some((2, 2)) };
    let mut cordoned = voting(Role::Electing, None);
    let members = &mut Arc::make_mut(&mut cordoned.0.status).members;
    members.iter_mut().for_each(|member| member.peer.priority = Priority(0));
    let grace = NotReady::Grace { until: Moment(Duration::from_micros(100_750_900)) };
    let founding = NotReady::Founding { missing: vec!["web-2".to_owned()] };
    for (source, why) in [
        (voting(Role::Asking, Some(recovery.clone())), "no record of its votes"),
        (voting(Role::Asking, Some(recovery.clone())), "it waits for web-0, web-2"),
        (
            voting(Role::Asking, Some(recovery)),
            "web-1 was started with another --voters or --lease; all must be equal",
        ),
        (voting(Role::Asking, Some(shrunk)), "3 other voters have to answer from their records, and 2 did"),
        (voting(Role::Asking, Some(enough)), "enough have answered from their records, so it votes"),
        (
            voting(Role::Asking, Some(half)),
            "half of the voters or more have no record; 2 other voters have to",
        ),
        (voting(Role::Asking, Some(none)), "none of them has a record, or --found forbids"),
        (voting(Role::Asking, Some(lost)), "all of them have answered. If this lasts for more than --lease"),
        (
            cordoned,
            "each live member is cordoned or has priority 0, or an application that is not healthy, so none",
        ),
        (voting(Role::Following, Some(grace)), "it votes for no process for 750 ms"),
        (
            voting(Role::Electing, Some(founding)),
            "takes part in a first start, and votes once all other voters do; it waits for web-2",
        ),
        (
            voting(Role::Electing, None),
            "an election is under way and no process leads yet; 2 of 3 voters are needed; missing: web-0, \
             web-2",
        ),
        (voting(Role::Asking, None), "asking its peers which one leads, or waiting for them; 2 of 3 voters"),
        (
            later(voting(Role::Leading, None), 900_600),
            "no majority of the voters has renewed its lease in time; 2 of 3",
        ),
        (later(voting(Role::Following, None), 900_600), "it has not heard from the leader for a lease"),
        (voting(Role::Leaving, None), "resigned"),
    ] {
        let (status, body) = get("/readyz", &source);
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!(status, 503);
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn the_members_of_a_majority_system_vote_or_not() {
    let body = get("/members", &voting(Role::Leading, None)).1;
    let names = ["web-0", "web-1", "web-2"];
    let voters = json!({"epoch": 6, "version": 2, "names": names, "lease_ms": 1500, "bound_ms": 2000});
    assert_eq!(body["voters"], voters);
    let told = |body: &Value| -> Vec<Value> {
        let members = body["members"].as_array().unwrap();
        members.iter().map(|m| json!([m["name"], m["voter"], m["lease_ms"]])).collect()
    };
    assert_eq!(told(&body), [json!(["web-2", true, null]), json!(["web-1", true, 1500])]);

    let recovery = Some(NotReady::Recovery { missing: Vec::new(), differ: Vec::new(), records: None });
    let body = get("/members", &voting(Role::Asking, recovery)).1;
    assert_eq!(body["voters"], Value::Null);
    assert!(body.as_object().unwrap().contains_key("voters"));
    assert_eq!(told(&body), [json!(["web-2", null, null]), json!(["web-1", null, 1500])]);

    let classic = get("/members", &source(Role::Leading)).1;
    assert!(!classic.to_string().contains("vote"), "{classic}");
}

#[test]
fn health_is_its_own_question() {
    let mut source = paused(Role::Leading);
    assert_eq!(get("/healthz", &source), (200, json!({"status": "ok"})));
    source.0.health = Err("the driver is gone".to_owned());
    assert_eq!(
        get("/healthz", &source),
        (500, json!({"error": {"status": 500, "message": "the driver is gone"}}))
    );
    assert_eq!(get("/leader", &self::source(Role::Leading)).0, 200);
}

#[test]
fn metrics_are_prometheus_text() {
    let (status, headers, body) = ask(Method::Get, "/metrics", &source(Role::Leading));
    assert_eq!((status, body.as_str()), (200, "# TYPE x gauge\nx 1\n"));
    assert!(headers.contains(&("Content-Type".to_owned(), PROMETHEUS_TEXT.to_owned())), "{headers:?}");
}

#[test]
fn methods_and_paths() {
    let source = source(Role::Leading);
    for path in ROUTES.map(|(path, _)| path) {
        let get = ask(Method::Get, path, &source);
        assert_eq!(get.0, if path == "/is-follower" { 503 } else { 200 }, "{path}");
        // The body of a HEAD is left out when it is encoded, so that its headers are those of a GET.
        assert_eq!(ask(Method::Head, path, &source), get, "{path}");
        let allow = ("Allow".to_owned(), ALLOW.to_owned());
        let (status, headers, body) = ask(Method::Options, path, &source);
        assert_eq!((status, body.as_str()), (204, ""), "{path}");
        assert!(headers.contains(&allow), "{path}");
        for method in
            [Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Trace, Method::Connect]
        {
            let (status, headers, body) = ask(method, path, &source);
            assert_eq!(status, 405, "{path}");
            assert!(headers.contains(&allow), "{path}");
            assert!(body.contains(r#""status":405"#), "{path}: {body}");
        }
    }
    assert_eq!(ask(Method::Options, "*", &source).0, 204);
    for path in ["/nothing", "/leader/", "//leader", "/Leader", "*", "a:80", "", "/%6ceader"] {
        let (status, body) = get(path, &source);
        assert_eq!(status, 404, "{path}");
        let message = body["error"]["message"].as_str().unwrap();
        for (path, _) in ROUTES {
            assert!(message.contains(path), "{message}");
        }
    }
}

#[test]
fn names_cannot_break_out_of_a_body_nor_reach_a_header() {
    let mut source = source(Role::Leading);
    let evil = "a\"\r\nSet-Cookie: b=c\r\n\r\n<\u{7f}\u{0}";
    let mut status = Status::clone(&source.0.status);
    status.leader.as_mut().unwrap().peer.name = evil.to_owned();
    status.members[0].peer.name = evil.to_owned();
    source.0.status = Arc::new(status);
    for path in ["/", "/leader", "/members", "/epoch", "/is-leader", "/is-follower", "/readyz", "/healthz"] {
        let (_, headers, body) = ask(Method::Get, path, &source);
        let body = body.strip_suffix('\n').unwrap_or(&body);
        assert!(!body.contains(['\r', '\n', '\0']), "{path}");
        for (name, value) in headers {
            assert!(!name.contains(['\r', '\n']) && !value.contains(['\r', '\n']), "{path}");
        }
    }
    assert_eq!(get("/", &source).1["name"], evil);
}
