//! Rolling restarts, one process at a time, and how often the leader changes meanwhile.

use crate::harness::{Real, started};
use crate::rounds::{PATIENCE, RESIGNATION_MAX, acquainted};
use bellwether::demo::process_cluster::Agreement;
use rustix::process::Signal;

/// What is promised of the defaults, on average.
const CHANGES_MAX: f64 = 1.5;

/// Restarts all processes in this order, each one back before the next. Returns how often the epoch grew,
/// which is the number of changes of the leader, and the last agreement.
fn roll_out(real: &mut Real, now: &Agreement, order: &[usize], revision: Option<String>) -> (u64, Agreement) {
    let mut last = now.clone();
    let flags = revision.as_ref().map_or(vec![], |r| vec!["--revision", r]);
    for place in order {
        real.signal(*place, Signal::TERM);
        let status = real.wait(*place, RESIGNATION_MAX).unwrap();
        assert_eq!(status.code(), Some(0), "{status}");
        real.start(*place, &flags).unwrap();
        last = real.agree(last.epoch - 1, PATIENCE).unwrap();
        acquainted(real).unwrap();
    }
    (last.epoch - now.epoch, last)
}

/// Changes of the leader a rollout, on average. The leader's turn comes first in one of n rollouts, second in
/// another, and so on: everything depends on that. The order of the others is drawn.
fn changes(n: usize, rollouts: usize, with_revision: bool) -> f64 {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let first: &[&str] = if with_revision { &["--revision", "r0"] } else { &[] };
    let (mut real, mut now) = started(n, &[]);
    // The first processes have a revision too.
    (_, now) = roll_out(&mut real, &now, &(0..n).collect::<Vec<_>>(), first.get(1).map(|r| (*r).to_owned()));
    let mut total = 0;
    for rollout in 0..rollouts {
        let mut order: Vec<usize> = (0..n).filter(|place| *place != now.leader).collect();
        random.shuffle(&mut order);
        order.insert(rollout % n, now.leader);
        let revision = with_revision.then(|| format!("r{}", rollout + 1));
        let (changed, next) = roll_out(&mut real, &now, &order, revision);
        assert!(changed >= 1, "the leader was restarted too");
        total += changed;
        now = next;
    }
    total as f64 / rollouts as f64
}

fn few_changes(n: usize, rollouts: usize) {
    let (with, without) = (changes(n, rollouts, true), changes(n, rollouts, false));
    println!(
        "{rollouts} rolling restarts of {n}: {with:.2} changes of the leader each with --revision, \
         {without:.2} without"
    );
    assert!(with <= CHANGES_MAX, "{with}");
}

#[test]
fn a_rolling_restart_changes_the_leader_hardly_more_than_once() {
    few_changes(3, 9);
    few_changes(5, 10);
}

#[test]
#[ignore = "takes minutes"]
fn many_rolling_restarts_change_the_leader_hardly_more_than_once() {
    few_changes(3, 60);
    few_changes(5, 60);
}
