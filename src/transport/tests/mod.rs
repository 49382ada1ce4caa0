//! Two transports, or one and a hand-made peer, over loopback.

mod authentication;
mod budget;
mod certificates;
mod identity;
mod link_close;

use super::*;
use crate::election::{AnnouncedValues, Body, Epoch, ListWanted, Priority};
use crate::wire::{Confirmed, Frame, Hello, Refusal, SafetyCode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Counted {
    refused: AtomicU32,
    unknown: AtomicU32,
    unauthenticated: AtomicU32,
    links: Mutex<LinkCounts>,
}

impl Counts for Counted {
    fn sent(&self, _: &'static str) {}
    fn received(&self, _: &'static str) {}
    fn unknown_frame(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }
    fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
    fn unauthenticated(&self) {
        self.unauthenticated.fetch_add(1, Ordering::Relaxed);
    }
    fn peer_keys(&self, _: &crate::channel::Keys) {}
    fn peer_keys_unusable(&self) {}
    fn links(&self, links: LinkCounts) {
        *self.links.lock().unwrap() = links;
    }
}

struct Side {
    transport: Transport,
    reports: Receiver<Report>,
    counts: Arc<Counted>,
    address: SocketAddr,
}

fn peer(number: u128, incarnation: u64, address: SocketAddr) -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(number)),
        incarnation: Incarnation(incarnation),
        name: format!("p{number}"),
        address,
        priority: Priority::DEFAULT,
        revision: String::new(),
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn side(number: u128, cluster: &str) -> Side {
    side_that_says(number, cluster, Ipv4Addr::LOCALHOST)
}

/// One that says that it is reached at this address, with its port.
fn side_that_says(number: u128, cluster: &str, ip: Ipv4Addr) -> Side {
    side_of(number, cluster, ip, SafetyCode::Classic)
}

/// One that counts votes.
fn voter(number: u128) -> Side {
    side_of(number, "c", Ipv4Addr::LOCALHOST, SafetyCode::Majority)
}

fn side_of(number: u128, cluster: &str, ip: Ipv4Addr, safety: SafetyCode) -> Side {
    side_with(number, cluster, ip, safety, Credentials::none())
}

fn side_with(
    number: u128,
    cluster: &str,
    ip: Ipv4Addr,
    safety: SafetyCode,
    credentials: Credentials,
) -> Side {
    side_on(number, cluster, ip, safety, credentials, Budget::new(8 << 20))
}

fn side_on(
    number: u128,
    cluster: &str,
    ip: Ipv4Addr,
    safety: SafetyCode,
    credentials: Credentials,
    budget: Budget,
) -> Side {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, reports) = channel();
    let sender = Mutex::new(sender);
    let counts = Arc::new(Counted::default());
    let settings = TransportSettings {
        cluster: cluster.to_owned(),
        safety,
        me: peer(number, 1, SocketAddr::from((ip, address.port()))),
        announce: AnnouncedValues::default(),
        credentials: Arc::new(credentials),
        budget,
        dial_timeout: Duration::from_millis(500),
        unacknowledged_max: Duration::from_secs(3),
    };
    let sink: Sink = Arc::new(move |report| drop(sender.lock().unwrap().send(report)));
    let transport = Transport::start(settings, listener, sink, counts.clone()).unwrap();
    Side { transport, reports, counts, address }
}

impl Side {
    /// The next report that `wanted` picks; others are passed over.
    fn until<T>(&self, what: &str, wanted: impl Fn(&Report) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.reports.recv_timeout(left) {
                Ok(report) => match wanted(&report) {
                    Some(found) => return found,
                    None => seen.push(report),
                },
                Err(_) => panic!("no {what}; there was {seen:?}"),
            }
        }
    }

    fn opened(&self) -> Peer {
        self.until("link", |r| if let Report::Opened(peer) = r { Some(peer.clone()) } else { None })
    }

    fn closed(&self) -> (ProcessId, u64, bool) {
        self.until("end of a link", |r| match r {
            Report::Closed { id, incarnation, crashed } => Some((*id, incarnation.0, *crashed)),
            _ => None,
        })
    }

    fn received(&self) -> (ProcessId, Message) {
        self.until("message", |r| match r {
            Report::Received { from, message, .. } => Some((*from, message.clone())),
            _ => None,
        })
    }

    fn dial(&self, address: SocketAddr) {
        self.transport.seek(BTreeSet::from([address]));
    }
}

fn ask(epoch: u64) -> Message {
    Message {
        epoch: Epoch(epoch),
        priority: Priority::DEFAULT,
        body: Body::LeaderQuery { list: ListWanted::Whole },
    }
}

fn hello(cluster: &str, from: Peer) -> Hello {
    Hello {
        version_min: wire::VERSION_MIN,
        version_max: wire::VERSION,
        cluster: cluster.to_owned(),
        peer: from,
        safety: SafetyCode::Classic,
        token: 0,
        announce: AnnouncedValues::default(),
    }
}

/// What a voter says first.
fn voters_hello(from: Peer) -> Vec<u8> {
    wire::encode_hello(&Hello { safety: SafetyCode::Majority, ..hello("c", from) }).unwrap()
}

/// Connects by hand, says this, and hands out the connection.
fn connect(to: SocketAddr, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(first).unwrap();
    stream
}

/// Connects by hand as this peer of cluster "c", and is let in.
fn greeted(to: SocketAddr, from: Peer) -> TcpStream {
    let mut stream = connect(to, &wire::encode_hello(&hello("c", from)).unwrap());
    assert!(matches!(frame(&mut stream), Frame::Hello(_)));
    stream
}

/// A side of cluster "c", a peer that is linked with it, and the peer's end of the link.
fn linked() -> (Side, Peer, TcpStream) {
    let (a, them) = (side(1, "c"), peer(2, 7, loopback(9)));
    let stream = greeted(a.address, them.clone());
    a.opened();
    (a, them, stream)
}

/// The next connection that a listener takes.
fn accepted(listener: &TcpListener) -> TcpStream {
    let mut sockets = [PollFd::new(listener, PollFlags::IN)];
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    assert_eq!(poll(&mut sockets, Some(&patience)), Ok(1), "no process dials");
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The process that listens there gives this answer to the next question whether a Hello is its own.
fn confirms(listener: &TcpListener, answer: Confirmed) {
    let mut stream = accepted(listener);
    let asked = frame(&mut stream);
    assert!(matches!(asked, Frame::Confirm(_)), "{asked:?}");
    stream.write_all(&wire::encode_confirmed(answer)).unwrap();
}

/// The next frame on a connection made by hand.
fn frame(stream: &mut TcpStream) -> Frame {
    let mut received = Vec::new();
    loop {
        if let Some((frame, length)) = wire::decode(&received, wire::FRAME_BYTES_MAX).unwrap() {
            assert_eq!(length, received.len(), "one frame at a time is read by hand");
            return frame;
        }
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
}

#[test]
fn a_message_to_a_stranger_is_sent_over_a_link_that_is_dialled_for_it() {
    let (a, b) = (side(1, "c"), side(2, "c"));
    let to = ProcessId(Uuid::from_u128(2));
    a.transport.send(to, b.address, &ask(1));
    a.transport.send(to, b.address, &ask(2));
    assert_eq!(b.opened().name, "p1");
    for epoch in [1, 2] {
        assert_eq!(b.received(), (ProcessId(Uuid::from_u128(1)), ask(epoch)));
    }
    assert_eq!(a.opened().address, b.address);
    // And back, over the same link.
    b.transport.send(ProcessId(Uuid::from_u128(1)), a.address, &ask(3));
    assert_eq!(a.received().1, ask(3));
}

#[test]
fn another_cluster_our_own_id_and_unknown_versions_are_refused_and_told_why() {
    let a = side(1, "c");
    let them = peer(2, 7, loopback(9));
    let future = Hello { version_min: 99, version_max: 100, ..hello("c", them.clone()) };
    for (hello, expected) in [
        (hello("other", them), Refusal::Cluster),
        (hello("c", peer(1, 9, loopback(9))), Refusal::OwnId),
        (future, Refusal::Version),
    ] {
        let mut stream = connect(a.address, &wire::encode_hello(&hello).unwrap());
        match frame(&mut stream) {
            Frame::Refuse { why, text } => assert_eq!(why, expected, "{text}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the connection ends");
    }
    assert_eq!(a.counts.refused.load(Ordering::Relaxed), 3);
}

#[test]
fn another_safety_level_is_refused_on_either_side() {
    let (a, b) = (side(1, "c"), voter(2));
    let them = |level| Hello { safety: level, ..hello("c", peer(3, 7, loopback(9))) };
    for (to, safety, words) in [
        (&a, SafetyCode::Majority, ["--safety is classic here, and majority there", "another --election"]),
        (&b, SafetyCode::Classic, ["--safety is majority here, and classic there", "another --election"]),
        (
            &b,
            SafetyCode::Other(9),
            ["majority here, and of a newer version (number 9) there", "another --election"],
        ),
    ] {
        let mut stream = connect(to.address, &wire::encode_hello(&them(safety)).unwrap());
        let Frame::Refuse { why, text } = frame(&mut stream) else { panic!("not refused") };
        assert_eq!(why, Refusal::Safety);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    // And when this process dials the other: no link comes of it.
    let before = b.counts.refused.load(Ordering::Relaxed);
    a.dial(b.address);
    let began = Instant::now();
    while b.counts.refused.load(Ordering::Relaxed) == before {
        assert!(began.elapsed() < PATIENCE, "never dialled");
        std::thread::yield_now();
    }
    assert!(a.transport.inner.table().links(ProcessId(Uuid::from_u128(2))).is_empty());
}

/// The name of a voter is its vote. Both sides of a dial look.
#[test]
fn of_two_live_processes_with_one_name_the_newer_is_refused_where_votes_are_counted() {
    let (a, b) = (voter(1), voter(2));
    a.dial(b.address);
    a.opened();
    let namesake = |number| Peer { name: "p2".to_owned(), ..peer(number, 7, loopback(9)) };
    let refused = |first: &[u8]| match frame(&mut connect(a.address, first)) {
        Frame::Refuse { why, text } => Some((why, text)),
        _ => None,
    };
    let (why, text) = refused(&voters_hello(namesake(3))).expect("it is refused");
    assert_eq!(why, Refusal::Name);
    let there = format!("a live process at {} has this name too", b.address);
    assert!(text.contains(&there) && text.contains("another --name"), "{text}");
    // This process's own name is taken as well.
    let own = Peer { name: "p1".to_owned(), ..peer(3, 7, loopback(9)) };
    assert_eq!(refused(&voters_hello(own)).expect("it is refused").0, Refusal::Name);
    // A newcomer that says that it listens where the other one does is not believed.
    let second = Peer { address: b.address, ..namesake(4) };
    assert_eq!(refused(&voters_hello(second)).expect("it is refused").0, Refusal::Identity);
    b.transport.close();
    a.closed();
    assert_eq!(refused(&voters_hello(namesake(5))), None);

    let c = side(1, "c");
    let _first = greeted(c.address, namesake(3));
    c.opened();
    let _second = greeted(c.address, Peer { address: loopback(10), ..namesake(4) });
    c.opened();
}

#[test]
fn dialling_oneself_is_noticed() {
    let a = side(1, "c");
    a.dial(a.address);
    let own =
        a.until(
            "own address",
            |r| if let Report::Event(Event::ReachedSelf(at)) = r { Some(*at) } else { None },
        );
    assert_eq!(own, a.address);
}

#[test]
fn a_refused_dial_is_reported() {
    let a = side(1, "c");
    let unused = TcpListener::bind(loopback(0)).unwrap().local_addr().unwrap();
    a.dial(unused);
    assert_eq!(
        a.until("refusal", |r| if let Report::Event(Event::Refused(at)) = r { Some(*at) } else { None }),
        unused
    );
}

#[test]
fn an_unknown_address_is_found_out_from_the_route_and_filled_in_by_the_other_side() {
    let b = side(2, "c");
    let a = side_that_says(1, "c", Ipv4Addr::UNSPECIFIED);
    let port = a.address.port();
    a.transport.seek(BTreeSet::from([b.address]));
    assert_eq!(b.opened().address, loopback(port));
    let found = a.reports.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(found, Report::Event(Event::Advertise(at)) if at == loopback(port)), "{found:?}");
}

#[test]
fn a_frame_has_its_time_for_itself_however_many_came_before_it() {
    let (a, them, mut stream) = linked();
    let stamp = wire::Stamp { cluster: "c".to_owned(), id: them.id };
    let message = wire::encode_message(&stamp, &ask(5)).unwrap();
    let (head, tail) = message.split_at(9);
    stream.write_all(head).unwrap();
    let began = Instant::now();
    // Whatever is read ends in the middle of a frame, and each frame is soon complete.
    while began.elapsed() < FRAME_DEADLINE + Duration::from_millis(500) {
        stream.write_all(&[tail, head].concat()).unwrap();
        // No faster than a peer may speak.
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(a.received().1, ask(5));
    }
}

#[test]
fn reaching_oneself_over_loopback_says_nothing_about_the_route_to_peers() {
    let b = side(2, "c");
    let a = side_that_says(1, "c", Ipv4Addr::UNSPECIFIED);
    let port = a.address.port();
    a.transport.seek(BTreeSet::from([loopback(port)]));
    let first = a.reports.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(first, Report::Event(Event::ReachedSelf(at)) if at == loopback(port)), "{first:?}");
    a.transport.seek(BTreeSet::from([b.address]));
    let second = a.reports.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(second, Report::Event(Event::Advertise(at)) if at == loopback(port)), "{second:?}");
}

/// A link may come up between a send's look for one and its look for a dial under way.
#[test]
fn a_message_that_a_link_overtakes_goes_over_it() {
    let (a, b) = (side(1, "c"), side(2, "c"));
    a.dial(b.address);
    a.opened();
    b.opened();
    let unknown = ProcessId(Uuid::from_u128(77));
    let deadline = Instant::now() + PATIENCE;
    // The first dial may not be put down as over yet.
    while !a.transport.inner.table().wait(unknown, b.address, Vec::new()) {
        assert!(Instant::now() < deadline, "no further dial can be under way");
        std::thread::yield_now();
    }
    let inner = Arc::clone(&a.transport.inner);
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        let frame = wire::encode_message(&inner.stamp, &ask(9)).unwrap();
        inner.send_by_dialling(ProcessId(Uuid::from_u128(2)), b.address, frame);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(PATIENCE).expect("it came back");
    assert_eq!(b.received().1, ask(9));
}
