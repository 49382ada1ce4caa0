//! The bodies of answers: what each path's JSON is made of.

use super::feed::{Change, Observed};
use super::{PeerKeys, Snapshot};
use crate::base::Reading;
use crate::election::{
    AnnouncedValues, Candidacy, LeaseReason, MemberStatus, Peer, ProcessId, State, VoterConfig,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

/// The first millisecond of the year 10000, which RFC 3339 cannot write.
const WALL_MS_END: u64 = 253_402_300_800_000;

/// `/leader` and `/watch`.
#[derive(Serialize)]
pub(super) struct LeaderBody<'a> {
    leader: Option<ProcessJson<'a>>,
    is_leader: bool,
    /// It leads no more for its application, and resigns once the holds are over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resigning: bool,
    epoch: u64,
    valid_for_ms: Option<u64>,
    elected_at: Option<String>,
    safety: &'static str,
    version: &'a str,
    as_of: AsOf,
    /// Another change has followed already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    past: bool,
    /// There may have been changes between the version that the client named and this one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    missed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<HoldJson<'a>>,
}

/// A hold, in whole milliseconds from `as_of` on.
#[derive(Serialize)]
pub(super) struct HoldJson<'a> {
    pub(super) election: &'a str,
    pub(super) id: Option<String>,
    pub(super) epoch: Option<u64>,
    pub(super) ms: u64,
    pub(super) max_ms: u64,
    pub(super) stop_wait_ms: u64,
}

/// The pod's clocks when the validity was computed, in milliseconds, rounded down.
#[derive(Serialize)]
struct AsOf {
    monotonic_ms: u64,
    boottime_ms: u64,
    raw_ms: u64,
}

impl AsOf {
    fn of(reading: &Reading) -> AsOf {
        AsOf {
            // Not the earlier one: a suspend must not hide in the difference to CLOCK_BOOTTIME.
            monotonic_ms: whole_ms(reading.mono_after),
            boottime_ms: whole_ms(reading.boot),
            raw_ms: whole_ms(reading.raw),
        }
    }
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    id: String,
    name: &'a str,
    address: String,
    priority: u16,
    /// Left out where it announces nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    announce: Option<&'a AnnouncedValues>,
}

impl<'a> ProcessJson<'a> {
    fn new(peer: &'a Peer, announce: Option<&'a AnnouncedValues>) -> ProcessJson<'a> {
        ProcessJson {
            announce,
            id: peer.id.to_string(),
            name: &peer.name,
            address: peer.address.to_string(),
            priority: peer.priority.0,
        }
    }
}

impl<'a> LeaderBody<'a> {
    /// The state that a change has led to. Where another one has followed, it holds no longer.
    pub(super) fn of(change: &'a Change, latest: &'a Observed, missed: bool) -> LeaderBody<'a> {
        let snapshot = &latest.snapshot;
        let past = change.number != latest.change.number;
        let state = &change.state;
        let leader = if past { state.leader.as_ref() } else { snapshot.leader() };
        LeaderBody {
            leader: leader.map(|leader| ProcessJson::new(&leader.peer, state.announce.as_ref())),
            is_leader: state.is_leader,
            resigning: state.resigning,
            epoch: state.epoch.0,
            valid_for_ms: if past { Some(0) } else { leader.and(valid_for_ms(snapshot)) },
            elected_at: leader.and_then(|leader| wall_time(leader.elected_at_ms)),
            safety: if snapshot.status.voting.is_some() { "majority" } else { "classic" },
            version: &change.version,
            as_of: AsOf::of(&snapshot.reading),
            past,
            missed,
            hold: None,
        }
    }

    /// With a hold, which counts from an earlier reading than the rest: so do all times from then on.
    pub(super) fn with_hold(self, hold: HoldJson<'a>, reading: &Reading) -> LeaderBody<'a> {
        LeaderBody { hold: Some(hold), as_of: AsOf::of(reading), ..self }
    }
}

/// `/is-leader`.
#[derive(Serialize)]
pub(super) struct IsLeaderBody {
    pub(super) is_leader: bool,
}

/// `/is-follower`.
#[derive(Serialize)]
pub(super) struct IsFollowerBody {
    pub(super) is_follower: bool,
}

/// `/` and `/sse`, as leader-elector and nais/elector answered: an empty name says that there is no leader.
#[derive(Serialize)]
pub(super) struct NameBody<'a> {
    name: &'a str,
    /// When this process saw that change, by its wall clock.
    last_update: Option<String>,
}

impl<'a> NameBody<'a> {
    pub(super) fn of(change: &'a Change) -> NameBody<'a> {
        let leader = change.state.leader.as_ref();
        NameBody {
            name: leader.map_or("", |leader| &leader.peer.name),
            last_update: wall_time(change.wall_ms),
        }
    }
}

/// Every error.
#[derive(Serialize)]
pub(super) struct ErrorBody<'a> {
    pub(super) error: ErrorDetail<'a>,
}

#[derive(Serialize)]
pub(super) struct ErrorDetail<'a> {
    pub(super) status: u16,
    pub(super) message: &'a str,
}

/// One entry of `/members`.
#[derive(Serialize)]
struct MemberBody<'a> {
    #[serde(flatten)]
    process: ProcessJson<'a>,
    state: &'static str,
    leader: bool,
    me: bool,
    last_heard_ms: Option<u64>,
    round_trip_ms: Option<f64>,
    #[serde(flatten)]
    voting: Option<VotingBody>,
}

/// What `majority` adds to a member.
#[derive(Serialize)]
struct VotingBody {
    /// Whether it votes; none: this process does not know the voters yet.
    voter: Option<bool>,
    /// The lease that it was given.
    lease_ms: Option<u32>,
}

impl<'a> MemberBody<'a> {
    fn new(member: &'a MemberStatus, snapshot: &'a Snapshot, leader: Option<ProcessId>) -> MemberBody<'a> {
        let id = member.peer.id;
        MemberBody {
            process: ProcessJson::new(&member.peer, snapshot.announced.get(&id)),
            state: match member.state {
                State::Alive => "alive",
                State::Failed => "failed",
            },
            leader: leader == Some(id),
            me: snapshot.status.me.id == id,
            last_heard_ms: member.last_heard.map(|heard| whole_ms(snapshot.now.since(heard))),
            // Whole microseconds: more digits would be noise.
            round_trip_ms: member.round_trip.map(|duration| f64::from(whole_us(duration)) / 1000.0),
            voting: snapshot.status.voting.as_ref().map(|voting| VotingBody {
                voter: voting.config.as_ref().map(|config| config.voters.contains(&member.peer.name)),
                lease_ms: voting.leases_ms.get(&id).copied(),
            }),
        }
    }
}

/// `/members`: all of them, the highest rank first.
#[derive(Serialize)]
pub(super) struct MembersBody<'a> {
    members: Vec<MemberBody<'a>>,
    #[serde(flatten)]
    voters: Option<VotersBody<'a>>,
    /// An operator has cordoned this process.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cordoned: bool,
    /// The application here is not healthy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unhealthy: bool,
    /// What says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    complaints: Vec<&'static str>,
    /// What is left of the time for which this process has resigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    resigned_for_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_keys: Option<PeerKeysBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discovery_warning: Option<String>,
    /// For how long the leader may be silent, by its latest heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_in_use_ms: Option<u64>,
    /// The worst delay that an adaptive lease goes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_delay_ms: Option<u64>,
    /// What makes the leader's lease as long as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_reason: Option<&'static str>,
}

/// The fingerprints of the credentials; left out where members do not prove themselves.
#[derive(Serialize)]
struct PeerKeysBody<'a> {
    sent: &'a str,
    accepted: &'a [String],
    /// Why the files cannot be used now. The keys before them still count.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<&'a str>,
}

/// What `majority` adds to the list: the voters; none: this process does not know them yet.
#[derive(Serialize)]
struct VotersBody<'a> {
    voters: Option<ConfigBody<'a>>,
}

/// A configuration: two processes with the same epoch and version here count the same voters.
#[derive(Serialize)]
struct ConfigBody<'a> {
    epoch: u64,
    version: u32,
    names: &'a BTreeSet<String>,
    lease_ms: u32,
    bound_ms: u32,
}

impl<'a> MembersBody<'a> {
    /// `keys`: by which members prove themselves.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        keys: &'a PeerKeys,
        discovery_warning: Option<String>,
    ) -> MembersBody<'a> {
        let leader = snapshot.leader().map(|leader| leader.peer.id);
        let body = |member| MemberBody::new(member, snapshot, leader);
        let voters = |config: &'a VoterConfig| ConfigBody {
            epoch: config.version.epoch.0,
            version: config.version.version,
            names: &config.voters,
            lease_ms: config.lease_ms,
            bound_ms: config.bound_ms,
        };
        let voting = snapshot.status.voting.as_ref();
        let Candidacy { cordoned, aside_until, complaints } = snapshot.status.candidacy;
        MembersBody {
            members: snapshot.status.members.iter().map(body).collect(),
            voters: voting.map(|voting| VotersBody { voters: voting.config.as_ref().map(voters) }),
            cordoned,
            unhealthy: complaints.any(),
            complaints: complaints.names(),
            // The status that ends it may be published a little later.
            resigned_for_ms: aside_until
                .map(|until| whole_ms(until.since(snapshot.now)))
                .filter(|ms| *ms > 0),
            peer_keys: keys.accepted.first().map(|sent| PeerKeysBody {
                sent,
                accepted: &keys.accepted,
                unusable: keys.unusable.as_deref(),
            }),
            discovery_warning,
            lease_in_use_ms: snapshot.status.lease.map(whole_ms),
            worst_delay_ms: snapshot.status.worst_delay.map(whole_ms),
            lease_reason: snapshot.status.lease_reason.map(LeaseReason::name),
        }
    }
}

/// What is left of the lease that the answer goes by: this process's own where it leads, else what it
/// promised. Rounded down: a client must not count on a part of a millisecond that is not there. None in
/// `classic`, which has no lease.
fn valid_for_ms(snapshot: &Snapshot) -> Option<u64> {
    let left = snapshot.status.valid_until.map(|until| whole_ms(until.since(snapshot.now)));
    // An orderly end may come at any time.
    if snapshot.resigning() { Some(0) } else { left }
}

/// At most an hour, so that it is exact as a floating-point number.
fn whole_us(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

pub(super) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A wall clock's time as RFC 3339 in UTC with milliseconds. It came from another process, so it may be
/// anything; none when there is no such date.
fn wall_time(ms: u64) -> Option<String> {
    (ms < WALL_MS_END)
        .then(|| humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_dates_as_far_as_there_are_any() {
        assert_eq!(wall_time(0).unwrap(), "1970-01-01T00:00:00.000Z");
        assert_eq!(wall_time(1_762_000_000_123).unwrap(), "2025-11-01T12:26:40.123Z");
        assert_eq!(wall_time(WALL_MS_END - 1).unwrap(), "9999-12-31T23:59:59.999Z");
        assert_eq!(wall_time(WALL_MS_END), None);
        assert_eq!(wall_time(u64::MAX), None);
    }
}
