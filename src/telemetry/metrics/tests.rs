//! What a scrape shows.

use super::*;
use crate::election::{
    Ballot, Body, Candidacy, ConfigVersion, Epoch, Flags, Incarnation, Incumbent, Learnt, LeaseReason,
    ListWanted, MemberStatus, MembershipVersion, Moment, Pace, Peer, Priority, ProcessId, RecoveredState,
    Role, Safety, Stage, VoteOutcome, VoteRequest, VoterConfig, Voting,
};
use std::io::Write;
use std::process::{Command, Stdio};

fn at(ms: u64) -> Moment {
    Moment(Duration::from_millis(ms))
}

fn status(role: Role) -> Status {
    let me = Peer {
        id: ProcessId(uuid::Uuid::from_u128(1)),
        incarnation: Incarnation(1),
        name: "web-0".to_owned(),
        address: "127.0.0.1:4041".parse().unwrap(),
        priority: Priority::DEFAULT,
        revision: String::new(),
    };
    let member = |state| MemberStatus { peer: me.clone(), state, last_heard: None, round_trip: None };
    Status {
        cluster: "web".to_owned(),
        role,
        epoch: Epoch(7),
        leader: None,
        members: vec![member(State::Alive), member(State::Alive), member(State::Failed)],
        valid_until: None,
        voting: None,
        cut_off: false,
        holds: 0,
        candidacy: Candidacy::default(),
        answer_ttl: Duration::from_millis(1500),
        lease: None,
        worst_delay: None,
        lease_reason: None,
        me,
    }
}

/// The value of a series in the text, as it is written there.
fn sample<'a>(text: &'a str, series: &str) -> &'a str {
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).rsplit(' ').next().unwrap()
}

#[test]
fn every_series_exists_from_the_start() {
    let text = Metrics::new("web").encode(&status(Role::Following), at(0), at(0));
    for reason in Reason::ALL {
        let series = format!(r#"bellwether_leader_changes_total{{reason="{}"}}"#, reason.name());
        assert_eq!(sample(&text, &series), "0");
    }
    for series in [
        r#"bellwether_elections_total{outcome="won"}"#,
        r#"bellwether_dns_lookups_total{result="unknown"}"#,
        "bellwether_connections_refused_total",
        "bellwether_authentications_failed_total",
        "bellwether_leaderless_seconds_total",
        "bellwether_pauses_total",
        "bellwether_unknown_frames_total",
        "bellwether_election_duration_seconds_count",
        "bellwether_heartbeat_rtt_seconds_count",
    ] {
        assert_eq!(sample(&text, series), "0");
    }
    let version = format!(r#"bellwether_build_info{{version="{}"}}"#, env!("CARGO_PKG_VERSION"));
    assert_eq!(sample(&text, &version), "1");
    assert_ne!(sample(&text, "process_resident_memory_bytes"), "0");
}

#[test]
fn only_a_voter_has_a_lease() {
    let metrics = Metrics::new("web");
    let text = metrics.encode(&status(Role::Leading), at(0), at(0));
    assert!(!text.contains("bellwether_lease_remaining") && !text.contains("bellwether_voters"), "{text}");

    let voters = ["web-0", "web-1", "web-2"].map(str::to_owned).into();
    let known = VoterConfig { voters, ..VoterConfig::default() };
    let voting = |role, known| Status {
        valid_until: Some(at(2000)),
        voting: Some(Voting { config: known, not_ready: None, leases_ms: Default::default() }),
        ..status(role)
    };
    for (role, now, remaining) in [
        (Role::Leading, 500, "1.5"),
        (Role::Leading, 2000, "0"),
        // What a follower has promised is no lease of its own.
        (Role::Following, 500, "0"),
    ] {
        let text = metrics.encode(&voting(role, Some(known.clone())), at(now), at(now));
        assert_eq!(sample(&text, "bellwether_lease_remaining_seconds"), remaining, "{role:?} at {now}");
        assert_eq!(sample(&text, "bellwether_voters"), "3");
    }
    let text = metrics.encode(&voting(Role::Asking, None), at(0), at(0));
    assert_eq!(sample(&text, "bellwether_voters"), "0", "it has not recovered");
}

#[test]
fn the_lease_in_use_and_what_it_goes_by_are_shown() {
    let metrics = Metrics::new("web");
    for (lease, worst_delay, shown) in [(None, None, ["0", "0"]), (Some(340), Some(120), ["0.34", "0.12"])] {
        let [lease, worst_delay] = [lease, worst_delay].map(|ms| ms.map(Duration::from_millis));
        let status = Status { lease, worst_delay, ..status(Role::Following) };
        let text = metrics.encode(&status, at(0), at(0));
        let names = ["bellwether_lease_in_use_seconds", "bellwether_worst_delay_seconds"];
        assert_eq!(names.map(|name| sample(&text, name)), shown);
    }
    let status = Status { lease_reason: Some(LeaseReason::Delay), ..status(Role::Leading) };
    for (status, delay) in [(&status, "1"), (&Status { lease_reason: None, ..status.clone() }, "0")] {
        let text = metrics.encode(status, at(0), at(0));
        assert_eq!(sample(&text, "bellwether_lease_reason{reason=\"delay\"}"), delay);
        assert_eq!(sample(&text, "bellwether_lease_reason{reason=\"voters\"}"), "0");
    }
}

#[test]
fn every_message_has_its_series() {
    let (version, entries) = (MembershipVersion::default(), Vec::new());
    let entry = crate::election::Entry { peer: status(Role::Asking).me, state: State::Alive };
    let (epoch, incarnation, lease_ms) = (Epoch(8), Incarnation(1), 1500);
    let (config, stores) = (VoterConfig::default(), ConfigVersion::default());
    let ballot = Ballot { stage: Stage::Vote, epoch, incarnation, asked_at: Moment::default(), lease_ms };
    let flags = Flags { voters: 0, lease_ms };
    let bodies = [
        Body::Election,
        Body::Answer,
        Body::Declare,
        Body::Coordinator { elected_at_ms: 0 },
        Body::Heartbeat { sequence: 0, pace: Pace::default() },
        Body::HeartbeatAck { sequence: 0, membership: version },
        Body::Membership { version, entries: entries.clone().into() },
        Body::Leave { version: None, id: entry.peer.id },
        Body::Join { version, entry },
        Body::Resign { successor: None, leaving: true },
        Body::LeaderQuery { list: ListWanted::Whole },
        Body::LeaderInfo { leader: None, entries: entries.into() },
        Body::VoteRequest {
            request: VoteRequest { ballot, contender: true, transfer: None, config: config.clone() },
        },
        Body::Vote { ballot, outcome: VoteOutcome::Granted, config: None },
        Body::Renew { sequence: 0, lease_ms, config: stores, learnt: Learnt::default() },
        Body::Renewed { sequence: 0, membership: version, promised: true, firm: true, config: stores, flags },
        Body::Configuration { config },
        Body::Recover { round: 0, incarnation },
        Body::Recovered { round: 0, incarnation, state: RecoveredState::Empty, flags },
        Body::ProposeTransfer,
        Body::TransferReady { majority: true },
    ];
    assert!(bodies.iter().all(|body| Body::NAMES.contains(&body.name())));
    assert_eq!(bodies.len(), Body::NAMES.len());
    let metrics = Metrics::new("web");
    metrics.begin_messages(Body::names_of(&Safety::Classic));
    metrics.received("leader_query");
    let text = metrics.encode(&status(Role::Asking), at(0), at(0));
    assert_eq!(sample(&text, r#"bellwether_messages_total{direction="received",type="leader_query"}"#), "1");
    assert_eq!(sample(&text, r#"bellwether_messages_total{direction="sent",type="leader_query"}"#), "0");
    assert_eq!(sample(&text, r#"bellwether_messages_total{direction="sent",type="election"}"#), "0");
    assert!(!text.contains(r#"type="vote_request""#), "no process of classic sends it");
}

#[test]
fn the_leader_is_computed_when_asked() {
    let metrics = Metrics::new("web");
    let master = r#"leader_election_master_status{name="web"}"#;
    for (role, now, leads) in
        [(Role::Leading, 1500, "1"), (Role::Leading, 1501, "0"), (Role::Following, 0, "0")]
    {
        let text = metrics.encode(&status(role), at(now), at(0));
        assert_eq!((sample(&text, "bellwether_is_leader"), sample(&text, master)), (leads, leads));
    }
    let text = metrics.encode(&status(Role::Leading), at(0), at(0));
    assert_eq!(sample(&text, "bellwether_epoch"), "7");
    assert_eq!(sample(&text, r#"bellwether_members{state="alive"}"#), "2");
    assert_eq!(sample(&text, r#"bellwether_members{state="failed"}"#), "1");
}

#[test]
fn requests_are_counted_by_path_and_status() {
    let metrics = Metrics::new("web");
    let count = |path, status| {
        let text = metrics.encode(&status_now(), at(0), at(0));
        sample(&text, &format!(r#"bellwether_http_requests_total{{path="{path}",status="{status}"}}"#))
            .to_owned()
    };
    metrics.begin_requests(&["/leader"]);
    assert_eq!(count("/leader", "200"), "0");
    for (path, status) in [("/leader", 200), ("/leader", 503), ("/is-leader", 418), ("other", 404)] {
        metrics.answered(path, status, Duration::from_micros(20));
    }
    assert_eq!([count("/leader", "200"), count("/leader", "503")], ["1", "1"]);
    assert_eq!([count("/is-leader", "other"), count("other", "404")], ["1", "1"]);
    let text = metrics.encode(&status_now(), at(0), at(0));
    assert_eq!(sample(&text, r#"bellwether_http_request_duration_seconds_count{path="/leader"}"#), "2");
}

#[test]
fn a_change_of_leader_counts_the_time_without_one() {
    let metrics = Metrics::new("web");
    metrics.leader_change(Reason::Crash, Some(Duration::from_millis(3)));
    metrics.leader_change(Reason::Crash, None);
    let text = metrics.encode(&status_now(), at(0), at(0));
    let series =
        |part: &str| sample(&text, &format!("bellwether_leaderless_duration_seconds_{part}")).to_owned();
    assert_eq!(series(r#"count{reason="crash"}"#), "1");
    assert_eq!(series(r#"bucket{reason="crash",le="0.0025"}"#), "0");
    assert_eq!(series(r#"bucket{reason="crash",le="0.005"}"#), "1");
    assert_eq!(series(r#"count{reason="start"}"#), "0");
}

#[test]
fn the_leaders_time_is_that_of_its_election() {
    let none = status_now();
    let leader = Incumbent { peer: none.me.clone(), elected_at_ms: 1_762_000_000_123 };
    let known = Status { leader: Some(leader), ..none.clone() };
    for (status, since) in [(known, "1762000000.123"), (none, "0")] {
        let text = Metrics::new("web").encode(&status, at(0), at(0));
        assert_eq!(sample(&text, "bellwether_leader_since_timestamp_seconds"), since);
    }
}

/// A follower without a leader.
fn status_now() -> Status {
    status(Role::Following)
}

#[test]
fn a_process_of_priority_0_is_no_candidate() {
    let mut status = status(Role::Following);
    for (priority, candidate) in [(Priority::DEFAULT, "1"), (Priority::NEVER, "0")] {
        status.me.priority = priority;
        let text = Metrics::new("web").encode(&status, at(0), at(0));
        assert_eq!(sample(&text, "bellwether_candidate"), candidate);
    }
}

#[test]
fn an_application_with_a_complaint_is_unhealthy() {
    for (lifeline, unhealthy) in [(true, "1"), (false, "0")] {
        let mut status = status(Role::Following);
        status.candidacy.complaints.lifeline = lifeline;
        let text = Metrics::new("web").encode(&status, at(0), at(0));
        assert_eq!(sample(&text, "bellwether_application_unhealthy"), unhealthy);
    }
}

#[test]
fn the_time_without_a_leader_grows_while_there_is_none() {
    let metrics = Metrics::new("web");
    let seconds = |now| {
        let text = metrics.encode(&status(Role::Asking), at(now), at(now));
        sample(&text, "bellwether_leaderless_seconds_total").to_owned()
    };
    assert_eq!(seconds(500), "0");
    metrics.leaderless(at(1000), Some(true));
    assert_eq!(seconds(1500), "0.5");
    metrics.leaderless(at(1750), Some(true));
    assert_eq!((seconds(2000), seconds(1900), seconds(2000)), ("1".into(), "1".into(), "1".into()));
    metrics.leaderless(at(2250), Some(false));
    assert_eq!(seconds(9000), "1.25");
}

#[test]
fn whether_there_is_a_leader_is_computed_when_asked() {
    let metrics = Metrics::new("web");
    let none = status(Role::Following);
    let leader = Incumbent { peer: none.me.clone(), elected_at_ms: 0 };
    let known = Status { leader: Some(leader), ..none.clone() };
    for (status, now, has) in [(&known, 1500, "1"), (&known, 1501, "0"), (&none, 0, "0")] {
        assert_eq!(sample(&metrics.encode(status, at(now), at(0)), "bellwether_has_leader"), has);
    }
}

#[test]
fn a_process_says_what_it_is() {
    let info = |status: &Status| {
        let text = Metrics::new("web").encode(status, at(0), at(0));
        let series: Vec<&str> =
            text.lines().filter(|line| line.starts_with("bellwether_process_info")).collect();
        series.join("\n")
    };
    let classic = status(Role::Following);
    assert_eq!(info(&classic), r#"bellwether_process_info{election="web",name="web-0",safety="classic"} 1"#);
    let voting = Some(Voting { config: None, not_ready: None, leases_ms: Default::default() });
    let majority = Status { voting, ..classic };
    assert_eq!(
        info(&majority),
        r#"bellwether_process_info{election="web",name="web-0",safety="majority"} 1"#
    );
}

/// Needs `promtool`, which comes with Prometheus. Where it is missing, only the tests above check the names.
#[test]
fn promtool_finds_nothing_to_say() {
    let text = Metrics::new("web").encode(&status(Role::Leading), at(0), at(0));
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        eprintln!("not checked: there is no promtool here");
        return;
    };
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}
