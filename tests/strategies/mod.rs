//! Arbitrary values of the election's vocabulary, within their limits, for property tests.
#![allow(dead_code, reason = "each test program uses some of them")]

use bellwether::election::{
    Ballot, Body, CLUSTER_BYTES_MAX, Entry, Epoch, Incarnation, Incumbent, MEMBERS_MAX, MembershipVersion,
    Message, Moment, NAME_BYTES_MAX, Peer, Priority, Process, ProcessId, Question, REVISION_BYTES_MAX,
    Recollection, Record, Refusal, State, VOTERS_MAX, Verdict, ViewStamp, VoteRecord, VoterView,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
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

pub fn view_stamp() -> impl Strategy<Value = ViewStamp> {
    (epoch(), any::<u32>()).prop_map(|(epoch, version)| ViewStamp { epoch, version })
}

/// On the heap: messages with a view in them would be too large for a test's stack.
pub fn voter_view() -> BoxedStrategy<VoterView> {
    let voters = prop_oneof![
        4 => btree_set(text(20), 1..6),
        1 => btree_set(text(NAME_BYTES_MAX), 1..=VOTERS_MAX),
    ];
    (view_stamp(), voters).prop_map(|(stamp, voters)| VoterView { stamp, voters }).boxed()
}

fn question() -> impl Strategy<Value = Question> {
    prop_oneof![Just(Question::Sounding), Just(Question::Claim)]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Yes),
        Just(Verdict::Conditional),
        Just(Verdict::No(Refusal::Stale)),
        any::<u32>().prop_map(|for_ms| Verdict::No(Refusal::Promised { for_ms })),
        Just(Verdict::No(Refusal::Outranked)),
        Just(Verdict::No(Refusal::Recovering)),
        Just(Verdict::No(Refusal::NoVoter)),
        Just(Verdict::No(Refusal::Withdrawn)),
    ]
}

/// What only processes with `--safety majority` say.
pub fn voting_body() -> impl Strategy<Value = Body> {
    let ballot = (epoch(), incarnation(), moment(), any::<u32>()).prop_map(
        |(epoch, incarnation, asked_at, lease_ms)| Ballot { epoch, incarnation, asked_at, lease_ms },
    );
    let recollection = (voter_view(), any::<u32>())
        .prop_map(|(view, lease_longest_ms)| Recollection { view, lease_longest_ms });
    prop_oneof![
        (question(), ballot, option::of(epoch()), voter_view())
            .prop_map(|(question, ballot, freed, view)| Body::Contest { question, ballot, freed, view }),
        (question(), epoch(), incarnation(), moment(), verdict(), voter_view(), any::<u32>()).prop_map(
            |(question, epoch, incarnation, asked_at, verdict, view, lease_ms)| Body::Vote {
                question,
                epoch,
                incarnation,
                asked_at,
                verdict,
                view,
                lease_ms
            }
        ),
        (epoch(), incarnation()).prop_map(|(epoch, incarnation)| Body::Withdraw { epoch, incarnation }),
        (any::<u32>(), membership_version(), any::<u32>(), view_stamp()).prop_map(
            |(sequence, membership, lease_ms, view)| Body::Renew { sequence, membership, lease_ms, view }
        ),
        (any::<u32>(), membership_version(), any::<bool>(), view_stamp(), any::<u64>(), any::<u32>())
            .prop_map(|(sequence, membership, promised, view, target, lease_ms)| Body::Renewed {
                sequence,
                membership,
                promised,
                view,
                target,
                lease_ms
            }),
        voter_view().prop_map(|view| Body::Voters { view }),
        (any::<u32>(), incarnation()).prop_map(|(round, incarnation)| Body::Recover { round, incarnation }),
        (any::<u32>(), incarnation(), option::of(recollection), any::<u64>()).prop_map(
            |(round, incarnation, recollection, target)| Body::Recovered {
                round,
                incarnation,
                recollection,
                target
            }
        ),
        Just(Body::Prepare),
        any::<bool>().prop_map(|majority| Body::Prepared { majority }),
    ]
}

pub fn body() -> impl Strategy<Value = Body> {
    prop_oneof![11 => classic_body(), 10 => voting_body()]
}

fn classic_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::Election),
        Just(Body::Answer),
        any::<u64>().prop_map(|elected_at_ms| Body::Coordinator { elected_at_ms }),
        (any::<u32>(), membership_version())
            .prop_map(|(sequence, membership)| Body::Heartbeat { sequence, membership }),
        (any::<u32>(), membership_version())
            .prop_map(|(sequence, membership)| Body::HeartbeatAck { sequence, membership }),
        (membership_version(), entries())
            .prop_map(|(version, entries)| Body::Membership { version, entries }),
        (membership_version(), entry()).prop_map(|(version, entry)| Body::Join { version, entry }),
        (option::of(membership_version()), process_id())
            .prop_map(|(version, id)| Body::Leave { version, id }),
        (option::of(process_id()), any::<bool>())
            .prop_map(|(successor, leaving)| Body::Resign { successor, leaving }),
        Just(Body::Ask),
        (option::of((peer(), any::<u64>())), entries()).prop_map(|(leader, entries)| Body::Tell {
            leader: leader.map(|(peer, elected_at_ms)| Incumbent { peer, elected_at_ms }),
            entries,
        }),
    ]
}

pub fn message() -> impl Strategy<Value = Message> {
    (epoch(), body()).prop_map(|(epoch, body)| Message { epoch, body })
}

pub fn cluster() -> impl Strategy<Value = String> {
    text(CLUSTER_BYTES_MAX)
}

fn vote_record() -> impl Strategy<Value = VoteRecord> {
    let process = (process_id(), incarnation()).prop_map(|(id, incarnation)| Process { id, incarnation });
    (text(NAME_BYTES_MAX), option::of(process), voter_view(), any::<u32>()).prop_map(
        |(name, granted_to, view, lease_longest_ms)| VoteRecord { name, granted_to, view, lease_longest_ms },
    )
}

pub fn record() -> impl Strategy<Value = Record> {
    (cluster(), process_id(), any::<u64>(), option::of(peer()), entries(), option::of(vote_record()))
        .prop_map(|(cluster, id, epoch, leader, members, vote)| Record {
            cluster,
            id,
            epoch: Epoch(epoch),
            leader,
            members,
            vote,
        })
}

/// As many voters as there may be, each name as long as can be.
pub fn largest_view() -> VoterView {
    // A quotation mark takes two bytes in JSON; the two digits make them different.
    let name = |k| format!("{k:02}{}", "\"".repeat(NAME_BYTES_MAX - 2));
    VoterView {
        stamp: ViewStamp { epoch: Epoch::MAX, version: u32::MAX },
        voters: (0..VOTERS_MAX).map(name).collect(),
    }
}

/// The vote that takes the most bytes in a record.
pub fn largest_vote() -> VoteRecord {
    VoteRecord {
        name: "\"".repeat(NAME_BYTES_MAX),
        granted_to: Some(Process { id: ProcessId(Uuid::max()), incarnation: Incarnation(u64::MAX) }),
        view: largest_view(),
        lease_longest_ms: u32::MAX,
    }
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
pub fn largest_entries() -> Vec<Entry> {
    let entry = Entry { peer: largest_peer(), state: State::Failed };
    vec![entry; MEMBERS_MAX]
}
