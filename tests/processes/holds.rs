//! `/holds` of real processes: what a leader promises its application, and that a resignation waits for it.

use crate::harness::{Real, started, voters_started};
use crate::rounds::PATIENCE;
use crate::wait::within;
use bellwether::demo::process_cluster::Agreement;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

const NEVER: [&str; 2] = ["--preempt", "never"];

/// Status and body of an answer to a request with these headers; null where it has no body.
fn ask_with(real: &Real, place: usize, request: &str, headers: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, real.ports(place).http)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{request} HTTP/1.1\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn ask(real: &Real, place: usize, request: &str) -> (u16, Value) {
    ask_with(real, place, request, "Host: localhost:4040\r\nConnection: close\r\n")
}

/// Takes a hold for this number of milliseconds. Returns its id, and for how long it is promised.
fn take(real: &Real, place: usize, ms: u64) -> (String, u64) {
    let took = within(PATIENCE, || {
        let (status, body) = ask(real, place, &format!("POST /holds?for={ms}ms"));
        // A leader promises nothing before its first round is acknowledged.
        (status == 201).then_some(body)
    });
    let hold = &took.expect("no hold is granted")["hold"];
    (hold["id"].as_str().unwrap().to_owned(), hold["ms"].as_u64().unwrap())
}

/// The process that says that it leads, of all but one.
fn leads_but(real: &Real, but: usize) -> Option<usize> {
    (0..3)
        .find(|place| *place != but && real.get(*place, "/is-leader").is_ok_and(|(status, _)| status == 200))
}

fn resigns(real: &Real, now: &Agreement) {
    real.signal(now.leader, Signal::TERM);
    let said = within(PATIENCE, || {
        let (status, body) = ask(real, now.leader, "GET /leader");
        let resigning = body["resigning"] == json!(true) && body["is_leader"] == json!(false);
        (status == 200 && resigning && body["valid_for_ms"] == json!(0)).then_some(())
    });
    assert!(said.is_some(), "{:?}", ask(real, now.leader, "GET /leader"));
}

#[test]
fn a_leader_that_is_stopped_waits_for_its_holder_and_no_longer() {
    let (mut real, now) = voters_started(3, &NEVER);
    let (id, _) = take(&real, now.leader, 1_000);
    resigns(&real, &now);
    let (_, late) = ask(&real, now.leader, "POST /holds?for=1s");
    assert_eq!(late["hold"]["id"], Value::Null, "no new hold: {late}");
    let url = format!("127.0.0.1:{}", real.ports(now.leader).http);
    let mut status = std::process::Command::new(env!("CARGO_BIN_EXE_bellwether"));
    let status = status.args(["status", "--url", &url]);
    let status = String::from_utf8(status.output().unwrap().stdout).unwrap();
    assert!(status.contains("\nresigning: "), "{status}");
    let begun = Instant::now();
    let mut extended = 0;
    // The holder takes longer to stop than one hold lasts.
    while begun.elapsed() < Duration::from_millis(2_500) {
        let (status, body) = ask(&real, now.leader, &format!("PUT /holds/{id}?for=1s"));
        assert_eq!((status, body["hold"]["ms"].as_u64() > Some(0)), (200, true), "{body}");
        assert_eq!(leads_but(&real, now.leader), None);
        extended += 1;
    }
    assert!(extended > 2, "{extended}");
    let stopped = Instant::now();
    assert_eq!(ask(&real, now.leader, &format!("DELETE /holds/{id}")), (204, Value::Null));
    let next = within(PATIENCE, || leads_but(&real, now.leader));
    assert!(next.is_some(), "no other process leads");
    // The lease was to run for longer.
    assert!(stopped.elapsed() < Duration::from_millis(1_000), "{:?}", stopped.elapsed());
    real.end(now.leader);
}

#[test]
fn no_other_process_leads_before_a_hold_is_over() {
    for stopped in [true, false] {
        let (mut real, now) = voters_started(3, &NEVER);
        let asked = Instant::now();
        let (_, ms) = take(&real, now.leader, 1_000);
        if stopped {
            real.signal(now.leader, Signal::TERM);
        } else {
            real.kill(now.leader);
        }
        let next = within(PATIENCE, || leads_but(&real, now.leader));
        let after = asked.elapsed();
        assert!(next.is_some(), "no other process leads");
        assert!(after > Duration::from_millis(ms), "{after:?}, and {ms} ms were promised");
        real.end(now.leader);
    }
}

#[test]
fn what_is_asked_wrongly_is_refused_and_promises_nothing() {
    let (real, now) = voters_started(3, &NEVER);
    let (id, _) = take(&real, now.leader, 1);
    let wrong = [
        ("GET /holds", "", 405, "POST /holds"),
        ("POST /holds/1", "", 405, "PUT"),
        ("POST /holds", "", 400, "for=500ms"),
        ("POST /holds?for=0s", "", 400, "for=500ms"),
        ("POST /holds?for=1s&for=1s", "", 400, "for=500ms"),
        ("POST /holds?for=1s", "Origin: http://localhost\r\n", 403, "Origin"),
        ("PUT /holds/0?for=1s", "", 404, "run out"),
        ("PUT /holds/0000000000000001-1?for=1s", "", 404, "run out"),
        ("PUT /holds/1", "", 400, "for=500ms"),
    ];
    for (request, header, expected, message) in wrong {
        let headers = format!("Host: 127.0.0.1\r\nConnection: close\r\n{header}");
        let (status, body) = ask_with(&real, now.leader, request, &headers);
        assert_eq!(status, expected, "{request}: {body}");
        assert!(body["error"]["message"].as_str().unwrap().contains(message), "{request}: {body}");
    }
    let foreign = "Host: bellwether.example\r\nConnection: close\r\n";
    assert_eq!(ask_with(&real, now.leader, "POST /holds?for=1s", foreign).0, 403);
    assert_eq!(ask(&real, now.leader, &format!("DELETE /holds/{id}x")).0, 204);
    let follower = (now.leader + 1) % 3;
    let (status, body) = ask(&real, follower, "POST /holds?for=1s");
    assert_eq!((status, &body["hold"]["id"], &body["hold"]["ms"]), (200, &Value::Null, &json!(0)));
    assert_eq!(body["hold"]["max_ms"], json!(1000));
}

#[test]
fn so_many_holds_and_probes_are_answered_still() {
    let (real, now) = voters_started(3, &NEVER);
    for _ in 0..64 {
        take(&real, now.leader, 1_000);
    }
    assert!(real.metric(now.leader, "bellwether_holds") > Some(0.0));
    let (status, body) = ask(&real, now.leader, "POST /holds?for=1s");
    // A slow machine may have seen the first end.
    assert!(matches!(status, 503 | 201), "{status} {body}");
    assert_eq!(real.answer(now.leader, "/healthz").0, 200);
    let free = within(PATIENCE, || (ask(&real, now.leader, "POST /holds?for=1ms").0 == 201).then_some(()));
    assert!(free.is_some(), "holds do not end");
}

#[test]
fn classic_and_release_promise_nothing_and_holds_can_be_turned_off() {
    let (real, now) = started(2, &NEVER);
    let (status, body) = ask(&real, now.leader, "POST /holds?for=1s");
    assert_eq!((status, &body["hold"]["ms"], &body["hold"]["max_ms"]), (200, &json!(0), &json!(0)));
    let (real, now) = voters_started(3, &["--crash-evidence", "release", "--app-clients", "none"]);
    let (status, body) = ask(&real, now.leader, "POST /holds?for=1s");
    assert_eq!(status, 403);
    assert!(body["error"]["message"].as_str().unwrap().contains("--app-clients"), "{body}");
}
