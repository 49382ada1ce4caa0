//! Adaptive leases in `classic`: what a leader asks for, and how long its followers wait for it.

use super::*;
use bellwether::election::{Learnt, Sign};

const ADAPTIVE: Duration = Duration::from_millis(250);

fn beat(lease_ms: u32) -> Body {
    Body::Heartbeat { sequence: 9, pace: Pace { lease_ms, learnt: Learnt::default() } }
}

/// pk, with adaptive leases.
fn adaptive(k: usize) -> Alone {
    let settings = Settings { lease_min: Some(ADAPTIVE), ..Settings::default() };
    Alone::started(Machine::new(settings, "test".to_string(), peer(k), None))
}

/// p9, which leads p1.
fn leader() -> Alone {
    let mut alone = adaptive(9);
    alone.feed(Event::Discovered { addresses: BTreeSet::new(), complete: true });
    alone.pass(ms(5_000));
    alone.feed(Event::LinkUp(peer(1)));
    alone
}

/// What the leader's next heartbeat says.
fn next_beat(alone: &mut Alone) -> (u32, Pace) {
    let interval = alone.armed(Timer::Heartbeat).expect("it leads");
    alone.now += interval;
    let sent = alone.feed(Event::Timer(Timer::Heartbeat));
    let beat = sent.into_iter().find_map(|(_, body)| match body {
        Body::Heartbeat { sequence, pace } => Some((sequence, pace)),
        _ => None,
    });
    beat.expect("it sends a heartbeat")
}

/// A number of heartbeats, each of which p1 acknowledges this late.
fn beats(alone: &mut Alone, count: usize, late: Duration) -> Pace {
    let mut last = Pace::default();
    for _ in 0..count {
        let (sequence, pace) = next_beat(alone);
        alone.now += late;
        alone.hear(1, 1, Body::HeartbeatAck { sequence, membership: MembershipVersion::default() });
        last = pace;
    }
    last
}

#[test]
fn a_follower_waits_as_long_as_the_latest_heartbeat_says() {
    for (lease_ms, silence) in [(0, 1500), (250, 250), (1, 200), (700, 700), (u32::MAX, 1500)] {
        let mut alone = Alone::following();
        alone.hear(3, 1, beat(700));
        alone.hear(3, 1, beat(lease_ms));
        assert_eq!(alone.armed(Timer::Silence), Some(ms(silence)), "{lease_ms}");
    }
}

#[test]
fn a_leader_asks_for_short_leases_once_it_has_learnt_for_two_seconds() {
    let mut alone = leader();
    assert_eq!(beats(&mut alone, 1, ms(1)).lease_ms, 1500);
    assert_eq!(alone.armed(Timer::Heartbeat), Some(ms(250)));
    let pace = beats(&mut alone, 10, ms(1));
    assert_eq!((pace.lease_ms, pace.learnt.worst_ms, pace.learnt.eighths), (250, 1, 8));
    assert_eq!(alone.armed(Timer::Heartbeat), Some(ms(70)));
}

#[test]
fn a_late_answer_lengthens_the_lease_and_the_time_between_heartbeats() {
    let mut alone = leader();
    beats(&mut alone, 11, ms(1));
    beats(&mut alone, 1, ms(120));
    let (_, pace) = next_beat(&mut alone);
    assert_eq!((pace.lease_ms, pace.learnt.worst_ms), (340, 120));
    assert_eq!(alone.armed(Timer::Heartbeat), Some(ms(68)));
}

#[test]
fn a_late_heartbeat_lengthens_the_lease() {
    for (late, lease_ms) in [(100, 302), (180, 462)] {
        let mut alone = leader();
        beats(&mut alone, 11, ms(1));
        // The last acknowledgement took a millisecond, in which the next heartbeat came no nearer here.
        alone.now += ms(late);
        let (_, pace) = next_beat(&mut alone);
        assert_eq!(pace.lease_ms, lease_ms);
    }
}

/// p1 has answered nothing for so long that its answers to all rounds since then are late.
#[test]
fn unanswered_rounds_lengthen_the_lease_before_their_answers_come() {
    let mut alone = leader();
    beats(&mut alone, 11, ms(1));
    let leases = [0; 4].map(|_| next_beat(&mut alone).1.lease_ms);
    // 51 ms is 50 ms and the millisecond by which the last heartbeat was late here.
    assert!(leases.is_sorted() && leases[3] > 350, "{leases:?}");
}

/// Only an answer that comes is remembered: p1 may be gone.
#[test]
fn silence_lengthens_the_lease_for_as_long_as_it_lasts() {
    let mut alone = leader();
    beats(&mut alone, 11, ms(1));
    let longest = [0; 12].map(|_| next_beat(&mut alone).1.lease_ms).into_iter().max();
    assert_eq!(longest, Some(1300));
    alone.feed(Event::LinkDown { id: id(1), incarnation: Incarnation(1) });
    alone.feed(Event::Crashed { id: id(1), incarnation: Incarnation(1) });
    alone.feed(Event::LinkUp(peer(2)));
    let mut latest = next_beat(&mut alone);
    for _ in 0..16 {
        let (sequence, membership) = (latest.0, MembershipVersion::default());
        alone.hear(2, 1, Body::HeartbeatAck { sequence, membership });
        latest = next_beat(&mut alone);
    }
    assert_eq!(latest.1.lease_ms, 250);
}

/// The rounds and their answers stall, so p1 elects itself. No answer to them comes any more.
#[test]
fn a_silence_that_ends_the_term_is_learnt() {
    let mut alone = leader();
    beats(&mut alone, 11, ms(1));
    for _ in 0..4 {
        next_beat(&mut alone);
    }
    alone.hear(1, 2, Body::Coordinator { elected_at_ms: 0 });
    let worst = alone.machine.status().worst_delay;
    assert!(worst >= Some(ms(100)), "{worst:?}");
}

#[test]
fn a_member_that_had_failed_teaches_nothing() {
    let mut alone = leader();
    beats(&mut alone, 11, ms(1));
    let (sequence, _) = next_beat(&mut alone);
    alone.feed(Event::LinkDown { id: id(1), incarnation: Incarnation(1) });
    alone.feed(Event::Crashed { id: id(1), incarnation: Incarnation(1) });
    alone.now += ms(40);
    alone.feed(Event::LinkUp(peer(1)));
    alone.hear(1, 1, Body::HeartbeatAck { sequence, membership: MembershipVersion::default() });
    assert_eq!(alone.machine.status().worst_delay, Some(ms(1)));
}

/// Its followers may have elected another by then.
#[test]
fn a_leader_that_was_paused_for_longer_than_its_lease_leads_no_more() {
    for (gap, leads) in [(240, true), (260, false)] {
        let mut alone = leader();
        beats(&mut alone, 12, ms(1));
        assert_eq!(alone.machine.status().answer_ttl, ADAPTIVE);
        alone.now += ms(gap);
        alone.feed(Event::Turn);
        assert_eq!(alone.machine.status().role == Role::Leading, leads, "{gap}");
    }
}

#[test]
fn a_new_leader_goes_on_with_the_lease_of_the_former_one() {
    let mut alone = adaptive(1);
    alone.feed(Event::Discovered { addresses: [address(3)].into(), complete: true });
    alone.feed(Event::LinkUp(peer(3)));
    alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
    let pace = Pace { lease_ms: 340, learnt: Learnt { worst_ms: 120, eighths: 3 } };
    alone.hear(3, 1, Body::Heartbeat { sequence: 9, pace });
    alone.feed(Event::Crashed { id: id(3), incarnation: Incarnation(1) });
    assert_eq!(alone.machine.status().role, Role::Leading);
    alone.feed(Event::LinkUp(peer(2)));
    assert_eq!(next_beat(&mut alone).1, pace);
}

#[test]
fn elections_wait_longer_for_answers_than_a_round_trip_takes() {
    let mut alone = adaptive(1);
    alone.feed(Event::Discovered { addresses: [address(2), address(3)].into(), complete: true });
    alone.feed(Event::LinkUp(peer(2)));
    alone.feed(Event::LinkUp(peer(3)));
    alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
    let pace = Pace { lease_ms: 900, learnt: Learnt { worst_ms: 400, eighths: 3 } };
    alone.hear(3, 1, Body::Heartbeat { sequence: 9, pace });
    alone.feed(Event::Crashed { id: id(3), incarnation: Incarnation(1) });
    assert_eq!(alone.armed(Timer::Announcement), Some(ms(800)));
}

/// A stall that costs the leadership is learnt too, or each term would end by the next one.
#[test]
fn a_stall_that_ends_the_term_is_learnt() {
    let mut alone = leader();
    beats(&mut alone, 12, ms(1));
    alone.now += ms(330);
    alone.feed(Event::Turn);
    let status = alone.machine.status();
    assert_eq!(status.role, Role::Asking);
    assert!(status.worst_delay >= Some(ms(250)), "{:?}", status.worst_delay);
}

/// 41 heartbeats leave before the answer to the first comes.
#[test]
fn a_late_answer_is_learnt_however_often_heartbeats_leave() {
    let settings = Settings { lease_min: Some(ADAPTIVE), heartbeat: ms(10), ..Settings::default() };
    let mut alone = Alone::started(Machine::new(settings, "test".to_string(), peer(9), None));
    alone.feed(Event::Discovered { addresses: BTreeSet::new(), complete: true });
    alone.pass(ms(5_000));
    alone.feed(Event::LinkUp(peer(1)));
    let mut sent: Vec<u32> = (0..40).map(|_| next_beat(&mut alone).0).collect();
    for answered in 0..250 {
        sent.push(next_beat(&mut alone).0);
        let (sequence, membership) = (sent[answered], MembershipVersion::default());
        alone.hear(1, 1, Body::HeartbeatAck { sequence, membership });
    }
    let worst = alone.machine.status().worst_delay;
    assert!(worst >= Some(ms(400)), "{worst:?}");
}

/// Its followers may have heard the short lease alone.
#[test]
fn a_lease_that_has_just_grown_does_not_excuse_a_pause_yet() {
    let mut alone = leader();
    beats(&mut alone, 12, ms(1));
    alone.now += ms(170);
    assert!(next_beat(&mut alone).1.lease_ms > 430);
    assert_eq!(alone.machine.answer_ttl(), ADAPTIVE);
    next_beat(&mut alone);
    assert!(alone.machine.answer_ttl() > ms(430));
}

/// One round: which lease each recipient is told. All of them acknowledge it.
fn told(alone: &mut Alone) -> BTreeMap<usize, u32> {
    alone.now += alone.armed(Timer::Heartbeat).expect("it leads");
    let sent = alone.feed(Event::Timer(Timer::Heartbeat));
    let mut told = BTreeMap::new();
    for (to, body) in sent {
        if let Body::Heartbeat { sequence, pace } = body {
            told.insert(to, pace.lease_ms);
            alone.hear(to, 1, Body::HeartbeatAck { sequence, membership: MembershipVersion::default() });
        }
    }
    told
}

/// p9, which leads eleven others with short leases.
fn leader_of_eleven() -> Alone {
    let mut alone = leader();
    for k in (2..=8).chain(10..=12) {
        alone.feed(Event::LinkUp(peer(k)));
    }
    for _ in 0..12 {
        told(&mut alone);
    }
    alone
}

#[test]
fn with_a_short_lease_only_the_best_eight_get_each_heartbeat() {
    let mut alone = leader_of_eleven();
    let best: Vec<usize> = (4..=8).chain(10..=12).collect();
    let mut seldom = 0;
    for _ in 0..20 {
        let told = told(&mut alone);
        assert!(best.iter().all(|k| told.get(k) == Some(&250)), "{told:?}");
        let others: Vec<_> = told.iter().filter(|(k, _)| !best.contains(k)).collect();
        assert!(others.is_empty() || others.len() == 3 && others.iter().all(|(_, lease)| **lease == 1500));
        seldom += usize::from(!others.is_empty());
    }
    // Each fourth one, since they are 70 ms apart.
    assert_eq!(seldom, 5);
}

#[test]
fn with_the_longest_lease_all_get_each_heartbeat() {
    let mut alone = leader();
    for k in (2..=8).chain(10..=12) {
        alone.feed(Event::LinkUp(peer(k)));
    }
    for _ in 0..3 {
        let told = told(&mut alone);
        assert!(told.len() == 11 && told.values().all(|lease| *lease == 1500), "{told:?}");
    }
}

/// It would take the leader for dead: its next heartbeat may come later than its former lease ends.
#[test]
fn a_member_that_is_not_one_of_the_best_any_more_hears_at_once_that_it_may_wait_longer() {
    let mut alone = leader_of_eleven();
    // Until just after a round of all.
    while told(&mut alone).len() < 11 {}
    alone.feed(Event::LinkUp(peer(13)));
    alone.now += alone.armed(Timer::Heartbeat).unwrap();
    let sent = alone.feed(Event::Timer(Timer::Heartbeat));
    let lease = |k| {
        sent.iter().find_map(|(to, body)| match body {
            Body::Heartbeat { pace, .. } if *to == k => Some(pace.lease_ms),
            _ => None,
        })
    };
    assert_eq!([13, 5, 4, 3].map(lease), [Some(250), Some(250), Some(1500), None]);
}

/// p1 is told seldom. It is told the longest lease, so its delays and answers say nothing of a short one.
#[test]
fn what_members_answer_that_are_told_seldom_counts_for_nothing() {
    let mut late = leader_of_eleven();
    while told(&mut late).len() < 11 {}
    let sequence = next_beat(&mut late).0;
    late.hear(1, 1, Body::HeartbeatAck { sequence: sequence - 2, membership: MembershipVersion::default() });
    assert_eq!(late.machine.status().worst_delay, leader_of_eleven().machine.status().worst_delay);
    // None of those answers that are told often.
    let mut silent = leader_of_eleven();
    let mut leases = Vec::new();
    for _ in 0..6 {
        let (sequence, pace) = next_beat(&mut silent);
        leases.push(pace.lease_ms);
        for k in 1..=3 {
            silent.hear(k, 1, Body::HeartbeatAck { sequence, membership: MembershipVersion::default() });
        }
    }
    assert!(leases[5] > 350, "{leases:?}");
}

/// It waits for no longer than a short lease, and cannot hear in the meantime that it is not one of the best.
#[test]
fn a_member_that_was_away_for_a_round_hears_at_once_that_it_may_wait_longer() {
    let mut alone = leader_of_eleven();
    while told(&mut alone).len() < 11 {}
    alone.feed(Event::LinkDown { id: id(4), incarnation: Incarnation(1) });
    told(&mut alone);
    alone.feed(Event::LinkUp(peer(13)));
    alone.feed(Event::LinkUp(peer(4)));
    assert_eq!(told(&mut alone).get(&4), Some(&1500));
    assert_eq!(told(&mut alone).get(&4), None);
}

/// Its answers have no validity.
#[test]
fn no_application_lengthens_a_lease_of_classic() {
    let mut alone = leader();
    let short = beats(&mut alone, 25, ms(1));
    alone.feed(Event::Application(Sign::Watches { valid_for: ms(400) }));
    assert_eq!((short.lease_ms, beats(&mut alone, 1, ms(1)).lease_ms), (250, 250));
}
