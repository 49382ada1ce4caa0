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

/// At a first start p2 connects with p3, then with p4: p3 hears of p4, unless discovery names all to p2.
#[test]
fn a_newcomer_is_introduced_to_the_others_while_no_process_leads() {
    let introduced = |alone: &mut Alone| -> Vec<usize> {
        alone.feed(Event::LinkUp(peer(3)));
        let sent = alone.feed(Event::LinkUp(peer(4)));
        let named = |entries: &[Entry]| entries.iter().any(|entry| entry.peer == peer(4));
        let names_p4 = |message: &Body| matches!(message, Body::LeaderInfo { entries, .. } if named(entries));
        sent.into_iter().filter(|(_, message)| names_p4(message)).map(|(to, _)| to).collect()
    };
    assert_eq!(introduced(&mut Alone::new(2)), [3]);
    let named = |addresses: &[usize]| {
        let mut alone = Alone::new(2);
        let addresses = addresses.iter().map(|k| peer(*k).address).collect();
        alone.feed(Event::Discovered { addresses, complete: true });
        alone
    };
    assert_eq!(introduced(&mut named(&[3, 4])), [3]);
    assert_eq!(introduced(&mut named(&[2, 4])), [3]);
    assert!(introduced(&mut named(&[2, 3, 4])).is_empty());
    let mut listed = Alone::new(2);
    listed.feed(Event::LinkUp(peer(5)));
    let list =
        Body::LeaderInfo { leader: None, entries: [Entry { peer: peer(4), state: State::Alive }].into() };
    listed.hear(5, 1, list);
    assert_eq!(introduced(&mut listed), [3, 5], "it was known from a list");
    let mut crowd = Alone::new(2);
    (5..12).for_each(|k| drop(crowd.feed(Event::LinkUp(peer(k)))));
    assert!(introduced(&mut crowd).is_empty(), "a large cluster has no links for it");
    assert!(introduced(&mut Alone::following()).is_empty(), "the leader tells");
    let safety = Safety::Majority { voters: (2..5).map(|k| peer(k).name).collect() };
    let settings = Settings { safety, ..Settings::default() };
    let voter = Machine::new(settings, "test".to_string(), peer(2), None);
    assert!(introduced(&mut Alone::started(voter)).is_empty(), "no voter leads without a majority");
}

/// p1 knows p7 from a list, and discovery has not answered: it may not dial p7, and does not lead beside it
/// either, as long as a start may take.
#[test]
fn a_process_waits_for_a_live_member_that_it_must_not_dial_yet() {
    let list =
        || Body::LeaderInfo { leader: None, entries: [Entry { peer: peer(7), state: State::Alive }].into() };
    let leads = |alone: &Alone| alone.machine.status().role == Role::Leading;
    let mut alone = Alone::new(1);
    alone.feed(Event::LinkUp(peer(2)));
    alone.hear(2, 1, list());
    alone.pass(Settings::default().start_timeout - ms(1));
    assert_eq!(alone.machine.status().role, Role::Asking);
    let mut answered = Alone::new(9);
    answered.feed(Event::LinkUp(peer(2)));
    answered.feed(Event::Discovered { addresses: [2, 9].map(|k| peer(k).address).into(), complete: true });
    answered.hear(2, 1, list());
    answered.pass(Settings::default().stable_margin + ms(1));
    assert!(leads(&answered), "discovery names all, and p7 is not among them");
}

/// Each process that starts asks all others. One whose discovery names all needs no list from each.
#[test]
fn a_reply_names_the_best_alone_where_the_asker_needs_no_list() {
    let (whole, best) = (ListWanted::Whole, ListWanted::Best);
    for (members, asker, list, named) in [
        (12, 4, whole, (2..=12).collect()),
        (12, 4, best, vec![11]),
        (12, 11, best, vec![10]),
        (8, 4, best, (2..=8).collect()),
    ] {
        let mut alone = Alone::new(1);
        (2..=members).for_each(|k| drop(alone.feed(Event::LinkUp(peer(k)))));
        // The last one may not lead.
        alone.priorities.insert(12, Priority(0));
        alone.hear(members, 0, Body::Answer);
        let sent = alone.hear(asker, 0, Body::LeaderQuery { list });
        let reply = sent.iter().find_map(|(to, body)| match body {
            Body::LeaderInfo { entries, .. } if *to == asker => Some(entries),
            _ => None,
        });
        let entries: Vec<usize> = reply.unwrap().iter().map(|e| number(e.peer.id)).collect();
        assert_eq!(entries, named, "{members} members, p{asker} asks for {list:?}");
    }
}

/// Where many start at once, some lead for a moment, and each heartbeat of theirs has an answer from each
/// follower of another leader. With a whole list in each, those leaders would hold thousands of entries.
#[test]
fn an_unasked_reply_has_no_whole_list_in_a_large_cluster() {
    for (members, named) in [(8, vec![1, 2, 3, 4, 5, 7, 8]), (12, vec![12])] {
        let mut alone = Alone::new(6);
        (1..=members).filter(|k| *k != 6).for_each(|k| drop(alone.feed(Event::LinkUp(peer(k)))));
        alone.hear(members, 1, Body::Coordinator { elected_at_ms: 0 });
        for epoch in [1, 0] {
            let sent = alone.hear(5, epoch, Body::Coordinator { elected_at_ms: 0 });
            let [(5, Body::LeaderInfo { leader: Some(leader), entries })] = &sent[..] else {
                panic!("epoch {epoch}: {sent:?}");
            };
            assert_eq!(leader.peer, peer(members));
            let entries: Vec<usize> = entries.iter().map(|e| number(e.peer.id)).collect();
            assert_eq!(entries, named, "{members} members, epoch {epoch}");
        }
        let sent = alone.hear(5, 1, Body::Election);
        let whole =
            |body: &Body| matches!(body, Body::LeaderInfo { entries, .. } if entries.len() == members - 1);
        assert!(sent.iter().any(|(to, body)| *to == 5 && whole(body)), "an election is rare: {sent:?}");
    }
}

/// A seed alone names few, and so may a name server at first. No answer names none.
#[test]
fn a_process_needs_lists_unless_discovery_names_it() {
    for (named, list) in
        [(vec![], ListWanted::Whole), (vec![2], ListWanted::Whole), (vec![1, 2], ListWanted::Best)]
    {
        let mut alone = Alone::new(1);
        if !named.is_empty() {
            let addresses = named.iter().map(|k| address(*k)).collect();
            alone.feed(Event::Discovered { addresses, complete: true });
        }
        let asked = alone.feed(Event::LinkUp(peer(2)));
        assert_eq!(asked, [(2, Body::LeaderQuery { list })], "{named:?}");
    }
}

/// In a small cluster all keep links with all, so that an election opens none. A large one has two stars.
#[test]
fn the_followers_of_a_small_cluster_keep_links_with_each_other() {
    for (members, star) in [(8, false), (9, true)] {
        let mut alone = Alone::following();
        let others = (4..=members).map(|k| (peer(k), State::Alive)).chain([(peer(2), State::Failed)]);
        alone.list(2, &others.collect::<Vec<_>>());
        let all: BTreeSet<_> = (3..=members).map(address).collect();
        // The leader, and the best other member.
        let two_stars = [address(3), address(9)].into();
        assert_eq!(alone.sought, if star { two_stars } else { all }, "{members}");
    }
}

#[test]
fn the_best_follower_of_a_large_cluster_keeps_links_with_all() {
    for (priority, best) in [(99, true), (100, false), (101, false)] {
        let mut alone = Alone::following();
        let priority = Priority(priority);
        let others = (4..=20).map(|k| (Peer { priority, ..peer(k) }, State::Alive));
        alone.list(2, &others.collect::<Vec<_>>());
        let all: BTreeSet<_> = (3..=20).map(address).collect();
        assert_eq!(alone.sought, if best { all } else { [address(3), address(20)].into() }, "{priority:?}");
    }
}

/// Where none but the leader may lead, no other member announces itself.
#[test]
fn a_process_that_may_not_lead_keeps_no_links_with_all() {
    let mut alone = Alone::following();
    let others = (4..=20).map(|k| (Peer { priority: Priority(50), ..peer(k) }, State::Alive));
    alone.list(2, &others.collect::<Vec<_>>());
    let (all, leader): (BTreeSet<_>, _) = ((3..=20).map(address).collect(), address(3));
    assert_eq!(alone.sought, all);
    alone.feed(Event::Operation { number: 1, operation: Operation::Cordon, within: ms(100) });
    assert_eq!(alone.sought, [leader, address(20)].into());
    let never = (4..=20).map(|k| (Peer { priority: Priority(0), ..peer(k) }, State::Alive));
    alone.list(3, &never.collect::<Vec<_>>());
    assert_eq!(alone.sought, [leader].into());
    alone.feed(Event::Operation { number: 2, operation: Operation::Uncordon, within: ms(100) });
    assert_eq!(alone.sought, all);
}
