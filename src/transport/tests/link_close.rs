//! How links end, and what that says of the peer.

use super::*;
use crate::channel::Channel;

#[test]
fn an_announced_end_is_no_evidence() {
    let (a, b) = (side(1, "c"), side(2, "c"));
    a.dial(b.address);
    a.opened();
    b.opened();
    b.transport.close();
    assert_eq!(a.closed(), (ProcessId(Uuid::from_u128(2)), 1, false));
}

#[test]
fn an_unannounced_end_and_a_refused_dial_are_a_crash() {
    let a = side(1, "c");
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let them = peer(2, 7, listener.local_addr().unwrap());
    let stream = greeted(a.address, them);
    a.opened();
    // As when a process is killed: the port first, then the connection.
    drop(listener);
    drop(stream);
    assert_eq!(a.closed(), (ProcessId(Uuid::from_u128(2)), 7, true));
}

#[test]
fn an_unannounced_end_that_the_same_incarnation_answers_is_a_blip() {
    let (a, b) = (side(1, "c"), side(2, "c"));
    a.dial(b.address);
    a.opened();
    b.opened();
    let link = a.transport.inner.table().links(ProcessId(Uuid::from_u128(2))).remove(0);
    link.break_off();
    // The other side's own look opens one more, so both may come in any order, and more than once.
    let (mut closed, mut opened) = (false, false);
    while !(closed && opened) {
        match a.reports.recv_timeout(PATIENCE).unwrap() {
            Report::Closed { crashed: false, .. } => closed = true,
            Report::Opened(p) if p.incarnation == Incarnation(1) => opened = true,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unannounced_end_that_another_incarnation_answers_is_a_crash_and_a_new_link() {
    let a = side(1, "c");
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let stream = greeted(a.address, peer(2, 7, address));
    a.opened();
    drop(stream);
    let mut redial = accepted(&listener);
    assert!(matches!(frame(&mut redial), Frame::Hello(_)));
    redial.write_all(&wire::encode_hello(&hello("c", peer(2, 8, address))).unwrap()).unwrap();
    let mut crashed = false;
    let mut opened = false;
    while !(crashed && opened) {
        match a.reports.recv_timeout(PATIENCE).unwrap() {
            Report::Closed { incarnation: Incarnation(7), crashed: true, .. } => crashed = true,
            Report::Opened(p) if p.incarnation == Incarnation(8) => opened = true,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn silence_after_an_unannounced_end_is_no_evidence() {
    let a = side(1, "c");
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let them = peer(2, 7, listener.local_addr().unwrap());
    let stream = greeted(a.address, them);
    a.opened();
    // The port still takes connections, and no process says anything there.
    drop(stream);
    assert_eq!(a.closed(), (ProcessId(Uuid::from_u128(2)), 7, false));
}

/// A sound frame of a kind that does not exist: a Bye under another tag, with its checksum made again.
fn unknown_frame() -> Vec<u8> {
    let mut unknown = wire::encode_bye();
    unknown[4..6].copy_from_slice(&999u16.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&unknown[4..6]);
    hasher.update(&unknown[10..]);
    unknown[6..10].copy_from_slice(&hasher.finalize().to_le_bytes());
    unknown
}

#[test]
fn unknown_frames_are_skipped_and_wrong_stamps_end_the_link() {
    let (a, them, mut stream) = linked();
    stream.write_all(&unknown_frame()).unwrap();
    let stamp = |id: ProcessId| wire::Stamp { cluster: "c".to_owned(), id };
    stream.write_all(&wire::encode_message(&stamp(them.id), &ask(5)).unwrap()).unwrap();
    assert_eq!(a.received().1, ask(5));
    assert_eq!(a.counts.unknown.load(Ordering::Relaxed), 1);
    let forged = wire::encode_message(&stamp(ProcessId(Uuid::from_u128(3))), &ask(6)).unwrap();
    stream.write_all(&forged).unwrap();
    assert_eq!(a.closed(), (them.id, 7, false));
}

/// Two processes may have one id, and one of them says that it leaves. The other one has to come anew: the
/// election has forgotten it, and would hear no word of it over the link that is open.
#[test]
fn no_link_of_a_peer_outlives_its_word_that_it_leaves() {
    let leave = Body::Leave { version: None, id: peer(2, 7, loopback(9)).id };
    let resign = Body::Resign { successor: None, leaving: true };
    let transfer = Body::Resign { successor: None, leaving: false };
    for (body, leaves) in [(leave, true), (resign, true), (transfer, false)] {
        let a = side(1, "c");
        let listener = TcpListener::bind(loopback(0)).unwrap();
        let them = peer(2, 7, listener.local_addr().unwrap());
        let mut first = greeted(a.address, them.clone());
        a.opened();
        let mut second = connect(a.address, &wire::encode_hello(&hello("c", them.clone())).unwrap());
        confirms(&listener, Confirmed::Own);
        assert!(matches!(frame(&mut second), Frame::Hello(_)));
        a.opened();
        let stamp = wire::Stamp { cluster: "c".to_owned(), id: them.id };
        let message = Message { body: body.clone(), ..ask(5) };
        second.write_all(&wire::encode_message(&stamp, &message).unwrap()).unwrap();
        a.until("message", |r| matches!(r, Report::Received { .. }).then_some(()));
        if leaves {
            assert!(matches!(frame(&mut first), Frame::Bye), "{body:?}");
            assert_eq!(a.closed(), (them.id, 7, false));
        }
        assert_eq!(a.transport.inner.table().links(them.id).len(), if leaves { 1 } else { 2 }, "{body:?}");
    }
}

#[test]
fn unknown_frames_without_end_end_the_link() {
    let (a, them, mut stream) = linked();
    let many = unknown_frame().repeat(20_000);
    let _ = stream.write_all(&many);
    assert_eq!(a.closed(), (them.id, 7, false));
}

#[test]
fn a_peer_that_stops_reading_is_cut_off_and_holds_up_no_thread() {
    let (a, them, stream) = linked();
    let began = Instant::now();
    while !a.transport.inner.table().links(them.id).is_empty() {
        a.transport.send(them.id, them.address, &ask(1));
        assert!(began.elapsed() < PATIENCE, "the link was never cut");
    }
    assert_eq!(a.closed(), (them.id, 7, false));
    let _ = stream.shutdown(Shutdown::Both);
}

/// The thread that reads a link takes it out of the table, and that thread may be waiting for the very driver
/// that writes.
#[test]
fn a_broken_link_whose_end_is_not_known_yet_holds_up_no_thread() {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, reports) = std::sync::mpsc::sync_channel(0);
    let settings = TransportSettings {
        cluster: "c".to_owned(),
        safety: SafetyCode::Classic,
        me: peer(1, 1, address),
        announce: AnnouncedValues::default(),
        credentials: Arc::new(Credentials::none()),
        budget: Budget::new(8 << 20),
        dial_timeout: Duration::from_millis(500),
        unacknowledged_max: Duration::from_secs(3),
    };
    let counts = Arc::new(Counted::default());
    let sink: Sink = Arc::new(move |report| drop(sender.send(report)));
    let a = Transport::start(settings, listener, sink, counts).unwrap();
    let them = peer(2, 7, loopback(9));
    let mut stream = connect(address, &wire::encode_hello(&hello("c", them.clone())).unwrap());
    assert!(matches!(frame(&mut stream), Frame::Hello(_)));
    assert!(matches!(reports.recv_timeout(PATIENCE), Ok(Report::Opened(_))));
    // Its message waits for room, and the thread that read it with it.
    let stamp = wire::Stamp { cluster: "c".to_owned(), id: them.id };
    stream.write_all(&wire::encode_message(&stamp, &ask(5)).unwrap()).unwrap();
    let link = a.inner.table().links(them.id).remove(0);
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        link.break_off();
        a.send(them.id, them.address, &ask(6));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(PATIENCE).expect("it came back");
    drop(reports);
}

/// A process that takes a peer for dead ends all links with it. If the peer is alive, the process seeks a new
/// one.
#[test]
fn a_crash_ends_the_other_links_of_that_incarnation() {
    let a = side(1, "c");
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let them = peer(2, 7, listener.local_addr().unwrap());
    let greeting = wire::encode_hello(&hello("c", them.clone())).unwrap();
    let mut streams = [connect(a.address, &greeting), connect(a.address, &greeting)];
    confirms(&listener, Confirmed::Own);
    for stream in &mut streams {
        assert!(matches!(frame(stream), Frame::Hello(_)));
        a.opened();
    }
    drop(listener);
    let [broken, mut other] = streams;
    drop(broken);
    assert_eq!(a.closed(), (them.id, 7, true));
    assert_eq!(other.read(&mut [0]).unwrap(), 0, "it ends");
    assert!(a.transport.inner.table().links(them.id).is_empty());
}

#[test]
fn a_peer_for_which_there_is_no_room_is_told_so() {
    let (a, b) = (side(1, "c"), side(2, "c"));
    a.dial(b.address);
    let (a_id, _) = (b.opened().id, a.opened());
    b.transport.refuse(a_id);
    a.until("refusal", |r| matches!(r, Report::Event(Event::TurnedAway)).then_some(()));
    assert_eq!(a.closed(), (ProcessId(Uuid::from_u128(2)), 1, false), "which is no crash");
    assert_eq!(b.closed(), (a_id, 1, false));
}

/// Both sides have dialled. The process of the lower id ends its own link once that is silent, and the other
/// process keeps both.
#[test]
fn of_two_links_the_lower_id_ends_its_own() {
    for (number, ends) in [(1, true), (3, false)] {
        let a = side(number, "c");
        let listener = TcpListener::bind(loopback(0)).unwrap();
        let them = peer(2, 7, listener.local_addr().unwrap());
        let greeting = wire::encode_hello(&Hello { token: 5, ..hello("c", them.clone()) }).unwrap();
        a.dial(them.address);
        let mut dialled = accepted(&listener);
        assert!(matches!(frame(&mut dialled), Frame::Hello(_)));
        dialled.write_all(&greeting).unwrap();
        a.opened();
        let links = || a.transport.inner.table().links(them.id);
        assert!(!link::is_spare(&a.transport.inner, &links()[0]), "the only link with a peer that it seeks");

        let mut taken = connect(a.address, &greeting);
        confirms(&listener, Confirmed::Own);
        assert!(matches!(frame(&mut taken), Frame::Hello(_)));
        a.opened();
        assert_eq!(links().len(), 2);
        assert!(links().iter().all(|link| link::is_spare(&a.transport.inner, link) == ends), "{number}");
        if ends {
            links().iter().for_each(|link| link.fall_silent());
            dialled.set_read_timeout(Some(2 * PATIENCE)).unwrap();
            assert!(matches!(frame(&mut dialled), Frame::Bye));
            let began = Instant::now();
            while links().len() > 1 {
                assert!(began.elapsed() < PATIENCE, "the link stays");
                std::thread::yield_now();
            }
        }
    }
}

/// The thread of a link may be held up until another incarnation's link has come, and ended this one.
#[test]
fn a_link_is_told_of_once_and_never_after_its_end() {
    let a = side(1, "c");
    let inner = &a.transport.inner;
    let told = |early: bool, crashed: bool| -> Vec<String> {
        let (_kept, stream) = {
            let listener = TcpListener::bind(loopback(0)).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (listener, stream)
        };
        let held = inner.settings.budget.share(Holder::Stranger);
        let host = Ipv4Addr::LOCALHOST.into();
        let link = Link::new(peer(2, 7, loopback(9)), host, Channel::clear(stream), held);
        if early {
            link.tell_closed(inner, crashed);
        }
        link.tell_opened(inner);
        link.tell_closed(inner, crashed);
        link.tell_closed(inner, false);
        a.reports
            .try_iter()
            .map(|report| {
                let text = format!("{report:?}");
                text.trim_start_matches("Event(").split(['(', ' ']).next().unwrap().to_owned()
            })
            .collect()
    };
    let expected = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    assert_eq!(told(false, false), expected(&["Opened", "Closed"]));
    assert_eq!(told(true, false), expected(&[]));
    assert_eq!(told(true, true), expected(&["Crashed", "Crashed"]));
}
