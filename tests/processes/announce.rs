//! What processes announce: it is known everywhere, and clients are sent to the leader of the moment.

use crate::harness::{Real, processes, voters};
use crate::rounds::{self, Cause, PATIENCE};
use crate::wait::within;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// Where the application of a place is, as it is announced.
fn url(place: usize) -> String {
    format!("http://198.18.0.{}:8080/app", place + 1)
}

fn start(real: &mut Real, place: usize) {
    real.start(place, &["--announce", &format!("url={}", url(place)), "--announce", "zone=a=b"]).unwrap();
}

/// Sends a request and reads the answer to the connection's end.
fn ask(real: &Real, place: usize, request: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, real.ports(place).http)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Whether each of these places sends its clients to the leader's application, and shows what it announces.
fn follow(real: &Real, places: &[usize], leader: usize) -> bool {
    let body = "x".repeat(10_000);
    let chunked =
        "POST /redirect/a?b=c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let long = format!("PUT /redirect/a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n{body}");
    let location = format!("\r\nLocation: {}/a?b=c\r\n", url(leader));
    places.iter().all(|place| {
        let sent = [chunked, &long].iter().all(|request| {
            let answer = ask(real, *place, request);
            answer.starts_with("HTTP/1.1 307 ") && answer.contains(&location)
        });
        let Ok((200, text)) = real.get(*place, "/leader") else { return false };
        let record: Value = serde_json::from_str(&text).unwrap();
        let announce = &record["leader"]["announce"];
        sent && announce["url"] == url(leader).as_str() && announce["zone"] == "a=b"
    })
}

#[test]
fn clients_are_sent_to_the_leader_of_the_moment() {
    for majority in [false, true] {
        let mut real = if majority { voters(3, &[]) } else { processes(3, &["--preempt", "never"]) };
        (0..3).for_each(|place| start(&mut real, place));
        let now = real.agree(0, PATIENCE).unwrap();
        assert!(within(PATIENCE, || follow(&real, &[0, 1, 2], now.leader).then_some(())).is_some());
        let (next, _) = rounds::take_down(&mut real, &now, Cause::Crash).unwrap();
        let others: Vec<usize> = (0..3).filter(|place| *place != now.leader).collect();
        let sent = within(PATIENCE, || follow(&real, &others, next.leader).then_some(()));
        assert!(sent.is_some(), "{:?}", real.get(others[0], "/leader"));
        let members: Value = serde_json::from_str(&real.answer(next.leader, "/members").1).unwrap();
        let mut alive = members["members"].as_array().unwrap().iter().filter(|m| m["state"] == "alive");
        let urls = alive.all(|m| m["announce"]["url"].as_str().is_some_and(|url| url.ends_with("/app")));
        assert!(urls, "the leader knows what each member announces");
    }
}

#[test]
fn a_leader_without_a_url_is_told_of() {
    let mut real = processes(1, &["--stable-margin", "200ms"]);
    real.start(0, &["--announce", "zone=a"]).unwrap();
    real.agree(0, PATIENCE).unwrap();
    let (status, body) = real.get(0, "/redirect/a").unwrap();
    assert_eq!(status, 404, "{body}");
    assert!(body.contains("--announce url=http"), "{body}");
}
