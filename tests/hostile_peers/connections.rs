//! Hundreds of hostile connections a second, on either port of a leader; a thousand a second in a flood.

use crate::harness::started;
use crate::rounds::{PATIENCE, ask};
use crate::usage::Usage;
use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections a second: a program without optimisations on a busy machine can accept these.
const SHORT_ATTACK: u32 = 300;
const FLOOD: u32 = 1000;
const ATTACKERS: u32 = 2;
/// How many of its connections an attacker keeps open: more than the port allows.
const HELD: usize = 400;
const ASK_EVERY: Duration = Duration::from_millis(10);
const RESIDENT_PEAK_KIB_MAX: u64 = 20 * 1024;
/// Strangers get no thread: all that may come on top are those of pools, for what the process itself does.
const THREADS_MORE: u64 = 8;

/// A port serves 256 connections at a time. Besides them a descriptor may be on its way, or the poller's.
const DESCRIPTORS_MORE: usize = 256 + 16;

/// What a port's attackers send.
type Arsenal = &'static [&'static [u8]];

const ENDLESS: &[u8] = &[b'A'; 64 * 1024];
const TO_HTTP: Arsenal = &[
    b"",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /leader HTTP/1.1\r\nHost: ",
    b"GET / HTTP/1.1\r\nContent-Length: 9000000000000000\r\n\r\n",
    b"POST /leader HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    ENDLESS,
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
];
const TO_PEERS: Arsenal = &[
    b"",
    b"\x00\xff\x00\xff garbage that is no frame",
    // Half a Hello: 64 bytes are announced, and six come.
    b"\x40\x00\x00\x00\x01\x00\x12\x34\x56\x78",
    // Four GiB are announced.
    b"\xff\xff\xff\xff\x01\x00",
    ENDLESS,
    b"GET / HTTP/1.1\r\n\r\n",
];

/// Opens connections at its share of the rate until `until`; every third is reset, the others are kept for a
/// while.
fn attack(target: SocketAddr, arsenal: Arsenal, per_second: u32, until: Instant, opened: &AtomicU64) {
    let interval = Duration::from_secs(1) * ATTACKERS / per_second;
    let mut held = VecDeque::new();
    let mut next = Instant::now();
    for (i, bytes) in arsenal.iter().cycle().enumerate() {
        let now = Instant::now();
        if now >= until {
            return;
        }
        std::thread::sleep(next.saturating_duration_since(now));
        next += interval;
        let Ok(stream) = TcpStream::connect_timeout(&target, Duration::from_millis(200)) else { continue };
        opened.fetch_add(1, Ordering::Relaxed);
        let _ = stream.set_nonblocking(true);
        let _ = (&stream).write(bytes);
        if i % 3 == 0 {
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        } else {
            held.push_back(stream);
        }
        if held.len() > HELD {
            held.pop_front();
        }
    }
}

/// Well-behaved questions, each on a connection of its own: how long every answer took, and what else it was
/// than yes.
fn poll(target: SocketAddr, epoch: u64, done: &AtomicBool) -> Result<Vec<Duration>, String> {
    let mut times = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = TcpStream::connect_timeout(&target, PATIENCE).and_then(|stream| ask(stream, PATIENCE));
        let nth = times.len() + 1;
        match answer {
            Ok((answer, _)) if answer.is_leader && answer.epoch == epoch => times.push(began.elapsed()),
            Ok((answer, _)) => return Err(format!("answer {nth} was {answer:?}")),
            Err(error) => return Err(format!("question {nth} was not answered: {error}")),
        }
        std::thread::sleep(ASK_EVERY.saturating_sub(began.elapsed()));
    }
    Ok(times)
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn survives(what: &str, arsenal: Arsenal, per_second: u32, lasting: Duration) {
    // Leases are fixed, as in all sieges.
    let (real, now) = started(3, &["--lease-mode", "fixed"]);
    let ports = real.ports(now.leader);
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let target = local(if what == "peer" { ports.peer } else { ports.http });
    let pid = real.pid(now.leader).unwrap();
    let (before, open_before) = (Usage::of(pid).unwrap(), descriptors(pid));
    let (opened, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let until = Instant::now() + lasting;
    let (times, (threads, open)) = std::thread::scope(|scope| {
        let poller = scope.spawn(|| poll(local(ports.http), now.epoch, &done));
        let watcher = scope.spawn(|| {
            let mut most = (0, 0);
            while !done.load(Ordering::Relaxed) {
                most.0 = Usage::of(pid).map_or(most.0, |usage| most.0.max(usage.threads));
                most.1 = most.1.max(descriptors(pid));
                std::thread::sleep(ASK_EVERY);
            }
            most
        });
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|_| scope.spawn(|| attack(target, arsenal, per_second, until, &opened)))
            .collect();
        for attacker in attackers {
            attacker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        (poller.join().unwrap(), watcher.join().unwrap())
    });
    let mut times = times.unwrap();
    times.sort_unstable();
    let after = Usage::of(pid).unwrap();
    let opened = opened.load(Ordering::Relaxed);
    println!(
        "{what} port: {opened} hostile connections in {lasting:?}; {} answers, median {:?}, p99 {:?}, max \
         {:?}; peak {:.2} MiB, {} threads and {open_before} descriptors before, {threads} and {open} at most",
        times.len(),
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1],
        after.resident_peak_kib as f64 / 1024.0,
        before.threads
    );
    // Half of the rate is asked for, since this machine may be busy.
    assert!(opened >= u64::from(per_second) * lasting.as_secs() / 2, "{opened} connections are no attack");
    assert!(after.resident_peak_kib <= RESIDENT_PEAK_KIB_MAX, "{} KiB", after.resident_peak_kib);
    assert!(threads <= before.threads + THREADS_MORE, "{} threads became {threads}", before.threads);
    assert!(open <= open_before + DESCRIPTORS_MORE, "{open_before} descriptors became {open}");
    let at_last = real.agree(0, PATIENCE).unwrap();
    assert_eq!((at_last.leader, at_last.epoch), (now.leader, now.epoch), "the leader changed");
}

#[test]
fn a_short_attack_on_the_status_port_harms_no_process() {
    survives("HTTP", TO_HTTP, SHORT_ATTACK, Duration::from_secs(3));
}

#[test]
fn a_short_attack_on_the_peer_port_harms_no_process() {
    survives("peer", TO_PEERS, SHORT_ATTACK, Duration::from_secs(3));
}

#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_of_connections_to_the_status_port_harms_no_process() {
    survives("HTTP", TO_HTTP, FLOOD, Duration::from_secs(30));
}

#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_of_connections_to_the_peer_port_harms_no_process() {
    survives("peer", TO_PEERS, FLOOD, Duration::from_secs(30));
}
