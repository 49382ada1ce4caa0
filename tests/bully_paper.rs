//! The text this program was asked for from (tests/bully-readme.txt), statement by statement, held by
//! `--variant paper --preempt always`. Every test quotes what it holds; `every_statement_is_held` sees to it
//! that none is left out, and `quote` that none is misquoted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{
    Action, Body, Epoch, Event, Incarnation, Machine, Message, Moment, Now, Preempt, Priority, ProcessId,
    Role, Settings, State, Timer, Variant,
};
use std::collections::BTreeSet;
use std::time::Duration;
use support::network::{Effect, Rule};
use support::trace::Detail;
use support::world::{Options, World, address, id, number, peer};

const TEXT: &str = include_str!("bully-readme.txt");

/// The statement that a test holds.
fn quote(statement: &str) {
    assert!(TEXT.lines().any(|line| line == statement), "the text has no line {statement:?}");
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn settings() -> Settings {
    Settings { variant: Variant::Paper, preempt: Preempt::Always, ..Settings::default() }
}

/// n processes that follow the highest, in epoch 1.
fn cluster_with(n: usize, options: Options) -> World {
    let mut world = World::new(n, &settings(), options);
    for k in 1..=n {
        world.start(k, false);
    }
    world.run(ms(4000));
    assert_eq!(world.agreed(), Some((n, Epoch(1))));
    world.trace.detail = Detail::On;
    world
}

fn cluster(n: usize) -> World {
    cluster_with(n, Options::default())
}

/// The messages of a name that were sent, as "p1 -> p2".
fn sent(world: &World, name: &str) -> Vec<String> {
    let lines = world.trace.lines.iter().filter(|line| line.contains(&format!("  {name}, epoch")));
    lines.map(|line| line[10..].split("  ").next().unwrap().to_string()).collect()
}

fn agree_within(world: &mut World, within: Duration) -> (usize, Epoch) {
    assert!(world.run_until(within, |w| w.agreed().is_some()), "{}", world.trace.lines.join("\n"));
    world.agreed().unwrap()
}

/// One process that knows p1 to p5 and follows p5 in epoch 1, driven by hand.
struct Alone {
    machine: Machine,
    now: Duration,
}

impl Alone {
    fn new(k: usize) -> Alone {
        let machine = Machine::new(settings(), "test".to_string(), peer(k), None);
        let mut alone = Alone { machine, now: ms(0) };
        alone.feed(Event::Start);
        // Discovery has answered, and names one.
        alone.feed(Event::Discovered { addresses: [peer(5).address].into(), complete: true });
        for other in (1..=5).filter(|o| *o != k) {
            alone.feed(Event::LinkUp(peer(other)));
        }
        if k != 5 {
            alone.hear(5, 1, Body::Coordinator { elected_at_ms: 0 });
        }
        alone
    }

    fn feed(&mut self, event: Event) -> Vec<Action> {
        self.machine.handle(Now::at(Moment(self.now)), event)
    }

    fn hear(&mut self, from: usize, epoch: u64, body: Body) -> Vec<(usize, Body, Epoch)> {
        let message = Message { epoch: Epoch(epoch), priority: Priority::DEFAULT, body };
        sends(self.feed(Event::Received { from: id(from), message }))
    }

    fn crash_of_the_leader(&mut self) -> Vec<(usize, Body, Epoch)> {
        sends(self.feed(Event::Crashed { id: id(5), incarnation: Incarnation(1) }))
    }

    fn time_out(&mut self, timer: Timer) -> Vec<(usize, Body, Epoch)> {
        sends(self.feed(Event::Timer(timer)))
    }
}

/// What is sent, but for the list of members that comes with a Victory (note 7): it is none of the
/// algorithm's messages.
fn sends(actions: Vec<Action>) -> Vec<(usize, Body, Epoch)> {
    let sends = actions.into_iter().filter_map(|action| match action {
        Action::Send { to, message, .. } => Some((number(to), message.body, message.epoch)),
        _ => None,
    });
    let mut sends: Vec<_> = sends.collect();
    let victory_to: BTreeSet<usize> = sends
        .iter()
        .filter(|(_, body, _)| matches!(body, Body::Coordinator { .. }))
        .map(|(to, ..)| *to)
        .collect();
    sends.retain(|(to, body, _)| !(matches!(body, Body::Membership { .. }) && victory_to.contains(to)));
    sends
}

fn elections(to: &[usize], epoch: u64) -> Vec<(usize, Body, Epoch)> {
    to.iter().map(|k| (*k, Body::Election, Epoch(epoch))).collect()
}

fn coordinators(to: &[usize], epoch: u64) -> Vec<(usize, Body, Epoch)> {
    to.iter().map(|k| (*k, Body::Coordinator { elected_at_ms: 0 }, Epoch(epoch))).collect()
}

// Assumptions.

/// > 1. The system is synchronous.
///
/// Delays are bounded, and while they keep to the bound (half the answer timeout for a message and its
/// answer), an election is over within one answer timeout and the delays of a notice, an Election and a
/// Coordinator.
#[test]
fn assumption_1_synchronous() {
    quote("1. The system is synchronous.");
    for delay in [1, 20, 60] {
        let mut world = cluster_with(5, Options { delay: ms(delay), ..Options::default() });
        world.crash(5);
        let took = settings().answer_timeout + ms(delay) * 3;
        assert_eq!(agree_within(&mut world, took), (4, Epoch(2)), "with a delay of {delay} ms");
    }
}

/// > 2. Processes may fail at any time, including during execution of the algorithm.
///
/// The next best process fails at every moment of the election that it would win.
#[test]
fn assumption_2_failures_at_any_time() {
    quote("2. Processes may fail at any time, including during execution of the algorithm.");
    for evidence in [true, false] {
        for after in (0..400).step_by(7) {
            let mut world = cluster_with(5, Options { evidence, ..Options::default() });
            world.crash(5);
            world.run(ms(after) + if evidence { ms(0) } else { settings().failure_timeout - ms(50) });
            world.crash(4);
            let (leader, epoch) = agree_within(&mut world, ms(6000));
            assert_eq!(leader, 3, "after {after} ms");
            assert!(epoch >= Epoch(2));
        }
    }
}

/// > 3. There is a failure detector which detects failed processes.
#[test]
fn assumption_3_failure_detector() {
    quote("3. There is a failure detector which detects failed processes.");
    let mut world = cluster(3);
    // Nothing closes, nothing refuses: only silence.
    world.vanish(1);
    world.run(settings().failure_timeout + settings().heartbeat * 2);
    let of = |w: &World, k: usize| w.status(3).members.iter().find(|m| m.peer.id == id(k)).unwrap().state;
    assert_eq!((of(&world, 1), of(&world, 2)), (State::Failed, State::Alive));
    world.vanish(3);
    world.run(settings().failure_timeout + settings().heartbeat + ms(10));
    assert_eq!(world.status(2).members.iter().filter(|m| m.state == State::Failed).count(), 2);
}

/// > 4. A process fails by stopping and returns from failure by restarting.
#[test]
fn assumption_4_returns_by_restarting() {
    quote("4. A process fails by stopping and returns from failure by restarting.");
    let mut world = cluster(3);
    world.crash(2);
    world.run(ms(100));
    let stopped = world.trace.lines.len();
    world.run(ms(5000));
    assert!(!world.trace.lines[stopped..].iter().any(|line| line[10..].starts_with("p2 ")), "it has stopped");
    world.start(2, true);
    world.run(ms(1500));
    assert_eq!(world.agreed(), Some((3, Epoch(1))), "it is back, and its being away has changed nothing");
    let known = world.status(3).members.into_iter().find(|m| m.peer.id == id(2)).unwrap();
    assert_eq!((known.state, known.peer.incarnation), (State::Alive, Incarnation(2)));
}

/// > 5. Message delivery between processes is reliable.
///
/// The machine profits from that and does not depend on it: one lost message of any kind changes nothing for
/// longer than the timeout that guards it.
#[test]
fn assumption_5_reliable_delivery() {
    quote("5. Message delivery between processes is reliable.");
    for name in ["election", "answer", "coordinator"] {
        for (from, to) in [(1, 2), (1, 4), (3, 4), (2, 1), (4, 1), (4, 3)] {
            let mut world = cluster(5);
            world.next(Rule { from, to, name: name.to_string(), effect: Effect::Drop });
            world.crash(5);
            let (leader, epoch) = agree_within(&mut world, ms(3000));
            world.run(ms(3000));
            assert_eq!(
                world.agreed().map(|a| a.0),
                Some(4),
                "{name} p{from} -> p{to} lost, first {leader} {epoch}"
            );
        }
    }
}

/// > 6. Each process knows its own process id and address, and that of every other process.
#[test]
fn assumption_6_everybody_knows_everybody() {
    quote("6. Each process knows its own process id and address, and that of every other process.");
    let world = cluster(5);
    for k in 1..=5 {
        let status = world.status(k);
        assert_eq!((status.me.id, status.me.address), (id(k), address(k)));
        let mut known: Vec<_> = status.members.iter().map(|m| (m.peer.id, m.peer.address)).collect();
        known.sort();
        assert_eq!(known, (1..=5).map(|k| (id(k), address(k))).collect::<Vec<_>>());
    }
}

// Message types.

/// > 1. Election Message: Sent to announce election
#[test]
fn message_1_election() {
    quote("1. Election Message: Sent to announce election");
    let mut world = cluster(3);
    world.crash(3);
    world.run(ms(100));
    assert!(sent(&world, "election").contains(&"p1 -> p2".to_string()));
    assert_eq!(world.status(1).role, Role::Electing);
    assert_eq!(world.status(2).role, Role::Electing, "it has heard of it");
}

/// > 2. Answer (Alive) Message: Responds to the Election message
#[test]
fn message_2_answer() {
    quote("2. Answer (Alive) Message: Responds to the Election message");
    let mut world = cluster(3);
    world.crash(3);
    world.run(ms(1000));
    assert_eq!(sent(&world, "answer"), ["p2 -> p1"], "from the live one of the two that were asked");
}

/// > 3. Coordinator (Victory) Message: Sent by winner of the election to announce victory
#[test]
fn message_3_coordinator() {
    quote("3. Coordinator (Victory) Message: Sent by winner of the election to announce victory");
    let mut world = cluster(4);
    world.crash(4);
    world.run(ms(1000));
    let mut said = sent(&world, "coordinator");
    said.dedup();
    assert!(said.iter().all(|line| line.starts_with("p3 -> ")), "{said:?}");
    assert!(said.contains(&"p3 -> p1".to_string()) && said.contains(&"p3 -> p2".to_string()), "{said:?}");
}

// The algorithm.

/// > When a process P recovers from failure, or the failure detector indicates that the current coordinator
/// > has failed, P performs the following actions:
#[test]
fn the_two_occasions() {
    quote(
        "When a process P recovers from failure, or the failure detector indicates that the current \
         coordinator has failed, P performs the following actions:",
    );
    let mut world = cluster(3);
    world.crash(3);
    assert_eq!(agree_within(&mut world, ms(1000)), (2, Epoch(2)), "the coordinator failed");
    world.start(3, true);
    world.run(ms(1000));
    assert_eq!(world.agreed(), Some((3, Epoch(3))), "it recovered");
    world.crash(1);
    world.run(ms(10_000));
    assert_eq!(world.agreed(), Some((3, Epoch(3))), "another's failure is no occasion");
}

/// > 1. If P has the highest process id, it sends a Victory message to all other processes and becomes the
/// > new Coordinator. Otherwise, P broadcasts an Election message to all other processes with higher process
/// > IDs than itself.
#[test]
fn rule_1() {
    quote(
        "1. If P has the highest process id, it sends a Victory message to all other processes and becomes \
         the new Coordinator. Otherwise, P broadcasts an Election message to all other processes with higher \
         process IDs than itself.",
    );
    let mut highest = Alone::new(5);
    let said = highest.time_out(Timer::Margin);
    assert_eq!(said, coordinators(&[1, 2, 3, 4], 1));
    assert_eq!(highest.machine.status().role, Role::Leading);
    for k in 1..=4 {
        let mut other = Alone::new(k);
        let higher: Vec<usize> = (k + 1..=5).collect();
        assert_eq!(other.crash_of_the_leader(), elections(&higher, 2), "all of them, the dead one too");
    }
}

/// Rule 1 again, for a process that recovers while another leads.
#[test]
fn rule_1_for_the_highest_that_recovers() {
    let mut world = cluster(5);
    world.crash(5);
    agree_within(&mut world, ms(1000));
    world.trace.lines.clear();
    world.start(5, true);
    assert!(world.run_until(ms(300), |w| w.agreed() == Some((5, Epoch(3)))));
    assert_eq!(sent(&world, "election"), Vec::<String>::new());
    for k in 1..=4 {
        assert!(sent(&world, "coordinator").contains(&format!("p5 -> p{k}")));
    }
}

/// > 2. If P receives no Answer after sending an Election message, then it broadcasts a Victory message to
/// > all other processes and becomes the Coordinator.
#[test]
fn rule_2() {
    quote(
        "2. If P receives no Answer after sending an Election message, then it broadcasts a Victory message \
         to all other processes and becomes the Coordinator.",
    );
    let mut alone = Alone::new(3);
    assert_eq!(alone.crash_of_the_leader(), elections(&[4, 5], 2));
    alone.now += settings().answer_timeout;
    // To the processes, that is: not to those that have just been found to be none.
    assert_eq!(alone.time_out(Timer::Answer), coordinators(&[1, 2], 2));
    assert_eq!(alone.machine.status().role, Role::Leading);
}

/// > 3. If P receives an Answer from a process with a higher ID, it sends no further messages for this
/// > election and waits for a Victory message. (If there is no Victory message after a period of time, it
/// > restarts the process at the beginning.)
#[test]
fn rule_3() {
    quote(
        "3. If P receives an Answer from a process with a higher ID, it sends no further messages for this \
         election and waits for a Victory message. (If there is no Victory message after a period of time, \
         it restarts the process at the beginning.)",
    );
    let mut alone = Alone::new(3);
    alone.crash_of_the_leader();
    assert_eq!(alone.hear(4, 2, Body::Answer), []);
    alone.now += settings().answer_timeout;
    assert_eq!(alone.time_out(Timer::Answer), [], "that timeout does not count any more");
    alone.now += ms(500);
    assert_eq!(
        alone.time_out(Timer::Coordinator),
        elections(&[4, 5], 3),
        "at the beginning, in a round of its own"
    );

    let mut bullied = Alone::new(3);
    bullied.crash_of_the_leader();
    assert_eq!(bullied.hear(1, 2, Body::Answer), [], "an Answer from a lower process says nothing");
    bullied.now += settings().answer_timeout;
    assert_eq!(bullied.time_out(Timer::Answer), coordinators(&[1, 2], 2));
}

/// > 4. If P receives an Election message from another process with a lower ID it sends an Answer message
/// > back and starts the election process at the beginning, by sending an Election message to higher-numbered
/// > processes.
#[test]
fn rule_4() {
    quote(
        "4. If P receives an Election message from another process with a lower ID it sends an Answer \
         message back and starts the election process at the beginning, by sending an Election message to \
         higher-numbered processes.",
    );
    let mut alone = Alone::new(3);
    let mut expected = vec![(1, Body::Answer, Epoch(2))];
    expected.extend(elections(&[4, 5], 2));
    assert_eq!(alone.hear(1, 2, Body::Election), expected);
    // Once: a process that is in that election already only answers, or elections would grow as 2^(n-2).
    assert_eq!(alone.hear(2, 2, Body::Election), [(2, Body::Answer, Epoch(2))]);
    assert_eq!(alone.hear(4, 2, Body::Election), [], "from a higher one, which needs no answer");

    let mut highest = Alone::new(5);
    let mut expected = vec![(2, Body::Answer, Epoch(1))];
    expected.extend(coordinators(&[1, 2, 3, 4], 1));
    assert_eq!(highest.hear(2, 1, Body::Election), expected, "rule 1 for the highest");
}

/// > 5. If P receives a Coordinator message, it treats the sender as the coordinator.
#[test]
fn rule_5() {
    quote("5. If P receives a Coordinator message, it treats the sender as the coordinator.");
    let mut alone = Alone::new(2);
    assert_eq!(alone.hear(4, 2, Body::Coordinator { elected_at_ms: 7 }), []);
    let status = alone.machine.status();
    assert_eq!((status.role, status.epoch), (Role::Following, Epoch(2)));
    assert_eq!(status.leader.unwrap().peer, peer(4));
    // But for a stale one, which is told the leader,
    let said = alone.hear(3, 1, Body::Coordinator { elected_at_ms: 7 });
    assert!(
        matches!(&said[..], [(3, Body::LeaderInfo { leader: Some(l), .. }, Epoch(2))] if l.peer == peer(4))
    );
    // and one of a process that this one outranks, which it bullies with a higher epoch.
    assert_eq!(alone.hear(1, 3, Body::Coordinator { elected_at_ms: 7 }), elections(&[3, 4, 5], 4));
}

// Implementation notes.

/// > 1. Let process ID be a Type 4 UUID. Note that UUIDs will need to be comparable.
#[test]
fn note_1_ids_are_comparable_uuids() {
    quote("1. Let process ID be a Type 4 UUID. Note that UUIDs will need to be comparable.");
    let mut ids: Vec<ProcessId> = (0..100).map(|_| ProcessId(uuid::Uuid::new_v4())).collect();
    ids.sort();
    assert!(ids.iter().all(|id| id.0.get_version_num() == 4));
    assert!(ids.windows(2).all(|two| two[0].0.as_bytes() < two[1].0.as_bytes()));
    assert!((1..=100).all(|k| id(k).0.get_version_num() == 4 && id(k) < id(k + 1)), "those of the tests too");
}

/// > 2. As an invariant, the process ID does not change during the lifetime of a process.
#[test]
fn note_2_the_id_does_not_change() {
    quote("2. As an invariant, the process ID does not change during the lifetime of a process.");
    let mut world = cluster(3);
    world.crash(3);
    for _ in 0..100 {
        world.run(ms(20));
        assert_eq!((world.status(1).me.id, world.status(2).me.id), (id(1), id(2)));
    }
    world.start(3, true);
    assert_eq!(world.status(3).me.id, id(3));
    assert_eq!(world.node(3).stored.as_ref().unwrap().id, id(3), "nor, with a record, over restarts");
}

/// > 3. The lifetime of a process will be denoted by an epoch stamped on all the members in a cluster.
#[test]
fn note_3_the_epoch_is_stamped_on_all_members() {
    quote(
        "3. The lifetime of a process will be denoted by an epoch stamped on all the members in a cluster.",
    );
    let mut world = cluster(4);
    world.trace.detail = Detail::Heartbeats;
    world.crash(4);
    agree_within(&mut world, ms(1000));
    world.run(ms(1000));
    assert!((1..=3).all(|k| world.status(k).epoch == Epoch(2)));
    let mut messages = world.trace.lines.iter().filter(|line| line.contains(" -> ")).peekable();
    assert!(messages.peek().is_some());
    assert!(messages.all(|line| line.ends_with(", epoch 1") || line.ends_with(", epoch 2")));
}

/// > 4. From leader election to leader death, the cluster's epoch does not change. A new round bumps the
/// > cluster's epoch.
#[test]
fn note_4_the_epoch_of_a_leadership() {
    quote(
        "4. From leader election to leader death, the cluster's epoch does not change. A new round bumps the \
         cluster's epoch.",
    );
    let mut world = cluster(5);
    world.crash(1);
    world.run(ms(3000));
    world.start(1, true);
    world.run(ms(3000));
    world.crash(2);
    world.start(2, false);
    world.run(ms(60_000));
    assert_eq!(world.agreed(), Some((5, Epoch(1))), "while the leader lives");
    for (round, leader) in [(2, 4), (3, 3), (4, 2)] {
        world.crash(leader + 1);
        assert_eq!(agree_within(&mut world, ms(1000)), (leader, Epoch(round)));
        world.run(ms(3000));
        assert_eq!(world.agreed(), Some((leader, Epoch(round))));
    }
}

/// > 5. For improved reliability (a stretch goal), metadata of cluster members, leadership, epochs are/can be
/// > saved in persistent storage.
#[test]
fn note_5_members_leader_and_epoch_are_kept() {
    quote(
        "5. For improved reliability (a stretch goal), metadata of cluster members, leadership, epochs \
         are/can be saved in persistent storage.",
    );
    let mut world = cluster(3);
    for k in [1, 2, 3] {
        world.crash(k);
    }
    let kept = world.node(1).stored.clone().unwrap();
    let known = world.node(1).known.clone().unwrap();
    assert_eq!((kept.epoch, known.leader.map(|p| p.id)), (Epoch(1), Some(id(3))));
    assert_eq!(known.members.iter().map(|e| e.peer.id).collect::<Vec<_>>(), [id(2), id(3)]);
    // Discovery is silent: the two find each other by what they kept, and go on above the epoch that they
    // kept.
    world.listed.clear();
    world.start(1, true);
    world.start(2, true);
    assert_eq!(agree_within(&mut world, ms(3000)), (2, Epoch(2)));
}

/// The sources of a part of the program, if it has been written.
fn sources(folder: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap_or_default()).collect()
}

/// > 6. Satisfying assumption #1: TCP is used as the transport.
#[test]
fn note_6_tcp() {
    quote("6. Satisfying assumption #1: TCP is used as the transport.");
    let transport = sources("transport");
    assert!(!transport.contains("UdpSocket") && !transport.contains("DGRAM"));
    assert!(transport.contains("TcpStream") || transport.contains("Not written yet"));
}

/// > 7. Satisfying assumption #2,6: addition/removal of cluster members will be broadcasted to all processes
/// > participating in leader election.
#[test]
fn note_7_membership_is_broadcast() {
    quote(
        "7. Satisfying assumption #2,6: addition/removal of cluster members will be broadcasted to all \
         processes participating in leader election.",
    );
    let mut world = cluster(4);
    // Only the leader and the new process itself look it up.
    let listed = world.listed.clone();
    world.place(9, address(9), &settings());
    world.node_mut(9).priority = bellwether::election::Priority(50);
    world.listed = [address(4)].into();
    world.start(9, false);
    world.run(ms(200));
    for k in 1..=4 {
        assert!(world.status(k).members.iter().any(|m| m.peer.id == id(9)), "p{k} knows p9");
    }
    assert!((1..=3).all(|k| world.trace.lines.iter().any(|l| l.contains(&format!("p4 -> p{k}  join")))));
    world.listed = listed;
    world.stop(9);
    world.run(ms(200));
    for k in 1..=4 {
        assert!(!world.status(k).members.iter().any(|m| m.peer.id == id(9)), "p{k} knows no p9 any more");
    }
    assert!((1..=3).all(|k| world.trace.lines.iter().any(|l| l.contains(&format!("p4 -> p{k}  leave")))));
}

/// > 8. Satisfying assumption #3: a heartbeat-based failure detector is provided.
#[test]
fn note_8_heartbeats() {
    quote("8. Satisfying assumption #3: a heartbeat-based failure detector is provided.");
    let mut world = cluster_with(3, Options { evidence: false, ..Options::default() });
    let before = world.sent_of(&["heartbeat"]);
    world.run(settings().heartbeat * 10);
    assert_eq!(world.sent_of(&["heartbeat"]) - before, 20, "to each of the two, once an interval");
    world.pause(3);
    world.run(settings().failure_timeout - settings().heartbeat - ms(10));
    assert_eq!(world.agreed_among(&[1, 2]), None, "p3 is none of them, but");
    assert_eq!(world.status(1).leader.unwrap().peer.id, id(3), "no silence is too long yet");
    world.run(settings().heartbeat + settings().answer_timeout + ms(20));
    assert_eq!(world.agreed(), Some((2, Epoch(2))));
}

/// > 9. Satisfying assumption #4: processes obey fail-stop maxim.
///
/// A process that finds its own state or surroundings broken stops, here with a panic, and does nothing any
/// more.
#[test]
fn note_9_fail_stop() {
    quote("9. Satisfying assumption #4: processes obey fail-stop maxim.");
    let mut alone = Alone::new(3);
    alone.now = ms(100);
    alone.feed(Event::Turn);
    alone.now = ms(50);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| alone.feed(Event::Turn)));
    assert!(broken.is_err(), "a clock that goes back");
    let mut twice = Alone::new(3);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| twice.feed(Event::Start)));
    assert!(broken.is_err(), "a process that starts twice");
}

/// > 10. Satisfying assumption #5: Blocking I/O is used in conjunction with TCP as the transport.
#[test]
fn note_10_blocking_io() {
    quote("10. Satisfying assumption #5: Blocking I/O is used in conjunction with TCP as the transport.");
    let manifest = include_str!("../Cargo.toml");
    for runtime in ["tokio", "async-std", "smol", "futures", "mio "] {
        assert!(!manifest.contains(runtime), "{runtime}");
    }
    for folder in ["transport", "node", "http", "net"] {
        let text = sources(folder);
        assert!(!text.contains("async fn") && !text.contains(".await"), "{folder}");
    }
}

/// No numbered statement of the text is without a test that quotes it.
#[test]
fn every_statement_is_held() {
    // A string that goes on in the next line is one string.
    let tests: String = include_str!("bully_paper.rs").split("\\\n").map(str::trim_start).collect();
    let numbered = |line: &&str| line.chars().next().is_some_and(|c| c.is_ascii_digit());
    let statements: Vec<&str> = TEXT.lines().filter(numbered).collect();
    assert_eq!(statements.len(), 6 + 3 + 5 + 10);
    for statement in statements {
        let quoted = tests.contains(&format!("\"{statement}\""));
        assert!(quoted, "no test quotes {statement:?}");
    }
}
