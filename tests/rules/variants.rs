//! What `--variant optimized` and `announcer` have of their own.

use super::*;
use bellwether::election::Variant;

fn of_variant(k: usize, variant: Variant) -> Alone {
    let settings = Settings { variant, ..Settings::default() };
    Alone::started(Machine::new(settings, "test".to_string(), peer(k), None))
}

/// p3 takes this process for the announcer, and answers from its own epoch.
#[test]
fn an_answer_of_a_process_that_waits_for_a_declaration_counts() {
    let mut alone = of_variant(2, Variant::Announcer);
    for k in [1, 3, 4] {
        alone.feed(Event::LinkUp(peer(k)));
    }
    alone.hear(4, 1, Body::Coordinator { elected_at_ms: 0 });
    alone.feed(Event::Crashed { id: id(4), incarnation: Incarnation(1) });
    alone.pass(ms(900));
    alone.hear(3, 1, Body::Answer);
    assert!(alone.armed(Timer::Coordinator).is_some());
}

#[test]
fn a_process_that_waits_for_a_successor_takes_part_in_its_election() {
    let mut alone = Alone::new(2);
    for k in [1, 3] {
        alone.feed(Event::LinkUp(peer(k)));
    }
    alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
    alone.hear(3, 1, Body::Resign { successor: Some(id(1)), leaving: false });
    assert_eq!(alone.hear(1, 2, Body::Election), [(1, Body::Answer), (3, Body::Election)]);
}

/// Discovery names neither p1 nor p9: they may be names on a list, and no more.
#[test]
fn no_election_asks_or_awaits_a_member_that_cannot_be_reached() {
    for variant in [Variant::Optimized, Variant::Announcer] {
        let mut alone = of_variant(2, variant);
        let addresses = [2, 3, 4].map(address).into();
        alone.feed(Event::Discovered { addresses, complete: true });
        for k in [3, 4] {
            alone.feed(Event::LinkUp(peer(k)));
        }
        alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
        alone.list(1, &[1, 4, 9].map(|k| (peer(k), State::Alive)));
        let sent = alone.feed(Event::Crashed { id: id(3), incarnation: Incarnation(1) });
        assert_eq!(sent, [(4, Body::Election)], "{variant:?}");
    }
}

/// The highest takes over as soon as it may lead again.
#[test]
fn always_takes_over_once_a_follower_is_a_candidate_again() {
    for (_, variant) in Variant::NAMED {
        for (preempt, role) in [(Preempt::Always, Role::Leading), (Preempt::Never, Role::Following)] {
            let settings = Settings { preempt, variant, ..Settings::default() };
            let mut alone = Alone::started(Machine::new(settings, "test".to_owned(), peer(3), None));
            alone.feed(Event::Discovered { addresses: [address(1)].into(), complete: true });
            let order = |operation, number| Event::Operation { number, operation, within: ms(1_000) };
            alone.feed(order(Operation::Cordon, 1));
            alone.feed(Event::LinkUp(peer(1)));
            alone.hear(1, 1, Body::Coordinator { elected_at_ms: 0 });
            assert_eq!(alone.machine.status().role, Role::Following);
            alone.feed(order(Operation::Uncordon, 2));
            // The leader leads on meanwhile.
            for _ in 0..8 {
                alone.hear(1, 1, Body::Heartbeat { sequence: 1, pace: Pace::default() });
                alone.pass(ms(250));
            }
            assert_eq!(alone.machine.status().role, role, "{variant:?}, {preempt:?}");
        }
    }
}
