//! `--safety majority` with real processes: what a failover takes, and what a voter refuses, waits for and
//! says.

use crate::harness::{Real, processes, voters, voters_started};
use crate::rounds::{
    ANSWER_TIMEOUT, Cause, FAILURE_TIMEOUT, PATIENCE, bring_back, is_ready, pause, take_down,
};
use crate::wait::within;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// For what a busy machine adds.
const SLACK: Duration = Duration::from_millis(1000);

fn json(real: &Real, place: usize, path: &str) -> (u16, Value) {
    let (status, body) = real.answer(place, path);
    (status, serde_json::from_str(&body).unwrap())
}

/// What a process that is not ready says of it, once these words are in it.
fn waits(real: &Real, place: usize, words: &str) {
    let said = within(PATIENCE, || {
        // It may not listen yet.
        let (status, body) = real.get(place, "/readyz?leader=known").ok()?;
        let body: Value = serde_json::from_str(&body).unwrap();
        let message = body["error"]["message"].as_str().unwrap_or_default();
        (status == 503 && message.contains(words)).then_some(())
    });
    assert!(
        said.is_some(),
        "{} does not say {words:?}: {:?}",
        real.name(place),
        json(real, place, "/readyz?leader=known")
    );
}

fn ready(real: &Real, place: usize) {
    let ready = within(PATIENCE, || is_ready(real, place).then_some(()));
    assert!(ready.is_some(), "{}: {:?}", real.name(place), json(real, place, "/readyz?leader=known"));
}

#[test]
fn a_dead_leaders_lease_runs_out_and_a_resignation_frees_it() {
    let (mut real, mut now) = voters_started(3, &["--preempt", "never", "--lease-mode", "fixed"]);
    for cause in [Cause::Crash, Cause::Resignation] {
        let (next, took) = take_down(&mut real, &now, cause).unwrap();
        // A leader that was just elected has most of its lease before it.
        let longest = if cause == Cause::Crash { FAILURE_TIMEOUT + ANSWER_TIMEOUT } else { Duration::ZERO };
        assert!(took < longest + SLACK, "{cause:?} took {took:?}");
        bring_back(&mut real, now.leader, &[], &next).unwrap();
        now = next;
    }
}

#[test]
fn evidence_of_a_crash_frees_the_lease_where_it_may() {
    let flags = ["--preempt", "never", "--lease-mode", "fixed", "--crash-evidence", "release"];
    let (mut real, now) = voters_started(3, &flags);
    let (_, took) = take_down(&mut real, &now, Cause::Crash).unwrap();
    assert!(took < SLACK, "{took:?}");
}

#[test]
fn a_leader_that_was_stopped_does_not_say_that_it_leads() {
    let (mut real, now) = voters_started(3, &["--preempt", "never"]);
    let (_, pause) = pause(&mut real, &now, Duration::from_secs(3)).unwrap();
    assert!(pause.took < FAILURE_TIMEOUT + ANSWER_TIMEOUT + SLACK, "{:?}", pause.took);
}

#[test]
fn without_a_majority_no_process_leads_and_the_missing_voters_are_named() {
    let (mut real, now) = voters_started(3, &[]);
    assert_eq!(json(&real, 0, "/leader").1["safety"], "majority");
    assert!(real.metric(now.leader, "bellwether_lease_remaining_seconds").unwrap() > 0.0);
    assert_eq!(real.metric(now.leader, "bellwether_voters"), Some(3.0));
    for place in (0..3).filter(|place| *place != now.leader) {
        real.kill(place);
        real.end(place);
    }
    waits(&real, now.leader, "2 of 3 voters are needed; missing: ");
    assert_eq!(json(&real, now.leader, "/readyz").0, 200, "it has taken part, so it stays ready");
    let (status, body) = json(&real, now.leader, "/leader");
    assert_eq!(
        (status, &body["is_leader"], &body["valid_for_ms"]),
        (503, &false.into(), &Value::Null),
        "{body}"
    );
    // One of them is back: its record knows what it must not grant, and they are a majority.
    let back = (now.leader + 1) % 3;
    real.start(back, &[]).unwrap();
    real.agree(now.epoch, PATIENCE).unwrap();
}

#[test]
fn a_first_start_waits_for_every_voter_and_names_those_it_waits_for() {
    let mut real = voters(3, &["--start-timeout", "1s"]);
    real.start(0, &[]).unwrap();
    real.start(1, &[]).unwrap();
    waits(&real, 0, &format!("it waits for {}", real.name(2)));
    assert_eq!(json(&real, 0, "/members").1["voters"], Value::Null);
    real.start(2, &[]).unwrap();
    real.agree(0, PATIENCE).unwrap();
    let names: Vec<String> = (0..3).map(|place| real.name(place)).collect();
    // A voter may follow a leader before it has finished its own first start.
    ready(&real, 0);
    assert_eq!(json(&real, 0, "/members").1["voters"]["names"], Value::from(names));
}

#[test]
fn a_voter_that_has_lost_its_folder_recovers_with_a_new_id() {
    let (mut real, now) = voters_started(3, &[]);
    let place = (now.leader + 1) % 3;
    real.kill(place);
    real.end(place);
    fs::remove_dir_all(real.state(place)).unwrap();
    real.start(place, &[]).unwrap();
    real.logged(place, &["this voter has no vote yet"]);
    real.logged(place, &["this voter votes from now on", &format!("epoch={}", now.epoch)]);
    ready(&real, place);
    let all = real.agree(now.epoch - 1, PATIENCE).unwrap();
    assert_eq!((all.leader, all.epoch), (now.leader, now.epoch), "the leader is not unseated for it");
}

/// The voters without a record do not say which others have lost theirs. The voter that kept its own does.
#[test]
fn a_voter_that_kept_its_record_names_those_that_lost_theirs() {
    let (mut real, _) = voters_started(3, &[]);
    // A voter may follow a leader before it has finished its own first start. Then its record is no vote yet.
    ready(&real, 0);
    for place in 0..3 {
        real.kill(place);
        real.end(place);
        if place != 0 {
            fs::remove_dir_all(real.state(place)).unwrap();
        }
    }
    (0..3).for_each(|place| real.start(place, &[]).unwrap());
    for place in [1, 2] {
        real.logged(0, &["voter_recovers", "has lost its record", &format!("name={}", real.name(place))]);
        waits(&real, place, "half of the voters or more have no record");
    }
}

#[test]
fn a_folder_of_another_voter_is_refused() {
    let (mut real, now) = voters_started(3, &[]);
    let (from, to) = ((now.leader + 1) % 3, (now.leader + 2) % 3);
    for place in [from, to] {
        real.signal(place, Signal::TERM);
        real.end(place);
    }
    fs::copy(real.state(from).join("bellwether.record"), real.state(to).join("bellwether.record")).unwrap();
    let words = ["ERROR".to_owned(), real.name(from), real.name(to), "--state-dir".to_owned()];
    real.refuses(to, &[], 2, &words.each_ref().map(String::as_str));
}

#[test]
fn processes_of_two_safety_levels_form_no_cluster() {
    let mut real = processes(2, &[]);
    let states = tempfile::tempdir().unwrap();
    let (name, folder) = (real.name(1), states.path().to_str().unwrap());
    real.start(0, &["--stable-margin", "0ms"]).unwrap();
    real.agree(0, PATIENCE).unwrap();
    let alone = ["--safety", "majority", "--voters", &name, "--state-dir", folder, "--found", "yes"];
    real.start(1, &alone).unwrap();
    for (place, here, there) in [(0, "classic", "majority"), (1, "majority", "classic")] {
        real.logged(place, &["WARN", "refuse", &format!("--safety is {here} here, and {there} there")]);
    }
    for place in 0..2 {
        let alone = within(PATIENCE, || real.agree_among(&[place], 0, Duration::from_millis(50)).ok());
        assert!(alone.is_some_and(|now| now.leader == place));
    }
    real.logged(1, &["WARN", "names this process alone"]);
}

#[test]
fn a_second_live_process_of_a_voters_name_is_refused() {
    let (real, now) = voters_started(3, &[]);
    let states = tempfile::tempdir().unwrap();
    // It takes the place, and so the ports, of no other: a fourth process beside the cluster.
    let taken = real.name((now.leader + 1) % 3);
    let mut fourth = processes(1, &[]);
    let voters: Vec<String> = (0..3).map(|place| real.name(place)).collect();
    let peers: Vec<String> = (0..3).map(|p| format!("127.0.0.1:{}", real.ports(p).peer)).collect();
    let cluster = real.cluster().to_owned();
    fourth
        .start(
            0,
            &[
                "--safety",
                "majority",
                "--voters",
                &voters.join(","),
                "--name",
                &taken,
                "--election",
                &cluster,
                "--state-dir",
                states.path().to_str().unwrap(),
                "--peers",
                &peers.join(","),
            ],
        )
        .unwrap();
    fourth.logged(0, &["WARN", "refuse", "has this name too, and a name has one vote"]);
    waits(&fourth, 0, "this voter has no record");
    let all = real.agree(now.epoch - 1, PATIENCE).unwrap();
    assert_eq!((all.leader, all.epoch), (now.leader, now.epoch));
}
