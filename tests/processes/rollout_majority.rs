//! A rolling restart of voters that keep their disks, as a StatefulSet does it: each once the one before is
//! ready.

use crate::harness::{Real, voters};
use crate::rounds::{PATIENCE, is_ready};
use crate::wait::within;
use bellwether::demo::process_cluster::Agreement;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const N: usize = 3;

/// Waits until all are ready. The leader leads all the while.
fn wait_until_ready(real: &Real, now: &Agreement) {
    let ready = within(PATIENCE, || {
        let answer = real.sighting(now.leader).answer;
        // It may not have answered in time, on a busy machine; it must not have answered anything else.
        assert!(
            answer.is_none_or(|a| a.is_leader && a.epoch == now.epoch),
            "the leader of epoch {} lost it while a follower was restarted",
            now.epoch
        );
        (0..N).all(|place| is_ready(real, place)).then_some(())
    });
    ready.expect("all processes become ready");
}

/// Restarts one. Returns the agreement after that, and how long the cluster had no leader.
fn restart(real: &mut Real, place: usize, now: &Agreement, revision: &str) -> (Agreement, Option<Duration>) {
    let others: Vec<usize> = (0..N).filter(|other| *other != place).collect();
    let at = Instant::now();
    real.signal(place, Signal::TERM);
    let next = (place == now.leader).then(|| real.agree_among(&others, now.epoch, PATIENCE).unwrap());
    let status = real.end(place);
    assert_eq!(status.code(), Some(0), "{status}");
    real.start(place, &["--revision", revision]).unwrap();
    let took = next.as_ref().map(|next| next.since.saturating_duration_since(at));
    let next = next.unwrap_or_else(|| now.clone());
    wait_until_ready(real, &next);
    let all = real.agree(next.epoch - 1, PATIENCE).unwrap();
    assert_eq!((all.leader, all.epoch), (next.leader, next.epoch), "no other process came to lead");
    (next, took)
}

#[test]
fn a_rolling_restart_of_voters_changes_the_leader_once_and_keeps_a_majority() {
    let mut real = voters(N, &[]);
    for place in 0..N {
        real.start(place, &["--revision", "r0"]).unwrap();
    }
    let mut now = real.agree(0, PATIENCE).unwrap();
    wait_until_ready(&real, &now);
    // The leader's turn comes last, and between the others. When it comes first its successor is restarted
    // too.
    for (rollout, turn) in [2, 1, 2, 1, 0].into_iter().enumerate() {
        let revision = format!("r{}", rollout + 1);
        let mut order: Vec<usize> = (0..N).filter(|place| *place != now.leader).collect();
        order.insert(turn, now.leader);
        let before = now.clone();
        for place in order {
            let (next, took) = restart(&mut real, place, &now, &revision);
            if let Some(took) = took {
                println!(
                    "the leader was restarted as number {}: {} took over within {took:.1?}",
                    turn + 1,
                    real.name(next.leader)
                );
            }
            now = next;
        }
        let most = if turn == 0 { 2 } else { 1 };
        let changes = now.epoch - before.epoch;
        assert!((1..=most).contains(&changes), "{changes} changes of the leader in rollout {rollout}");
    }
    // A leader that loses the grants of a majority says so; none did, at any moment.
    for place in 0..N {
        let log = real.log(place);
        let lapse = log.lines().find(|line| line.contains("leads no longer") && line.contains("lapse"));
        assert_eq!(lapse, None, "{} lost its majority", real.name(place));
    }
}
