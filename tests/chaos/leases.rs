//! A leader that loses its majority, or is stopped, answers no at the latest when its lease ends. The next
//! one answers yes only after that.

use super::cluster::{ChaosPlan, Cluster, PATIENCE, Safety, name};
use super::history::{LEASE, Nanos, Seconds};
use super::{alone, seed, sound};
use crate::wait::within;
use rustix::process::Signal;
use std::time::Duration;

/// Longer than the lease and an election.
const STOPPED: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;

fn cluster(n: usize) -> Cluster {
    let plan = ChaosPlan {
        n,
        safety: Safety::Majority,
        priorities: vec![],
        channel: false,
        flags: vec![],
        pause: Duration::ZERO,
    };
    Cluster::started(plan, seed())
}

fn seconds(from: Nanos, to: Nanos) -> f64 {
    (to as f64 - from as f64) / 1e9
}

/// Waits until another one than `leader` leads: its epoch, and when its first yes was received.
fn successor(cluster: &Cluster, leader: usize, epoch: u64) -> (usize, Nanos) {
    let next = within(PATIENCE, || {
        let observers = cluster.observers();
        let others = observers.iter().enumerate().filter(|(place, _)| *place != leader);
        let mut yes =
            others.flat_map(|(place, observer)| observer.runs().iter().map(move |run| (place, run)));
        yes.find(|(_, run)| run.epoch > epoch).map(|(place, run)| (place, run.first))
    });
    next.unwrap_or_else(|| panic!("no process leads in the place of {}: {}", name(leader), cluster.said()))
}

/// When the last yes of the leader's reign was sent.
fn last_yes(cluster: &Cluster, leader: usize, epoch: u64) -> Nanos {
    let observers = cluster.observers();
    let runs = observers[leader].runs().iter().filter(|run| run.epoch == epoch);
    runs.map(|run| run.last).max().unwrap()
}

/// When the first no of the leader's reign was received, if one was.
fn first_no(cluster: &Cluster, leader: usize, epoch: u64) -> Option<Nanos> {
    let observers = cluster.observers();
    let runs = observers[leader].runs().iter().filter(|run| run.epoch == epoch);
    runs.filter_map(|run| run.no).min()
}

fn agreed(cluster: &mut Cluster) -> (usize, u64) {
    let all: Vec<usize> = (0..cluster.n()).collect();
    let agreed = cluster.agreement(&all, PATIENCE);
    agreed.unwrap_or_else(|| panic!("no agreement: {}", cluster.said()))
}

/// The leader cut off from all others: nothing that it sends after the cut is acknowledged. So its lease ends
/// less than a lease after the cut. What it answers is asked for through its own loopback, where nothing is
/// cut.
fn cut_off(n: usize) {
    let mut cluster = cluster(n);
    for _ in 0..ROUNDS {
        let (leader, epoch) = agreed(&mut cluster);
        cluster.isolate(leader);
        let cut = cluster.now();
        let (next, first) = successor(&cluster, leader, epoch);
        let last = last_yes(&cluster, leader, epoch);
        let no = within(PATIENCE, || first_no(&cluster, leader, epoch));
        let no = no.unwrap_or_else(|| panic!("{} never says no", name(leader)));
        println!(
            "n = {n}: {} cut off at {}; its last yes was asked for {:.3} s later, its first no came {:.3} s \
             later; the first yes of {} came {:.3} s later",
            name(leader),
            Seconds(cut),
            seconds(cut, last),
            seconds(cut, no),
            name(next),
            seconds(cut, first)
        );
        // Whatever else the machine does: a yes is computed after it was asked for.
        assert!(seconds(cut, last) <= LEASE.as_secs_f64(), "yes after the end of the lease");
        assert!(last < first, "two led");
        cluster.heal();
    }
    agreed(&mut cluster);
    sound(&cluster.observers());
}

/// The leader stopped until another one leads. On waking it finds questions waiting, and answers none of them
/// with yes.
fn stopped(n: usize) {
    let mut cluster = cluster(n);
    for _ in 0..ROUNDS {
        let (leader, epoch) = agreed(&mut cluster);
        cluster.signal(leader, Signal::STOP);
        let stopped = cluster.now();
        let (next, first) = successor(&cluster, leader, epoch);
        std::thread::sleep(STOPPED.saturating_sub(Duration::from_nanos(cluster.now() - stopped)));
        let woken = cluster.now();
        cluster.signal(leader, Signal::CONT);
        agreed(&mut cluster);
        let last = last_yes(&cluster, leader, epoch);
        println!(
            "n = {n}: {} stopped at {} for {:.3} s; its last yes was asked for {:.3} s later, the first yes \
             of {} came {:.3} s later",
            name(leader),
            Seconds(stopped),
            seconds(stopped, woken),
            seconds(stopped, last),
            name(next),
            seconds(stopped, first)
        );
        assert!(seconds(stopped, last) <= LEASE.as_secs_f64(), "yes after the end of the lease");
        assert!(last < first, "two led");
    }
    sound(&cluster.observers());
}

#[test]
#[ignore = "needs root, iproute2 and iptables"]
fn a_leader_cut_off_says_no_before_another_says_yes() {
    let _alone = alone();
    cut_off(3);
    cut_off(5);
}

#[test]
#[ignore = "needs root, iproute2 and iptables"]
fn a_leader_stopped_says_no_before_another_says_yes() {
    let _alone = alone();
    stopped(3);
    stopped(5);
}
