//! The format of every frame, held against `tests/wire.golden`.

use super::{ASKED_AT, small_peer, small_stamp};
use bellwether::election::{
    AnnouncedValues, Ballot, Body, ConfigVersion, Denial, Entry, Epoch, Flags, Incarnation, Incumbent,
    Instance, Learnt, ListWanted, MembershipVersion, Message, Pace, Peer, Priority, ProcessId,
    RecoveredState, Stage, State, VoteOutcome, VoteRequest, VoterConfig,
};
use bellwether::wire::{
    Confirm, Confirmed, Hello, Refusal, SafetyCode, encode_bye, encode_confirm, encode_confirmed,
    encode_hello, encode_message, encode_refuse,
};
use std::fmt::Write as _;
use std::path::Path;
use uuid::Uuid;

const VERSION: MembershipVersion = MembershipVersion { epoch: Epoch(300), version: 5 };

const OTHER: ProcessId = ProcessId(Uuid::from_u128(0xffee_ddcc_bbaa_4988_8766_5544_3322_1100));

/// One frame of each kind.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let safety = SafetyCode::Majority;
    let (cluster, token) = ("web".to_owned(), 300);
    let announce = AnnouncedValues::default();
    let hello =
        Hello { version_min: 1, version_max: 2, cluster, peer: small_peer(), safety, token, announce };
    let announce = AnnouncedValues([("url".to_owned(), "http://198.18.0.1:8080".to_owned())].into());
    let announcing = Hello { announce, ..hello.clone() };
    let instance = Instance { id: OTHER, incarnation: Incarnation(7) };
    let (one, other) = (([198, 18, 0, 1], 4041).into(), ([198, 18, 0, 2], 4041).into());
    let question = Confirm { instance, token, reached: (one, other) };
    let mut corpus = vec![
        ("hello", encode_hello(&hello).unwrap()),
        ("hello_announcing", encode_hello(&announcing).unwrap()),
        ("refuse", encode_refuse(Refusal::Cluster, "this is cluster web, not api")),
        ("bye", encode_bye()),
        ("confirm", encode_confirm(&question)),
        ("confirmed", encode_confirmed(Confirmed::Foreign)),
    ];
    for body in bodies_about_members().into_iter().chain(bodies_about_votes()) {
        let message = Message { epoch: Epoch(300), priority: Priority::DEFAULT, body };
        corpus.push((message.body.name(), encode_message(&small_stamp(), &message).unwrap()));
    }
    corpus
}

fn bodies_about_members() -> Vec<Body> {
    let alive = Entry { peer: small_peer(), state: State::Alive };
    let failed = Entry {
        peer: Peer {
            id: OTHER,
            incarnation: Incarnation(u64::MAX),
            name: "web-1".to_owned(),
            address: "[2001:db8::1]:4041".parse().unwrap(),
            priority: Priority::MAX,
            revision: String::new(),
        },
        state: State::Failed,
    };
    vec![
        Body::Election,
        Body::Answer,
        Body::Declare,
        Body::Coordinator { elected_at_ms: 1_793_534_400_000 },
        Body::Heartbeat {
            sequence: 70_000,
            pace: Pace { lease_ms: 1500, learnt: Learnt { worst_ms: 120, eighths: 8 } },
        },
        Body::HeartbeatAck { sequence: 70_000, membership: VERSION },
        Body::Membership { version: VERSION, entries: [alive.clone(), failed.clone()].into() },
        Body::Join { version: VERSION, entry: failed.clone() },
        Body::Leave { version: Some(VERSION), id: OTHER },
        Body::Resign { successor: Some(OTHER), leaving: true },
        Body::LeaderQuery { list: ListWanted::Whole },
        Body::LeaderInfo {
            leader: Some(Incumbent { peer: small_peer(), elected_at_ms: 1_793_534_400_000 }),
            entries: [alive, failed].into(),
        },
    ]
}

fn bodies_about_votes() -> Vec<Body> {
    let config = VoterConfig {
        version: ConfigVersion { epoch: Epoch(299), version: 2 },
        voters: ["web-0", "web-1", "web-2"].map(str::to_owned).into(),
        lease_ms: 1500,
        bound_ms: 2000,
    };
    let stores = config.version;
    let ballot = Ballot {
        stage: Stage::Vote,
        epoch: Epoch(301),
        incarnation: Incarnation(7),
        asked_at: ASKED_AT,
        lease_ms: 1500,
    };
    let flags = Flags { voters: u64::MAX, lease_ms: 1500 };
    vec![
        Body::VoteRequest {
            request: VoteRequest {
                ballot,
                contender: true,
                transfer: Some(Epoch(300)),
                config: config.clone(),
            },
        },
        Body::Vote {
            ballot,
            outcome: VoteOutcome::Denied(Denial::Promised { for_ms: 1200 }),
            config: Some(config.clone()),
        },
        Body::Renew { sequence: 70_000, lease_ms: 1500, config: stores, learnt: Learnt::default() },
        Body::Renewed {
            sequence: 70_000,
            membership: VERSION,
            promised: true,
            firm: true,
            config: stores,
            flags,
        },
        Body::Configuration { config: config.clone() },
        Body::Recover { round: 2, incarnation: Incarnation(7) },
        Body::Recovered {
            round: 2,
            incarnation: Incarnation(7),
            state: RecoveredState::Founded(config),
            flags,
        },
        Body::ProposeTransfer,
        Body::TransferReady { majority: true },
    ]
}

/// The format cannot change unnoticed: processes of different versions run side by side in every rolling
/// update. A new kind of frame, or one with more fields, is written into the table by `BELLWETHER_REWRITE=1`.
#[test]
fn the_format_is_what_it_was() {
    let mut lines = String::new();
    for (name, bytes) in corpus() {
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        writeln!(lines, "{name} {hex}").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire.golden");
    if std::env::var_os("BELLWETHER_REWRITE").is_some() {
        std::fs::write(&path, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(&path).unwrap());
}
