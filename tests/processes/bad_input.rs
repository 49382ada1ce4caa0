//! Mistakes of operators, and peers that are not what they should be.

use crate::harness::{processes, started};
use crate::rounds::PATIENCE;
use bellwether::election::{AnnouncedValues, Incarnation, Peer, Priority, ProcessId};
use bellwether::wire::{self, Frame, Hello, Refusal};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

#[test]
fn a_port_in_use_is_refused_with_the_flag_to_change() {
    let mut real = processes(1, &[]);
    for (port, flag) in [(real.ports(0).peer, "--listen"), (real.ports(0).http, "--http")] {
        let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
        real.refuses(0, &[], 2, &["ERROR", flag, &port.to_string(), "in use"]);
    }
}

/// A name that does not resolve is no proof that the process is alone. But waiting without end would not
/// help: it says so, and leads alone.
#[test]
fn a_service_that_does_not_resolve_is_logged_and_the_process_leads_alone() {
    let (real, _) = started(1, &["--service", "nowhere.invalid"]);
    real.logged(0, &["WARN", "discovery", "nowhere.invalid"]);
    let members: serde_json::Value = serde_json::from_str(&real.answer(0, "/members").1).unwrap();
    let warning = members["discovery_warning"].as_str().unwrap_or_default();
    assert!(warning.contains("nowhere.invalid"), "{members}");
}

#[test]
fn two_processes_of_one_name_are_told_of_and_both_run() {
    let mut real = processes(3, &[]);
    for place in 0..3 {
        // The leader is the process that meets all others.
        let flags = if place == 0 { ["--priority", "200"] } else { ["--name", "twin"] };
        real.start(place, &flags).unwrap();
    }
    let now = real.agree(0, PATIENCE).unwrap();
    assert_eq!(now.leader, 0);
    real.logged(now.leader, &["WARN", "two live processes have one name", "twin", "--name"]);
}

fn hello(version_min: u16, version_max: u16, cluster: &str) -> Vec<u8> {
    let peer = Peer {
        id: ProcessId(uuid::Uuid::new_v4()),
        incarnation: Incarnation(7),
        name: "visitor".to_owned(),
        address: "127.0.0.1:1".parse().unwrap(),
        priority: Priority(0),
        revision: String::new(),
    };
    let safety = wire::SafetyCode::Classic;
    let cluster = cluster.to_owned();
    wire::encode_hello(&Hello {
        version_min,
        version_max,
        cluster,
        peer,
        safety,
        token: 0,
        announce: AnnouncedValues::default(),
    })
    .unwrap()
}

/// What the peer port says to this, until it closes the connection.
fn said_to(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    if let Err(error) = stream.write_all(bytes) {
        // It does not wait for the end of an endless reply.
        assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    }
    let mut said = Vec::new();
    let mut buffer = [0; wire::HELLO_BYTES_MAX];
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "it keeps the connection: {said:?}");
        match stream.read(&mut buffer) {
            // A reset ends it as well.
            Ok(0) | Err(_) => return said,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
        }
    }
}

fn refusal(said: &[u8]) -> (Refusal, String) {
    match wire::decode(said, wire::HELLO_BYTES_MAX) {
        Ok(Some((Frame::Refuse { why, text }, _))) => (why, text),
        other => panic!("no refusal: {other:?}"),
    }
}

#[test]
fn a_peer_of_a_version_to_come_is_refused_with_the_versions_spoken_here() {
    let (real, now) = started(1, &["--stable-margin", "0ms"]);
    let (why, text) = refusal(&said_to(real.ports(0).peer, &hello(99, 120, real.cluster())));
    assert_eq!(why, Refusal::Version);
    assert!(text.contains(&wire::VERSION.to_string()), "{text}");
    let line = real.logged(0, &["WARN", "visitor", "was refused", "versions"]);
    assert!(!line.contains("other_election"), "both are of one: {line}");
    assert_eq!(real.agree(0, PATIENCE).unwrap().epoch, now.epoch);
}

#[test]
fn a_peer_of_another_cluster_is_refused_and_not_told_the_right_name() {
    let (real, _) = started(1, &["--stable-margin", "0ms"]);
    let port = real.ports(0).peer;
    let (why, text) = refusal(&said_to(port, &hello(wire::VERSION_MIN, wire::VERSION, "elsewhere")));
    assert_eq!(why, Refusal::Cluster);
    assert!(!text.contains(real.cluster()) && text.contains("--election"), "{text}");
    real.logged(0, &["WARN", "visitor", "other_election", "elsewhere", "another election"]);
}

#[test]
fn what_is_no_handshake_is_closed_without_an_answer() {
    let (real, now) = started(1, &["--stable-margin", "0ms"]);
    let port = real.ports(0).peer;
    let sound = hello(wire::VERSION_MIN, wire::VERSION, real.cluster());
    let mut damaged = sound.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let four_gib = u32::MAX.to_le_bytes().to_vec();
    let endless = vec![b'A'; 1 << 20];
    let tls = [&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01][..], &[0; 512]].concat();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &damaged, &four_gib, &endless, &tls, &sound[..9], b""] {
        assert_eq!(said_to(port, bytes), b"", "{:?}", &bytes[..bytes.len().min(20)]);
    }
    // And a good one is answered after all that.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&sound).unwrap();
    let mut answer = [0; wire::HELLO_BYTES_MAX];
    let count = stream.read(&mut answer).unwrap();
    assert!(matches!(wire::decode(&answer[..count], wire::HELLO_BYTES_MAX), Ok(Some((Frame::Hello(_), _)))));
    assert_eq!(real.agree(0, PATIENCE).unwrap().epoch, now.epoch);
}
