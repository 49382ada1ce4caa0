//! The inputs that fuzzing begins with, by file name: of each kind a sound one, and what is hostile in a way
//! of its own.

use crate::tls::{HelloParts, MEMBER, client_hello, message, record, retry, server_hello};
use bellwether::election::{
    AnnouncedValues, Ballot, Body, ConfigVersion, Denial, Entry, Epoch, Flags, Incarnation, Incumbent,
    Instance, KnownPeers, Learnt, MembershipVersion, Message, Moment, NAME_BYTES_MAX, Peer, Priority,
    ProcessId, Record, RecoveredState, Stage, State, VOTERS_MAX, VoteOutcome, VoteRecord, VoteRequest,
    VoterConfig,
};
use bellwether::store::format::to_bytes;
use bellwether::wire::{
    Confirm, Confirmed, Hello, Refusal as Reason, SafetyCode, Stamp, encode_confirm, encode_confirmed,
    encode_hello, encode_message, encode_refuse,
};
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

type Seeds = Vec<(String, Vec<u8>)>;

fn named<const N: usize>(seeds: [(&str, Vec<u8>); N]) -> Seeds {
    seeds.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

fn peer() -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(0x0011_2233_4455_4677_8899_aabb_ccdd_eeff)),
        incarnation: Incarnation(7),
        name: "web-0".to_owned(),
        address: "198.18.0.1:4041".parse().unwrap(),
        priority: Priority::DEFAULT,
        revision: "5d9f".to_owned(),
    }
}

fn entries() -> Vec<Entry> {
    let other = Peer {
        id: ProcessId(Uuid::from_u128(1)),
        name: "web-1".to_owned(),
        address: "[2001:db8::1]:4041".parse().unwrap(),
        ..peer()
    };
    vec![Entry { peer: peer(), state: State::Alive }, Entry { peer: other, state: State::Failed }]
}

fn config(voters: usize) -> VoterConfig {
    let version = ConfigVersion { epoch: Epoch(299), version: 2 };
    let voters = (0..voters).map(|k| format!("web-{k}")).collect();
    VoterConfig { version, voters, lease_ms: 1500, bound_ms: 2000 }
}

/// A frame with a right length and a right checksum, whatever is in it.
fn framed(tag: u16, payload: &[u8]) -> Vec<u8> {
    let summed = [&tag.to_le_bytes()[..], payload].concat();
    let length = (payload.len() + 6) as u32;
    let checksum = crc32fast::hash(&summed);
    [&length.to_le_bytes()[..], &summed[..2], &checksum.to_le_bytes(), payload].concat()
}

/// The frames of `tests/wire.golden`, by name.
fn golden() -> Seeds {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire.golden")).unwrap();
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    lines
        .map(|(name, hex)| (format!("golden_{name}"), hex.as_bytes().chunks(2).map(byte).collect()))
        .collect()
}

/// A payload's beginning, as every message has it.
fn start() -> Vec<u8> {
    let stamp = Stamp { cluster: "web".to_owned(), id: peer().id };
    postcard::to_stdvec(&(stamp, Priority::DEFAULT, Epoch(300))).unwrap()
}

/// The types of TLS records.
const CHANGE: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;

const ASKED_AT: Moment = Moment(Duration::from_millis(70_000));

pub fn frames() -> Seeds {
    let stamp = Stamp { cluster: "web".to_owned(), id: peer().id };
    let mut seeds = golden();
    for (name, body) in sound_bodies() {
        let message = Message { epoch: Epoch(300), priority: Priority::DEFAULT, body };
        seeds.push((name.to_owned(), encode_message(&stamp, &message).unwrap()));
    }
    seeds.extend(hostile_frames());
    seeds
}

/// Messages that differ from those of `tests/wire.golden`.
fn sound_bodies() -> [(&'static str, Body); 19] {
    let (epoch, incarnation) = (Epoch(301), Incarnation(7));
    let (stage, lease_ms) = (Stage::Vote, 1500);
    let ballot = Ballot { stage, epoch, incarnation, asked_at: ASKED_AT, lease_ms };
    let pre_vote = Ballot { stage: Stage::PreVote, ..ballot };
    let membership = MembershipVersion { epoch: Epoch(300), version: 5 };
    let flags = Flags { voters: u64::MAX, lease_ms };
    let request = |ballot, contender, transfer| Body::VoteRequest {
        request: VoteRequest { ballot, contender, transfer, config: config(3) },
    };
    let vote = |ballot, outcome, config| Body::Vote { ballot, outcome, config };
    let denied = |denial| vote(ballot, VoteOutcome::Denied(denial), None);
    let recovered = |state| Body::Recovered { round: 2, incarnation, state, flags };
    let stores = config(3).version;
    [
        ("pre_vote", request(pre_vote, false, None)),
        ("pre_vote_of_a_transfer", request(pre_vote, true, Some(Epoch(300)))),
        ("vote_request", request(ballot, true, None)),
        ("vote_granted", vote(ballot, VoteOutcome::Granted, None)),
        ("vote_denied_for_a_promise", denied(Denial::Promised { for_ms: 700 })),
        ("vote_denied_in_the_grace", denied(Denial::Grace { for_ms: 700 })),
        (
            "vote_denied_with_a_configuration",
            vote(ballot, VoteOutcome::Denied(Denial::OlderConfig), Some(config(VOTERS_MAX))),
        ),
        ("renew", Body::Renew { sequence: 70_000, lease_ms, config: stores, learnt: Learnt::default() }),
        (
            "renewed",
            Body::Renewed { sequence: 70_000, membership, promised: true, firm: true, config: stores, flags },
        ),
        ("configuration", Body::Configuration { config: config(3) }),
        ("recover", Body::Recover { round: 2, incarnation }),
        ("recovered_founded", recovered(RecoveredState::Founded(config(5)))),
        ("recovered_founding", recovered(RecoveredState::Founding(config(5)))),
        ("recovered_empty", recovered(RecoveredState::Empty)),
        ("propose_transfer", Body::ProposeTransfer),
        ("transfer_ready", Body::TransferReady { majority: true }),
        (
            "leader_info",
            Body::LeaderInfo {
                leader: Some(Incumbent { peer: peer(), elected_at_ms: 1_793_534_400_000 }),
                entries: entries().into(),
            },
        ),
        ("leader_info_without_leader", Body::LeaderInfo { leader: None, entries: [].into() }),
        ("leave_without_version", Body::Leave { version: None, id: peer().id }),
    ]
}

/// Frames that this version never sends: hostile ones, and those of a newer version.
fn hostile_frames() -> Seeds {
    let with = |tag, rest: &[u8]| framed(tag, &[&start()[..], rest].concat());
    let huge = postcard::to_stdvec(&u64::MAX).unwrap();
    let membership = MembershipVersion { epoch: Epoch(300), version: 5 };
    let too_many = postcard::to_stdvec(&(membership, vec![&entries()[0]; 3], 257_u64)).unwrap();
    named([
        ("hostile_huge_list", with(21, &[&[0, 0][..], &huge].concat())),
        ("hostile_huge_set", with(41, &[&[0, 0][..], &huge].concat())),
        ("hostile_set_with_doubles", with(41, &[1, 1, 3, 1, b'b', 1, b'a', 1, b'b', 5, 5])),
        ("hostile_empty_set", with(41, &[1, 1, 0, 5, 5])),
        ("hostile_bound_below_the_lease", with(41, &[1, 1, 1, 1, b'a', 5, 4])),
        ("hostile_unknown_state", with(42, &[1, 1, 3, 1, 1])),
        ("hostile_huge_text", framed(25, &[&huge[..], b"web"].concat())),
        ("hostile_text_not_utf8", framed(25, &[&[1, 0xff][..], &start()].concat())),
        ("hostile_control_character", framed(2, &[1, 2, b'a', 7])),
        ("hostile_long_number", with(18, &[0xff; 11])),
        ("hostile_number_in_more_bytes", with(18, &[0x81, 0x80, 0x00])),
        ("unknown_tag", framed(999, b"of a newer version")),
        ("field_added_behind", with(21, &too_many)),
        ("no_payload", framed(19, &[])),
        ("announces_too_much", u32::MAX.to_le_bytes().to_vec()),
        ("announces_too_little", vec![5, 0, 0, 0, 0]),
        ("two", [with(16, &[]), with(17, &[])].concat()),
    ])
}

pub fn handshakes() -> Seeds {
    let url = AnnouncedValues([("url".to_owned(), "http://198.18.0.1:8080".to_owned())].into());
    let hello_with = |name: &str, versions: (u16, u16), address: &str, announce: AnnouncedValues| {
        let peer = Peer { name: name.to_owned(), address: address.parse().unwrap(), ..peer() };
        let hello = Hello {
            version_min: versions.0,
            version_max: versions.1,
            cluster: "web".to_owned(),
            peer,
            safety: SafetyCode::Classic,
            token: 0x0102_0304,
            announce,
        };
        encode_hello(&hello).unwrap()
    };
    let hello =
        |name: &str, versions, address: &str| hello_with(name, versions, address, AnnouncedValues::default());
    let usual = hello("web-0", (1, 1), "198.18.0.1:4041");
    let at = "198.18.0.2:4041".parse().unwrap();
    let instance = Instance { id: peer().id, incarnation: peer().incarnation };
    let question = Confirm { instance, token: 0x0102_0304, reached: (at, at) };
    let damaged: Vec<u8> = usual.iter().enumerate().map(|(k, byte)| byte ^ u8::from(k == 20)).collect();
    named([
        ("hello", usual.clone()),
        ("hello_without_address", hello("web-0", (1, 3), "[::]:4041")),
        ("hello_mapped_address", hello("web-0", (0, u16::MAX), "[::ffff:198.18.0.1]:0")),
        ("hello_of_the_future", hello("web-0", (2, 9), "198.18.0.1:4041")),
        ("hello_of_no_version", hello("web-0", (3, 1), "198.18.0.1:4041")),
        ("hello_longest", hello(&"\"".repeat(NAME_BYTES_MAX), (1, 1), "198.18.0.1:4041")),
        ("hello_and_more", [&usual[..], &framed(25, &start())].concat()),
        // The first version sent neither the level nor the token, which take a byte and four.
        ("hello_of_the_first_version", framed(1, &usual[10..usual.len() - 5])),
        ("confirm", encode_confirm(&question)),
        ("confirmed", encode_confirmed(Confirmed::Foreign)),
        ("hello_majority", framed(1, &[&usual[10..usual.len() - 1], &[1][..]].concat())),
        ("hello_of_another_level", framed(1, &[&usual[10..usual.len() - 1], &[200][..]].concat())),
        ("hello_begun", usual[..17].to_vec()),
        ("hello_damaged", damaged),
        ("hello_announcing", hello_with("web-0", (1, 1), "198.18.0.1:4041", url)),
        ("hello_padded_beyond_the_limit", framed(1, &[&usual[10..], &[0; 4096]].concat())),
        ("refuse", encode_refuse(Reason::Cluster, "this is cluster \"web\", not \"api\"")),
        ("refuse_newer_reason", encode_refuse(Reason::Other(99), "é".repeat(200).as_str())),
        ("refuse_control_character", framed(2, &[1, 4, b'a', b'\r', b'\n', b'b'])),
        ("message_first", framed(25, &start())),
        ("unknown_first", framed(4, b"of a newer version")),
        ("http", b"GET /leader HTTP/1.1\r\nHost: web:4041\r\n\r\n".to_vec()),
        ("tls", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\x03".to_vec()),
        ("zeros", vec![0; 64]),
    ])
}

pub fn channels() -> Seeds {
    let hello = |parts| record(HANDSHAKE, &client_hello(&parts));
    let answer = |parts| record(HANDSHAKE, &server_hello(&parts));
    let (usual, answered) = (hello(MEMBER), answer(MEMBER));
    let garbage = || record(APPLICATION, &[0x5a; 48]);
    let change = || record(CHANGE, &[1]);
    let whole = client_hello(&MEMBER);
    let (head, tail) = whole.split_at(100);
    named([
        ("client_hello", usual.clone()),
        ("client_hello_begun", usual[..77].to_vec()),
        ("client_hello_in_two_records", [record(HANDSHAKE, head), record(HANDSHAKE, tail)].concat()),
        ("client_hello_and_garbage", [usual.clone(), change(), garbage()].concat()),
        ("client_hello_twice", [&usual[..], &usual].concat()),
        ("client_hello_and_alert", [usual.clone(), record(ALERT, &[2, 42])].concat()),
        ("client_hello_padded", hello(HelloParts { padding: 1500, ..MEMBER })),
        ("client_hello_without_share", hello(HelloParts { share: None, ..MEMBER })),
        ("client_hello_of_another_protocol", hello(HelloParts { protocol: Some(b"h2"), ..MEMBER })),
        ("client_hello_of_no_protocol", hello(HelloParts { protocol: None, ..MEMBER })),
        ("client_hello_of_tls_1_2", hello(HelloParts { version: 0x0303, ..MEMBER })),
        ("client_hello_with_a_certificate", hello(HelloParts { proof: Some(0), ..MEMBER })),
        ("client_hello_with_any_proof", hello(HelloParts { proof: None, ..MEMBER })),
        ("hostile_share", hello(HelloParts { share: Some([0; 32]), ..MEMBER })),
        ("hostile_padding", hello(HelloParts { padding: 2000, ..MEMBER })),
        ("hostile_hello", record(HANDSHAKE, &message(1, &[0xa5; 200]))),
        ("hostile_empty_hello", record(HANDSHAKE, &message(1, &[]))),
        ("hostile_message_length", record(HANDSHAKE, &[1, 0xff, 0xff, 0xff, 3, 3])),
        ("hostile_record_length", [&[HANDSHAKE, 3, 1, 0xff, 0xff][..], &[1; 64]].concat()),
        ("hostile_long_record", record(HANDSHAKE, &[1; 16 * 1024])[..2100].to_vec()),
        ("hostile_empty_records", record(HANDSHAKE, &[]).repeat(40)),
        ("hostile_changes", change().repeat(40)),
        ("hostile_warnings", record(ALERT, &[1, 90]).repeat(40)),
        ("alert", record(ALERT, &[2, 40])),
        ("close_notify", record(ALERT, &[1, 0])),
        ("application_first", garbage()),
        ("unknown_record", record(24, b"heartbeat")),
        ("server_hello", answered.clone()),
        ("server_hello_and_garbage", [answered, change(), garbage()].concat()),
        ("server_hello_of_tls_1_2", answer(HelloParts { version: 0x0303, ..MEMBER })),
        ("server_hello_hostile_share", answer(HelloParts { share: Some([0; 32]), ..MEMBER })),
        ("server_hello_without_share", answer(HelloParts { share: None, ..MEMBER })),
        ("server_hello_retry", record(HANDSHAKE, &retry())),
        ("hello_in_clear", handshakes().swap_remove(0).1),
        ("http", b"GET /leader HTTP/1.1\r\nHost: web:4041\r\n\r\n".to_vec()),
        ("zeros", vec![0; 64]),
    ])
}

pub fn http_heads() -> Seeds {
    let get = |headers: &str| format!("GET /leader HTTP/1.1\r\nHost: a\r\n{headers}\r\n").into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    named([
        ("leader", get("")),
        ("usual", get("User-Agent: curl/8.5.0\r\nAccept: */*\r\n")),
        ("query", text("GET /is-leader?standby=204?x HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("absolute", text("GET http://a:4040/leader?x HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("absolute_without_path", text("HEAD HTTPS://a?x=/y HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("options", text("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("connect", text("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("version_1_0", text("GET / HTTP/1.0\r\n\r\n")),
        ("version_1_0_kept", text("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")),
        ("close", get("Connection: TE , close\r\nTE: trailers\r\n")),
        ("two", [get(""), get("Connection: keep-alive\r\n")].concat()),
        ("lines_end_in_lf", text("\n\r\nGET /epoch HTTP/1.1\nHost: a\n\n")),
        ("expect", get("Expect: 100-continue\r\nContent-Length: 0\r\n")),
        ("begun", text("GET /metrics HTTP/1.1\r\nHo")),
        ("hostile_length", get("Content-Length: 9000000000000000\r\n")),
        ("hostile_lengths", get("Content-Length: 0\r\ncontent-length: 7\r\n\r\nGET / H")),
        ("hostile_length_list", get("Content-Length: 0, 0\r\n")),
        ("hostile_chunked", get("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
        ("hostile_chunked_hidden", get("Transfer-Encoding : chunked\r\n")),
        ("hostile_chunked_folded", get("A: b\r\n Transfer-Encoding: chunked\r\n")),
        ("hostile_lone_cr", get("A: b\rTransfer-Encoding: chunked\r\n")),
        ("hostile_hosts", get("host: b\r\n")),
        ("hostile_no_host", text("GET / HTTP/1.1\r\n\r\n")),
        ("hostile_zero", get("A: b\0c\r\n")),
        ("hostile_version", text("GET / HTTP/2.0\r\n\r\n")),
        ("hostile_preface", text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        ("hostile_method", text("BREW / HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("hostile_target", text("GET /\u{e9}\"<> HTTP/1.1\r\nHost: \u{fc}\r\n\r\n")),
        ("hostile_target_split", text("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("hostile_headers", get(&"a: b\r\n".repeat(64))),
        ("most_headers", get(&"a: b\r\n".repeat(63))),
        ("tls", text("\x16\x03\x01\x02\x00\x01\x00\x01")),
    ])
}

pub fn control_requests() -> Seeds {
    let line = |json: &str| format!("{{{json}}}\n").into_bytes();
    let name = |name: &str| line(&format!(r#""operation":"transfer","to":"{name}","timeout_ms":10000"#));
    named([
        ("resign", line(r#""operation":"resign","timeout_ms":10000"#)),
        ("resign_for", line(r#""operation":"resign","for_ms":60000,"timeout_ms":10000"#)),
        ("transfer", name("web-1")),
        ("transfer_escaped", name(r#"\u0007\"\ud83d\ude00"#)),
        ("cordon", line(r#""operation":"cordon","timeout_ms":1"#)),
        ("uncordon", line(r#" "timeout_ms" : 3600000 , "operation" : "uncordon" "#)),
        ("two", [line(r#""operation":"cordon","timeout_ms":1"#), name("web-1")].concat()),
        ("begun", br#"{"operation":"resign","time"#.to_vec()),
        ("longest_name", name(&"n".repeat(253))),
        ("padded", line(&format!(r#"{}"operation":"cordon","timeout_ms":1"#, " ".repeat(4000)))),
        ("hostile_long", vec![b'['; 5000]),
        ("hostile_deep", [vec![b'['; 4000], b"\n".to_vec()].concat()),
        ("hostile_name", name(&"n".repeat(254))),
        ("hostile_no_name", name("")),
        ("hostile_missing_name", line(r#""operation":"transfer","timeout_ms":1"#)),
        ("hostile_unknown", line(r#""operation":"exit","timeout_ms":1"#)),
        ("hostile_unknown_text", line(r#""operation":"\u001b[2J\u202e","timeout_ms":1"#)),
        (
            "hostile_invisible_text",
            line(&format!(r#""operation":"{}","timeout_ms":1"#, "\u{7f}".repeat(120))),
        ),
        ("hostile_field", line(r#""operation":"cordon","timeout_ms":1,"\u001b[2J":1"#)),
        ("hostile_twice", line(r#""operation":"cordon","operation":"resign","timeout_ms":1"#)),
        ("hostile_unexpected", line(r#""operation":"cordon","to":"web-1","timeout_ms":1"#)),
        ("hostile_for", line(r#""operation":"uncordon","for_ms":1,"timeout_ms":1"#)),
        ("hostile_zero", line(r#""operation":"cordon","timeout_ms":0"#)),
        ("hostile_time", line(r#""operation":"resign","for_ms":18446744073709551615,"timeout_ms":1"#)),
        ("hostile_number", line(r#""operation":"resign","timeout_ms":1e99"#)),
        ("hostile_http", b"POST /resign HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        ("hostile_bytes", b"{\"operation\":\"\xff\xfe\",\"timeout_ms\":1}\n".to_vec()),
    ])
}

pub fn records() -> Seeds {
    let small = Record { cluster: "web".to_owned(), id: peer().id, epoch: Epoch(300), vote: None };
    let known = KnownPeers { cluster: "web".to_owned(), leader: Some(peer()), members: entries() };
    let known = serde_json::to_string(&known).unwrap();
    let vote = VoteRecord { name: "web-0".to_owned(), founding: false, firm: true, config: config(3) };
    let founding = VoteRecord { founding: true, ..vote.clone() };
    let founding = Record { vote: Some(founding), ..small.clone() };
    let voter = Record { vote: Some(vote), ..small.clone() };
    let summed = |json: &str| {
        let checksum = crc32fast::hash(json.as_bytes());
        format!("bellwether record format=2 crc32={checksum:08x}\n{json}").into_bytes()
    };
    let compact = serde_json::to_string(&voter).unwrap();
    let bytes = to_bytes(&voter).unwrap();
    let flipped: Vec<u8> = bytes.iter().enumerate().map(|(k, byte)| byte ^ u8::from(k == 100) << 3).collect();
    let newer = [&b"bellwether record format=3 crc32=00000000\n"[..], compact.as_bytes()].concat();
    named([
        ("small", to_bytes(&small).unwrap()),
        ("voter", bytes.clone()),
        ("founding_voter", to_bytes(&founding).unwrap()),
        ("bound_below_the_lease", summed(&compact.replacen(":2000", ":1499", 1))),
        ("compact", summed(&compact)),
        ("highest_epoch", to_bytes(&Record { epoch: Epoch::RECORD_MAX, ..small }).unwrap()),
        ("epoch_too_high", summed(&compact.replacen(":300,", ":4611686018427387904,", 1))),
        ("field_of_a_newer_version", summed(&compact.replacen('{', "{\"more\":[{}],", 1))),
        ("field_twice", summed(&compact.replacen('{', "{\"epoch\":7,", 1))),
        ("field_missing", summed(&compact.replacen("\"epoch\":300,", "", 1))),
        ("negative_epoch", summed(&compact.replacen(":300,", ":-1,", 1))),
        ("great_epoch", summed(&compact.replacen(":300,", ":18446744073709551616,", 1))),
        ("epoch_as_text", summed(&compact.replacen(":300,", ":\"300\",", 1))),
        ("control_character", summed(&compact.replacen("\"web\"", "\"w\\u0007b\"", 1))),
        ("lone_surrogate", summed(&compact.replacen("\"web\"", "\"w\\ud800b\"", 1))),
        ("no_voters", summed(&compact.replacen("[\"web-0\",\"web-1\",\"web-2\"]", "[]", 1))),
        ("many_voters", summed(&compact.replacen("\"web-1\"", &many(VOTERS_MAX), 1))),
        ("deep", summed(&"[".repeat(200))),
        ("empty", vec![]),
        ("cut_off", bytes[..bytes.len() / 2].to_vec()),
        ("cut_off_in_its_first_line", bytes[..30].to_vec()),
        ("flipped", flipped),
        ("newer", newer),
        ("format_1", b"bellwether record format=1 crc32=00000000\n".to_vec()),
        ("format_0", b"bellwether record format=0 crc32=00000000\n".to_vec()),
        ("great_format", b"bellwether record format=99999999999".to_vec()),
        ("json_alone", compact.into_bytes()),
        ("known_peers", known.clone().into_bytes()),
        ("known_peers_of_unknown_state", known.replacen("\"Alive\"", "\"A\\nlive\"", 1).into_bytes()),
        ("zeros", vec![0; 64]),
    ])
}

/// So many names of voters, as JSON.
fn many(voters: usize) -> String {
    let names: Vec<String> = (0..voters).map(|k| format!("\"v{k}\"")).collect();
    names.join(",")
}
