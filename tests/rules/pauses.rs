//! What a process believes after a pause, and what it has forgotten.

use super::*;

/// What a paused process finds in its sockets may be older than the pause.
#[test]
fn a_process_that_was_paused_follows_no_leader_that_has_not_answered_since() {
    let mut alone = Alone::following();
    alone.now += ms(5_000);
    let asked = alone.feed(Event::Turn);
    assert_eq!(asked, [(3, Body::LeaderQuery { list: ListWanted::Whole })]);
    let heartbeat = || Body::Heartbeat { sequence: 1, pace: Pace::default() };
    for old in [heartbeat(), Body::Coordinator { elected_at_ms: 0 }] {
        alone.hear(3, 1, old);
        assert_eq!(alone.machine.status().leader, None);
    }
    // Nor does it stand beside a leader whose answer is lost.
    alone.pass(ms(1_500));
    assert_eq!(alone.machine.status().role, Role::Asking);
    alone.hear(3, 1, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.hear(3, 1, heartbeat());
    assert_eq!(alone.machine.status().leader.map(|leader| leader.peer), Some(peer(3)));
}

/// A process that was said to lead, and says that it does not, keeps no process from an election.
#[test]
fn a_leader_from_before_a_pause_that_denies_it_is_waited_for_no_longer() {
    let mut alone = Alone::following();
    alone.now += ms(5_000);
    alone.feed(Event::Turn);
    alone.hear(3, 1, Body::Heartbeat { sequence: 1, pace: Pace::default() });
    alone.hear(3, 1, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.pass(ms(1_000));
    assert_ne!(alone.machine.status().role, Role::Asking);
}

/// Its leader may have resigned to it before the pause, and another one led since.
#[test]
fn a_resignation_from_before_a_pause_makes_no_leader() {
    let resign = || Body::Resign { successor: Some(id(1)), leaving: false };
    for (answers, role) in [(false, Role::Asking), (true, Role::Leading)] {
        let mut alone = Alone::following();
        alone.feed(Event::LinkUp(peer(2)));
        alone.now += ms(5_000);
        alone.feed(Event::Turn);
        if answers {
            alone.hear(2, 2, Body::LeaderInfo { leader: None, entries: [].into() });
        }
        alone.hear(2, 2, resign());
        assert_eq!(alone.machine.status().role, role, "has answered: {answers}");
    }
}

/// A timer that was due before a pause is not the one that has begun after it.
#[test]
fn a_pause_while_asking_begins_the_margin_anew() {
    let mut alone = Alone::new(3);
    alone.feed(Event::Discovered { addresses: [address(1)].into(), complete: true });
    alone.feed(Event::LinkUp(peer(1)));
    alone.hear(1, 1, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.now += ms(5_000);
    let asked = alone.feed(Event::Timer(Timer::Margin));
    assert_eq!(asked, [(1, Body::LeaderQuery { list: ListWanted::Whole })]);
    assert_eq!(alone.machine.status().role, Role::Asking);
    alone.hear(1, 1, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.pass(ms(1_000));
    assert_eq!(alone.machine.status().role, Role::Leading, "the new margin is over");
}

#[test]
fn a_pause_at_a_start_forgets_no_expected_member() {
    let settings = Settings { expect: 3, ..Settings::default() };
    let mut alone = Alone::started(Machine::new(settings, "test".to_owned(), peer(1), None));
    alone.feed(Event::Discovered { addresses: [address(1)].into(), complete: true });
    alone.now += ms(2_000);
    alone.feed(Event::Turn);
    alone.pass(ms(2_000));
    assert_eq!(alone.machine.status().role, Role::Asking, "two are missing");
    for k in [2, 3] {
        alone.feed(Event::LinkUp(peer(k)));
        alone.hear(k, 0, Body::LeaderInfo { leader: None, entries: [].into() });
    }
    assert_ne!(alone.machine.status().role, Role::Asking, "all are there");
}
