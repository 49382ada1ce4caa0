//! Two transports, or one and a stranger, with and without the peer secret.

use super::*;
use crate::channel::{Channel, Got, Keys, PeerAuth, ProofFiles, open};
use crate::election::{ANNOUNCE_KEY_BYTES_MAX, ANNOUNCE_MAX, ANNOUNCE_VALUE_BYTES_MAX, Instance};
use std::path::{Path, PathBuf};

const ONE: &str = "one-secret-of-at-least-32-random-bytes";
const OTHER: &str = "another-secret-of-at-least-32-bytes-too";

/// A file with these lines.
fn file(folder: &tempfile::TempDir, lines: &[&str]) -> PathBuf {
    let path = folder.path().join("secret");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

/// Credentials of a secret in this file.
fn opened(path: &Path, election: &str, mode: PeerAuth) -> Credentials {
    Credentials::open(mode, Some(ProofFiles::Secret(path.to_owned())), election).unwrap()
}

fn with(number: u128, cluster: &str, mode: PeerAuth, lines: &[&str]) -> Side {
    let folder = tempfile::tempdir().unwrap();
    let credentials = opened(&file(&folder, lines), cluster, mode);
    side_with(number, cluster, Ipv4Addr::LOCALHOST, SafetyCode::Classic, credentials)
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

fn unauthenticated(side: &Side) -> u32 {
    side.counts.unauthenticated.load(Ordering::Relaxed)
}

/// All that a connection answers until it ends.
fn answer(to: SocketAddr, first: &[u8]) -> Vec<u8> {
    let mut stream = connect(to, first);
    let mut answer = Vec::new();
    // A reset after the last byte is an end too.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// The answer and the end of the channel come together.
#[test]
fn a_question_over_a_sealed_channel_has_its_answer() {
    let (a, b) = (with(1, "c", PeerAuth::Required, &[ONE]), with(2, "c", PeerAuth::Required, &[ONE]));
    let inner = &a.transport.inner;
    let instance = Instance { id: ProcessId(Uuid::from_u128(2)), incarnation: Incarnation(1) };
    let question = wire::Confirm { instance, token: 7, reached: (a.address, a.address) };
    let channel = super::super::dial::connect(inner, b.address, PATIENCE).unwrap();
    let question = wire::encode_confirm(&question);
    let answer = super::super::dial::ask_over(inner, channel, b.address, &question, PATIENCE);
    let Ok((_, Ok((answer, _)))) = answer else { panic!("no answer") };
    assert_eq!(answer, Frame::Confirmed(Confirmed::Foreign));
}

#[test]
fn members_with_one_secret_speak_and_frames_of_any_length_arrive() {
    let (a, b) = (with(1, "c", PeerAuth::Required, &[ONE]), with(2, "c", PeerAuth::Required, &[ONE]));
    a.dial(b.address);
    assert_eq!((a.opened().name, b.opened().name), ("p2".to_owned(), "p1".to_owned()));
    let entry = |k| crate::election::Entry {
        peer: Peer { name: "n".repeat(253), ..peer(k, 1, loopback(9)) },
        state: crate::election::State::Alive,
    };
    let entries = (0..256).map(entry).collect();
    let long = Message {
        epoch: Epoch(3),
        priority: Priority::DEFAULT,
        body: Body::LeaderInfo { leader: None, entries },
    };
    for message in [ask(1), long.clone(), ask(2), long] {
        a.transport.send(ProcessId(Uuid::from_u128(2)), b.address, &message);
        assert_eq!(b.received().1, message);
        b.transport.send(ProcessId(Uuid::from_u128(1)), a.address, &message);
        assert_eq!(a.received().1, message);
    }
    a.transport.close();
    assert_eq!(b.closed(), (ProcessId(Uuid::from_u128(1)), 1, false), "announced");
}

#[test]
fn a_member_with_a_secret_may_announce_as_much_as_one_without() {
    let a = with(1, "c", PeerAuth::Required, &[ONE]);
    let announced = |k| (format!("{k:0>0$}", ANNOUNCE_KEY_BYTES_MAX), "v".repeat(ANNOUNCE_VALUE_BYTES_MAX));
    let announce = AnnouncedValues((0..ANNOUNCE_MAX).map(announced).collect());
    let keys = Arc::new(Keys::of_secrets(&[ONE.as_bytes().to_vec()], "c").unwrap());
    let channel = open(TcpStream::connect(a.address).unwrap(), &keys, Instant::now() + PATIENCE).unwrap();
    let greeting = Hello { announce, ..hello("c", peer(2, 7, loopback(9))) };
    channel.send(&wire::encode_hello(&greeting).unwrap(), || false).unwrap();
    assert_eq!(a.opened().name, "p2");
}

/// Both lines of a file are accepted, and the first is sent: each step of a rotation keeps all together.
#[test]
fn each_step_of_a_rotation_keeps_members_together_and_no_other_secret_does() {
    let steps: [&[&str]; 4] = [&[ONE], &[ONE, OTHER], &[OTHER, ONE], &[OTHER]];
    for (i, one) in steps.iter().enumerate() {
        for (j, other) in steps.iter().enumerate() {
            let (a, b) = (with(1, "c", PeerAuth::Required, one), with(2, "c", PeerAuth::Required, other));
            a.dial(b.address);
            if i.abs_diff(j) <= 1 {
                a.opened();
                b.opened();
            } else if i.abs_diff(j) == 3 {
                until("never refused", || unauthenticated(&a) > 0);
                assert!(a.transport.inner.table().links(ProcessId(Uuid::from_u128(2))).is_empty());
            }
        }
    }
}

#[test]
fn one_secret_makes_another_key_in_another_election() {
    let (a, b) = (with(1, "c", PeerAuth::Required, &[ONE]), with(2, "d", PeerAuth::Required, &[ONE]));
    a.dial(b.address);
    until("never refused", || unauthenticated(&a) > 0);
}

/// What a stranger says is not even read, and no byte of ours answers it.
#[test]
fn a_stranger_without_the_secret_learns_nothing() {
    let a = with(1, "the-cluster", PeerAuth::Required, &[ONE]);
    let greeting = wire::encode_hello(&hello("the-cluster", peer(2, 7, loopback(9)))).unwrap();
    assert_eq!(answer(a.address, &greeting), b"");
    assert_eq!(answer(a.address, b"GET / HTTP/1.1\r\n\r\n"), b"");
    // TLS, but nothing of ours: at most an alert, which has 7 bytes.
    let garbage = [&[0x16, 0x03, 0x01, 0x00, 0x05][..], &[0; 5]].concat();
    assert!(answer(a.address, &garbage).len() <= 7);
    assert_eq!(unauthenticated(&a), 3);
    assert!(a.reports.try_recv().is_err(), "nothing was heard of any of them");
}

/// A dialler is done with the handshake before the other side has looked at its key. Its Hello comes with its
/// last bytes.
#[test]
fn no_frame_is_read_before_the_peers_proof() {
    let a = with(1, "c", PeerAuth::Required, &[ONE]);
    let secrets = [OTHER, ONE].map(|secret| secret.as_bytes().to_vec());
    let strangers = Arc::new(Keys::of_secrets(&secrets, "c").unwrap());
    let channel =
        open(TcpStream::connect(a.address).unwrap(), &strangers, Instant::now() + PATIENCE).unwrap();
    channel.send(&wire::encode_hello(&hello("c", peer(2, 7, loopback(9)))).unwrap(), || false).unwrap();
    let mut said = Vec::new();
    while let Ok(Got::Bytes) = channel.receive(&mut said) {}
    assert_eq!(said, b"", "an alert is no word");
    until("not counted", || unauthenticated(&a) == 1);
    assert!(a.reports.try_recv().is_err(), "nothing was heard");
}

/// Bytes may come one at a time, and the Hello with the last of the handshake's.
#[test]
fn a_handshake_may_come_in_any_pieces() {
    let a = with(1, "c", PeerAuth::Required, &[ONE]);
    let keys = Arc::new(Keys::of_secrets(&[ONE.as_bytes().to_vec()], "c").unwrap());
    // A relay that passes on each byte by itself.
    let relay = TcpListener::bind(loopback(0)).unwrap();
    let (through, to) = (relay.local_addr().unwrap(), a.address);
    std::thread::spawn(move || {
        let (mut near, _) = relay.accept().unwrap();
        let mut far = TcpStream::connect(to).unwrap();
        far.set_nodelay(true).unwrap();
        let (mut back, mut forth) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
        let mut byte = [0];
        while near.read(&mut byte).unwrap_or(0) == 1 && far.write_all(&byte).is_ok() {}
    });
    let stream = TcpStream::connect(through).unwrap();
    let channel: Channel = open(stream, &keys, Instant::now() + PATIENCE).unwrap();
    channel.send(&wire::encode_hello(&hello("c", peer(2, 7, loopback(9)))).unwrap(), || false).unwrap();
    let mut said = Vec::new();
    while wire::decode(&said, wire::HELLO_BYTES_MAX).unwrap().is_none() {
        assert_eq!(channel.receive(&mut said).unwrap(), Got::Bytes);
    }
    a.opened();
}

#[test]
fn a_crash_is_seen_through_the_channel_as_soon_as_without_it() {
    let a = with(1, "c", PeerAuth::Required, &[ONE]);
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let them = peer(2, 7, listener.local_addr().unwrap());
    let keys = Arc::new(Keys::of_secrets(&[ONE.as_bytes().to_vec()], "c").unwrap());
    let stream = TcpStream::connect(a.address).unwrap();
    let channel = open(stream, &keys, Instant::now() + PATIENCE).unwrap();
    channel.send(&wire::encode_hello(&hello("c", them.clone())).unwrap(), || false).unwrap();
    a.opened();
    drop((listener, channel));
    assert_eq!(a.closed(), (them.id, 7, true), "the dial was refused");
}

/// An end in the middle of the handshake proves nothing: a process that is alive may refuse us.
#[test]
fn an_end_in_a_handshake_is_no_evidence_of_a_crash() {
    let a = with(1, "c", PeerAuth::Required, &[ONE]);
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let them = peer(2, 7, listener.local_addr().unwrap());
    let keys = Arc::new(Keys::of_secrets(&[ONE.as_bytes().to_vec()], "c").unwrap());
    let channel = open(TcpStream::connect(a.address).unwrap(), &keys, Instant::now() + PATIENCE).unwrap();
    channel.send(&wire::encode_hello(&hello("c", them.clone())).unwrap(), || false).unwrap();
    a.opened();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    drop(channel);
    assert_eq!(a.closed(), (them.id, 7, false));
}

#[test]
fn permissive_meets_both_sides_of_a_switch() {
    let permissive = |number| with(number, "c", PeerAuth::Permissive, &[ONE]);
    let required = |number| with(number, "c", PeerAuth::Required, &[ONE]);
    for (a, b) in [
        (permissive(1), permissive(2)),
        (permissive(1), required(2)),
        (required(1), permissive(2)),
        (permissive(1), side(2, "c")),
        (side(1, "c"), permissive(2)),
    ] {
        a.dial(b.address);
        a.opened();
        b.opened();
    }
    let (a, b) = (side(1, "c"), required(2));
    a.dial(b.address);
    until("never refused", || unauthenticated(&b) > 0);
    assert!(b.reports.try_recv().is_err(), "off and required never meet");
}

#[test]
fn half_open_handshakes_hold_up_no_member() {
    let a = with(1, "c", PeerAuth::Required, &[ONE]);
    let half_open: Vec<TcpStream> = (0..64).map(|_| connect(a.address, &[0x16, 0x03, 0x01, 0x00])).collect();
    let b = with(2, "c", PeerAuth::Required, &[ONE]);
    a.transport.name(BTreeSet::from([b.address]));
    b.dial(a.address);
    b.opened();
    drop(half_open);
}

#[test]
fn a_strangers_failure_hides_no_members() {
    let credentials = Credentials::none();
    let failure = |last: u8, named| {
        credentials.failed(SocketAddr::from(([198, 18, 0, last], 9)), named, &"bad");
        credentials.failure().unwrap()
    };
    for (last, named, shown) in [(1, false, 1), (2, false, 2), (3, true, 3), (4, false, 3), (5, true, 5)] {
        assert_eq!(failure(last, named), format!("no link with 198.18.0.{shown}: bad"));
    }
}

#[test]
fn a_changed_file_counts_and_a_bad_one_does_not() {
    use crate::channel::Reading;
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &[ONE]);
    let credentials = opened(&path, "c", PeerAuth::Required);
    let sent = |credentials: &Credentials| credentials.keys().unwrap().fingerprints().to_vec();
    let first = sent(&credentials);
    assert!(matches!(credentials.look(), Reading::Unchanged));
    std::fs::write(&path, [OTHER, ONE].join("\n")).unwrap();
    assert!(matches!(credentials.look(), Reading::Changed(_)));
    let both = sent(&credentials);
    assert_eq!((both.len(), &both[1]), (2, &first[0]));
    for bad in ["", "too short"] {
        std::fs::write(&path, bad).unwrap();
        assert!(matches!(credentials.look(), Reading::Failed(_)), "{bad:?}");
        assert!(matches!(credentials.look(), Reading::Unchanged), "said once");
        assert_eq!(sent(&credentials), both);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(credentials.look(), Reading::Failed(_)));
    assert!(credentials.unusable().is_some_and(|why| why.contains("cannot be read")));
    std::fs::write(&path, [OTHER, ONE].join("\n")).unwrap();
    assert!(matches!(credentials.look(), Reading::Changed(_)));
    assert_eq!((sent(&credentials), credentials.unusable()), (both, None));
}

/// What sets the time of the last write back, such as a restored backup, changes a file all the same.
#[test]
fn a_change_shows_whatever_the_time_of_the_last_write() {
    use crate::channel::Reading;
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &[OTHER]);
    let credentials = opened(&path, "c", PeerAuth::Required);
    let then = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, format!("{ONE:<0$}", OTHER.len())).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
    assert!(matches!(credentials.look(), Reading::Changed(_)));
}
