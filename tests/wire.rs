//! The frames: what is promised of them in `bellwether::wire`, from outside.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "wire/announce.rs"]
mod announce;
#[path = "wire/golden.rs"]
mod golden;
mod strategies;

use bellwether::election::{
    ANNOUNCE_MAX, AnnouncedValues, Ballot, Body, CLUSTER_BYTES_MAX, ConfigVersion, Denial, Entry, Epoch,
    Flags, Incarnation, Incumbent, Instance, LEASE_MS_MAX, Learnt, LimitError, ListWanted, MEMBERS_MAX,
    MembershipVersion, Message, Moment, NAME_BYTES_MAX, Pace, Peer, Priority, ProcessId, RecoveredState,
    Stage, State, VOTERS_MAX, VoteOutcome, VoteRequest, VoterConfig,
};
use bellwether::wire::{
    Confirm, Confirmed, DecodeError, FRAME_BYTES_MAX, Frame, HELLO_BYTES_MAX, Hello, REFUSE_TEXT_BYTES_MAX,
    Refusal, SafetyCode, Stamp, VERSION, VERSION_MIN, decode, encode_bye, encode_confirm, encode_confirmed,
    encode_hello, encode_message, encode_refuse,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

fn stamp() -> impl Strategy<Value = Stamp> {
    (strategies::cluster(), strategies::process_id()).prop_map(|(cluster, id)| Stamp { cluster, id })
}

fn hello() -> impl Strategy<Value = Hello> {
    let announce = proptest::collection::btree_map("[a-z0-9._-]{1,32}", "[ -~é]{0,100}", 0..=ANNOUNCE_MAX);
    let versions = (any::<u16>(), any::<u16>());
    (versions, strategies::cluster(), strategies::peer(), any::<u8>(), any::<u64>(), announce).prop_map(
        |((version_min, version_max), cluster, peer, safety, token, announce)| {
            let (safety, announce) = (SafetyCode::from(safety), AnnouncedValues(announce));
            Hello { version_min, version_max, cluster, peer, safety, token, announce }
        },
    )
}

fn confirm() -> impl Strategy<Value = Confirm> {
    (strategies::peer(), any::<u64>(), strategies::peer()).prop_map(|(peer, token, other)| Confirm {
        instance: Instance { id: peer.id, incarnation: peer.incarnation },
        token,
        reached: (peer.address, other.address),
    })
}

/// Any frame that this version can send, and its bytes.
fn frame() -> impl Strategy<Value = (Frame, Vec<u8>)> {
    prop_oneof![
        8 => (stamp(), strategies::message()).prop_map(|(stamp, message)| {
            let bytes = encode_message(&stamp, &message).unwrap();
            (Frame::Message { stamp, message }, bytes)
        }),
        1 => hello().prop_map(|hello| {
            let bytes = encode_hello(&hello).unwrap();
            (Frame::Hello(hello), bytes)
        }),
        1 => (any::<u16>(), strategies::text(REFUSE_TEXT_BYTES_MAX)).prop_map(|(why, text)| {
            let why = Refusal::from(why);
            let bytes = encode_refuse(why, &text);
            (Frame::Refuse { why, text }, bytes)
        }),
        1 => Just((Frame::Bye, encode_bye())),
        1 => confirm().prop_map(|question| {
            let bytes = encode_confirm(&question);
            (Frame::Confirm(question), bytes)
        }),
        1 => prop_oneof![Just(Confirmed::Own), Just(Confirmed::Foreign), Just(Confirmed::Another)]
            .prop_map(|answer| (Frame::Confirmed(answer), encode_confirmed(answer))),
    ]
}

/// A frame with a right length and a right checksum, whatever is in it.
fn framed(tag: u16, payload: &[u8]) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&tag.to_le_bytes());
    hasher.update(payload);
    let mut frame = ((payload.len() + 6) as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&tag.to_le_bytes());
    frame.extend_from_slice(&hasher.finalize().to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

fn tag_of(frame: &[u8]) -> u16 {
    u16::from_le_bytes([frame[4], frame[5]])
}

fn decoded(bytes: &[u8]) -> Frame {
    let (frame, used) = decode(bytes, FRAME_BYTES_MAX).unwrap().unwrap();
    assert_eq!(used, bytes.len());
    frame
}

/// The stamp that takes the most bytes.
fn largest_stamp() -> Stamp {
    Stamp { cluster: "c".repeat(CLUSTER_BYTES_MAX), id: ProcessId(Uuid::max()) }
}

const QUERY: Body = Body::LeaderQuery { list: ListWanted::Whole };
const LARGEST_VERSION: MembershipVersion = MembershipVersion { epoch: Epoch::MAX, version: u32::MAX };

fn encoded(body: Body) -> Vec<u8> {
    encode_message(&largest_stamp(), &Message { epoch: Epoch::MAX, priority: Priority::MAX, body }).unwrap()
}

/// Where a payload of this length ended before its last fields were added.
fn ends_of_earlier_versions(frame: &Frame, length: usize) -> Vec<usize> {
    fn bytes_of(added: &impl serde::Serialize) -> usize {
        postcard::to_allocvec(added).unwrap().len()
    }
    match frame {
        // The safety level came first, then the token, then what the process announces.
        Frame::Hello(hello) => {
            let before_announce = length - bytes_of(&hello.announce);
            let before_token = before_announce - bytes_of(&hello.token);
            vec![before_token - 1, before_token, before_announce]
        }
        Frame::Message { message, .. } => match &message.body {
            Body::Heartbeat { pace, .. } => vec![length - bytes_of(pace)],
            Body::Renew { learnt, .. } => vec![length - bytes_of(learnt)],
            Body::LeaderQuery { list } => vec![length - bytes_of(list)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

proptest! {
    #[test]
    fn every_frame_round_trips((frame, bytes) in frame(), behind in vec(any::<u8>(), 0..20)) {
        let mut stream = bytes.clone();
        stream.extend_from_slice(&behind);
        prop_assert_eq!(decode(&stream, FRAME_BYTES_MAX), Ok(Some((frame, bytes.len()))));
    }

    #[test]
    fn any_bytes_decode_or_fail_cleanly(bytes in vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes, FRAME_BYTES_MAX);
    }

    /// What the checksum lets through is still a stranger's: whatever decodes is within the limits and can be
    /// sent on.
    #[test]
    fn any_payload_decodes_within_the_limits_or_fails_cleanly(
        tag in prop_oneof![0..40_u16, any::<u16>()],
        payload in vec(any::<u8>(), 0..300),
    ) {
        check_sound_frame(&framed(tag, &payload))?;
    }

    /// As above, but near to what is right, so that it gets further in.
    #[test]
    fn a_damaged_payload_decodes_within_the_limits_or_fails_cleanly(
        (_, bytes) in frame(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut payload = bytes[10..].to_vec();
        for (at, byte) in changes {
            if !payload.is_empty() {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
        }
        check_sound_frame(&framed(tag_of(&bytes), &payload))?;
    }

    #[test]
    fn a_truncated_frame_is_no_frame_yet((_, bytes) in frame(), at in any::<prop::sample::Index>()) {
        let at = at.index(bytes.len());
        prop_assert_eq!(decode(&bytes[..at], FRAME_BYTES_MAX), Ok(None));
    }

    /// Its payload is cut, and the header is right again: a newer version's shorter frame, or an enemy's.
    #[test]
    fn a_truncated_payload_fails_cleanly((frame, bytes) in frame(), at in any::<prop::sample::Index>()) {
        let payload = &bytes[10..];
        let cut = at.index(payload.len() + 1);
        check_sound_frame(&framed(tag_of(&bytes), &payload[..cut]))?;
        if cut < payload.len() && !ends_of_earlier_versions(&frame, payload.len()).contains(&cut) {
            let result = decode(&framed(tag_of(&bytes), &payload[..cut]), FRAME_BYTES_MAX);
            let failed = matches!(result, Err(DecodeError::Payload { .. }));
            prop_assert!(failed, "{:?}", result);
        }
    }

    #[test]
    fn a_flipped_bit_is_never_another_frame((_, bytes) in frame(), bit in any::<prop::sample::Index>()) {
        let mut damaged = bytes.clone();
        let bit = bit.index(bytes.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!matches!(decode(&damaged, FRAME_BYTES_MAX), Ok(Some(_))));
    }

    #[test]
    fn fields_that_a_newer_version_added_are_ignored(
        (frame, bytes) in frame(), more in vec(any::<u8>(), 0..50)
    ) {
        let mut payload = bytes[10..].to_vec();
        payload.extend_from_slice(&more);
        prop_assert_eq!(decoded(&framed(tag_of(&bytes), &payload)), frame);
    }

    #[test]
    fn an_unknown_frame_is_skipped(tag in any::<u16>(), payload in vec(any::<u8>(), 0..300)) {
        prop_assume!(![1..=5, 16..=26, 33..=33, 35..=42].iter().any(|known| known.contains(&tag)));
        prop_assert_eq!(decoded(&framed(tag, &payload)), Frame::Unknown { tag });
    }

    #[test]
    fn a_negotiated_version_is_the_newest_that_both_speak(
        hello in hello(),
        ours in (0..9_u16, 0..9_u16),
        theirs in (0..9_u16, 0..9_u16),
    ) {
        let hello = Hello { version_min: theirs.0, version_max: theirs.1, ..hello };
        let common = (0..9).rev().find(|v| {
            (ours.0..=ours.1).contains(v) && (theirs.0..=theirs.1).contains(v)
        });
        prop_assert_eq!(hello.negotiate(ours), common);
    }

    #[test]
    fn any_text_of_a_refusal_can_be_read(text in ".{0,400}", why in any::<u16>()) {
        let Frame::Refuse { why: read, text: cut } = decoded(&encode_refuse(Refusal::from(why), &text)) else {
            panic!("no Refuse");
        };
        prop_assert_eq!(read, Refusal::from(why));
        let clean = text.replace(char::is_control, " ");
        prop_assert!(clean.starts_with(&cut));
        // No more is cut than must be: a character has at most 4 bytes.
        prop_assert!(cut.len() + 3 >= clean.len().min(REFUSE_TEXT_BYTES_MAX));
    }
}

/// A frame whose checksum is right decodes to something that can be encoded and decoded to the same again, or
/// fails.
fn check_sound_frame(bytes: &[u8]) -> Result<(), TestCaseError> {
    let again = match decode(bytes, FRAME_BYTES_MAX) {
        Ok(None) => return Err(TestCaseError::fail("the frame is all there")),
        Ok(Some((frame, used))) => {
            prop_assert_eq!(used, bytes.len());
            match &frame {
                Frame::Hello(hello) => (encode_hello(hello), frame),
                Frame::Message { stamp, message } => (encode_message(stamp, message), frame),
                Frame::Refuse { why, text } => (Ok(encode_refuse(*why, text)), frame),
                Frame::Confirm(question) => (Ok(encode_confirm(question)), frame),
                Frame::Confirmed(answer) => (Ok(encode_confirmed(*answer)), frame),
                Frame::Bye | Frame::Unknown { .. } => return Ok(()),
            }
        }
        Err(DecodeError::Payload { .. } | DecodeError::Limit { .. }) => return Ok(()),
        Err(other) => return Err(TestCaseError::fail(format!("unexpected: {other}"))),
    };
    prop_assert_eq!(decoded(&again.0.unwrap()), again.1);
    Ok(())
}

#[test]
fn the_largest_frame_fits() {
    let tell = encoded(Body::LeaderInfo {
        leader: Some(Incumbent { peer: strategies::largest_peer(), elected_at_ms: u64::MAX }),
        entries: strategies::largest_entries(),
    });
    let membership =
        encoded(Body::Membership { version: LARGEST_VERSION, entries: strategies::largest_entries() });
    assert!(tell.len() > membership.len());
    assert!(tell.len() > 90_000, "the documentation says about 93 KiB: {}", tell.len());
    assert!(tell.len() < FRAME_BYTES_MAX * 3 / 4, "room for fields to come: {}", tell.len());
    decoded(&tell);
    decoded(&membership);
    let flags = Flags { voters: u64::MAX, lease_ms: LEASE_MS_MAX };
    let voters = encoded(Body::Recovered {
        round: u32::MAX,
        incarnation: Incarnation(u64::MAX),
        state: RecoveredState::Founded(strategies::largest_config()),
        flags,
    });
    assert!(voters.len() < tell.len(), "{}", voters.len());
    decoded(&voters);
}

#[test]
fn the_largest_handshake_fits() {
    let hello = Hello {
        version_min: u16::MAX,
        version_max: u16::MAX,
        cluster: "c".repeat(CLUSTER_BYTES_MAX),
        peer: strategies::largest_peer(),
        safety: SafetyCode::Other(u8::MAX),
        token: u64::MAX,
        announce: announce::largest(),
    };
    let hello = encode_hello(&hello).unwrap();
    assert!(hello.len() * 4 < HELLO_BYTES_MAX * 3, "{}", hello.len());
    assert!(decode(&hello, HELLO_BYTES_MAX).unwrap().is_some());
    let refuse = encode_refuse(Refusal::Other(u16::MAX), &"é".repeat(1000));
    assert!(refuse.len() * 2 < HELLO_BYTES_MAX, "{}", refuse.len());
    assert!(decode(&refuse, HELLO_BYTES_MAX).unwrap().is_some());
}

#[test]
fn a_heartbeat_is_at_most_128_bytes() {
    let (sequence, membership) = (u32::MAX, LARGEST_VERSION);
    // The most that a leader can have learnt.
    let learnt = Learnt { worst_ms: 600, eighths: 8 };
    let heartbeat = encoded(Body::Heartbeat { sequence, pace: Pace { lease_ms: u32::MAX, learnt } });
    let acknowledgement = encoded(Body::HeartbeatAck { sequence, membership });
    assert!(heartbeat.len() <= 128, "{}", heartbeat.len());
    assert!(acknowledgement.len() <= 128, "{}", acknowledgement.len());
    // The configuration of an earlier epoch: before the leader has written it again.
    for epoch in [Epoch::MAX, Epoch(Epoch::MAX.0 - (1 << 28))] {
        let config = ConfigVersion { epoch, version: u32::MAX };
        let renew = encoded(Body::Renew { sequence, lease_ms: LEASE_MS_MAX, config, learnt });
        assert!(renew.len() <= 128, "{}", renew.len());
    }
}

#[test]
fn a_frame_over_the_limit_fails_with_its_length_field() {
    let announced = u32::MAX.to_le_bytes();
    assert_eq!(decode(&announced[..3], FRAME_BYTES_MAX), Ok(None));
    let bytes = u64::from(u32::MAX) + 4;
    let error = DecodeError::TooLong { bytes, bytes_max: FRAME_BYTES_MAX };
    assert_eq!(decode(&announced, FRAME_BYTES_MAX), Err(error));

    // The limit counts the whole frame, and is allowed itself.
    let bye = encode_bye();
    assert!(decode(&bye, bye.len()).unwrap().is_some());
    let error = DecodeError::TooLong { bytes: bye.len() as u64, bytes_max: bye.len() - 1 };
    assert_eq!(decode(&bye, bye.len() - 1), Err(error));
}

#[test]
fn a_frame_without_room_for_a_header_fails() {
    for length in 0..6_u32 {
        let bytes = u64::from(length) + 4;
        let error = DecodeError::TooShort { bytes, bytes_min: 10 };
        assert_eq!(decode(&length.to_le_bytes(), FRAME_BYTES_MAX), Err(error));
    }
}

/// Some peer whose frame is small, for the tests of limits.
fn small_peer() -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(0x0011_2233_4455_4677_8899_aabb_ccdd_eeff)),
        incarnation: Incarnation(7),
        name: "web-0".to_owned(),
        address: (Ipv4Addr::new(198, 18, 0, 1), 4041).into(),
        priority: Priority::DEFAULT,
        revision: "5d9f".to_owned(),
    }
}

fn small_stamp() -> Stamp {
    Stamp { cluster: "web".to_owned(), id: small_peer().id }
}

fn too_long(what: &'static str, bytes: usize, bytes_max: usize) -> LimitError {
    LimitError::TooLong { what, bytes, bytes_max }
}

fn control(what: &'static str, position: usize) -> LimitError {
    LimitError::ControlCharacter { what, character: '\n', position }
}

/// What is beyond its limit is refused alike where it would leave and where it arrives.
#[test]
fn what_is_beyond_its_limit_neither_leaves_nor_enters() {
    let mut cases: Vec<(Stamp, Message, LimitError)> = members_beyond_limits()
        .into_iter()
        .chain(voting_beyond_limits())
        .map(|(body, error)| {
            (small_stamp(), Message { epoch: Epoch::MAX, priority: Priority::DEFAULT, body }, error)
        })
        .collect();
    let above = Epoch(Epoch::MAX.0 + 1);
    let (above_max, query) = (Priority(Priority::MAX.0 + 1), QUERY);
    let message = Message { epoch: Epoch(1), priority: above_max, body: query };
    cases.push((small_stamp(), message, LimitError::Priority(above_max)));
    cases.push((
        small_stamp(),
        Message { epoch: above, priority: Priority::DEFAULT, body: QUERY },
        LimitError::Epoch(above),
    ));
    for (stamp, error) in [
        (
            Stamp { cluster: "c".repeat(64), ..small_stamp() },
            too_long("the cluster's name", 64, CLUSTER_BYTES_MAX),
        ),
        (Stamp { cluster: "\n".to_owned(), ..small_stamp() }, control("the cluster's name", 0)),
    ] {
        cases.push((stamp, Message { epoch: Epoch(1), priority: Priority::DEFAULT, body: QUERY }, error));
    }
    for (stamp, message, error) in cases {
        assert_eq!(encode_message(&stamp, &message), Err(error.clone()));
        let arrived = decode(&unchecked(&stamp, &message), FRAME_BYTES_MAX);
        let Err(DecodeError::Limit { frame, source }) = arrived else {
            panic!("{message:?} was let in: {arrived:?}");
        };
        assert_eq!((frame, source), (message.body.name(), error));
    }
}

/// So is a handshake: a Hello both ways, and a Refuse where it arrives.
#[test]
fn a_handshake_beyond_a_limit_neither_leaves_nor_enters() {
    for (peer, error) in peers_beyond_limits() {
        let safety = SafetyCode::Classic;
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            cluster: "web".to_owned(),
            peer,
            safety,
            token: 0,
            announce: AnnouncedValues::default(),
        };
        assert_eq!(encode_hello(&hello), Err(error.clone()));
        let bytes = framed(1, &postcard::to_stdvec(&hello).unwrap());
        let limit = DecodeError::Limit { frame: "hello", source: error };
        assert_eq!(decode(&bytes, FRAME_BYTES_MAX), Err(limit));
    }
    for text in ["\n".to_owned(), "t".repeat(REFUSE_TEXT_BYTES_MAX + 1)] {
        let bytes = framed(2, &postcard::to_stdvec(&(1_u16, text)).unwrap());
        let refused = decode(&bytes, FRAME_BYTES_MAX);
        assert!(matches!(refused, Err(DecodeError::Limit { frame: "refuse", .. })), "{refused:?}");
    }
}

/// Processes that no member can be, since one field of each is beyond its limit.
fn peers_beyond_limits() -> [(Peer, LimitError); 5] {
    [
        (Peer { name: "n".repeat(254), ..small_peer() }, too_long("a process's name", 254, 253)),
        (Peer { revision: "r".repeat(64), ..small_peer() }, too_long("a process's revision", 64, 63)),
        (Peer { name: "we\nb".to_owned(), ..small_peer() }, control("a process's name", 2)),
        (Peer { revision: "\n".to_owned(), ..small_peer() }, control("a process's revision", 0)),
        (Peer { priority: Priority(1001), ..small_peer() }, LimitError::Priority(Priority(1001))),
    ]
}

/// Messages about members with something beyond its limit.
fn members_beyond_limits() -> Vec<(Body, LimitError)> {
    let above = Epoch(Epoch::MAX.0 + 1);
    let version = MembershipVersion { epoch: above, version: 0 };
    let sound = MembershipVersion::default();
    let mut bodies = vec![
        (Body::HeartbeatAck { sequence: 0, membership: version }, LimitError::Epoch(above)),
        (Body::Membership { version, entries: [].into() }, LimitError::Epoch(above)),
        (Body::Leave { version: Some(version), id: small_peer().id }, LimitError::Epoch(above)),
    ];
    for (peer, error) in peers_beyond_limits() {
        let entry = Entry { peer: peer.clone(), state: State::Alive };
        let entries: Arc<[Entry]> = [entry.clone()].into();
        let leader = Some(Incumbent { peer, elected_at_ms: 0 });
        bodies.extend([
            (Body::Membership { version: sound, entries: entries.clone() }, error.clone()),
            (Body::Join { version: sound, entry: entry.clone() }, error.clone()),
            (Body::Join { version, entry }, LimitError::Epoch(above)),
            (Body::LeaderInfo { leader: None, entries }, error.clone()),
            (Body::LeaderInfo { leader, entries: [].into() }, error),
        ]);
    }
    let entries: Arc<[Entry]> =
        vec![Entry { peer: small_peer(), state: State::Alive }; MEMBERS_MAX + 1].into();
    bodies.extend([
        (Body::Membership { version: sound, entries: entries.clone() }, LimitError::Members(257)),
        (Body::LeaderInfo { leader: None, entries }, LimitError::Members(257)),
    ]);
    bodies
}

/// On some candidate's clock.
const ASKED_AT: Moment = Moment(Duration::from_millis(70_000));

/// Messages of voters with something beyond its limit.
fn voting_beyond_limits() -> Vec<(Body, LimitError)> {
    let above = Epoch(Epoch::MAX.0 + 1);
    let epoch = || LimitError::Epoch(above);
    let sound = ConfigVersion { epoch: Epoch(7), version: 1 };
    let high = ConfigVersion { epoch: above, version: 1 };
    let (stage, lease_ms, incarnation) = (Stage::Vote, 1500, Incarnation(7));
    let ballot = Ballot { stage, epoch: Epoch(8), incarnation, asked_at: ASKED_AT, lease_ms };
    let (yes, flags) = (true, Flags { voters: 0, lease_ms });
    let of = |voters| VoterConfig { version: sound, voters, lease_ms, bound_ms: 2000 };
    let named = |name: &str| of([name.to_owned()].into());
    let request = |ballot, transfer, config| Body::VoteRequest {
        request: VoteRequest { ballot, contender: true, transfer, config },
    };
    let at = |epoch| MembershipVersion { epoch, version: 0 };
    let renewed = |epoch, config| Body::Renewed {
        sequence: 0,
        membership: at(epoch),
        promised: yes,
        firm: yes,
        config,
        flags,
    };
    let renew = |config| Body::Renew { sequence: 0, lease_ms, config, learnt: Learnt::default() };
    let long = LEASE_MS_MAX + 1;
    let wait = |what| LimitError::Wait { what, ms: long };
    let denied = |denial| Body::Vote { ballot, outcome: VoteOutcome::Denied(denial), config: None };
    let empty = |flags| Body::Recovered { round: 0, incarnation, state: RecoveredState::Empty, flags };
    let mut bodies = vec![
        (request(Ballot { epoch: above, ..ballot }, None, named("web-0")), epoch()),
        (request(ballot, Some(above), named("web-0")), epoch()),
        (request(Ballot { lease_ms: long, ..ballot }, None, named("web-0")), wait("a request's lease")),
        (denied(Denial::Promised { for_ms: long }), wait("a voter's wait")),
        (denied(Denial::Grace { for_ms: long }), wait("a voter's wait")),
        (empty(Flags { lease_ms: long, ..flags }), wait("a process's --lease")),
        (renew(high), epoch()),
        (renewed(above, sound), epoch()),
        (renewed(Epoch(7), high), epoch()),
    ];
    let names = |n: usize| (0..n).map(|k| format!("web-{k}")).collect();
    let lease = |lease_ms, bound_ms| {
        (VoterConfig { lease_ms, bound_ms, ..named("web-0") }, LimitError::Lease { lease_ms, bound_ms })
    };
    for (config, error) in [
        (VoterConfig { version: high, ..named("web-0") }, epoch()),
        (of(names(0)), LimitError::Voters(0)),
        (of(names(VOTERS_MAX + 1)), LimitError::Voters(32)),
        (
            named(&"n".repeat(254)),
            LimitError::TooLong { what: "a voter's name", bytes: 254, bytes_max: NAME_BYTES_MAX },
        ),
        (
            named("we\nb"),
            LimitError::ControlCharacter { what: "a voter's name", character: '\n', position: 2 },
        ),
        lease(0, 1500),
        lease(1501, 1500),
        lease(1500, LEASE_MS_MAX + 1),
    ] {
        let recovered = |state| Body::Recovered { round: 0, incarnation, state, flags };
        let vote = Body::Vote { ballot, outcome: VoteOutcome::Granted, config: Some(config.clone()) };
        bodies.extend([
            (request(ballot, None, config.clone()), error.clone()),
            (vote, error.clone()),
            (Body::Configuration { config: config.clone() }, error.clone()),
            (recovered(RecoveredState::Founding(config.clone())), error.clone()),
            (recovered(RecoveredState::Founded(config)), error),
        ]);
    }
    bodies
}

/// A configuration's fields as documented.
fn fields_of(config: &VoterConfig) -> (ConfigVersion, Vec<&String>, u32, u32) {
    (config.version, Vec::from_iter(&config.voters), config.lease_ms, config.bound_ms)
}

/// A message's frame as documented, written by other means than the crate's, and without its checks.
fn unchecked(stamp: &Stamp, message: &Message) -> Vec<u8> {
    let fields = match &message.body {
        Body::Election | Body::Answer | Body::Declare | Body::ProposeTransfer => Ok(vec![]),
        Body::LeaderQuery { list } => postcard::to_stdvec(list),
        Body::Coordinator { elected_at_ms } => postcard::to_stdvec(elected_at_ms),
        Body::Heartbeat { sequence, pace: Pace { lease_ms, learnt } } => {
            postcard::to_stdvec(&(sequence, lease_ms, learnt.worst_ms, learnt.eighths))
        }
        Body::HeartbeatAck { sequence, membership } => postcard::to_stdvec(&(sequence, membership)),
        Body::Membership { version, entries } => postcard::to_stdvec(&(version, entries)),
        Body::Join { version, entry } => postcard::to_stdvec(&(version, entry)),
        Body::Leave { version, id } => postcard::to_stdvec(&(version, id)),
        Body::Resign { successor, leaving } => postcard::to_stdvec(&(successor, leaving)),
        Body::LeaderInfo { leader, entries } => postcard::to_stdvec(&(leader, entries)),
        Body::VoteRequest { request: VoteRequest { ballot, contender, transfer, config } } => {
            let ballot = ballot_fields(ballot);
            postcard::to_stdvec(&(ballot, contender, transfer, fields_of(config)))
        }
        Body::Vote { ballot, outcome, config } => {
            postcard::to_stdvec(&(ballot_fields(ballot), outcome, config.as_ref().map(fields_of)))
        }
        Body::Renew { sequence, lease_ms, config, learnt } => {
            postcard::to_stdvec(&(sequence, lease_ms, config, learnt.worst_ms, learnt.eighths))
        }
        Body::Renewed { sequence, membership, promised, firm, config, flags } => {
            postcard::to_stdvec(&(sequence, membership, promised, firm, config, flags.voters, flags.lease_ms))
        }
        Body::Configuration { config } => postcard::to_stdvec(&fields_of(config)),
        Body::Recover { round, incarnation } => postcard::to_stdvec(&(round, incarnation)),
        Body::Recovered { round, incarnation, state, flags } => {
            let (number, config) = match state {
                RecoveredState::Empty => (0_u8, None),
                RecoveredState::Founding(config) => (1, Some(config)),
                RecoveredState::Founded(config) => (2, Some(config)),
            };
            let mut fields = postcard::to_stdvec(&(round, incarnation, number)).unwrap();
            fields.extend(config.iter().flat_map(|config| postcard::to_stdvec(&fields_of(config)).unwrap()));
            postcard::to_extend(&(flags.voters, flags.lease_ms), fields)
        }
        Body::TransferReady { majority } => postcard::to_stdvec(majority),
    };
    let tag = match message.body.name() {
        "election" => 16,
        "answer" => 17,
        "coordinator" => 18,
        "heartbeat" => 19,
        "heartbeat_ack" => 20,
        "membership" => 21,
        "join" => 22,
        "leave" => 23,
        "resign" => 24,
        "leader_query" => 25,
        "leader_info" => 26,
        "recover" => 33,
        "propose_transfer" => 35,
        "transfer_ready" => 36,
        "vote_request" => 37,
        "vote" => 38,
        "renew" => 39,
        "renewed" => 40,
        "configuration" => 41,
        "recovered" => 42,
        other => panic!("{other} has no number here yet"),
    };
    let mut payload = postcard::to_stdvec(&(stamp, message.priority, message.epoch)).unwrap();
    payload.extend_from_slice(&fields.unwrap());
    framed(tag, &payload)
}

/// A ballot's fields as documented.
fn ballot_fields(ballot: &Ballot) -> (bool, Epoch, Incarnation, Moment, u32) {
    let Ballot { stage, epoch, incarnation, asked_at, lease_ms } = *ballot;
    (stage == Stage::Vote, epoch, incarnation, asked_at, lease_ms)
}

/// Frames of a few bytes that announce a list or a text of many.
fn hostile_frames() -> Vec<Vec<u8>> {
    let start = postcard::to_stdvec(&(small_stamp(), Priority::DEFAULT, Epoch(1))).unwrap();
    let mut frames = Vec::new();
    for announced in [VOTERS_MAX as u64, 32, MEMBERS_MAX as u64, 257, 1 << 20, 1 << 32, u64::MAX] {
        let length = postcard::to_stdvec(&announced).unwrap();
        // Tell without a leader; Membership; Join with that length for the first field of its member, the id;
        // Configuration, and with that length for its first name; the voters of a VoteRequest, a Vote and a
        // Recovered.
        for (tag, before) in [
            (26, vec![0]),
            (21, vec![0, 0]),
            (22, vec![0, 0]),
            (41, vec![0, 0]),
            (41, vec![0, 0, 1]),
            (37, vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            (38, vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0]),
            (42, vec![0, 0, 2, 0, 0]),
        ] {
            frames.push(framed(tag, &[&start[..], &before, &length, &[0; 8]].concat()));
        }
        // A cluster's name, in a stamp and in a Hello, and a refusal's text.
        for (tag, before) in [(25, vec![]), (1, vec![1, 1]), (2, vec![1])] {
            frames.push(framed(tag, &[&before[..], &length, b"web"].concat()));
        }
    }
    frames
}

/// The address space that this process has now, in bytes.
fn address_space_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// In a process of its own whose address space may not grow: a great reservation aborts it. (The allocator
/// has tens of mebibytes of it in stock, so small ones go unseen here; the next test sees those.)
#[test]
fn an_announced_length_reserves_no_memory() {
    if std::env::var_os("WIRE_TEST_CHILD").is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "an_announced_length_reserves_no_memory", "--test-threads=1"])
            .env("WIRE_TEST_CHILD", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let frames = hostile_frames();
    let maximum = Some(address_space_bytes() + (1 << 20));
    let limit = Rlimit { current: maximum, maximum };
    setrlimit(Resource::As, limit).unwrap();
    for frame in &frames {
        let result = decode(frame, FRAME_BYTES_MAX);
        assert!(
            matches!(result, Err(DecodeError::Payload { .. } | DecodeError::Limit { .. })),
            "{frame:02x?}: {result:?}"
        );
    }
}

/// A frame has room for tens of thousands of short names, each of which would cost far more memory than its
/// bytes: the first one too many is refused before any is read.
#[test]
fn voters_are_counted_before_they_are_read() {
    let start =
        postcard::to_stdvec(&(small_stamp(), Priority::DEFAULT, Epoch(1), ConfigVersion::default())).unwrap();
    for announced in [32, 43_000_u64] {
        let length = postcard::to_stdvec(&announced).unwrap();
        let result = decode(&framed(41, &[&start[..], &length].concat()), FRAME_BYTES_MAX);
        let source = LimitError::Voters(announced as usize);
        assert_eq!(result, Err(DecodeError::Limit { frame: "configuration", source }));
    }
}

/// The members that take the fewest bytes on the wire give the most memory for a frame's bytes.
#[test]
fn a_frame_takes_memory_in_proportion() {
    let peer = Peer {
        name: String::new(),
        revision: String::new(),
        priority: Priority::NEVER,
        incarnation: Incarnation(0),
        address: (Ipv4Addr::UNSPECIFIED, 0).into(),
        ..small_peer()
    };
    let entries = vec![Entry { peer, state: State::Alive }; MEMBERS_MAX].into();
    let frame = encoded(Body::Membership { version: LARGEST_VERSION, entries });
    let Frame::Message { message: Message { body: Body::Membership { entries, .. }, .. }, .. } =
        decoded(&frame)
    else {
        panic!("no Membership");
    };
    let memory = entries.len() * size_of::<Entry>();
    assert!(memory < 8 * frame.len(), "{memory} bytes for a frame of {}", frame.len());
}

/// Other versions read these numbers.
#[test]
fn the_reasons_of_a_refusal_have_their_numbers() {
    let numbered = [
        Refusal::Cluster,
        Refusal::OwnId,
        Refusal::Version,
        Refusal::Full,
        Refusal::Malformed,
        Refusal::Safety,
        Refusal::Name,
        Refusal::Identity,
        Refusal::Address,
        Refusal::Other(10),
    ];
    for (number, why) in (1..).zip(numbered) {
        assert_eq!((u16::from(why), Refusal::from(number)), (number, why));
    }
}

/// The first version names no level, and has one.
#[test]
fn a_hello_without_a_safety_level_is_classic() {
    let payload = postcard::to_stdvec(&(1_u16, 1_u16, "web", small_peer())).unwrap();
    let Frame::Hello(hello) = decoded(&framed(1, &payload)) else { panic!("no Hello") };
    assert_eq!((hello.safety, hello.peer), (SafetyCode::Classic, small_peer()));
    for (number, level) in [(0, SafetyCode::Classic), (1, SafetyCode::Majority), (2, SafetyCode::Other(2))] {
        let payload = [&payload[..], &[number]].concat();
        let Frame::Hello(hello) = decoded(&framed(1, &payload)) else { panic!("no Hello") };
        assert_eq!(hello.safety, level);
    }
}

#[test]
fn our_own_versions_agree() {
    let hello = Hello {
        version_min: VERSION_MIN,
        version_max: VERSION,
        cluster: "web".to_owned(),
        peer: small_peer(),
        safety: SafetyCode::Classic,
        token: 0,
        announce: AnnouncedValues::default(),
    };
    assert_eq!(hello.negotiate((VERSION_MIN, VERSION)), Some(VERSION));
}

#[test]
fn errors_say_what_was_seen_and_what_is_allowed() {
    let above = Epoch(Epoch::MAX.0 + 1);
    let message = Message { epoch: above, priority: Priority::DEFAULT, body: QUERY };
    let text = decode(&unchecked(&small_stamp(), &message), 1024).unwrap_err().to_string();
    assert_eq!(
        text,
        "leader_query frame: the epoch is 4611686018427387905; at most 4611686018427387904 is allowed"
    );
    let text = decode(&u32::MAX.to_le_bytes(), 1024).unwrap_err().to_string();
    assert_eq!(text, "the frame announces 4294967299 bytes in all; at most 1024 are allowed here");
    let long = LimitError::TooLong { what: "a process's name", bytes: NAME_BYTES_MAX + 1, bytes_max: 253 };
    assert_eq!(long.to_string(), "a process's name has 254 bytes; at most 253 are allowed");
}
