//! What a link may hold of the budget.

use super::*;
use crate::base::Share;
use crate::election::{Entry, MembershipVersion, State};

/// A list whose frame is about this long, and how long it is.
fn list(bytes: usize) -> (Vec<u8>, Message) {
    let named =
        |number| Peer { name: "n".repeat(253), revision: "r".repeat(63), ..peer(number, 1, loopback(9)) };
    let entries = (0..bytes as u128 / 350).map(|number| Entry { peer: named(number), state: State::Alive });
    let body = Body::Membership { version: MembershipVersion::default(), entries: entries.collect() };
    let message = Message { epoch: Epoch(1), priority: Priority::DEFAULT, body };
    let stamp = wire::Stamp { cluster: "c".to_owned(), id: peer(2, 7, loopback(9)).id };
    (wire::encode_message(&stamp, &message).unwrap(), message)
}

fn linked(budget: &Budget) -> (Side, TcpStream) {
    let a = side_on(1, "c", Ipv4Addr::LOCALHOST, SafetyCode::Classic, Credentials::none(), budget.clone());
    let stream = greeted(a.address, peer(2, 7, loopback(9)));
    a.opened();
    (a, stream)
}

/// All of the budget that is left to strangers, but for so many bytes.
fn all_but(budget: &Budget, bytes: usize) -> Share {
    let mut share = budget.share(Holder::Stranger);
    let most = (0..).map(|power| 1usize << power).take_while(|bytes| share.resize(*bytes)).last().unwrap();
    assert!(most > bytes && share.resize(most - bytes));
    share
}

#[test]
fn a_frame_that_the_budget_has_no_room_for_ends_its_link() {
    let budget = Budget::new(4 << 20);
    let (a, mut stream) = linked(&budget);
    let (frame, message) = list(60_000);
    stream.write_all(&frame).unwrap();
    assert_eq!(a.received().1, message, "there is room");
    let rest = all_but(&budget, 20_000);
    stream.write_all(&frame[..frame.len() - 1]).unwrap();
    assert_eq!(a.closed(), (ProcessId(Uuid::from_u128(2)), 7, false), "which proves no crash");
    drop(rest);
    assert!(budget.take(Holder::Stranger, 1 << 20).is_some(), "what it held is free again");
}

/// The driver is slow; a short message still reaches it.
#[test]
fn a_long_message_that_cannot_wait_is_dropped_and_a_short_one_is_not() {
    let budget = Budget::new(4 << 20);
    let (a, mut stream) = linked(&budget);
    let (frame, _) = list(60_000);
    // Room for the frame, and not for what it says as well.
    let _rest = all_but(&budget, 2 * frame.len());
    stream.write_all(&frame).unwrap();
    let stamp = wire::Stamp { cluster: "c".to_owned(), id: peer(2, 7, loopback(9)).id };
    stream.write_all(&wire::encode_message(&stamp, &ask(5)).unwrap()).unwrap();
    assert_eq!(a.received().1, ask(5));
}

/// The kernel keeps little for a peer, and more at the cost of the budget.
#[test]
fn a_peer_that_takes_nothing_costs_a_share_of_the_budget() {
    let budget = Budget::new(4 << 20);
    let (a, mut stream) = linked(&budget);
    let (_, long) = list(80_000);
    let to = ProcessId(Uuid::from_u128(2));
    socket2::SockRef::from(&stream).set_recv_buffer_size(1024).unwrap();
    let whole = 1 << 20;
    assert!(budget.take(Holder::Stranger, whole).is_some());
    a.transport.send(to, loopback(9), &long);
    assert!(budget.take(Holder::Stranger, whole).is_none(), "the kernel keeps it");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(matches!(long_frame(&mut stream), Frame::Message { message, .. } if message == long));
    // Without a budget there is no room for a second one.
    let _rest = all_but(&budget, 0);
    let (_, longest) = list(85_000);
    for _ in 0..8 {
        a.transport.send(to, loopback(9), &longest);
    }
    assert_eq!(a.closed(), (to, 7, false));
}

/// The next frame, of any length.
fn long_frame(stream: &mut TcpStream) -> Frame {
    let mut received = Vec::new();
    loop {
        if let Some((frame, _)) = wire::decode(&received, wire::FRAME_BYTES_MAX).unwrap() {
            return frame;
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the link ended after {} bytes", received.len());
        received.extend_from_slice(&bytes[..count]);
    }
}
