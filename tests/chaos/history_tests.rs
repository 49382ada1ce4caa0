//! The checker against histories that must be rejected, near misses that must not be, and drawn ones.

use super::health::{self, Conditions, Gap, Health};
use super::history::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn life(place: usize) -> Lifetime {
    Lifetime { place, life: 1, folder: 0 }
}

fn answer(place: usize, epoch: u64, yes: bool) -> Observation {
    let leader = yes.then(|| format!("id-{place}"));
    Observation { yes, epoch, leader, valid_for_ms: None }
}

/// An observer of one place that saw these answers: sent, received, epoch, yes.
fn observer(place: usize, answers: &[(Nanos, Nanos, u64, bool)]) -> Observer {
    let mut observer = Observer::default();
    for (sent, received, epoch, yes) in answers {
        let answer = Some(answer(place, *epoch, *yes));
        observer.observe(Sample { life: life(place), sent: *sent, received: *received, answer });
    }
    observer
}

fn found(a: &[(Nanos, Nanos, u64, bool)], b: &[(Nanos, Nanos, u64, bool)]) -> Vec<Violation> {
    let found = violations(&[observer(0, a), observer(1, b)]);
    assert_eq!(
        found.len(),
        violations(&[observer(0, b), observer(1, a)]).len(),
        "in either order of the observers"
    );
    found
}

fn together(found: &[Violation]) -> bool {
    found.iter().any(|v| matches!(v, Violation::Together(..)))
}

#[test]
fn two_proved_reigns_that_overlap_are_rejected() {
    assert!(together(&found(&[(0, 1, 1, true), (10, 11, 1, true)], &[(7, 8, 2, true), (20, 21, 2, true)])));
    assert!(together(&found(&[(0, 1, 1, true), (90, 91, 1, true)], &[(7, 8, 2, true), (20, 21, 2, true)])));
}

#[test]
fn a_yes_of_another_process_under_a_hold_is_rejected() {
    let held = |place, answers: &[(Nanos, Nanos, u64, bool)]| {
        let mut holder = observer(0, &[(0, 1, 1, true)]);
        // Granted at some moment from 10 to 12 on, for 20.
        holder.holds(life(0), 1, 10, 12, 20);
        let found = violations(&[holder, observer(place, answers)]);
        found.iter().any(|v| matches!(v, Violation::Held(..)))
    };
    assert!(held(1, &[(13, 29, 2, true)]));
    assert!(held(1, &[(25, 26, 2, true), (40, 41, 2, true)]));
    assert!(!held(1, &[(11, 13, 2, true)]), "it may have been before the hold");
    assert!(!held(1, &[(29, 31, 2, true), (40, 41, 2, true)]), "it may have been after the hold");
    assert!(!held(0, &[(13, 29, 1, true)]), "the holder's own");
}

#[test]
fn a_single_yes_within_a_proved_reign_is_rejected() {
    assert!(together(&found(&[(0, 1, 1, true), (10, 11, 1, true)], &[(4, 6, 2, true)])));
    assert!(together(&found(&[(0, 1, 1, true), (10, 11, 1, true)], &[(2, 9, 2, true)])));
}

#[test]
fn what_may_have_been_one_after_the_other_is_accepted() {
    // The first may have ended once its last answer was sent, the second have begun just before its first was
    // received.
    assert_eq!(found(&[(0, 1, 1, true), (10, 20, 1, true)], &[(11, 12, 2, true), (30, 31, 2, true)]), []);
    assert_eq!(found(&[(0, 1, 1, true), (10, 20, 1, true)], &[(5, 10, 2, true), (30, 31, 2, true)]), []);
    // A single yes whose time reaches out of the other's at either end.
    assert_eq!(found(&[(5, 6, 1, true), (10, 11, 1, true)], &[(7, 11, 2, true)]), []);
    assert_eq!(found(&[(5, 6, 2, true), (10, 11, 2, true)], &[(5, 9, 1, true)]), []);
    // Two single ones, even at the same time.
    assert_eq!(found(&[(5, 9, 1, true)], &[(5, 9, 2, true)]), []);
    // No is not yes, and a process that is asked while another leads may say so.
    assert_eq!(found(&[(0, 1, 1, true), (90, 91, 1, true)], &[(4, 5, 1, false), (7, 8, 1, false)]), []);
}

#[test]
fn a_stale_yes_on_waking_is_rejected() {
    // Asked before the other was elected, it proves nothing; asked after that, it does.
    let other = [(50, 51, 2, true), (100, 101, 2, true)];
    assert_eq!(found(&[(0, 1, 1, true), (2, 80, 1, true)], &other), []);
    let stale = found(&[(0, 1, 1, true), (60, 80, 1, true)], &other);
    assert!(together(&stale), "{stale:?}");
}

#[test]
fn a_lower_epoch_after_a_higher_is_rejected() {
    let wrong = found(&[(20, 21, 1, true)], &[(0, 1, 2, true)]);
    assert!(matches!(wrong[..], [Violation::Order(..)]), "{wrong:?}");
    assert_eq!(found(&[(20, 21, 2, true)], &[(0, 1, 1, true)]), []);
    // The time of the one begins before the other's answer was there.
    assert_eq!(found(&[(5, 21, 1, true)], &[(0, 6, 2, true)]), []);
}

#[test]
fn an_epoch_of_two_leaders_is_rejected() {
    let wrong = found(&[(0, 1, 3, true)], &[(20, 21, 3, true)]);
    let yes = BTreeSet::from([life(0), life(1)]);
    let named = BTreeSet::from(["id-0".to_owned(), "id-1".to_owned()]);
    assert_eq!(wrong, [Violation::Shared { epoch: 3, named, yes }]);
    // Also when only others name them.
    let mut observers = [observer(0, &[]), observer(1, &[])];
    for (place, observer) in observers.iter_mut().enumerate() {
        let told = Observation { leader: Some(format!("id-{place}")), ..answer(place, 3, false) };
        observer.observe(Sample { life: life(place), sent: 1, received: 2, answer: Some(told) });
    }
    assert!(matches!(violations(&observers)[..], [Violation::Shared { .. }]));
    // And when it is the same process's next incarnation.
    let mut lives = observer(0, &[(0, 1, 3, true)]);
    let next = Lifetime { life: 2, ..life(0) };
    lives.observe(Sample { life: next, sent: 5, received: 6, answer: Some(answer(0, 3, true)) });
    assert!(matches!(violations(&[lives])[..], [Violation::Shared { .. }]));
}

#[test]
fn a_yes_after_a_no_in_one_epoch_is_rejected() {
    let again = found(&[(0, 1, 1, true), (2, 3, 1, false), (4, 5, 1, true)], &[]);
    assert!(matches!(again[..], [Violation::Again(_, 5)]), "{again:?}");
    assert_eq!(found(&[(0, 1, 1, true), (2, 3, 1, false), (4, 5, 2, true)], &[]), []);
    // Not answering is not a no, and does not make two reigns of one.
    let mut silent = observer(0, &[(0, 1, 1, true)]);
    silent.observe(Sample { life: life(0), sent: 2, received: 90, answer: None });
    silent.observe(Sample { life: life(0), sent: 91, received: 92, answer: Some(answer(0, 1, true)) });
    assert_eq!(violations(std::slice::from_ref(&silent)), []);
    assert_eq!(silent.runs().len(), 2);
    let other = observer(1, &[(40, 41, 2, true)]);
    assert!(together(&violations(&[silent, other])));
}

#[test]
fn an_epoch_that_goes_back_is_rejected_while_the_folder_is_kept() {
    let mut kept = observer(0, &[(0, 1, 5, false)]);
    let next = Lifetime { life: 2, ..life(0) };
    kept.observe(Sample { life: next, sent: 2, received: 3, answer: Some(answer(0, 4, false)) });
    assert_eq!(kept.own_violations().count(), 1);
    let mut emptied = observer(0, &[(0, 1, 5, false)]);
    let next = Lifetime { life: 2, folder: 1, ..life(0) };
    emptied.observe(Sample { life: next, sent: 2, received: 3, answer: Some(answer(0, 4, false)) });
    assert_eq!(emptied.own_violations().count(), 0);
}

#[test]
fn two_leaders_of_classic_are_measured() {
    let a = observer(0, &[(0, 10, 1, true), (100, 101, 1, true), (200, 201, 1, true), (202, 203, 1, false)]);
    let b = observer(1, &[(140, 150, 2, true), (300, 301, 2, true), (302, 303, 3, false)]);
    let c = observer(2, &[(170, 180, 1, true), (250, 251, 1, true)]);
    let two = [a.clone(), b.clone()];
    assert_eq!(dual(&two), Dual { windows: 1, longest: 50, total: 50 });
    assert_eq!(dual(&[a, b, c]), Dual { windows: 1, longest: 100, total: 100 });
    assert_eq!(led(&two), [(10, 300)]);
}

#[test]
fn the_longest_time_without_a_leader_is_within_one_majority() {
    let all = Conditions { reaches: vec![vec![true; 3]; 3], runs: vec![true; 3] };
    let without = |place: usize| {
        let mut some = all.clone();
        some.runs[place] = false;
        some
    };
    let none = [const { Vec::new() }; 3];
    let mut health = Health::new(3);
    health.note(0, &all);
    // From 30 to 70 places 1 and 2 are whole throughout, while others come and go.
    health.note(30, &without(0));
    health.note(70, &without(1));
    let gap = health.longest_gap(&[(0, 40), (60, 100)], &none, 100);
    assert_eq!(gap, Some(Gap { from: 40, to: 60, majority: 0b110 }));
    // No process leads from 40 on: places 0 and 2 are whole since 70 only, 1 and 2 were till then.
    let gap = health.longest_gap(&[(0, 40)], &none, 90);
    assert_eq!(gap, Some(Gap { from: 40, to: 70, majority: 0b110 }));
    // Neither place 1 nor 2 is a candidate from 45 to 55.
    let barred = [vec![], vec![(0, 3), (45, 60)], vec![(40, 55)]];
    let gap = health.longest_gap(&[(0, 40)], &barred, 90);
    assert_eq!(gap, Some(Gap { from: 70, to: 90, majority: 0b101 }));
    let mut one_way = all.clone();
    one_way.reaches[1][2] = false;
    assert_eq!(all.both(&one_way), one_way);
    let mut health = Health::new(3);
    health.note(0, &all);
    health.note(10, &one_way);
    let gap = health.longest_gap(&[(0, 5), (50, 60)], &none, 60);
    assert_eq!(gap.map(|gap| (gap.from, gap.to)), Some((5, 50)));
    assert_eq!(health.longest_gap(&[(0, 60)], &none, 60), None);
}

#[test]
fn a_log_tells_when_an_application_kept_its_process_from_leading() {
    let line = |second: u32, event: &str| {
        format!("{{\"ts\":\"2026-01-01T00:00:0{second}Z\",\"event\":\"{event}\"}}\n")
    };
    let log = [
        line(1, "started"),
        line(2, "application_unhealthy"),
        line(3, "application_unhealthy"),
        "half a line\n".to_owned(),
        line(4, "application_healthy"),
        line(5, "application_unhealthy"),
        line(6, "started"),
        line(7, "application_unhealthy"),
    ];
    let began = humantime::parse_rfc3339("2026-01-01T00:00:01Z").unwrap();
    let second = 1_000_000_000;
    let times = [(second, 3 * second), (4 * second, 5 * second), (6 * second, 8 * second)];
    assert_eq!(health::barred(&log.concat(), began, 8 * second), times);
}

/// Reigns of one after another, and questions to all of them with answers as they would be.
fn honest() -> impl Strategy<Value = Vec<Observer>> {
    let reigns = prop::collection::vec((0..3usize, 1..30u64, 0..10u64), 1..8);
    let questions = prop::collection::vec((0..3usize, 0..5u64, 0..40u64, 0..40u64), 1..200);
    (reigns, questions).prop_map(|(reigns, questions)| {
        let mut at = 10;
        let mut led = Vec::new();
        for (epoch, (place, length, pause)) in reigns.into_iter().enumerate() {
            led.push((place, epoch as u64 + 1, at, at + length));
            at += length + pause;
        }
        let mut free = [0; 3];
        let mut observers = vec![Observer::default(); 3];
        for (place, wait, there, back) in questions {
            let sent: u64 = free[place] + wait;
            let (instant, received) = (sent + there, sent + there + back);
            free[place] = received;
            let now = led.iter().rfind(|(.., from, _)| *from <= instant);
            let (leader, epoch, _, to) = now.copied().unwrap_or((9, 0, 0, 0));
            let yes = leader == place && instant < to;
            let answer = Some(answer(place, epoch, yes));
            observers[place].observe(Sample { life: life(place), sent, received, answer });
        }
        observers
    })
}

/// Whether instants can be chosen for the windows so that nothing is in common. Times are whole steps, and
/// instants are tried at quarters of them.
fn explainable(reigns: &[(u64, u64)]) -> bool {
    let proved: Vec<(u64, u64)> =
        reigns.iter().filter(|(first, last)| first <= last).map(|(f, l)| (4 * f, 4 * l)).collect();
    let disjoint =
        proved.iter().enumerate().all(|(i, a)| proved[i + 1..].iter().all(|b| a.0.max(b.0) >= a.1.min(b.1)));
    let mut windows = reigns.iter().filter(|(first, last)| first > last);
    // What is less than half a step from an end has the same reading of the clock.
    disjoint
        && windows.all(|(first, last)| {
            (4 * last - 1..=4 * first + 1).any(|at| proved.iter().all(|p| at < p.0 + 1 || at > p.1 - 1))
        })
}

proptest! {
    #[test]
    fn nothing_is_held_against_leaders_one_after_another(observers in honest()) {
        prop_assert_eq!(violations(&observers), []);
        prop_assert_eq!(dual(&observers), Dual::default());
    }

    /// The pairwise rule finds exactly the histories that no choice of instants explains.
    #[test]
    fn what_is_accepted_can_be_explained(
        times in prop::collection::vec((1..12u64, 1..12u64, any::<bool>()), 1..5)
    ) {
        let mut observers = Vec::new();
        let mut reigns = Vec::new();
        for (place, (a, b, single)) in times.into_iter().enumerate() {
            let (a, b) = (a.min(b), a.max(b));
            if single {
                observers.push(observer(place, &[(a, b, place as u64, true)]));
                reigns.push((b, a));
            } else {
                observers.push(observer(place, &[(a, a, place as u64, true), (b, b, place as u64, true)]));
                reigns.push((a, b));
            }
        }
        prop_assert_eq!(together(&violations(&observers)), !explainable(&reigns));
    }
}

#[test]
fn a_yes_that_holds_for_longer_than_a_lease_is_rejected() {
    for (valid_for_ms, rejected) in
        [(None, false), (Some(0), false), (Some(1_500), false), (Some(1_501), true)]
    {
        let mut observer = Observer::default();
        let answer = Some(Observation { valid_for_ms, ..answer(0, 1, true) });
        observer.observe(Sample { life: life(0), sent: 0, received: 1, answer });
        assert_eq!(violations(&[observer]).len(), usize::from(rejected), "{valid_for_ms:?}");
    }
}
