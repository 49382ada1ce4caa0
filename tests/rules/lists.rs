//! Which addresses a process dials because a peer has named them, and when it names one itself.

use super::*;

/// Where discovery names a process, it names all: a list adds no address to dial. Nor does it before
/// discovery has answered at all.
#[test]
fn a_list_names_nothing_to_dial_where_discovery_names_all() {
    let seed = peer(2).address;
    let listed = Entry { peer: peer(7), state: State::Alive };
    for (discovered, dialled) in [
        (vec![seed], true),
        (vec![seed, peer(1).address], false),
        (vec![seed, peer(7).address], true),
        (vec![], false),
    ] {
        let mut alone = Alone::new(1);
        if !discovered.is_empty() {
            alone.feed(Event::Discovered { addresses: discovered.iter().copied().collect(), complete: true });
        }
        alone.feed(Event::LinkUp(peer(2)));
        let sent = alone.hear(2, 1, Body::LeaderInfo { leader: None, entries: [listed.clone()].into() });
        assert_eq!(alone.sought.contains(&peer(7).address), dialled, "{discovered:?}");
        assert!(dialled || sent.iter().all(|(to, _)| *to != 7), "{sent:?}");
    }
}

/// Discovery has no answer. A list counts once that has lasted for the start timeout, and at once where
/// members prove themselves: restarted members would otherwise never meet. That none is published is an
/// answer.
#[test]
fn a_list_names_what_to_dial_where_discovery_does_not_answer() {
    let listed = Entry { peer: peer(7), state: State::Alive };
    let list = || Body::LeaderInfo { leader: None, entries: [listed.clone()].into() };
    let dials = |alone: &Alone| alone.sought.contains(&peer(7).address);

    let mut alone = Alone::new(1);
    alone.feed(Event::LinkUp(peer(2)));
    alone.hear(2, 1, list());
    alone.pass(Settings::default().start_timeout - ms(1));
    assert!(!dials(&alone), "too early");
    alone.pass(ms(2));
    alone.hear(2, 1, list());
    assert!(dials(&alone));

    let mut alone = Alone::new(1);
    alone.feed(Event::Discovered { addresses: BTreeSet::new(), complete: false });
    alone.feed(Event::LinkUp(peer(2)));
    alone.hear(2, 1, list());
    assert!(dials(&alone));

    let settings = Settings { members_are_proved: true, ..Settings::default() };
    let mut alone = Alone::started(Machine::new(settings, "test".to_string(), peer(1), None));
    alone.feed(Event::LinkUp(peer(2)));
    alone.hear(2, 1, list());
    assert!(dials(&alone));
}

/// At a first start p2 connects with p3, then with p4, and discovery names neither p2 nor all of them.
#[test]
fn a_newcomer_is_introduced_where_discovery_does_not_name_all() {
    let introduces = |alone: &mut Alone| {
        alone.feed(Event::LinkUp(peer(3)));
        let sent = alone.feed(Event::LinkUp(peer(4)));
        sent.iter().any(|(to, message)| {
            *to == 3
                && matches!(message, Body::LeaderInfo { entries, .. }
                    if entries.iter().any(|entry| entry.peer == peer(4)))
        })
    };
    let named = |addresses: &[usize]| {
        let mut alone = Alone::new(2);
        let addresses = addresses.iter().map(|k| peer(*k).address).collect();
        alone.feed(Event::Discovered { addresses, complete: true });
        alone
    };
    assert!(introduces(&mut Alone::new(2)));
    assert!(introduces(&mut named(&[3, 4])));
    assert!(!introduces(&mut named(&[2, 3, 4])), "discovery names all");
    let mut crowd = Alone::new(2);
    (5..12).for_each(|k| drop(crowd.feed(Event::LinkUp(peer(k)))));
    assert!(!introduces(&mut crowd), "a large cluster has no links for it");
}
