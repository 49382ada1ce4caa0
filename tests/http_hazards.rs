//! What has brought HTTP servers down, and tiny_http's own listener in particular, done to the status port.
//! The port must survive each, and answer a well-behaved client meanwhile.
//!
//! What can be seen only from outside, threads, memory and descriptors, is done to a server in a process of
//! its own: this program again, running nothing but [`serve_as_child`].

// A test says what went wrong by panicking, and so do its helpers.
#![allow(clippy::unwrap_used)]

use bellwether::base::{Budget, Reading};
use bellwether::election::{
    Candidacy, Epoch, Incarnation, Incumbent, MemberStatus, Peer, Priority, ProcessId, Role, State, Status,
};
use bellwether::http::{self, Feed, HEAD_BYTES_MAX, LIMITS, Room, Server, Snapshot, Source};
use bellwether::net::{self, Limits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// A well-behaved client is answered within this, whatever others do; most of it is for a busy machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// The flood: fifteen hundred connections a second.
const FLOOD_EVERY: Duration = Duration::from_micros(667);
/// A leader's name that would end a header and begin another, if it ever came into one.
const EVIL_NAME: &str = "web-0\r\nSet-Cookie: a=b\r\n\r\n";

/// A process that leads.
struct Leads {
    metrics_bytes: usize,
    feed: Feed,
}

impl Leads {
    fn with_metrics(metrics_bytes: usize) -> Leads {
        Leads { metrics_bytes, feed: Feed::new(Incarnation(1)) }
    }
}

fn room(budget: Budget) -> Room {
    Room { budget, watchers_max: 4 }
}

impl Source for Leads {
    fn snapshot(&self) -> Snapshot {
        let me = Peer {
            id: ProcessId(Uuid::from_u128(1)),
            incarnation: Incarnation(1),
            name: EVIL_NAME.to_owned(),
            address: (Ipv4Addr::LOCALHOST, 4041).into(),
            priority: Priority::DEFAULT,
            revision: String::new(),
        };
        let now = bellwether::base::boottime();
        let status = Status {
            cluster: "test".to_owned(),
            me: me.clone(),
            role: Role::Leading,
            epoch: Epoch(1),
            leader: Some(Incumbent { peer: me.clone(), elected_at_ms: 0 }),
            members: vec![MemberStatus { peer: me, state: State::Alive, last_heard: None, round_trip: None }],
            valid_until: None,
            voting: None,
            cut_off: false,
            holds: 0,
            candidacy: Candidacy::default(),
            answer_ttl: Duration::from_millis(1500),
            lease: None,
            worst_delay: None,
            lease_reason: None,
        };
        let reading = Reading::take();
        Snapshot {
            status: Arc::new(status),
            now,
            reading,
            turned: now,
            health: Ok(()),
            took_part: false,
            announced: Arc::default(),
        }
    }

    fn feed(&self) -> &Feed {
        &self.feed
    }

    fn metrics(&self) -> String {
        "x".repeat(self.metrics_bytes)
    }
}

fn serve(limits: Limits, metrics_bytes: usize) -> Server {
    let listener = net::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    http::start_with(listener, Leads::with_metrics(metrics_bytes), limits, room(Budget::new(64 << 20)))
        .unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // What is measured here is the server's delay.
    stream.set_nodelay(true).unwrap();
    stream
}

/// One reply.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    #[track_caller]
    fn is(&self, status: u16) -> &Reply {
        assert_eq!(self.status, status, "{}{}", self.head, String::from_utf8_lossy(&self.body));
        self
    }

    fn closes(&self) -> bool {
        self.head.contains("\r\nConnection: close\r\n")
    }
}

/// Reads one reply, of which `with_body` says whether its Content-Length is followed by that many bytes.
#[track_caller]
fn read_reply(stream: &mut impl BufRead, with_body: bool) -> Reply {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let bytes = stream.read_line(&mut head).unwrap();
        assert!(bytes > 0, "the reply ended after {head:?}");
    }
    let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; if with_body { length } else { 0 }];
    stream.read_exact(&mut body).unwrap();
    Reply { status, head, body }
}

/// Sends `text` and reads one reply.
#[track_caller]
fn ask(address: SocketAddr, text: &str) -> Reply {
    let mut stream = connect(address);
    stream.write_all(text.as_bytes()).unwrap();
    read_reply(&mut BufReader::new(stream), true)
}

/// What a well-behaved client does. It is answered, and soon.
#[track_caller]
fn well_behaved(address: SocketAddr) -> Duration {
    let start = Instant::now();
    let reply = ask(address, "GET /leader HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    reply.is(200);
    assert!(String::from_utf8_lossy(&reply.body).contains(r#""is_leader":true"#), "{reply:?}");
    let took = start.elapsed();
    assert!(took < ANSWERED_WITHIN, "answered after {took:?}");
    took
}

/// Whether the other side has ended the connection by now, or does in time.
#[track_caller]
fn ended(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {}
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

// --- A server in a process of its own
// ---------------------------------------------------------------------------

/// Set for the child: how many descriptors it may have open beyond those that it needs, or nothing for no
/// limit.
const CHILD: &str = "HTTP_HAZARDS_CHILD_DESCRIPTORS";

/// Not a test: the server of the tests that look at one from outside. It ends with its standard input.
#[test]
#[ignore = "the other tests run it in a process of its own"]
fn serve_as_child() {
    let Ok(spare) = std::env::var(CHILD) else {
        return;
    };
    let server = serve(LIMITS, 64 * 1024);
    let mut taken = Vec::new();
    if let Ok(spare) = spare.parse::<usize>() {
        let limit = Rlimit { current: Some(100), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit).unwrap();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            taken.push(file);
        }
        taken.truncate(taken.len() - spare);
    }
    println!("listens on {}", server.local_address());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    assert!(server.alive());
    server.stop();
}

struct Sidecar {
    child: Child,
    address: SocketAddr,
}

/// What the system knows of a process.
#[derive(Clone, Copy, Debug)]
struct Usage {
    threads: u64,
    resident_kib_max: u64,
    descriptors: usize,
}

impl Sidecar {
    /// A server that may have `spare` descriptors open beyond those that it needs, or as many as it likes.
    fn spawn(spare: Option<usize>) -> Sidecar {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serve_as_child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(CHILD, spare.map_or(String::new(), |spare| spare.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the child has ended");
            if let Some((_, address)) = line.split_once("listens on ") {
                break address.trim().parse().unwrap();
            }
        };
        // What it says later has a place to go.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Sidecar { child, address }
    }

    fn usage(&self) -> Usage {
        let folder = format!("/proc/{}", self.child.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let descriptors = std::fs::read_dir(format!("{folder}/fd")).unwrap().count();
        Usage { threads: field("Threads:"), resident_kib_max: field("VmHWM:"), descriptors }
    }

    /// It ends when it is told to, and well.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Lets this process open as many descriptors as it may: some of these tests need a few thousand.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

// --- The table of hazards, row by row
// ---------------------------------------------------------------------------

#[test]
fn a_huge_content_length_is_refused() {
    let server = serve(LIMITS, 0);
    for length in ["9000000000000000", "18446744073709551615", "99999999999999999999999999", "-1", "1"] {
        let reply = ask(
            server.local_address(),
            &format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"),
        );
        assert!(reply.is(400).closes(), "{reply:?}");
        well_behaved(server.local_address());
    }
    assert!(server.alive());
}

#[test]
fn a_body_that_never_comes_is_not_waited_for() {
    let server = serve(LIMITS, 0);
    let held: Vec<TcpStream> = (0..20)
        .map(|number| {
            let mut stream = connect(server.local_address());
            let expect = if number % 2 == 0 { "" } else { "Expect: 100-continue\r\n" };
            write!(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n{expect}\r\n").unwrap();
            let mut reader = BufReader::new(stream);
            assert!(read_reply(&mut reader, true).is(400).closes());
            reader.into_inner()
        })
        .collect();
    well_behaved(server.local_address());
    for mut stream in held {
        ended(&mut stream);
    }
}

#[test]
fn a_body_that_does_come_does_not_cost_the_client_its_reply() {
    let server = serve(LIMITS, 0);
    for _ in 0..20 {
        let mut stream = connect(server.local_address());
        let body = "x".repeat(100_000);
        write!(stream, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{body}").unwrap();
        read_reply(&mut BufReader::new(stream), true).is(400);
    }
}

#[test]
fn thousands_of_idle_connections_cost_neither_threads_nor_descriptors() {
    raise_descriptor_limit();
    let process = Sidecar::spawn(None);
    well_behaved(process.address);
    let before = process.usage();
    let mut idle = Vec::new();
    for number in 0..2_000 {
        idle.push(connect(process.address));
        if number % 100 == 0 {
            well_behaved(process.address);
        }
    }
    well_behaved(process.address);
    let after = process.usage();
    assert_eq!(after.threads, before.threads);
    assert!(after.descriptors <= before.descriptors + LIMITS.connections_max + 1, "{before:?} {after:?}");
    assert!(after.resident_kib_max < before.resident_kib_max + 8 * 1024, "{before:?} {after:?}");
    // Those that were there first have made room.
    ended(&mut idle[0]);
    process.end();
}

#[test]
fn a_flood_costs_no_well_behaved_client_its_answer() {
    let process = Sidecar::spawn(None);
    well_behaved(process.address);
    let before = process.usage();
    let (address, over) = (process.address, Arc::new(AtomicBool::new(false)));
    let flooding = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            // The last 500 stay open: idle, with half a request, or with a whole one whose reply stays
            // unread.
            let mut open = std::collections::VecDeque::new();
            let mut count = 0_u32;
            let start = Instant::now();
            while !over.load(Ordering::Relaxed) {
                let Ok(mut stream) = TcpStream::connect_timeout(&address, PATIENCE) else {
                    continue;
                };
                let text: &[u8] = match count % 4 {
                    0 | 1 => b"",
                    2 => b"GET /metrics HTTP/1.1\r\nHo",
                    _ => b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
                };
                // It may have been evicted already.
                let _ = stream.write_all(text);
                open.push_back(stream);
                if open.len() > 500 {
                    open.pop_front();
                }
                count += 1;
                let ahead = (FLOOD_EVERY * count).saturating_sub(start.elapsed());
                thread::sleep(ahead);
            }
            count
        })
    };
    let start = Instant::now();
    let mut times: Vec<Duration> = (0..30).map(|_| well_behaved(address)).collect();
    while start.elapsed() < Duration::from_secs(2) {
        times.push(well_behaved(address));
    }
    let seconds = start.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    let count = flooding.join().unwrap();
    times.sort();
    let after = process.usage();
    println!(
        "{:.0} hostile connections a second; {} probes, median {:?}, worst {:?}; {before:?}, {after:?}",
        f64::from(count) / seconds,
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1],
    );
    assert!(times[times.len() / 2] < Duration::from_millis(100), "{:?}", times[times.len() / 2]);
    assert_eq!(after.threads, before.threads);
    // 256 replies of 64 KiB on their way at the same time, buffers, and what the allocator makes of it.
    assert!(after.resident_kib_max < before.resident_kib_max + 32 * 1024, "{before:?} {after:?}");
    process.end();
}

#[test]
fn other_versions_of_http_are_refused_and_hold_nothing() {
    let process = Sidecar::spawn(None);
    well_behaved(process.address);
    let before = process.usage();
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for text in ["GET / HTTP/2.0\r\n\r\n", "GET / HTTP/2.0", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", preface] {
        assert!(ask(process.address, text).is(505).closes());
    }
    for _ in 0..100 {
        let mut stream = connect(process.address);
        stream.write_all(b"GET / HTTP/2.0\r\n\r\n").unwrap();
    }
    for _ in 0..100 {
        let mut stream = connect(process.address);
        stream.write_all(b"GET / HTTP/2.0\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_reply(&mut BufReader::new(stream), true).is(505);
    }
    well_behaved(process.address);
    until("all descriptors are given back", || process.usage().descriptors <= before.descriptors);
    assert_eq!(process.usage().threads, before.threads);
    process.end();
}

#[test]
fn too_many_open_files_close_the_oldest_connections_and_not_the_port() {
    let process = Sidecar::spawn(Some(10));
    let idle: Vec<TcpStream> = (0..200).map(|_| connect(process.address)).collect();
    for _ in 0..30 {
        well_behaved(process.address);
    }
    drop(idle);
    well_behaved(process.address);
    process.end();
}

#[test]
fn with_no_descriptor_at_all_the_port_comes_back_once_there_is_one() {
    let process = Sidecar::spawn(Some(0));
    let mut stream = connect(process.address);
    stream.write_all(b"GET /leader HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Meanwhile it does not spin: two hundred milliseconds cost it next to no time of a CPU.
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(ticks() - before <= 5, "{} ticks of 10 ms in 200 ms", ticks() - before);

    let pid = rustix::process::Pid::from_child(&process.child);
    let limit = getrlimit(Resource::Nofile);
    rustix::process::prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    read_reply(&mut BufReader::new(stream), true).is(200);
    process.end();
}

#[test]
fn timeouts_of_the_listening_socket_do_not_end_it() {
    let listener = net::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let timeout = Duration::from_millis(50);
    let socket = socket2::SockRef::from(&listener);
    socket.set_read_timeout(Some(timeout)).unwrap();
    socket.set_write_timeout(Some(timeout)).unwrap();
    let server = http::start(listener, Leads::with_metrics(0), room(Budget::new(8 << 20))).unwrap();
    let stream = connect(server.local_address());
    stream.set_read_timeout(Some(timeout * 3)).unwrap();
    // Nothing happens to an idle connection, nor to the port, when the timeout passes.
    assert_eq!((&stream).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    (&stream).write_all(b"GET /leader HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_reply(&mut BufReader::new(&stream), true).is(200);
    well_behaved(server.local_address());
}

#[test]
fn an_endless_head_is_refused() {
    let process = Sidecar::spawn(None);
    well_behaved(process.address);
    let before = process.usage();
    for (status, begin) in [
        (431, "GET / HTTP/1.1\r\nHost: a\r\nX: "),
        (414, "GET /"),
        (431, "GET / HTTP/1.1\r\n"),
        (414, "\r\n"),
    ] {
        let filler = match begin {
            "GET / HTTP/1.1\r\n" => "a: b\r\n",
            "\r\n" => "\r\n",
            _ => "x",
        };
        let mut stream = connect(process.address);
        stream.write_all(begin.as_bytes()).unwrap();
        // Ten megabytes, or as many as it takes until the server has had enough.
        let chunk = filler.repeat(64 * 1024 / filler.len());
        let mut sent = 0;
        let refused = loop {
            if sent >= 10 << 20 {
                break false;
            }
            match stream.write(chunk.as_bytes()) {
                Ok(bytes) => sent += bytes,
                Err(error) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                        "{error}"
                    );
                    break true;
                }
            }
        };
        assert!(refused, "{status}: {sent} bytes were taken");
        well_behaved(process.address);

        // Sent no further than the limit, the reply arrives.
        let mut stream = connect(process.address);
        let text = begin.to_owned() + &filler.repeat(HEAD_BYTES_MAX);
        stream.write_all(&text.as_bytes()[..HEAD_BYTES_MAX]).unwrap();
        let reply = read_reply(&mut BufReader::new(&stream), true);
        assert!(reply.is(status).closes(), "{reply:?}");
    }
    let after = process.usage();
    assert!(after.resident_kib_max < before.resident_kib_max + 4 * 1024, "{before:?} {after:?}");
    process.end();
}

#[test]
fn a_request_and_then_a_reset_hurt_no_other_client() {
    let server = serve(LIMITS, 1 << 20);
    for round in 0..300 {
        let mut stream = connect(server.local_address());
        let path = if round % 2 == 0 { "/leader" } else { "/metrics" };
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        if round % 3 == 0 {
            // With the reply under way.
            stream.read_exact(&mut [0; 100]).unwrap();
        }
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        drop(stream);
        if round % 50 == 0 {
            well_behaved(server.local_address());
        }
    }
    well_behaved(server.local_address());
    assert!(server.alive());
}

#[test]
fn big_replies_are_as_quick_as_small_ones() {
    for metrics_bytes in [1_100, 10_000, 100_000] {
        let server = serve(LIMITS, metrics_bytes);
        let mut stream = BufReader::new(connect(server.local_address()));
        // The lower quartile: what delays a reply by principle delays them all, what a busy machine does only
        // some.
        let mut quartile = |path: &str| {
            let mut times: Vec<Duration> = (0..51)
                .map(|_| {
                    let start = Instant::now();
                    let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
                    stream.get_mut().write_all(text.as_bytes()).unwrap();
                    read_reply(&mut stream, true).is(200);
                    start.elapsed()
                })
                .collect();
            times.sort();
            times[times.len() / 4]
        };
        let (small, big) = (quartile("/epoch"), quartile("/metrics"));
        // Nagle's algorithm and a delayed acknowledgement cost 40 ms.
        assert!(
            small < Duration::from_millis(20) && big < small + Duration::from_millis(20),
            "{metrics_bytes} bytes: {small:?}, {big:?}"
        );
    }
}

#[test]
fn nothing_that_others_say_reaches_a_header() {
    let server = serve(LIMITS, 0);
    let targets = [
        "/",
        "/leader",
        "/members",
        "/epoch",
        "/is-leader?standby=%0d%0aSet-Cookie:a=b",
        "/%0d%0aSet-Cookie:a=b",
        "/?a=%0d%0aSet-Cookie:a=b",
        "http://a%0d%0aSet-Cookie:a=b/",
    ];
    for target in targets {
        let reply = ask(
            server.local_address(),
            &format!(
                "GET {target} HTTP/1.1\r\nHost: Set-Cookie\r\nOrigin: Set-Cookie\r\nConnection: close\r\n\r\n"
            ),
        );
        assert!(!reply.head.contains("Set-Cookie"), "{target}: {}", reply.head);
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        if target == "/" {
            assert_eq!(body["name"], EVIL_NAME);
        }
    }
}

// --- Slow clients, and the rest of HTTP
// -------------------------------------------------------------------------

#[test]
fn a_slow_reader_is_given_up_and_delays_no_other_client() {
    let write_deadline = Duration::from_millis(300);
    let server = serve(Limits { write_deadline, ..LIMITS }, 1 << 20);
    let mut slow: Vec<TcpStream> = (0..8).map(|_| connect(server.local_address())).collect();
    let start = Instant::now();
    for stream in &mut slow {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        // The reply has begun, and stays where it is.
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    while start.elapsed() < write_deadline {
        well_behaved(server.local_address());
    }
    for stream in &slow {
        until("the connection is reset", || stream.take_error().unwrap().is_some());
    }
    well_behaved(server.local_address());
}

/// Long replies that clients do not take have a quarter of the budget. What short ones say is told to all.
#[test]
fn long_replies_that_are_not_taken_are_bounded() {
    let (reply_bytes, replies) = (200_000, 5);
    let listener = net::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let budget = Budget::new(4 * (reply_bytes + 1_000) * replies);
    let leads = Leads::with_metrics(reply_bytes);
    let server = http::start_with(listener, leads, LIMITS, room(budget)).unwrap();
    let scrape = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut slow: Vec<_> =
        (0..replies).map(|_| BufReader::with_capacity(1, connect(server.local_address()))).collect();
    for stream in &mut slow {
        stream.get_mut().write_all(scrape.as_bytes()).unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
    }
    let refused = ask(server.local_address(), scrape);
    assert!(refused.is(503).head.contains("Connection: close"), "{}", refused.head);
    well_behaved(server.local_address());
    // A client that takes its reply gives the bytes back, whether it is silent from then on or asks.
    let long_reply = || ask(server.local_address(), scrape).status == 200;
    let taken = |client: &mut BufReader<TcpStream>| {
        std::io::copy(&mut client.take(reply_bytes as u64), &mut std::io::sink()).unwrap();
    };
    taken(&mut slow[0]);
    until("a long reply is possible again", long_reply);
    let mut another = connect(server.local_address());
    another.write_all(scrape.as_bytes()).unwrap();
    another.read_exact(&mut [0; 1]).unwrap();
    assert!(!long_reply());
    let asking = &mut slow[1];
    taken(asking);
    asking.get_mut().write_all(b"GET /epoch HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    until("a long reply is possible again", long_reply);
}

#[test]
fn a_deadline_is_not_moved_by_bytes_that_trickle_in() {
    let receive_deadline = Duration::from_millis(300);
    let server = serve(Limits { receive_deadline, ..LIMITS }, 0);
    let start = Instant::now();
    let mut stream = connect(server.local_address());
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let head = format!("GET / HTTP/1.1\r\nHost: {}", "a".repeat(HEAD_BYTES_MAX));
    let mut reply = Vec::new();
    for byte in head.as_bytes() {
        assert!(start.elapsed() < PATIENCE);
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        let mut bytes = [0; 1000];
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => reply.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    let took = start.elapsed();
    assert!(took >= receive_deadline && took < receive_deadline * 5, "{took:?}");
    let reply = read_reply(&mut reply.as_slice(), true);
    assert!(reply.is(408).closes());
}

#[test]
fn a_connection_that_says_nothing_is_closed_without_a_word() {
    let receive_deadline = Duration::from_millis(100);
    let server = serve(Limits { receive_deadline, ..LIMITS }, 0);
    let mut stream = connect(server.local_address());
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    assert_eq!(said, b"");
}

#[test]
fn one_connection_serves_many_requests_also_sent_ahead() {
    let server = serve(LIMITS, 0);
    let mut stream = BufReader::new(connect(server.local_address()));
    for _ in 0..50 {
        stream.get_mut().write_all(b"GET /leader HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(!read_reply(&mut stream, true).is(200).closes());
    }
    let ahead = "GET /leader HTTP/1.1\r\nHost: a\r\n\r\n\
                 HEAD /members HTTP/1.1\r\nHost: a\r\n\r\n\
                 \r\n\
                 GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n\
                 OPTIONS /leader HTTP/1.1\r\nHost: a\r\n\r\n\
                 POST /leader HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    stream.get_mut().write_all(ahead.as_bytes()).unwrap();
    read_reply(&mut stream, true).is(200);
    read_reply(&mut stream, false).is(200);
    read_reply(&mut stream, true).is(404);
    // RFC 9110, section 8.6.
    assert!(!read_reply(&mut stream, true).is(204).head.contains("Content-Length"));
    read_reply(&mut stream, true).is(405);
    // Far more than is received at a time.
    let many = 1_000;
    let mut writer = stream.get_ref().try_clone().unwrap();
    let writing = thread::spawn(move || {
        let text = "GET /epoch HTTP/1.1\r\nHost: a\r\n\r\n".repeat(many);
        writer.write_all(text.as_bytes()).unwrap();
        writer.write_all(b"GET /epoch HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    });
    for _ in 0..many {
        assert!(!read_reply(&mut stream, true).is(200).closes());
    }
    assert!(read_reply(&mut stream, true).is(200).closes());
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    writing.join().unwrap();
}

#[test]
fn http_1_0_and_half_closed_clients_are_answered() {
    let server = serve(LIMITS, 0);
    let mut stream = BufReader::new(connect(server.local_address()));
    stream.get_mut().write_all(b"GET /leader HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap();
    assert!(read_reply(&mut stream, true).is(200).head.contains("Connection: keep-alive\r\n"));
    stream.get_mut().write_all(b"GET /leader HTTP/1.0\r\n\r\n").unwrap();
    stream.get_mut().shutdown(Shutdown::Write).unwrap();
    assert!(read_reply(&mut stream, true).is(200).closes());
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn an_expectation_does_not_hang() {
    let server = serve(LIMITS, 0);
    let start = Instant::now();
    let text = "GET /leader HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n";
    ask(server.local_address(), text).is(200);
    assert!(start.elapsed() < ANSWERED_WITHIN);
}

#[test]
fn errors_are_json_with_their_status() {
    let server = serve(LIMITS, 0);
    let many_headers = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(100));
    #[rustfmt::skip]
    let table = [
        (400, "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03", true),
        (400, "GET / HTTP/1.1\r\n\r\n", true),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", true),
        (400, "GET /is-leader?standby=99 HTTP/1.1\r\nHost: a\r\n\r\n", false),
        (404, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", false),
        (405, "DELETE /leader HTTP/1.1\r\nHost: a\r\n\r\n", false),
        (431, many_headers.as_str(), true),
        (501, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", true),
        (505, "GET / HTTP/1.7\r\nHost: a\r\n\r\n", true),
    ];
    for (status, text, closes) in table {
        let reply = ask(server.local_address(), text);
        assert_eq!(reply.is(status).closes(), closes, "{text:?}");
        assert!(reply.head.contains("\r\nContent-Type: application/json\r\n"), "{}", reply.head);
        assert!(reply.head.contains("\r\nCache-Control: no-store\r\n"), "{}", reply.head);
        assert_eq!(reply.head.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"), status == 405, "{}", reply.head);
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body["error"]["status"], status);
        assert!(body["error"]["message"].as_str().unwrap().len() > 10, "{body}");
    }
    well_behaved(server.local_address());
}
