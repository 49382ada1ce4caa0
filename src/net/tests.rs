//! The listener against real sockets on loopback.

use super::connection::{Connection, Fate};
use super::*;
use crate::base::boottime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);

/// Speaks lines. `big` is answered with more than sockets hold, `late` with an answer that is too old the
/// first two times, `never` with one that always is. `detach`, `close` and `last` are answered with what they
/// say, anything else with itself.
struct Lines {
    detached: Sender<Detached>,
    asked_late: u32,
    /// Counts the answers, those that were thrown away included.
    answers: Arc<AtomicU64>,
}

type Detached = (TcpStream, SocketAddr, Vec<u8>);

const BIG_BYTES: usize = 1 << 20;

impl Service for Lines {
    type Admitted = ();
    type Session = ();

    fn received(&mut self, _: &mut (), received: &[u8], remote: SocketAddr) -> Step<()> {
        assert!(!received.is_empty());
        assert!(remote.is_ipv4(), "{remote} is not canonical");
        let Some(end) = received.iter().position(|byte| *byte == b'\n') else {
            return Step::Wait;
        };
        let reply = |bytes: Vec<u8>, close| Step::Reply { bytes, consumed: end + 1, close, held: None };
        self.answers.fetch_add(1, Ordering::Relaxed);
        match &received[..end] {
            b"detach" => Step::Detach(()),
            b"close" => Step::Close,
            b"last" => reply(b"last\n".to_vec(), true),
            b"big" => reply(vec![b'x'; BIG_BYTES], false),
            b"late" => {
                self.asked_late += 1;
                if self.asked_late < 3 {
                    // What a stopped process looks like from inside.
                    std::thread::sleep(ANSWER_AGE_MAX * 2);
                }
                reply(format!("{}\n", self.asked_late).into_bytes(), false)
            }
            b"once" => {
                std::thread::sleep(ANSWER_AGE_MAX * 2);
                Step::Last(b"once\n".to_vec())
            }
            b"never" => {
                std::thread::sleep(ANSWER_AGE_MAX * 2);
                reply(b"too old\n".to_vec(), false)
            }
            _ => reply(received[..=end].to_vec(), false),
        }
    }

    fn overdue(&mut self, received: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        (!received.is_empty()).then(|| b"overdue\n".to_vec())
    }

    fn overflow(&mut self, _: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
        Some(b"overflow\n".to_vec())
    }

    fn detached(&mut self, detached: super::service::Detached<()>) {
        let super::service::Detached { stream, remote, received, .. } = detached;
        self.detached.send((stream, remote, received)).unwrap();
    }
}

const LIMITS: Limits = Limits {
    connections_max: 16,
    connections_per_host_max: 16,
    receive_bytes_max: 64,
    receive_deadline: LONG,
    idle_deadline: LONG,
    write_deadline: LONG,
};

impl Lines {
    fn new() -> (Lines, Receiver<Detached>) {
        let (detached, are_detached) = channel();
        let service = Lines { detached, asked_late: 0, answers: Arc::default() };
        (service, are_detached)
    }
}

fn serve(limits: Limits) -> (Listener, Receiver<Detached>) {
    let (service, detached) = Lines::new();
    (serve_with(limits, service), detached)
}

fn serve_with(limits: Limits, service: impl Service) -> Listener {
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    // Accepted connections inherit these; nothing may come of it.
    let socket = socket2::SockRef::from(&listener);
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    socket.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    Listener::spawn("test", listener, limits, service).unwrap()
}

fn connect(listener: &Listener) -> TcpStream {
    let stream = TcpStream::connect_timeout(&listener.local_address(), PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

#[track_caller]
fn hear(stream: &mut TcpStream, text: &str) {
    let mut bytes = vec![0; text.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), text);
}

/// Waits until the other side has closed the connection, and returns what it said before.
#[track_caller]
fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn answers_one_after_the_other() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    say(&mut stream, "one\n");
    hear(&mut stream, "one\n");
    say(&mut stream, "two\nthree\nfo");
    hear(&mut stream, "two\nthree\n");
    say(&mut stream, "ur\nlast\nfive\n");
    hear(&mut stream, "four\nlast\n");
    assert_eq!(rest(&mut stream), "");
}

#[test]
fn the_remote_address_is_canonical() {
    let (service, _detached) = Lines::new();
    let listener =
        Listener::spawn("test", listen("[::]:0".parse().unwrap()).unwrap(), LIMITS, service).unwrap();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, listener.local_address().port())).unwrap();
    say(&mut stream, "last\n");
    assert_eq!(rest(&mut stream), "last\n");
}

#[test]
fn the_client_may_close_its_half_first() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    say(&mut stream, "one\ntwo\nthree");
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), "one\ntwo\n");
}

#[test]
fn the_oldest_that_waits_is_evicted() {
    let (listener, _) = serve(LIMITS);
    let mut idle: Vec<TcpStream> = (0..LIMITS.connections_max).map(|_| connect(&listener)).collect();
    for stream in &mut idle {
        say(stream, "x\n");
        hear(stream, "x\n");
    }
    // The first has been heard again, so the second is the oldest that waits.
    say(&mut idle[0], "y\n");
    hear(&mut idle[0], "y\n");
    let mut new = connect(&listener);
    say(&mut new, "new\n");
    hear(&mut new, "new\n");
    assert_eq!(rest(&mut idle[1]), "");
    for index in (0..idle.len()).filter(|index| *index != 1) {
        say(&mut idle[index], "z\n");
        hear(&mut idle[index], "z\n");
    }
}

#[test]
fn a_host_with_many_connections_pushes_out_its_own() {
    let (listener, _) = serve(Limits { connections_per_host_max: 3, ..LIMITS });
    let from = |host: u8| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into()).unwrap();
        socket.connect(&listener.local_address().into()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = TcpStream::from(socket);
        say(&mut stream, "x\n");
        hear(&mut stream, "x\n");
        stream
    };
    let mut other = from(2);
    let mut greedy: Vec<TcpStream> = (0..4).map(|_| from(3)).collect();
    assert_eq!(rest(&mut greedy[0]), "");
    for stream in greedy[1..].iter_mut().chain([&mut other]) {
        say(stream, "y\n");
        hear(stream, "y\n");
    }
}

#[test]
fn slow_readers_are_evicted_when_no_other_client_is_there() {
    let (listener, _) = serve(LIMITS);
    let mut slow: Vec<TcpStream> = (0..LIMITS.connections_max).map(|_| connect(&listener)).collect();
    for stream in &mut slow {
        say(stream, "big\n");
        hear(stream, "x");
    }
    let mut new = connect(&listener);
    say(&mut new, "new\n");
    hear(&mut new, "new\n");
}

#[test]
fn a_big_reply_arrives_whole_and_the_next_one_after_it() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    say(&mut stream, "big\nnext\n");
    let mut bytes = vec![0; BIG_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == b'x'));
    hear(&mut stream, "next\n");
}

#[test]
fn nothing_is_read_while_a_reply_is_on_its_way() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    stream.set_nonblocking(true).unwrap();
    stream.write_all(b"big\n").unwrap();
    // The socket buffers of both sides fill up, and then the client cannot write any more.
    let start = Instant::now();
    let mut blocked_since = None;
    while blocked_since.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(200)) {
        assert!(start.elapsed() < PATIENCE, "the listener reads without end");
        match stream.write(&[b'\n'; 64 * 1024]) {
            Ok(_) => blocked_since = None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                blocked_since.get_or_insert_with(Instant::now);
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn too_much_is_refused() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    say(&mut stream, &"x".repeat(LIMITS.receive_bytes_max - 1));
    say(&mut stream, "\n");
    hear(&mut stream, &"x".repeat(LIMITS.receive_bytes_max - 1));
    hear(&mut stream, "\n");
    say(&mut stream, &"x".repeat(LIMITS.receive_bytes_max));
    assert_eq!(rest(&mut stream), "overflow\n");
}

#[test]
fn a_client_that_goes_on_sending_still_gets_the_last_reply() {
    let (listener, _) = serve(LIMITS);
    for _ in 0..20 {
        let mut stream = connect(&listener);
        for _ in 0..10 {
            say(&mut stream, &"x".repeat(10_000));
        }
        // And the end of the connection, at once and in good order: no reset.
        let (start, mut bytes) = (Instant::now(), Vec::new());
        stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"overflow\n");
        assert!(start.elapsed() < DRAIN_DEADLINE, "{:?}", start.elapsed());
    }
}

#[test]
fn trickling_bytes_do_not_move_the_deadline() {
    let receive_deadline = Duration::from_millis(200);
    let (listener, _) = serve(Limits { receive_deadline, receive_bytes_max: 1 << 20, ..LIMITS });
    let start = Instant::now();
    let mut silent = connect(&listener);
    let mut trickling = connect(&listener);
    let mut trickled = trickling.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        while trickled.write_all(b"x").is_ok() && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    });
    assert_eq!(rest(&mut silent), "");
    assert!(start.elapsed() >= receive_deadline);
    assert_eq!(rest(&mut trickling), "overdue\n");
    let waited = start.elapsed();
    assert!(waited < receive_deadline * 10, "{waited:?}");
    trickle.join().unwrap();
}

#[test]
fn an_idle_connection_has_its_own_deadline_and_a_new_request_another() {
    let short = Duration::from_millis(200);
    let (listener, _) = serve(Limits { idle_deadline: short, ..LIMITS });
    let mut stream = connect(&listener);
    say(&mut stream, "one\n");
    hear(&mut stream, "one\n");
    let start = Instant::now();
    assert_eq!(rest(&mut stream), "");
    assert!(start.elapsed() >= short / 2);

    let (listener, _) = serve(Limits { receive_deadline: short, ..LIMITS });
    let mut stream = connect(&listener);
    say(&mut stream, "one\n");
    hear(&mut stream, "one\n");
    say(&mut stream, "tw");
    assert_eq!(rest(&mut stream), "overdue\n");
}

#[test]
fn a_client_that_does_not_read_is_reset_at_the_deadline() {
    let write_deadline = Duration::from_millis(200);
    let (listener, _) = serve(Limits { write_deadline, ..LIMITS });
    let mut stream = connect(&listener);
    let start = Instant::now();
    say(&mut stream, "big\n");
    // The reset shows up as soon as it has arrived, without reading what came before it.
    while stream.take_error().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    assert!(start.elapsed() >= write_deadline);
}

/// A service that keeps a state of the connection has changed it by then.
#[test]
fn last_words_are_made_once_however_long_that_takes() {
    let (service, _) = Lines::new();
    let answers = Arc::clone(&service.answers);
    let listener = serve_with(LIMITS, service);
    let mut stream = connect(&listener);
    say(&mut stream, "once\n");
    assert_eq!(rest(&mut stream), "once\n");
    assert_eq!(answers.load(Ordering::Relaxed), 1);
}

#[test]
fn an_answer_that_grew_old_is_made_again() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    say(&mut stream, "late\n");
    hear(&mut stream, "3\n");
    say(&mut stream, "never\n");
    assert_eq!(rest(&mut stream), "");
}

#[test]
fn an_answer_waits_for_room_and_is_made_then() {
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut stream, remote) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    say(&mut client, "one\n");
    // Full to the last byte, and still so when the acknowledgements that were delayed have arrived.
    let (mut filled, mut full_since) = (0, Instant::now());
    while full_since.elapsed() < Duration::from_millis(200) {
        match stream.write(&[b'f'; 1000]).or_else(|_| stream.write(b"f")) {
            Ok(bytes) => (filled, full_since) = (filled + bytes, Instant::now()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    let (mut service, _detached) = Lines::new();
    let answers = Arc::clone(&service.answers);
    let begun = boottime();
    let mut connection = Connection::new(stream, remote, begun, &LIMITS);
    let mut turn = |connection: &mut Connection<()>, events| {
        let wanted = connection.interest();
        assert_eq!(wanted, events);
        let mut sockets = [PollFd::new(connection.stream(), wanted)];
        let timeout = Timespec { tv_sec: 5, tv_nsec: 0 };
        assert_eq!(poll(&mut sockets, Some(&timeout)).unwrap(), 1);
        let fate: Fate<()> = connection.advance(sockets[0].revents(), &mut [0; 64], begun, &LIMITS);
        assert_eq!(fate, Fate::Keep);
        assert!(connection.due());
        assert_eq!(connection.answer(&mut service, &LIMITS), Fate::Keep);
        assert!(!connection.due());
    };
    turn(&mut connection, PollFlags::IN);
    assert_eq!(answers.load(Ordering::Relaxed), 1);
    client.read_exact(&mut vec![0; filled]).unwrap();
    turn(&mut connection, PollFlags::OUT);
    hear(&mut client, "one\n");
    // The answer that found no room was thrown away.
    assert_eq!(answers.load(Ordering::Relaxed), 2);
    assert_eq!(connection.interest(), PollFlags::IN);
}

#[test]
fn a_detached_connection_blocks_and_is_whole() {
    let (listener, detached) = serve(LIMITS);
    let mut client = connect(&listener);
    say(&mut client, "one\ndetach\nmore");
    hear(&mut client, "one\n");
    let (mut stream, remote, received) = detached.recv_timeout(PATIENCE).unwrap();
    assert_eq!(received, b"detach\nmore");
    assert_eq!(remote, client.local_addr().unwrap());
    assert_eq!(stream.read_timeout().unwrap(), None);
    assert_eq!(stream.write_timeout().unwrap(), None);
    assert!(stream.nodelay().unwrap());
    let flags = rustix::fs::fcntl_getfl(&stream).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    listener.stop();
    say(&mut client, "still here\n");
    hear(&mut stream, "still here\n");
}

#[test]
fn closes_without_a_word() {
    let (listener, _) = serve(LIMITS);
    let mut stream = connect(&listener);
    say(&mut stream, "close\n");
    assert_eq!(rest(&mut stream), "");
}

#[test]
fn stopping_frees_the_port_and_closes_everything() {
    let (listener, _) = serve(LIMITS);
    assert!(listener.alive());
    let address = listener.local_address();
    let mut stream = connect(&listener);
    say(&mut stream, "one\n");
    hear(&mut stream, "one\n");
    let start = Instant::now();
    listener.stop();
    // It is woken for it, and does not wait until it turns by itself after a second.
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    assert_eq!(rest(&mut stream), "");
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    listen(address).unwrap();
}

#[test]
fn a_listener_whose_service_panicked_is_not_alive() {
    struct Panics;
    impl Service for Panics {
        type Admitted = ();
        type Session = ();
        fn received(&mut self, _: &mut (), _: &[u8], _: SocketAddr) -> Step<()> {
            panic!("on purpose")
        }
        fn overdue(&mut self, _: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
            None
        }
        fn overflow(&mut self, _: &[u8], _: SocketAddr) -> Option<Vec<u8>> {
            None
        }
        fn detached(&mut self, _: super::service::Detached<()>) {}
    }
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = Listener::spawn("test", listener, LIMITS, Panics).unwrap();
    let mut stream = connect(&listener);
    say(&mut stream, "x");
    assert_eq!(rest(&mut stream), "");
    let start = Instant::now();
    while listener.alive() {
        assert!(start.elapsed() < TURN_AGE_MAX / 2);
        std::thread::yield_now();
    }
}

#[test]
fn a_listening_socket_that_was_shut_is_not_alive() {
    let (service, _detached) = Lines::new();
    let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let other = socket.try_clone().unwrap();
    let listener = Listener::spawn("test", socket, LIMITS, service).unwrap();
    assert!(listener.alive());
    rustix::net::shutdown(&other, rustix::net::Shutdown::Both).unwrap();
    let start = Instant::now();
    while listener.alive() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}
