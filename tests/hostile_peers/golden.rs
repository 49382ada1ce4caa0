//! Holds these tests' own reading of the wire against `tests/wire.golden`, so that an attack says what it
//! means to say.

use crate::wire::{
    Ballot, Config, Confirm, Confirmed, Frame, Known, Message, Outcome, Peer, bye, confirm, confirmed, first,
    hello, refuse,
};
use std::collections::BTreeMap;

const SINCE_MS: u64 = 1_793_534_400_000;
const EPOCH: u64 = 300;
const OTHER: u128 = 0xffee_ddcc_bbaa_4988_8766_5544_3322_1100;

fn sender() -> Peer {
    Peer {
        id: 0x0011_2233_4455_4677_8899_aabb_ccdd_eeff,
        incarnation: 7,
        name: "web-0".to_owned(),
        address: "198.18.0.1:4041".parse().unwrap(),
        priority: 100,
        revision: "5d9f".to_owned(),
    }
}

fn other() -> Peer {
    Peer {
        id: OTHER,
        incarnation: u64::MAX,
        name: "web-1".to_owned(),
        address: "[2001:db8::1]:4041".parse().unwrap(),
        priority: 1000,
        revision: String::new(),
    }
}

fn config() -> Config {
    let voters = ["web-0", "web-1", "web-2"].map(str::to_owned).to_vec();
    Config { version: (299, 2), voters, lease_ms: 1500, bound_ms: 2000 }
}

fn ballot() -> Ballot {
    Ballot { vote: true, epoch: 301, incarnation: 7, asked_at: (70, 0), lease_ms: 1500 }
}

fn question() -> Confirm {
    let reached = ("198.18.0.1:4041".parse().unwrap(), "198.18.0.2:4041".parse().unwrap());
    Confirm { id: OTHER, incarnation: 7, token: 300, reached }
}

/// The file's name of each message, and the message.
fn messages() -> Vec<(&'static str, Message)> {
    let (version, flags) = ((EPOCH, 5), (u64::MAX, 1500));
    let (alive, failed) = ((sender(), true), (other(), false));
    let entries = vec![alive, failed.clone()];
    let (sequence, stores, asked) = (70_000, config().version, ballot());
    vec![
        ("election", Message::Election),
        ("answer", Message::Answer),
        ("coordinator", Message::Coordinator { elected_at_ms: SINCE_MS }),
        ("heartbeat", Message::Heartbeat { sequence, lease_ms: 1500, learnt: (120, 8) }),
        ("heartbeat_ack", Message::HeartbeatAck { sequence, membership: version }),
        ("membership", Message::Membership { version, entries: entries.clone() }),
        ("join", Message::Join { version, entry: failed }),
        ("leave", Message::Leave { version: Some(version), id: OTHER }),
        ("resign", Message::Resign { successor: Some(OTHER), leaving: true }),
        ("leader_query", Message::LeaderQuery),
        ("leader_info", Message::LeaderInfo { leader: Some((sender(), SINCE_MS)), entries }),
        (
            "vote_request",
            Message::VoteRequest {
                ballot: asked.clone(),
                contender: true,
                transfer: Some(EPOCH),
                config: config(),
            },
        ),
        ("vote", Message::Vote { ballot: asked, outcome: Outcome::Promised(1200), config: Some(config()) }),
        ("renew", Message::Renew { sequence, lease_ms: 1500, config: stores, learnt: (0, 0) }),
        (
            "renewed",
            Message::Renewed {
                sequence,
                membership: version,
                promised: true,
                firm: true,
                config: stores,
                flags,
            },
        ),
        ("configuration", Message::Configuration(config())),
        ("recover", Message::Recover { round: 2, incarnation: 7 }),
        (
            "recovered",
            Message::Recovered { round: 2, incarnation: 7, state: Known::Founded(config()), flags },
        ),
        ("propose_transfer", Message::ProposeTransfer),
        ("transfer_ready", Message::TransferReady { majority: true }),
    ]
}

#[test]
fn a_client_written_from_the_documentation_speaks_the_wire() {
    let file = include_str!("../wire.golden");
    let golden: BTreeMap<&str, &str> = file.lines().filter_map(|line| line.split_once(' ')).collect();
    let said = |name: &str, frame: Vec<u8>| {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(golden.get(name), Some(&hex.as_str()), "{name}");
    };
    said("hello", hello((1, 2), "web", &sender(), 1, 300));
    said("confirm", confirm(&question()));
    said("confirmed", confirmed(Confirmed::Foreign));
    said("refuse", refuse(1, "this is cluster web, not api"));
    said("bye", bye());
    for (name, message) in messages() {
        said(name, message.frame("web", &sender(), EPOCH));
    }
}

#[test]
fn the_client_reads_back_what_it_needs() {
    let frames = [
        (hello((1, 2), "web", &sender(), 1, 7), Frame::Hello(sender())),
        (confirm(&question()), Frame::Confirm(question())),
        (confirmed(Confirmed::Own), Frame::Confirmed(Confirmed::Own)),
        (confirmed(Confirmed::Another), Frame::Confirmed(Confirmed::Another)),
        (bye(), Frame::Bye),
    ];
    for (written, read) in frames {
        assert_eq!(first(&written), Some((read, written.len())));
    }
    for (name, message) in messages() {
        let frame = message.frame("web", &sender(), EPOCH);
        let Some((Frame::Message { epoch, message: read }, length)) = first(&frame) else {
            panic!("{name} is not read")
        };
        assert_eq!((epoch, length), (EPOCH, frame.len()), "{name}");
        assert!(read.is_none_or(|read| read == message), "{name}");
        assert_eq!(first(&frame[..frame.len() - 1]), None, "{name}");
    }
}
