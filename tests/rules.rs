//! Rules of one machine that is fed by hand: membership, heartbeats, starts, and leaders that meet.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "rules/adaptive.rs"]
mod adaptive;
#[path = "rules/lists.rs"]
mod lists;
#[path = "rules/pauses.rs"]
mod pauses;
mod support;
#[path = "rules/variants.rs"]
mod variants;

use bellwether::election::{
    Action, Body, Entry, Epoch, Event, Founding, Incarnation, Incumbent, KnownPeers, ListWanted, MEMBERS_MAX,
    Machine, MembershipVersion, Message, Moment, Now, Operation, Pace, Peer, Preempt, Priority, Role, Safety,
    Settings, State, Timer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use support::world::{address, id, number, peer};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One process, driven by hand; what it sends is what comes back.
struct Alone {
    machine: Machine,
    now: Duration,
    /// What was last armed, from when it was.
    timers: BTreeMap<Timer, Duration>,
    /// When these are due.
    due: BTreeMap<Timer, Duration>,
    /// How often it has written its record.
    records: usize,
    /// Where its peers were, as it was last kept.
    known: Option<KnownPeers>,
    /// The addresses that it wants links with.
    sought: BTreeSet<std::net::SocketAddr>,
    /// What its peers count for: their messages say so.
    priorities: BTreeMap<usize, Priority>,
}

impl Alone {
    fn new(k: usize) -> Alone {
        Alone::started(Machine::new(Settings::default(), "test".to_string(), peer(k), None))
    }

    fn started(machine: Machine) -> Alone {
        let (timers, due) = (BTreeMap::new(), BTreeMap::new());
        let mut alone = Alone {
            machine,
            now: ms(0),
            timers,
            due,
            records: 0,
            known: None,
            sought: BTreeSet::new(),
            priorities: BTreeMap::new(),
        };
        alone.feed(Event::Start);
        alone
    }

    /// Lets time pass, in steps in which no timer is late.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let first = self.due.iter().map(|(timer, due)| (*due, *timer)).min();
            let turn = self.now + ms(100);
            match first {
                Some((due, timer)) if due <= turn.min(end) => {
                    self.now = self.now.max(due);
                    self.due.remove(&timer);
                    self.feed(Event::Timer(timer));
                }
                _ => {
                    self.now = turn.min(end);
                    self.feed(Event::Turn);
                }
            }
        }
    }

    /// p1, which follows p3 in epoch 1.
    fn following() -> Alone {
        let mut alone = Alone::new(1);
        // A seed: discovery has answered, and names few.
        alone.feed(Event::Discovered { addresses: [address(3)].into(), complete: true });
        alone.feed(Event::LinkUp(peer(3)));
        alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
        alone
    }

    /// pk, which leads epoch 1, since discovery knows no peer.
    fn leading(k: usize) -> Alone {
        let mut alone = Alone::new(k);
        alone.feed(Event::Discovered { addresses: BTreeSet::new(), complete: true });
        alone.pass(ms(5_000));
        assert_eq!((alone.machine.status().role, alone.machine.epoch()), (Role::Leading, Epoch(1)));
        alone
    }

    fn feed(&mut self, event: Event) -> Vec<(usize, Body)> {
        if let Event::LinkUp(peer) = &event {
            self.priorities.insert(number(peer.id), peer.priority);
        }
        let actions = self.machine.handle(Now::at(Moment(self.now)), event);
        let mut sends = Vec::new();
        for action in actions {
            match action {
                Action::Send { to, message, .. } => sends.push((number(to), message.body)),
                Action::Arm { timer, after } => {
                    self.timers.insert(timer, after);
                    self.due.insert(timer, self.now + after);
                }
                Action::Disarm(timer) => {
                    self.timers.remove(&timer);
                    self.due.remove(&timer);
                }
                Action::Persist(_) => self.records += 1,
                Action::Remember(known) => self.known = Some(known),
                Action::Seek(addresses) => self.sought = addresses,
                _ => {}
            }
        }
        sends
    }

    fn armed(&self, timer: Timer) -> Option<Duration> {
        self.timers.get(&timer).copied()
    }

    fn hear(&mut self, from: usize, epoch: u64, body: Body) -> Vec<(usize, Body)> {
        let priority = self.priorities.get(&from).copied().unwrap_or(Priority::DEFAULT);
        self.feed(Event::Received {
            from: id(from),
            message: Message { epoch: Epoch(epoch), priority, body },
        })
    }

    /// p3, the leader, sends its list.
    fn list(&mut self, number: u32, members: &[(Peer, State)]) {
        let entries = members.iter().cloned().map(|(peer, state)| Entry { peer, state });
        let body = Body::Membership { version: version(number), entries: entries.collect() };
        self.hear(3, 1, body);
    }

    /// Which list it says that it has, when p3 beats.
    fn acknowledged(&mut self) -> MembershipVersion {
        let beat = Body::Heartbeat { sequence: 9, pace: Pace::default() };
        match self.hear(3, 1, beat)[..] {
            [(3, Body::HeartbeatAck { membership, .. })] => membership,
            ref other => panic!("{other:?}"),
        }
    }

    fn members(&self) -> Vec<usize> {
        let mut members: Vec<usize> =
            self.machine.status().members.iter().map(|m| number(m.peer.id)).collect();
        members.sort_unstable();
        members
    }
}

fn version(version: u32) -> MembershipVersion {
    MembershipVersion { epoch: Epoch(1), version }
}

/// A leader's heartbeats wait for the record, so a disk that stalls while members come would cost it its
/// lease.
#[test]
fn members_come_and_go_without_a_write_of_the_record() {
    let safety = Safety::Majority { voters: [peer(1).name].into() };
    let settings = Settings { safety, founding: Founding::Yes, ..Settings::default() };
    let mut leader = Alone::started(Machine::new(settings, "test".to_string(), peer(1), None));
    leader.feed(Event::Discovered { addresses: BTreeSet::new(), complete: true });
    leader.pass(ms(10_000));
    assert_eq!(leader.machine.status().role, Role::Leading);
    let known = |alone: &Alone| -> Vec<usize> {
        let known = alone.known.as_ref().unwrap();
        known.members.iter().map(|member| number(member.peer.id)).collect()
    };
    let records = leader.records;
    leader.feed(Event::LinkUp(peer(2)));
    leader.feed(Event::LinkUp(peer(3)));
    assert_eq!(known(&leader), [2, 3]);
    leader.hear(2, 1, Body::Leave { version: None, id: id(2) });
    assert_eq!(known(&leader), [3]);
    leader.pass(ms(10_000));
    assert_eq!(leader.machine.status().role, Role::Leading);
    assert_eq!(leader.records, records);
    assert_eq!(leader.known.unwrap().leader, Some(peer(1)));

    let mut follower = Alone::following();
    let records = follower.records;
    follower.list(1, &[(peer(2), State::Alive), (peer(4), State::Alive)]);
    assert_eq!(known(&follower), [2, 3, 4]);
    follower.list(2, &[(peer(2), State::Alive)]);
    assert_eq!(known(&follower), [2, 3]);
    assert_eq!(follower.records, records);
    assert_eq!(follower.known.unwrap().leader, Some(peer(3)));
}

/// It asks where it knew its peers, and a leader that it hears of replaces what it knew.
#[test]
fn known_peers_are_sought_while_it_asks() {
    let mut machine = Machine::new(Settings::default(), "test".to_string(), peer(1), None);
    let entry = |k| Entry { peer: peer(k), state: State::Failed };
    machine.ask_first(&KnownPeers {
        cluster: "test".to_string(),
        leader: Some(peer(3)),
        members: vec![entry(2), entry(3)],
    });
    let actions = machine.handle(Now::at(Moment(ms(0))), Event::Start);
    assert!(actions.contains(&Action::Seek([address(2), address(3)].into())), "{actions:?}");
    let members: Vec<usize> = machine.status().members.iter().map(|m| number(m.peer.id)).collect();
    assert_eq!(members, [1], "they are not believed to be there");
}

/// The margin is enough where there is nothing to look up. It is not, also after a pause, while no name
/// server has answered, or while a partial answer names only this process.
#[test]
fn only_a_process_that_knows_it_is_alone_leads_after_the_margin() {
    let found = |addresses: &[usize], complete| {
        let addresses = addresses.iter().map(|k| address(*k)).collect();
        Event::Discovered { addresses, complete }
    };
    let cases = [
        (vec![found(&[], true)], Role::Leading),
        (vec![found(&[1], true)], Role::Leading),
        (vec![found(&[1, 2], false)], Role::Leading),
        (vec![], Role::Asking),
        (vec![found(&[1], false)], Role::Asking),
        (vec![Event::Turn], Role::Asking),
    ];
    for (events, role) in cases {
        let mut alone = Alone::new(1);
        for event in events {
            if matches!(event, Event::Turn) {
                alone.now += Settings::default().failure_timeout * 2;
            }
            alone.feed(event);
        }
        alone.now += alone.armed(Timer::Margin).unwrap();
        alone.feed(Event::Timer(Timer::Margin));
        assert_eq!(alone.machine.status().role, role);
    }
}

/// Where there is nothing to look up, no member is missing from the answer.
#[test]
fn an_empty_answer_removes_no_member() {
    let no_peers = || Event::Discovered { addresses: BTreeSet::new(), complete: true };
    let mut alone = Alone::new(2);
    alone.feed(no_peers());
    alone.feed(Event::LinkUp(peer(1)));
    alone.hear(1, 0, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.feed(Event::Timer(Timer::Margin));
    assert_eq!(alone.machine.status().role, Role::Leading);
    alone.feed(no_peers());
    for _ in 0..2 * Settings::default().forget_after.as_secs() {
        alone.now += ms(1000);
        alone.hear(1, 1, Body::HeartbeatAck { sequence: 0, membership: MembershipVersion::default() });
    }
    alone.feed(Event::Crashed { id: id(1), incarnation: Incarnation(1) });
    alone.feed(no_peers());
    assert_eq!((alone.machine.status().role, alone.members()), (Role::Leading, vec![1, 2]));
}

/// A leader may not know yet that an address is another's now. Its list does not make a process forget a
/// member that it is connected with: it would drop every message of it from then on.
#[test]
fn a_stale_list_evicts_no_connected_member() {
    let mut alone = Alone::following();
    let newcomer = Peer { address: address(2), ..peer(7) };
    alone.feed(Event::LinkUp(newcomer.clone()));
    alone.list(4, &[peer(1), peer(2), newcomer].map(|peer| (peer, State::Alive)));
    assert_eq!(alone.members(), [1, 3, 7]);
    // And it says that its list is not the leader's, so that it gets that again.
    assert_eq!(alone.acknowledged(), MembershipVersion::default());
}

/// p1, which follows p3 and is connected with p7, whose address p2 had before. p7 is said to be in this
/// state.
fn follower_with_a_newcomer(state: State) -> (Alone, Peer) {
    let mut alone = Alone::following();
    let newcomer = Peer { address: address(2), ..peer(7) };
    alone.feed(Event::LinkUp(newcomer.clone()));
    for _ in 0..2 {
        alone.now += Settings::default().failure_timeout;
        alone.acknowledged();
    }
    alone.list(4, &[(newcomer.clone(), state)]);
    (alone, newcomer)
}

/// A connected member stays one while it counts as failed, too. There is no second connection that would make
/// it one again, and what it says would be dropped for good.
#[test]
fn a_connected_process_stays_a_member_though_it_counts_as_failed() {
    for former in [State::Alive, State::Failed] {
        let (mut alone, _) = follower_with_a_newcomer(State::Failed);
        alone.list(5, &[(peer(2), former)]);
        let told = alone.hear(7, 0, Body::LeaderQuery { list: ListWanted::Whole });
        assert!(matches!(told[..], [(7, Body::LeaderInfo { .. })]), "of a {former:?} one: {told:?}");
    }
}

/// A full table makes room for a live member by giving up a failed one, but none that is connected.
#[test]
fn a_full_table_gives_up_no_connected_member() {
    for (state, room) in [(State::Alive, false), (State::Failed, true)] {
        let (mut alone, newcomer) = follower_with_a_newcomer(State::Failed);
        let mut list: Vec<_> = (1001..1000 + MEMBERS_MAX - 3).map(|k| (peer(k), State::Alive)).collect();
        list.extend([(newcomer, State::Failed), (peer(1000), state)]);
        alone.list(5, &list);
        assert_eq!(alone.members().len(), MEMBERS_MAX);
        list.push((peer(2000), State::Alive));
        alone.list(6, &list);
        let members = alone.members();
        assert_eq!((members.len(), members.contains(&7)), (MEMBERS_MAX, true));
        assert_eq!((members.contains(&1000), members.contains(&2000)), (!room, room));
    }
}

/// A full process tells a newcomer so, and gives up a member that discovery does not name for one that it
/// names.
#[test]
fn a_full_process_turns_a_newcomer_away_unless_discovery_names_it() {
    for (named, refused) in [(None, 2000), (Some(2000), 1)] {
        let mut alone = Alone::leading(3);
        for k in (1..MEMBERS_MAX + 1).filter(|k| *k != 3) {
            alone.feed(Event::LinkUp(peer(k)));
        }
        let listed = (2..MEMBERS_MAX + 1).chain(named).map(address).collect();
        alone.feed(Event::Discovered { addresses: listed, complete: true });
        let now = Now::at(Moment(alone.now));
        let actions = alone.machine.handle(now, Event::LinkUp(peer(2000)));
        assert!(actions.contains(&Action::Refuse(id(refused))), "{named:?}: {actions:?}");
        let members = alone.members();
        assert_eq!((members.len(), members.contains(&2000)), (MEMBERS_MAX, named.is_some()));
    }
}

/// There is a cluster, and this process is no part of it.
#[test]
fn a_process_that_is_turned_away_does_not_lead_beside_the_cluster() {
    for connected in [false, true] {
        let mut alone = Alone::new(1);
        alone.feed(Event::Discovered { addresses: [address(2)].into(), complete: true });
        for _ in 0..30 {
            alone.feed(Event::LinkUp(peer(2)));
            alone.feed(Event::TurnedAway);
            if !connected {
                alone.feed(Event::LinkDown { id: id(2), incarnation: Incarnation(1) });
            }
            alone.pass(ms(1_000));
        }
        let role = alone.machine.status().role;
        assert_eq!(role == Role::Asking, !connected, "{role:?}: another process is connected");
        alone.feed(Event::Crashed { id: id(2), incarnation: Incarnation(1) });
        alone.pass(ms(25_000));
        assert_eq!(alone.machine.status().role, Role::Leading, "no process refuses it any more");
    }
}

#[test]
fn a_list_sends_no_process_to_its_own_host_or_to_its_clouds_metadata() {
    let address = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
    for (text, named, dialled) in [
        ("198.18.0.9:4041", false, true),
        ("198.18.0.9:0", false, false),
        ("0.0.0.0:4041", false, false),
        ("127.0.0.1:22", false, false),
        ("[::1]:22", false, false),
        ("[::ffff:127.0.0.1]:22", false, false),
        ("169.254.169.254:80", false, false),
        ("[fe80::1]:80", false, false),
        ("224.0.0.1:80", false, false),
        ("[ff02::1]:80", false, false),
        ("[::ffff:224.0.0.1]:80", false, false),
        ("255.255.255.255:80", false, false),
        ("127.0.0.1:22", true, true),
        ("169.254.169.254:80", true, true),
    ] {
        let mut alone = Alone::new(1);
        let seed = if named { address(text) } else { peer(2).address };
        alone.feed(Event::Discovered { addresses: [seed].into(), complete: true });
        alone.feed(Event::LinkUp(peer(2)));
        let listed = Peer { address: address(text), ..peer(7) };
        let entries = [Entry { peer: listed, state: State::Alive }].into();
        let message = Message {
            epoch: Epoch(1),
            priority: Priority::DEFAULT,
            body: Body::LeaderInfo { leader: None, entries },
        };
        alone.feed(Event::Received { from: id(2), message });
        alone.feed(Event::LinkDown { id: id(2), incarnation: Incarnation(1) });
        assert_eq!(alone.sought.contains(&address(text)), dialled, "{text}, named: {named}");
    }
}

/// The leader's list holds a crashed process beside the one that has its address now, until the crashed one
/// is forgotten. The live one is a member all the same.
#[test]
fn a_dead_process_does_not_displace_the_one_that_has_its_address() {
    let mut alone = Alone::following();
    let successor = Peer { address: address(7), ..peer(2) };
    alone.list(4, &[(successor, State::Alive), (peer(7), State::Failed)]);
    assert_eq!(alone.members(), [1, 2, 3]);
}

/// The leader that hears from a member knows better than this process, which has not heard from it for long.
#[test]
fn a_failed_member_lives_again_when_the_leader_says_so() {
    let (mut alone, newcomer) = follower_with_a_newcomer(State::Failed);
    alone.list(5, &[(newcomer, State::Alive)]);
    let member = alone.machine.status().members.into_iter().find(|m| m.peer.id == id(7)).unwrap();
    assert_eq!(member.state, State::Alive);
}

/// A follower that has changed its list by itself, or went by a connection that is gone now, asks for the
/// leader's list. That may differ, and the leader would never send it again.
#[test]
fn the_leaders_list_is_asked_for_after_a_change_of_ones_own() {
    let (id, incarnation) = (id(7), Incarnation(1));
    let says = |body| Event::Received {
        from: id,
        message: Message { epoch: Epoch(1), priority: Priority::DEFAULT, body },
    };
    let changes = [
        Event::LinkDown { id, incarnation },
        Event::Refused(address(5)),
        Event::LinkUp(Peer { address: address(5), ..peer(6) }),
        says(Body::Leave { version: None, id }),
        says(Body::Resign { successor: None, leaving: true }),
    ];
    for change in changes {
        let (mut alone, newcomer) = follower_with_a_newcomer(State::Alive);
        let list = [(newcomer, State::Alive), (peer(5), State::Alive)];
        alone.list(5, &list);
        assert_eq!(alone.acknowledged(), version(5));
        alone.feed(change.clone());
        assert_eq!(alone.acknowledged(), MembershipVersion::default(), "after {change:?}");
        alone.list(5, &list[..1]);
        assert_eq!(alone.acknowledged(), version(5), "after {change:?}");
    }
}

/// Versions of two leaders of one epoch may have one number, and one may be followed again after others have
/// been believed.
#[test]
fn the_leaders_list_is_asked_for_when_one_is_followed_anew() {
    let mut alone = Alone::new(1);
    alone.feed(Event::LinkUp(peer(2)));
    alone.feed(Event::LinkUp(peer(3)));
    alone.hear(2, 1, Body::Coordinator { elected_at_ms: 0 });
    alone.hear(2, 1, Body::Membership { version: version(3), entries: [].into() });
    let beat = Body::Heartbeat { sequence: 9, pace: Pace::default() };
    let ack = Body::HeartbeatAck { sequence: 9, membership: MembershipVersion::default() };
    assert_eq!(alone.hear(3, 1, beat), [(3, Body::LeaderQuery { list: ListWanted::Whole }), (3, ack)]);
}

/// A follower acknowledges the heartbeats of the leader that it follows, and no others.
#[test]
fn a_heartbeat_of_another_process_is_not_acknowledged() {
    let mut alone = Alone::new(2);
    alone.feed(Event::LinkUp(peer(1)));
    alone.feed(Event::LinkUp(peer(3)));
    alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
    let beat = Body::Heartbeat { sequence: 9, pace: Pace::default() };
    let acknowledges =
        |sent: Vec<(usize, Body)>| sent.iter().any(|(_, body)| matches!(body, Body::HeartbeatAck { .. }));
    assert!(!acknowledges(alone.hear(1, 1, beat.clone())));
    assert!(acknowledges(alone.hear(3, 1, beat)));
}

/// A leader forgets a dead member once DNS has not named its address for a minute, or names it for another
/// process.
#[test]
fn a_dead_member_stays_while_dns_names_its_address() {
    for (named, taken_over, stays) in [(true, false, true), (false, false, false), (true, true, false)] {
        let mut leader = Alone::leading(9);
        let answer: BTreeSet<_> = named.then(|| address(1)).into_iter().chain([address(2)]).collect();
        leader.feed(Event::Discovered { addresses: answer.clone(), complete: true });
        leader.feed(Event::LinkUp(peer(1)));
        leader.feed(Event::LinkUp(peer(2)));
        leader.feed(Event::Crashed { id: id(1), incarnation: Incarnation(1) });
        if taken_over {
            leader.feed(Event::LinkUp(Peer { address: address(1), ..peer(7) }));
        }
        for _ in 0..2 * Settings::default().forget_after.as_secs() {
            leader.now += ms(1000);
            let membership = MembershipVersion::default();
            leader.hear(2, 1, Body::HeartbeatAck { sequence: 0, membership });
            leader.feed(Event::Discovered { addresses: answer.clone(), complete: true });
        }
        assert_eq!(leader.members().contains(&1), stays, "named: {named}, taken over: {taken_over}");
    }
}

/// The successor leads in a higher epoch. Another leader of the same one is none.
#[test]
fn a_leader_that_leaves_waits_for_a_higher_epoch() {
    let mut leader = Alone::leading(3);
    leader.feed(Event::LinkUp(peer(1)));
    leader.feed(Event::Stop);
    let mut ends = |epoch| {
        let body = Body::Coordinator { elected_at_ms: 0 };
        let event = Event::Received {
            from: id(1),
            message: Message { epoch: Epoch(epoch), priority: Priority::DEFAULT, body },
        };
        let actions = leader.machine.handle(Now::at(Moment(leader.now)), event);
        actions.contains(&Action::Exit)
    };
    assert_eq!((ends(1), ends(2)), (false, true));
}

/// A member speaks for itself, and only the leader for others.
#[test]
fn a_member_that_does_not_lead_removes_no_other() {
    let mut alone = Alone::following();
    alone.list(4, &[(peer(2), State::Alive), (peer(4), State::Alive)]);
    alone.feed(Event::LinkUp(peer(2)));
    alone.hear(2, 1, Body::Leave { version: None, id: id(4) });
    alone.hear(2, 1, Body::Leave { version: Some(version(5)), id: id(4) });
    assert_eq!(alone.members(), [1, 2, 3, 4]);
    alone.hear(3, 1, Body::Leave { version: Some(version(5)), id: id(4) });
    assert_eq!(alone.members(), [1, 2, 3]);
}

/// A follower that has missed a change keeps its version, so that the leader sends the whole list.
#[test]
fn a_change_that_is_out_of_step_is_not_taken() {
    let joined = |k| Entry { peer: peer(k), state: State::Alive };
    for missed in [4, 6] {
        let mut alone = Alone::following();
        alone.list(4, &[(peer(2), State::Alive)]);
        alone.hear(3, 1, Body::Join { version: version(missed), entry: joined(5) });
        alone.hear(3, 1, Body::Leave { version: Some(version(missed)), id: id(2) });
        assert_eq!((alone.members(), alone.acknowledged()), (vec![1, 2, 3], version(4)));
        alone.hear(3, 1, Body::Join { version: version(5), entry: joined(5) });
        assert_eq!((alone.members(), alone.acknowledged()), (vec![1, 2, 3, 5], version(5)));
    }
}

/// A peer may remember a later term of the leader than the leader does, which has lost its disk.
#[test]
fn a_leader_that_is_told_of_a_later_term_of_its_own_leads_above_it() {
    let mut leader = Alone::leading(3);
    leader.feed(Event::LinkUp(peer(1)));
    let incumbent = Incumbent { peer: peer(3), elected_at_ms: 0 };
    leader.hear(1, 7, Body::LeaderInfo { leader: Some(incumbent), entries: [].into() });
    assert_eq!((leader.machine.status().role, leader.machine.epoch()), (Role::Leading, Epoch(8)));
}

/// A process that never led has nothing to resign from.
#[test]
fn a_resignation_of_a_process_that_is_not_followed_changes_nothing() {
    let resign = |successor| Body::Resign { successor, leaving: false };
    let mut follower = Alone::following();
    follower.feed(Event::LinkUp(peer(2)));
    for successor in [None, Some(id(2)), Some(id(1))] {
        follower.hear(2, 9, resign(successor));
        let status = follower.machine.status();
        assert_eq!((status.role, follower.machine.epoch()), (Role::Following, Epoch(1)), "{successor:?}");
    }
    let mut leader = Alone::leading(3);
    leader.feed(Event::LinkUp(peer(2)));
    leader.hear(2, 9, resign(Some(id(2))));
    assert_eq!((leader.machine.status().role, leader.machine.epoch()), (Role::Leading, Epoch(1)));
    follower.hear(3, 1, resign(Some(id(1))));
    assert_eq!(follower.machine.status().role, Role::Leading, "the leader's own counts");
}

/// The budget is common to all processes: each can follow every other one, and none is used up.
#[test]
fn messages_raise_an_epoch_by_at_most_one_a_millisecond() {
    let always = Epoch::ALWAYS_PLAUSIBLE;
    for (epoch, seen, wall_ms, believed) in [
        (0, 0, 0, true),
        (always, 0, 0, true),
        (always + 1, 0, 0, false),
        (always + 1, 0, 1, true),
        (always + 1_800_000_000_000, 7, 1_800_000_000_000, true),
        (always + 1_800_000_000_001, 7, 1_800_000_000_000, false),
        // What a process has seen stays plausible when its wall clock is set back.
        (always + 1_800_000_000_000, always + 1_800_000_000_000, 0, true),
        (Epoch::MAX.0, 0, u64::MAX, true),
        (Epoch::MAX.0 + 1, 0, u64::MAX, false),
    ] {
        assert_eq!(Epoch(epoch).plausible(Epoch(seen), wall_ms), believed, "{epoch} {seen} {wall_ms}");
    }
    let mut follower = Alone::following();
    follower.hear(3, always + 1, Body::Coordinator { elected_at_ms: 0 });
    assert_eq!(follower.machine.epoch(), Epoch(1));
}

/// Two leaders have met: the lower one asks the higher one, and the higher one goes on above the newer epoch.
#[test]
fn of_two_leaders_the_higher_one_goes_on() {
    for (other, role) in [(5, Role::Asking), (2, Role::Leading)] {
        let mut leader = Alone::leading(3);
        leader.feed(Event::Discovered { addresses: [peer(1).address].into(), complete: true });
        leader.feed(Event::LinkUp(peer(1)));
        let incumbent = Incumbent { peer: peer(other), elected_at_ms: 0 };
        let sent = leader.hear(1, 7, Body::LeaderInfo { leader: Some(incumbent), entries: [].into() });
        assert_eq!(leader.machine.status().role, role);
        assert_eq!(
            sent.contains(&(other, Body::LeaderQuery { list: ListWanted::Whole })),
            role == Role::Asking,
            "{sent:?}"
        );
    }
}

/// A peer of a leader follows another leader of the same epoch. Both lead on until they are connected. Where
/// discovery names this leader, it names the other one, too.
#[test]
fn a_leader_learns_of_another_leader_of_its_epoch() {
    let table: [(&[usize], u64, &[usize]); 4] =
        [(&[1], 1, &[1, 3, 5]), (&[1], 0, &[1, 3]), (&[1, 3], 1, &[1, 3]), (&[1, 3, 5], 1, &[1, 3, 5])];
    for (discovered, epoch, members) in table {
        let mut leader = Alone::leading(3);
        let addresses = discovered.iter().map(|k| address(*k)).collect();
        leader.feed(Event::Discovered { addresses, complete: true });
        leader.feed(Event::LinkUp(peer(1)));
        let incumbent = Incumbent { peer: peer(5), elected_at_ms: 0 };
        leader.hear(1, epoch, Body::LeaderInfo { leader: Some(incumbent), entries: [].into() });
        assert_eq!(leader.members(), members, "{discovered:?}, epoch {epoch}");
        assert_eq!((leader.machine.status().role, leader.machine.epoch()), (Role::Leading, Epoch(1)));
    }
}

/// Only a lease ends by itself.
#[test]
fn a_leader_of_classic_has_no_last_moment() {
    assert_eq!(Alone::following().machine.status().valid_until, None);
}

/// A member that acknowledges from a later epoch may follow another leader: the leader asks it. One that
/// acknowledges from an earlier epoch hears of this one.
#[test]
fn a_leader_answers_an_acknowledgement_of_another_epoch() {
    let mut leader = Alone::new(3);
    leader.feed(Event::LinkUp(peer(1)));
    leader.hear(1, 1, Body::LeaderInfo { leader: None, entries: [].into() });
    leader.feed(Event::Timer(Timer::Margin));
    assert_eq!((leader.machine.status().role, leader.machine.epoch()), (Role::Leading, Epoch(2)));
    let acknowledge = || Body::HeartbeatAck { sequence: 0, membership: MembershipVersion::default() };
    assert_eq!(leader.hear(1, 3, acknowledge()), [(1, Body::LeaderQuery { list: ListWanted::Whole })]);
    assert_eq!(leader.hear(1, 1, acknowledge()), [(1, Body::Coordinator { elected_at_ms: 0 })]);
}

/// An acknowledgement is measured from the heartbeat that it names, also when later ones are on their way.
#[test]
fn a_round_trip_is_that_of_the_heartbeat_that_is_acknowledged() {
    let mut leader = Alone::leading(3);
    leader.feed(Event::LinkUp(peer(1)));
    let mut beats = Vec::new();
    for _ in 0..2 {
        leader.now = leader.due[&Timer::Heartbeat];
        for (_, body) in leader.feed(Event::Timer(Timer::Heartbeat)) {
            if let Body::Heartbeat { sequence, .. } = body {
                beats.push((sequence, leader.now));
            }
        }
    }
    leader.now += ms(10);
    for (sequence, sent) in beats.clone() {
        leader.hear(1, 1, Body::HeartbeatAck { sequence, membership: MembershipVersion::default() });
        assert_eq!(leader.machine.round_trip(id(1)), Some(leader.now - sent));
    }
    assert_eq!(beats.len(), 2);
}

/// A new incarnation of the leader, and a new process at its address, both show that the leader has gone.
#[test]
fn a_leader_with_a_successor_in_its_place_is_lost() {
    let former = peer(3);
    let new_incarnation = Peer { incarnation: Incarnation(former.incarnation.0 + 1), ..former.clone() };
    let new_tenant = Peer { address: former.address, ..peer(7) };
    for successor in [new_incarnation, new_tenant] {
        let mut alone = Alone::new(2);
        alone.feed(Event::LinkUp(former.clone()));
        alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
        assert!(alone.machine.status().leader.is_some());
        alone.feed(Event::LinkUp(successor.clone()));
        assert!(alone.machine.status().leader.is_none(), "after {successor:?}");
    }
}

/// The follower also asks again after a list that it does not agree with, even if it is the one that it had.
#[test]
fn a_list_that_is_not_agreed_with_is_asked_for_again() {
    let (mut alone, newcomer) = follower_with_a_newcomer(State::Failed);
    assert_eq!(alone.acknowledged(), version(4));
    alone.hear(7, 1, Body::LeaderQuery { list: ListWanted::Whole });
    alone.list(4, &[(newcomer.clone(), State::Failed)]);
    assert_eq!(alone.acknowledged(), MembershipVersion::default());
    alone.list(5, &[(newcomer, State::Alive)]);
    assert_eq!(alone.acknowledged(), version(5));
}

/// A transfer after which the incumbent leads again has failed, however it came to lead again: the next
/// attempt waits for twice the delay.
#[test]
fn a_transfer_that_ends_in_another_election_has_failed() {
    let mut alone = Alone::new(2);
    alone.feed(Event::LinkUp(peer(1)));
    alone.feed(Event::LinkUp(Peer { priority: Priority(200), ..peer(3) }));
    alone.hear(1, 0, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.hear(3, 0, Body::LeaderInfo { leader: None, entries: [].into() });
    alone.feed(Event::Crashed { id: id(3), incarnation: Incarnation(1) });
    alone.feed(Event::Timer(Timer::Margin));
    alone.feed(Event::LinkUp(Peer { priority: Priority(200), ..peer(3) }));
    for second in 1..=5 {
        alone.now = ms(1000) * second;
        alone.feed(Event::Turn);
    }
    let sent = alone.feed(Event::Timer(Timer::Preempt));
    assert_eq!(sent[0], (3, Body::Resign { successor: Some(id(3)), leaving: false }));
    // p3 does not lead, and p1 has lost its patience first.
    alone.now = ms(5100);
    alone.hear(1, 2, Body::Election);
    alone.now = ms(5400);
    alone.feed(Event::Timer(Timer::Answer));
    assert_eq!(alone.machine.status().role, Role::Leading);
    alone.hear(3, 2, Body::LeaderQuery { list: ListWanted::Whole });
    assert_eq!(alone.armed(Timer::Preempt), Some(ms(10_000)));
}

/// The leader has heard later than the others what its successor counts for: it may just have been
/// uncordoned. A follower that did not wait for it would lead the same epoch.
#[test]
fn a_successor_is_waited_for_whatever_it_counted_for() {
    let asked = vec![(2, Body::LeaderQuery { list: ListWanted::Whole })];
    for (priority, sends) in [(Priority::DEFAULT, vec![]), (Priority::NEVER, asked)] {
        let mut alone = Alone::new(4);
        alone.feed(Event::LinkUp(peer(3)));
        alone.feed(Event::LinkUp(Peer { priority, ..peer(2) }));
        alone.hear(3, 1, Body::Coordinator { elected_at_ms: 0 });
        let sent = alone.hear(3, 1, Body::Resign { successor: Some(id(2)), leaving: false });
        assert_eq!((sent, alone.machine.status().role), (sends, Role::Electing), "{priority:?}");
    }
}

/// Messages come over connections only: a process that is heard from is connected, and gets the leader's
/// heartbeats.
#[test]
fn a_leader_beats_to_every_process_it_hears_from() {
    let mut alone = Alone::new(3);
    alone.feed(Event::Discovered { addresses: [1, 3].map(|k| peer(k).address).into(), complete: true });
    alone.feed(Event::LinkUp(peer(1)));
    let entries = [Entry { peer: peer(2), state: State::Alive }].into();
    alone.hear(1, 0, Body::LeaderInfo { leader: None, entries });
    alone.now = ms(1000);
    alone.feed(Event::Timer(Timer::Margin));
    alone.hear(2, 1, Body::LeaderQuery { list: ListWanted::Whole });
    alone.now = ms(1250);
    let beats = alone.feed(Event::Timer(Timer::Heartbeat));
    let to: Vec<usize> =
        beats.iter().filter(|(_, b)| matches!(b, Body::Heartbeat { .. })).map(|(to, _)| *to).collect();
    assert_eq!(to, [1, 2]);
}
