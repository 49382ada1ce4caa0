//! Whose a connection is. The impostors of these tests know all that a member tells, and own none of its
//! addresses.

use super::*;
use crate::election::Instance;
use crate::wire::Confirm;

/// A peer that listens here.
fn listening() -> (TcpListener, Peer) {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let them = peer(2, 7, listener.local_addr().unwrap());
    (listener, them)
}

fn greeting(from: &Peer) -> Vec<u8> {
    wire::encode_hello(&Hello { token: 5, ..hello("c", from.clone()) }).unwrap()
}

/// Why a connection is refused; none: it is let in.
fn refused(stream: &mut TcpStream) -> Option<Refusal> {
    match frame(stream) {
        Frame::Refuse { why, .. } => Some(why),
        Frame::Hello(_) => None,
        other => panic!("{other:?}"),
    }
}

/// What this process answers to a question.
fn answered(to: SocketAddr, question: &Confirm) -> Frame {
    frame(&mut connect(to, &wire::encode_confirm(question)))
}

/// What a process may answer to a question about its own address, and why a newcomer there is refused then.
const ANSWERS: [(Confirmed, Option<Refusal>); 3] = [
    (Confirmed::Own, None),
    (Confirmed::Foreign, Some(Refusal::Identity)),
    (Confirmed::Another, Some(Refusal::Identity)),
];

#[test]
fn a_second_link_of_one_identity_counts_once_the_process_has_confirmed_it() {
    for (answer, why) in ANSWERS {
        let a = side(1, "c");
        let (listener, them) = listening();
        let mut first = connect(a.address, &greeting(&them));
        assert_eq!(refused(&mut first), None, "an unknown process is a new member");
        a.opened();
        let mut second = connect(a.address, &greeting(&them));
        confirms(&listener, answer);
        assert_eq!(refused(&mut second), why, "{answer:?}");
        if why.is_some() {
            // What is meant for the member goes to the member.
            a.transport.send(them.id, them.address, &ask(4));
            assert!(matches!(frame(&mut first), Frame::Message { .. }));
            assert!(a.reports.try_recv().is_err(), "nothing was heard of the other");
        }
    }
}

#[test]
fn no_answer_confirms_nothing() {
    let a = side(1, "c");
    let (listener, them) = listening();
    let _first = greeted(a.address, them.clone());
    a.opened();
    assert_eq!(refused(&mut connect(a.address, &greeting(&them))), Some(Refusal::Identity), "in time");
    drop(listener);
    assert_eq!(refused(&mut connect(a.address, &greeting(&them))), Some(Refusal::Identity), "refused");
}

/// The member is known from the leader's list, and not connected.
#[test]
fn a_first_link_of_a_known_member_counts_once_the_member_has_confirmed_it() {
    for (answer, why) in [(Confirmed::Own, None), (Confirmed::Foreign, Some(Refusal::Identity))] {
        let a = side(1, "c");
        let (listener, them) = listening();
        a.transport.know([them.clone()].into_iter());
        let mut stream = connect(a.address, &greeting(&them));
        confirms(&listener, answer);
        assert_eq!(refused(&mut stream), why, "{answer:?}");
    }
}

/// Another incarnation, or another process, at the address of a member that is connected: a restart says the
/// same.
#[test]
fn a_newcomer_has_to_own_the_address_that_it_shares_with_a_member() {
    for number in [2, 3] {
        for (answer, why) in [(Confirmed::Own, None), (Confirmed::Foreign, Some(Refusal::Identity))] {
            let a = side(1, "c");
            let (listener, them) = listening();
            let _first = greeted(a.address, them.clone());
            a.opened();
            let newcomer = peer(number, 8, them.address);
            let mut second = connect(a.address, &greeting(&newcomer));
            confirms(&listener, answer);
            assert_eq!(refused(&mut second), why, "p{number} {answer:?}");
            if why.is_some() {
                assert!(a.reports.try_recv().is_err(), "the first link goes on");
            }
        }
    }
}

#[test]
fn the_live_process_of_an_id_keeps_it_against_one_elsewhere() {
    for (answer, why) in [(Confirmed::Foreign, Some(Refusal::OwnId)), (Confirmed::Another, None)] {
        let a = side(1, "c");
        let ((listener, them), (elsewhere, _)) = (listening(), listening());
        let _first = greeted(a.address, them.clone());
        a.opened();
        let newcomer = peer(2, 8, elsewhere.local_addr().unwrap());
        let mut second = connect(a.address, &greeting(&newcomer));
        confirms(&listener, answer);
        if why.is_none() {
            confirms(&elsewhere, Confirmed::Own);
        }
        assert_eq!(refused(&mut second), why, "{answer:?}");
    }
}

#[test]
fn a_process_confirms_its_own_dial_to_where_it_dialled() {
    let a = side(1, "c");
    let (listener, them) = listening();
    let me = Instance { id: ProcessId(Uuid::from_u128(1)), incarnation: Incarnation(1) };
    a.dial(them.address);
    let mut dialled = accepted(&listener);
    let Frame::Hello(theirs) = frame(&mut dialled) else { panic!("no Hello") };
    let (here, elsewhere) = (them.address, loopback(9));
    let token = theirs.token;
    assert_ne!(token, 0);
    for (instance, token, reached, answer) in [
        (me, token, (here, elsewhere), Confirmed::Own),
        (me, token, (elsewhere, here), Confirmed::Own),
        // A relay passes the Hello on to another process.
        (me, token, (elsewhere, elsewhere), Confirmed::Foreign),
        (me, token ^ 1, (here, here), Confirmed::Foreign),
        (me, 0, (here, here), Confirmed::Foreign),
        (Instance { incarnation: Incarnation(2), ..me }, token, (here, here), Confirmed::Another),
    ] {
        let frame = answered(a.address, &Confirm { instance, token, reached });
        assert_eq!(frame, Frame::Confirmed(answer), "{instance:?} {reached:?}");
    }
    // The dial has its answer: no later Hello is its own.
    dialled.write_all(&wire::encode_hello(&hello("c", them.clone())).unwrap()).unwrap();
    a.opened();
    let frame = answered(a.address, &Confirm { instance: me, token, reached: (here, here) });
    assert_eq!(frame, Frame::Confirmed(Confirmed::Foreign));
}

/// The process that answers there names a member that lives elsewhere: the member is dialled at its own
/// address.
#[test]
fn a_dial_that_finds_the_name_of_a_member_elsewhere_makes_no_link() {
    let a = side(1, "c");
    let ((listener, them), (elsewhere, _)) = (listening(), listening());
    a.transport.know([them.clone()].into_iter());
    a.dial(elsewhere.local_addr().unwrap());
    let (mut dialled, _) = elsewhere.accept().unwrap();
    assert!(matches!(frame(&mut dialled), Frame::Hello(_)));
    dialled.write_all(&wire::encode_hello(&hello("c", them.clone())).unwrap()).unwrap();
    assert_eq!(frame(&mut dialled), Frame::Bye);
    let mut own = accepted(&listener);
    assert!(matches!(frame(&mut own), Frame::Hello(_)), "it is dialled where it lives");
    own.write_all(&wire::encode_hello(&hello("c", them.clone())).unwrap()).unwrap();
    assert_eq!(a.opened(), them);
}

/// A process that answers each dial with another address has nothing dialled on and on.
#[test]
fn a_dial_is_followed_to_one_other_address() {
    let a = side(1, "c");
    let ((first, _), (second, at_second), (third, at_third)) = (listening(), listening(), listening());
    a.transport.know([at_second.clone()].into_iter());
    a.dial(first.local_addr().unwrap());
    let answers = |listener: &TcpListener, lives: &Peer| {
        let mut dialled = accepted(listener);
        assert!(matches!(frame(&mut dialled), Frame::Hello(_)));
        dialled.write_all(&wire::encode_hello(&hello("c", lives.clone())).unwrap()).unwrap();
        assert_eq!(frame(&mut dialled), Frame::Bye);
    };
    answers(&first, &at_second);
    answers(&second, &at_third);
    // The next dial comes by itself, and later than one that follows would.
    answers(&first, &at_second);
    third.set_nonblocking(true).unwrap();
    assert!(third.accept().is_err(), "it is followed on");
}

#[test]
fn what_a_stranger_announces_is_forgotten_with_its_link() {
    let a = side(1, "c");
    let them = peer(2, 7, loopback(9));
    let announce = AnnouncedValues([("k".to_owned(), "v".to_owned())].into());
    let said = wire::encode_hello(&Hello { announce, ..hello("c", them.clone()) }).unwrap();
    let mut stream = connect(a.address, &said);
    assert!(matches!(frame(&mut stream), Frame::Hello(_)));
    a.opened();
    assert!(a.transport.announced().contains_key(&them.id));
    drop(stream);
    a.closed();
    assert!(!a.transport.announced().contains_key(&them.id));
}

#[test]
fn a_peer_advertises_where_it_comes_from_or_what_discovery_names() {
    let a = side(1, "c");
    let far = peer(2, 7, SocketAddr::from(([127, 0, 0, 77], 4041)));
    assert_eq!(refused(&mut connect(a.address, &greeting(&far))), Some(Refusal::Address));
    a.transport.name(BTreeSet::from([SocketAddr::from(([127, 0, 0, 77], 4042))]));
    assert_eq!(refused(&mut connect(a.address, &greeting(&far))), Some(Refusal::Address), "another port");
    a.transport.name(BTreeSet::from([far.address]));
    assert_eq!(refused(&mut connect(a.address, &greeting(&far))), None);
    let near = peer(3, 7, loopback(9));
    assert_eq!(refused(&mut connect(a.address, &greeting(&near))), None, "any port of its own");
}

/// A full table has forgotten a member that lives. An impostor that knows all of it does not come in as that
/// member: its Leave would be the member's, whose own links stay open.
#[test]
fn an_unknown_peer_does_not_advertise_where_another_process_lives() {
    for (answer, why) in ANSWERS {
        let a = side(1, "c");
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 77], 0))).unwrap();
        let far = peer(2, 7, listener.local_addr().unwrap());
        a.transport.name(BTreeSet::from([far.address]));
        let mut stream = connect(a.address, &greeting(&far));
        confirms(&listener, answer);
        assert_eq!(refused(&mut stream), why, "{answer:?}");
    }
}

#[test]
fn a_stranger_that_guesses_names_is_not_told_the_right_one() {
    let a = side(1, "the-right-name");
    let mut stream = connect(a.address, &greeting(&peer(2, 7, loopback(9))));
    let Frame::Refuse { why, text } = frame(&mut stream) else { panic!("it is let in") };
    assert_eq!(why, Refusal::Cluster);
    assert!(!text.contains("the-right-name"), "{text}");
}

fn refuses_one(side: &Side) {
    let began = Instant::now();
    while side.counts.refused.load(Ordering::Relaxed) == 0 {
        assert!(began.elapsed() < PATIENCE, "it refuses no connection");
        std::thread::yield_now();
    }
}

/// Discovery names the address a moment later.
#[test]
fn a_dial_that_is_refused_for_what_may_change_soon_is_tried_again_soon() {
    let a = side_that_says(1, "c", Ipv4Addr::new(127, 0, 0, 78));
    let b = side(2, "c");
    a.dial(b.address);
    refuses_one(&b);
    let advertised = a.transport.inner.table().advertised();
    b.transport.name(BTreeSet::from([advertised]));
    assert_eq!(b.opened().address, advertised);
}

/// Another process has its id, and ends.
#[test]
fn a_dial_that_is_refused_for_a_third_process_is_tried_again_soon() {
    let (a, b) = (side(1, "c"), side(2, "c"));
    let (listener, _) = listening();
    let impostor = peer(1, 7, listener.local_addr().unwrap());
    let link = greeted(b.address, impostor.clone());
    assert_eq!(b.opened(), impostor);
    a.dial(b.address);
    confirms(&listener, Confirmed::Own);
    refuses_one(&b);
    drop((listener, link));
    assert_eq!(b.opened().address, a.transport.inner.table().advertised());
}

/// A process that is stopped takes connections, and confirms nothing. That does not free its identity.
#[test]
fn a_member_that_is_slow_to_answer_keeps_its_identity() {
    for incarnation in [7, 8] {
        let a = side(1, "c");
        let ((listener, them), (elsewhere, _)) = (listening(), listening());
        let _first = greeted(a.address, them.clone());
        a.opened();
        let newcomer = peer(2, incarnation, elsewhere.local_addr().unwrap());
        let mut second = connect(a.address, &greeting(&newcomer));
        assert_eq!(refused(&mut second), Some(Refusal::Identity), "{incarnation}: the member is there");
        drop(listener);
        // Its first link is still open, but no process listens there any more.
        let mut second = connect(a.address, &greeting(&newcomer));
        let moves = incarnation != 7;
        if moves {
            confirms(&elsewhere, Confirmed::Own);
        }
        assert_eq!(refused(&mut second), (!moves).then_some(Refusal::Identity), "{incarnation}");
    }
}
