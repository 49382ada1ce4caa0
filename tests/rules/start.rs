//! When a process of `classic` that starts begins its first election.

use super::*;

/// pk, which has met these, and hears from each that it knows no leader.
fn started(k: usize, listed: bool, named: &[usize], met: &[usize]) -> Alone {
    let settings = Settings { peers_are_listed: listed, ..Settings::default() };
    let mut alone = Alone::started(Machine::new(settings, "test".to_string(), peer(k), None));
    let addresses = named.iter().map(|k| address(*k)).collect();
    alone.feed(Event::Discovered { addresses, complete: true });
    for k in met {
        alone.feed(Event::LinkUp(peer(*k)));
        alone.hear(*k, 0, Body::LeaderInfo { leader: None, entries: [].into() });
    }
    alone
}

#[test]
fn the_best_of_all_that_are_listed_waits_for_no_margin() {
    for (what, me, listed, named, met, leads) in [
        ("the best", 9, true, [1, 2, 9].as_slice(), [1, 2].as_slice(), true),
        ("that is not in the list itself", 9, true, &[1, 2], &[1, 2], true),
        ("of a list that one Service stands for", 9, false, &[1, 2, 9], &[1, 2], false),
        ("that has not met all", 9, true, &[1, 2, 9], &[1], false),
        ("not the best", 2, true, &[1, 2, 9], &[1, 9], false),
        ("alone", 9, true, &[9], &[], false),
        ("without a list", 9, true, &[], &[], false),
    ] {
        let mut alone = started(me, listed, named, met);
        assert_eq!(alone.machine.status().role == Role::Leading, leads, "{what}");
        alone.pass(ms(1_100));
        assert_eq!(alone.machine.status().role == Role::Leading, me == 9, "{what}, after the margin");
    }
}
