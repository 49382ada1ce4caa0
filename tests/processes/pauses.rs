//! A leader that is stopped for longer than the failure timeout, and wakes.

use crate::harness::started;
use crate::rounds::{ANSWER_TIMEOUT, FAILURE_TIMEOUT, pause};
use std::time::Duration;

const STOPPED: Duration = Duration::from_secs(5);

fn pauses(n: usize, rounds: usize) {
    let (mut real, mut now) = started(n, &[]);
    for _ in 0..rounds {
        let woken = now.leader;
        let before = real.metric(woken, "bellwether_pauses_total").unwrap();
        let (next, paused) = pause(&mut real, &now, STOPPED).unwrap();
        assert!(paused.took <= FAILURE_TIMEOUT + ANSWER_TIMEOUT, "{:?}", paused.took);
        assert!(paused.answers > 0, "the woken process answered no question");
        println!(
            "n = {n}: others lead after {:?}, joined {:?} after SIGCONT, {} answers",
            paused.took, paused.joined, paused.answers
        );
        // Its own account of it.
        real.logged(woken, &["did not run for a while", "paused_ms="]);
        assert_eq!(real.metric(woken, "bellwether_pauses_total"), Some(before + 1.0));
        now = next;
    }
}

/// Clusters at the same time: they mostly wait.
fn in_parallel(sizes: &[usize], rounds: usize) {
    std::thread::scope(|scope| {
        for n in sizes {
            scope.spawn(move || pauses(*n, rounds));
        }
    });
}

#[test]
fn a_leader_that_was_stopped_never_says_yes_on_waking() {
    in_parallel(&[3, 3, 5], 1);
}

#[test]
#[ignore = "takes minutes"]
fn fifty_stopped_leaders_never_say_yes_on_waking() {
    in_parallel(&[3, 3, 3, 3, 3, 5, 5, 5, 5, 5], 5);
}
