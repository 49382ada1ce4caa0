//! F6 and F13: strangers of the highest rank.

use crate::client::{Claim, Link, Trap};
use crate::rounds::PATIENCE;
use crate::rows::{BOTH, alone, in_each};
use crate::siege::{Attacker, Level, Siege, Stop};
use crate::wait::within;
use crate::wire::{Message, Peer};
use std::time::{Duration, Instant};

const LASTING: Duration = Duration::from_millis(1500);
/// What `--priority` accepts at most.
const PRIORITY_MAX: u16 = 1000;

fn best(claim: Claim) -> Claim {
    Claim { peer: Peer { priority: PRIORITY_MAX, ..claim.peer }, ..claim }
}

/// In `classic` rank alone decides, so a stranger without a secret to hinder it may lead. It leads no longer
/// than it is there. In `majority` it never does.
// red before: F6
#[test]
fn a_stranger_of_the_highest_priority_leads_at_most_while_it_is_there() {
    in_each(BOTH, |level, n| {
        for preempt in ["always", "200ms"] {
            let mut siege = Siege::begin(level, n, &["--preempt", preempt]);
            if preempt == "always" {
                siege.led_by_the_best();
            }
            let (claim, epoch) = (best(siege.stranger(1)), siege.before.epoch);
            let attackers = (0..n).map(|place| {
                let (claim, to) = (claim.clone(), siege.address(place));
                Box::new(move |stop: &Stop| {
                    let Ok(mut link) = claim.link(to) else { return };
                    link.say(epoch + 1, &Message::Coordinator { elected_at_ms: 1 });
                    for sequence in 0.. {
                        if stop.is_over()
                            || !link.say(
                                epoch + 1,
                                &Message::Heartbeat { sequence, lease_ms: 0, learnt: (u32::MAX, 0) },
                            )
                        {
                            return;
                        }
                        link.hear();
                    }
                }) as Attacker
            });
            let attackers = attackers.collect();
            siege.attack(LASTING, attackers);
            if level == Level::Majority {
                siege.undisturbed();
            }
            siege.lift();
        }
    });
}

/// A process that never led resigns, from later and later epochs, for itself and in favour of others.
// red before: F6
#[test]
fn a_resignation_of_a_process_that_never_led_frees_nothing() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (claim, epoch) = (siege.stranger(1), siege.before.epoch);
        let (own, follower) = (claim.peer.id, siege.victims[siege.followers()[0]].id);
        let attackers = (0..n).map(|place| {
            let (claim, to) = (claim.clone(), siege.address(place));
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                for ahead in 0.. {
                    for successor in [None, Some(own), Some(follower)] {
                        link.say(epoch + ahead, &Message::Resign { successor, leaving: ahead % 2 == 0 });
                    }
                    if stop.is_over() || !link.is_open() {
                        return;
                    }
                    link.hear();
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// A member of the highest priority that says nothing after its Hello. Its port takes connections, and no
/// process answers there.
struct Silent {
    _link: Link,
    _port: Trap,
}

impl Silent {
    fn join(siege: &Siege, number: u16, leader: usize) -> Option<Silent> {
        let claim = best(siege.stranger(number));
        let port = Trap::at(claim.source);
        let claim = Claim { peer: Peer { address: port.address(), ..claim.peer.clone() }, ..claim };
        Some(Silent { _link: claim.link(siege.address(leader)).ok()?, _port: port })
    }
}

/// How long another leader takes to be agreed on, with so many silent members: the median of three.
fn failover(siege: &mut Siege, strangers: u16) -> Duration {
    let mut took = Vec::new();
    for _ in 0..3 {
        let now = siege.agreed();
        let join = |number| Silent::join(siege, number, now.leader);
        let silent: Vec<Silent> = (0..strangers).filter_map(join).collect();
        let told = |place: usize| siege.listed(place).len() >= siege.real.n() + silent.len();
        let all = || siege.real.running().into_iter().all(told).then_some(());
        assert!(within(PATIENCE, all).is_some(), "{} are not listed", silent.len());
        let others: Vec<usize> = siege.real.running().into_iter().filter(|p| *p != now.leader).collect();
        let at = Instant::now();
        siege.kill(now.leader);
        let next = siege.real.agree_among(&others, now.epoch, PATIENCE).unwrap();
        took.push(next.since.saturating_duration_since(at));
        drop(silent);
        siege.start(now.leader);
        siege.ready();
    }
    took.sort_unstable();
    took[1]
}

/// In `majority` only voters have a rank that counts, and there the lease decides.
// red before: F13
#[test]
fn silent_strangers_of_the_highest_priority_delay_no_failover() {
    alone(&[(Level::Classic, 3), (Level::Classic, 5)], |level, n| {
        // What a process waits for a better one is seen apart from what a busy machine adds.
        let slow = ["--answer-timeout", "800ms", "--coordinator-timeout", "1600ms"];
        let mut siege = Siege::begin(level, n, &slow);
        let (without, with) = (failover(&mut siege, 0), failover(&mut siege, 80));
        println!("{n} processes: a failover takes {without:?}, and {with:?} with 80 strangers");
        let most = 2 * without + Duration::from_millis(200);
        assert!(with <= most, "a failover takes {without:?}, and {with:?} with 80 strangers");
        siege.never_two();
    });
}
