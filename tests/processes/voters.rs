//! Voters that are not given the same: other `--voters`, as when a StatefulSet is scaled, another lease,
//! another level.

use crate::harness::{Real, processes, voters, voters_started};
use crate::rounds::{ANSWER_TIMEOUT, FAILURE_TIMEOUT, PATIENCE, is_ready};
use crate::wait::within;
use bellwether::demo::process_cluster::Agreement;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

fn members(real: &Real, place: usize) -> Value {
    let (_, body) = real.answer(place, "/members");
    serde_json::from_str(&body).unwrap()
}

fn names(real: &Real, places: &[usize]) -> Vec<String> {
    places.iter().map(|place| real.name(*place)).collect()
}

/// Waits until all of these are ready.
fn ready(real: &Real, places: &[usize]) {
    let ready = within(PATIENCE, || places.iter().all(|place| is_ready(real, *place)).then_some(()));
    assert!(ready.is_some(), "not ready: {:?}", names(real, places));
}

/// Waits until these processes say that these vote.
fn vote(real: &Real, said_by: &[usize], voters: &[usize]) {
    let wanted = Value::from(names(real, voters));
    let said = || said_by.iter().map(|place| members(real, *place)["voters"]["names"].clone());
    let seen = within(PATIENCE, || said().all(|names| names == wanted).then_some(()));
    assert!(seen.is_some(), "{wanted} should vote, and {:?} is said", said().collect::<Vec<_>>());
}

fn stop(real: &mut Real, place: usize) {
    real.signal(place, Signal::TERM);
    let status = real.end(place);
    assert_eq!(status.code(), Some(0), "{status}");
}

/// Restarts each of these with these voters, once the one before is ready; the leader of the moment last.
fn roll(real: &mut Real, now: &Agreement, running: &[usize], voters: &[usize]) -> Agreement {
    let (flag, revision) = (names(real, voters).join(","), voters.len().to_string());
    let mut order: Vec<usize> = running.iter().copied().filter(|p| voters.contains(p)).collect();
    order.sort_by_key(|place| *place == now.leader);
    for place in order {
        stop(real, place);
        real.start(place, &["--voters", &flag, "--revision", &revision]).unwrap();
        ready(real, running);
    }
    real.agree_among(running, now.epoch - 1, PATIENCE).unwrap()
}

#[test]
fn voters_come_and_go_one_by_one_as_a_stateful_set_is_scaled() {
    let (three, five) = ([0, 1, 2], [0, 1, 2, 3, 4]);
    let mut real = voters(5, &["--preempt", "never"]);
    let (three_named, five_named) = (names(&real, &three).join(","), names(&real, &five).join(","));
    for place in three {
        real.start(place, &["--voters", &three_named, "--revision", "3"]).unwrap();
    }
    let first = real.agree_among(&three, 0, PATIENCE).unwrap();
    ready(&real, &three);
    vote(&real, &three, &three);
    for place in [3, 4] {
        real.start(place, &["--voters", &five_named, "--revision", "5"]).unwrap();
    }
    ready(&real, &five);
    // They follow. A process does not vote for a voter that was not given to the others.
    vote(&real, &five, &three);
    let second = roll(&mut real, &first, &five, &five);
    vote(&real, &five, &five);
    assert!(second.epoch <= first.epoch + 2, "{} changes of the leader", second.epoch - first.epoch);
    // Two of five may fail now.
    let gone: Vec<usize> = five.into_iter().filter(|place| *place != second.leader).take(2).collect();
    let left: Vec<usize> = five.into_iter().filter(|place| !gone.contains(place)).collect();
    for place in &gone {
        real.kill(*place);
        real.end(*place);
    }
    let same = real.agree_among(&left, second.epoch - 1, PATIENCE).unwrap();
    assert_eq!((same.leader, same.epoch), (second.leader, second.epoch));
    for place in gone {
        real.start(place, &["--voters", &five_named, "--revision", "5"]).unwrap();
    }
    ready(&real, &five);
    // And back: the leaving voters are still there when the others are told.
    roll(&mut real, &second, &five, &three);
    for place in [3, 4] {
        stop(&mut real, place);
    }
    let last = real.agree_among(&three, second.epoch - 1, PATIENCE).unwrap();
    vote(&real, &three, &three);
    // Of three, one may fail.
    let gone = (last.leader + 1) % 3;
    real.kill(gone);
    real.end(gone);
    let left: Vec<usize> = three.into_iter().filter(|place| *place != gone).collect();
    let same = real.agree_among(&left, last.epoch - 1, PATIENCE).unwrap();
    assert_eq!((same.leader, same.epoch), (last.leader, last.epoch));
}

#[test]
fn one_that_was_given_other_voters_changes_nothing_and_is_named() {
    let (mut real, now) = voters_started(3, &[]);
    let all = [0, 1, 2];
    ready(&real, &all);
    let other = (now.leader + 1) % 3;
    stop(&mut real, other);
    let flag = names(&real, &[other, now.leader]).join(",");
    real.start(other, &["--voters", &flag]).unwrap();
    let name = real.name(other);
    real.logged(now.leader, &["WARN", "was started with other --voters", &name]);
    ready(&real, &all);
    vote(&real, &all, &all);
    let same = real.agree(now.epoch - 1, PATIENCE).unwrap();
    assert_eq!((same.leader, same.epoch), (now.leader, now.epoch));
}

/// The epoch and version of the configuration, its lease and its bound, as this process has them.
fn lease(real: &Real, place: usize) -> (u64, u64, u64, u64) {
    let voters = &members(real, place)["voters"];
    let number = |field: &str| voters[field].as_u64().unwrap_or(0);
    (number("epoch"), number("version"), number("lease_ms"), number("bound_ms"))
}

fn restart(real: &mut Real, place: usize, flags: &[&str]) {
    stop(real, place);
    real.start(place, flags).unwrap();
    ready(real, &[0, 1, 2]);
}

#[test]
fn another_lease_changes_nothing_and_is_named_and_shown() {
    let (mut real, now) = voters_started(3, &[]);
    ready(&real, &[0, 1, 2]);
    let before = lease(&real, now.leader);
    assert_eq!((before.2, before.3), (1500, 1500));
    let other = (now.leader + 1) % 3;
    restart(&mut real, other, &["--lease", "3s"]);
    real.logged(
        other,
        &["WARN", "was started with another --lease", "lease_ms=1500 bound_ms=1500 given_ms=3000"],
    );
    let name = real.name(other);
    let shown = within(PATIENCE, || {
        let body = members(&real, now.leader);
        let member = body["members"].as_array().unwrap().iter().find(|m| m["name"] == *name)?;
        (member["lease_ms"] == 3000).then_some(())
    });
    assert!(shown.is_some(), "{}", members(&real, now.leader));
    let same = real.agree(now.epoch - 1, PATIENCE).unwrap();
    assert_eq!((same.leader, same.epoch), (now.leader, now.epoch));
    for place in 0..3 {
        assert_eq!(lease(&real, place), before, "{}", real.name(place));
    }
}

/// In two steps, each of which a majority stores before the next. Upwards: the longer bound, then the longer
/// lease. Back: the shorter lease, then the shorter bound.
#[test]
fn the_lease_changes_once_a_majority_has_the_other_one() {
    let (mut real, now) = voters_started(3, &[]);
    ready(&real, &[0, 1, 2]);
    let (epoch, version, ..) = lease(&real, now.leader);
    let others = [(now.leader + 1) % 3, (now.leader + 2) % 3];
    let all_have = |real: &Real, wanted| {
        let seen = within(PATIENCE, || (0..3).all(|place| lease(real, place) == wanted).then_some(()));
        assert!(
            seen.is_some(),
            "{wanted:?}: {:?}",
            (0..3).map(|place| lease(real, place)).collect::<Vec<_>>()
        );
    };
    for other in others {
        restart(&mut real, other, &["--lease", "3s"]);
    }
    all_have(&real, (epoch, version + 2, 3000, 3000));
    real.logged(now.leader, &["WARN", "another --lease", "lease_ms=3000 bound_ms=3000 given_ms=1500"]);
    for other in others {
        restart(&mut real, other, &["--lease", "1500ms"]);
    }
    all_have(&real, (epoch, version + 4, 1500, 1500));
    let same = real.agree(now.epoch - 1, PATIENCE).unwrap();
    assert_eq!((same.leader, same.epoch), (now.leader, now.epoch), "the leader is not unseated for it");
}

/// A lease of one hour at one voter is stored nowhere, even while that one leads. So a power failure of all
/// costs one lease of the others.
#[test]
fn an_hours_lease_of_one_voter_keeps_no_restart_waiting() {
    let (mut real, now) = voters_started(3, &["--preempt", "never"]);
    ready(&real, &[0, 1, 2]);
    let (first, hour) = (now.leader, (now.leader + 1) % 3);
    restart(&mut real, hour, &["--lease", "1h", "--forget-after", "1h", "--priority", "200"]);
    real.logged(hour, &["WARN", "another --lease", "lease_ms=1500 bound_ms=1500 given_ms=3600000"]);
    restart(&mut real, first, &[]);
    let led = real.agree(now.epoch, PATIENCE).unwrap();
    assert_eq!(led.leader, hour);
    for place in 0..3 {
        let (_, _, lease_ms, bound_ms) = lease(&real, place);
        assert_eq!((lease_ms, bound_ms), (1500, 1500), "{}", real.name(place));
    }
    for place in 0..3 {
        real.kill(place);
        real.end(place);
    }
    let back = [first, (now.leader + 2) % 3];
    for place in back {
        real.start(place, &[]).unwrap();
    }
    let begun = std::time::Instant::now();
    real.agree_among(&back, led.epoch, PATIENCE).unwrap();
    // The restart's grace, then one answer timeout; and what a start and a busy machine add.
    let took = begun.elapsed();
    assert!(took < FAILURE_TIMEOUT + ANSWER_TIMEOUT + Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_folder_goes_from_classic_to_majority_and_back_with_its_epoch() {
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut real = processes(3, &["--stable-margin", "0ms"]);
    let voters = names(&real, &[0, 1, 2]).join(",");
    let (classic, majority) = (["--safety", "classic"], ["--safety", "majority", "--voters", &voters]);
    let mut epoch = 0;
    for (level, has_no_vote) in
        [(&classic[..], false), (&majority, true), (&classic, false), (&majority, true)]
    {
        for (place, folder) in folders.iter().enumerate() {
            let state = ["--state-dir", folder.path().to_str().unwrap()];
            real.start(place, &[&state[..], level].concat()).unwrap();
        }
        if has_no_vote {
            // `classic` keeps no vote: all begin as voters do that have none, and need each other.
            real.logged(0, &["this voter has no vote yet"]);
        }
        epoch = real.agree(epoch, PATIENCE).unwrap().epoch;
        for place in 0..3 {
            stop(&mut real, place);
        }
    }
}

#[test]
fn at_a_first_start_all_have_to_be_given_the_same_voters_and_the_log_names_the_one_that_was_not() {
    let mut real = voters(3, &[]);
    for place in [0, 1] {
        real.start(place, &[]).unwrap();
    }
    let flag = [names(&real, &[0, 1, 2]), vec!["absent".to_owned()]].concat().join(",");
    real.start(2, &["--voters", &flag]).unwrap();
    let name = real.name(2);
    real.logged(0, &["WARN", "was started with other --voters", &name]);
    let words = format!("{name} was started with another --voters or --lease");
    let said = within(PATIENCE, || real.get(0, "/readyz").ok().filter(|(_, body)| body.contains(&words)));
    assert!(said.is_some(), "{:?}", real.get(0, "/readyz"));
    // Mended, they start.
    stop(&mut real, 2);
    real.start(2, &[]).unwrap();
    real.agree(0, PATIENCE).unwrap();
}
