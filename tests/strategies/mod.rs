//! Arbitrary values of the election's vocabulary, within their limits, for property tests.
#![allow(dead_code, reason = "each test program uses some of them")]

use bellwether::election::{
    Ballot, Body, CLUSTER_BYTES_MAX, ConfigVersion, Denial, Entry, Epoch, Flags, Incarnation, Incumbent,
    KnownPeers, LEASE_MS_MAX, Learnt, ListWanted, MEMBERS_MAX, MembershipVersion, Message, Moment,
    NAME_BYTES_MAX, Pace, Peer, Priority, ProcessId, REVISION_BYTES_MAX, Record, RecoveredState, Stage,
    State, VOTERS_MAX, VoteOutcome, VoteRecord, VoteRequest, VoterConfig,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The text of at most this many bytes, of any characters but control characters.
pub fn text(bytes_max: usize) -> impl Strategy<Value = String> {
    vec(any::<char>().prop_filter("control character", |c| !c.is_control()), 0..=bytes_max).prop_map(
        move |characters| {
            let mut text = String::new();
            for c in characters {
                if text.len() + c.len_utf8() <= bytes_max {
                    text.push(c);
                }
            }
            text
        },
    )
}

pub fn process_id() -> impl Strategy<Value = ProcessId> {
    any::<[u8; 16]>().prop_map(|bytes| ProcessId(Uuid::from_bytes(bytes)))
}

pub fn priority() -> impl Strategy<Value = Priority> {
    (0..=Priority::MAX.0).prop_map(Priority)
}

pub fn epoch() -> impl Strategy<Value = Epoch> {
    prop_oneof![0..1000_u64, Just(Epoch::MAX.0), 0..=Epoch::MAX.0].prop_map(Epoch)
}

fn records_epoch() -> impl Strategy<Value = Epoch> {
    epoch().prop_map(|epoch| epoch.min(Epoch::RECORD_MAX))
}

pub fn membership_version() -> impl Strategy<Value = MembershipVersion> {
    (epoch(), any::<u32>()).prop_map(|(epoch, version)| MembershipVersion { epoch, version })
}

/// Without an IPv6 scope or flow label, which do not travel.
pub fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

pub fn peer() -> impl Strategy<Value = Peer> {
    let texts = (text(NAME_BYTES_MAX), text(REVISION_BYTES_MAX));
    (process_id(), any::<u64>(), texts, address(), priority()).prop_map(
        |(id, incarnation, (name, revision), address, priority)| Peer {
            id,
            incarnation: Incarnation(incarnation),
            name,
            address,
            priority,
            revision,
        },
    )
}

pub fn entry() -> impl Strategy<Value = Entry> {
    (peer(), prop_oneof![Just(State::Alive), Just(State::Failed)])
        .prop_map(|(peer, state)| Entry { peer, state })
}

pub fn entries() -> impl Strategy<Value = Vec<Entry>> {
    vec(entry(), 0..12)
}

pub fn incarnation() -> impl Strategy<Value = Incarnation> {
    any::<u64>().prop_map(Incarnation)
}

fn moment() -> impl Strategy<Value = Moment> {
    any::<u64>().prop_map(|nanos| Moment(Duration::from_nanos(nanos)))
}

pub fn config_version() -> impl Strategy<Value = ConfigVersion> {
    (epoch(), any::<u32>()).prop_map(|(epoch, version)| ConfigVersion { epoch, version })
}

/// On the heap: messages with a configuration in them would be too large for a test's stack.
pub fn voter_config() -> BoxedStrategy<VoterConfig> {
    let voters = prop_oneof![
        4 => btree_set(text(20), 1..6),
        1 => btree_set(text(NAME_BYTES_MAX), 1..=VOTERS_MAX),
    ];
    let times = (1..=LEASE_MS_MAX, 1..=LEASE_MS_MAX).prop_map(|(a, b)| (a.min(b), a.max(b)));
    (config_version(), voters, times)
        .prop_map(|(version, voters, (lease_ms, bound_ms))| VoterConfig {
            version,
            voters,
            lease_ms,
            bound_ms,
        })
        .boxed()
}

fn stage() -> impl Strategy<Value = Stage> {
    prop_oneof![Just(Stage::PreVote), Just(Stage::Vote)]
}

fn outcome() -> impl Strategy<Value = VoteOutcome> {
    prop_oneof![Just(VoteOutcome::Granted), denial().prop_map(VoteOutcome::Denied)]
}

/// A lease, or a wait for one.
fn wait_ms() -> impl Strategy<Value = u32> {
    0..=LEASE_MS_MAX
}

fn denial() -> impl Strategy<Value = Denial> {
    prop_oneof![
        Just(Denial::Stale),
        Just(Denial::OlderConfig),
        wait_ms().prop_map(|for_ms| Denial::Promised { for_ms }),
        wait_ms().prop_map(|for_ms| Denial::Grace { for_ms }),
        Just(Denial::Outranked),
        Just(Denial::NoRecord),
        Just(Denial::Unlisted),
    ]
}

fn learnt() -> impl Strategy<Value = Learnt> {
    (any::<u32>(), any::<u8>()).prop_map(|(worst_ms, eighths)| Learnt { worst_ms, eighths })
}

fn flags() -> impl Strategy<Value = Flags> {
    (any::<u64>(), wait_ms()).prop_map(|(voters, lease_ms)| Flags { voters, lease_ms })
}

fn ballot() -> impl Strategy<Value = Ballot> {
    (stage(), epoch(), incarnation(), moment(), wait_ms()).prop_map(
        |(stage, epoch, incarnation, asked_at, lease_ms)| Ballot {
            stage,
            epoch,
            incarnation,
            asked_at,
            lease_ms,
        },
    )
}

fn recovered_state() -> impl Strategy<Value = RecoveredState> {
    prop_oneof![
        Just(RecoveredState::Empty),
        voter_config().prop_map(RecoveredState::Founding),
        voter_config().prop_map(RecoveredState::Founded),
    ]
}

/// What only processes with `--safety majority` say.
pub fn voting_body() -> impl Strategy<Value = Body> {
    let request = (ballot(), any::<bool>(), option::of(epoch()), voter_config());
    let promised = (any::<bool>(), any::<bool>());
    let renewed = (any::<u32>(), membership_version(), promised, config_version(), flags());
    prop_oneof![
        request.prop_map(|(ballot, contender, transfer, config)| {
            Body::VoteRequest { request: VoteRequest { ballot, contender, transfer, config } }
        }),
        (ballot(), outcome(), option::of(voter_config())).prop_map(|(ballot, outcome, config)| Body::Vote {
            ballot,
            outcome,
            config
        }),
        (any::<u32>(), any::<u32>(), config_version(), learnt()).prop_map(
            |(sequence, lease_ms, config, learnt)| Body::Renew { sequence, lease_ms, config, learnt }
        ),
        renewed.prop_map(|(sequence, membership, (promised, firm), config, flags)| Body::Renewed {
            sequence,
            membership,
            promised,
            firm,
            config,
            flags
        }),
        voter_config().prop_map(|config| Body::Configuration { config }),
        (any::<u32>(), incarnation()).prop_map(|(round, incarnation)| Body::Recover { round, incarnation }),
        (any::<u32>(), incarnation(), recovered_state(), flags()).prop_map(
            |(round, incarnation, state, flags)| Body::Recovered { round, incarnation, state, flags }
        ),
        Just(Body::ProposeTransfer),
        any::<bool>().prop_map(|majority| Body::TransferReady { majority }),
    ]
}

pub fn body() -> impl Strategy<Value = Body> {
    prop_oneof![11 => classic_body(), 9 => voting_body()]
}

fn classic_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::Election),
        Just(Body::Answer),
        Just(Body::Declare),
        any::<u64>().prop_map(|elected_at_ms| Body::Coordinator { elected_at_ms }),
        (any::<u32>(), any::<u32>(), learnt()).prop_map(|(sequence, lease_ms, learnt)| Body::Heartbeat {
            sequence,
            pace: Pace { lease_ms, learnt }
        }),
        (any::<u32>(), membership_version())
            .prop_map(|(sequence, membership)| Body::HeartbeatAck { sequence, membership }),
        (membership_version(), entries())
            .prop_map(|(version, entries)| Body::Membership { version, entries: entries.into() }),
        (membership_version(), entry()).prop_map(|(version, entry)| Body::Join { version, entry }),
        (option::of(membership_version()), process_id())
            .prop_map(|(version, id)| Body::Leave { version, id }),
        (option::of(process_id()), any::<bool>())
            .prop_map(|(successor, leaving)| Body::Resign { successor, leaving }),
        any::<bool>().prop_map(|best| Body::LeaderQuery {
            list: if best { ListWanted::Best } else { ListWanted::Whole },
        }),
        (option::of((peer(), any::<u64>())), entries()).prop_map(|(leader, entries)| Body::LeaderInfo {
            leader: leader.map(|(peer, elected_at_ms)| Incumbent { peer, elected_at_ms }),
            entries: entries.into(),
        }),
    ]
}

pub fn message() -> impl Strategy<Value = Message> {
    (epoch(), priority(), body()).prop_map(|(epoch, priority, body)| Message { epoch, priority, body })
}

pub fn cluster() -> impl Strategy<Value = String> {
    text(CLUSTER_BYTES_MAX)
}

fn vote_record() -> impl Strategy<Value = VoteRecord> {
    (text(NAME_BYTES_MAX), any::<[bool; 2]>(), voter_config(), records_epoch()).prop_map(
        |(name, [founding, firm], mut config, epoch)| {
            config.version.epoch = epoch;
            VoteRecord { name, founding, firm, config }
        },
    )
}

pub fn record() -> impl Strategy<Value = Record> {
    (cluster(), process_id(), records_epoch(), option::of(vote_record()))
        .prop_map(|(cluster, id, epoch, vote)| Record { cluster, id, epoch, vote })
}

pub fn known_peers() -> impl Strategy<Value = KnownPeers> {
    (cluster(), option::of(peer()), entries()).prop_map(|(cluster, leader, members)| KnownPeers {
        cluster,
        leader,
        members,
    })
}

/// As many voters as there may be, each name as long as can be.
pub fn largest_config() -> VoterConfig {
    // A quotation mark takes two bytes in JSON; the two digits make them different.
    let name = |k| format!("{k:02}{}", "\"".repeat(NAME_BYTES_MAX - 2));
    VoterConfig {
        version: ConfigVersion { epoch: Epoch::MAX, version: u32::MAX },
        voters: (0..VOTERS_MAX).map(name).collect(),
        lease_ms: LEASE_MS_MAX,
        bound_ms: LEASE_MS_MAX,
    }
}

/// The vote that takes the most bytes in a record.
pub fn largest_vote() -> VoteRecord {
    let mut config = largest_config();
    config.version.epoch = Epoch::RECORD_MAX;
    VoteRecord { name: "\"".repeat(NAME_BYTES_MAX), founding: false, firm: false, config }
}

/// The member that takes the most bytes: longest texts, greatest numbers.
pub fn largest_peer() -> Peer {
    Peer {
        id: ProcessId(Uuid::max()),
        incarnation: Incarnation(u64::MAX),
        name: "\"".repeat(NAME_BYTES_MAX),
        address: SocketAddr::from((Ipv6Addr::from([0xabcd_u16; 8]), u16::MAX)),
        priority: Priority::MAX,
        revision: "\"".repeat(REVISION_BYTES_MAX),
    }
}

/// As many members as there may be, each as large as can be.
pub fn largest_entries() -> Arc<[Entry]> {
    let entry = Entry { peer: largest_peer(), state: State::Failed };
    vec![entry; MEMBERS_MAX].into()
}
