//! The real driver, turn by turn.

use super::*;
use crate::base::boottime;
use crate::election::{
    AnnouncedValues, Epoch, HoldOutcome, Incarnation, Incumbent, KnownPeers, ListWanted, MembershipVersion,
    Pace, Peer, Priority, ProcessId, Safety, Settings,
};
use crate::http::Source;
use crate::node::published_state::Answers;
use crate::{discovery, transport};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{channel, sync_channel};
use tempfile::TempDir;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(10);

/// The names of the messages that were handed to the transport, and whether a change of the leader had been
/// noted before each.
#[derive(Clone)]
struct Sent {
    messages: Arc<Mutex<Vec<(&'static str, bool)>>>,
    changes_noted: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Sent {
    fn take(&self) -> Vec<&'static str> {
        self.take_with_notes().into_iter().map(|(name, _)| name).collect()
    }

    fn take_with_notes(&self) -> Vec<(&'static str, bool)> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }
}

impl transport::Counts for Sent {
    fn sent(&self, name: &'static str) {
        self.messages.lock().unwrap().push((name, (self.changes_noted)()));
    }
    fn received(&self, _: &'static str) {}
    fn unknown_frame(&self) {}
    fn refused(&self) {}
    fn unauthenticated(&self) {}
    fn peer_keys(&self, _: &crate::channel::Keys) {}
    fn peer_keys_unusable(&self) {}
    fn links(&self, _: crate::transport::LinkCounts) {}
}

/// Process k, which listens nowhere.
fn peer(k: u8) -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(k.into())),
        incarnation: Incarnation(1),
        name: format!("p{k}"),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, k.into())),
        priority: Priority::DEFAULT,
        revision: String::new(),
    }
}

/// The driver of a process without peers, the flag that stops it, and what it sends.
fn driver(settings: Settings, state: Option<State>) -> (Driver, Arc<Stop>, Sent) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let me = Peer { address: listener.local_addr().unwrap(), ..peer(1) };
    let second = Duration::from_secs(1);
    let machine = Machine::new(settings.clone(), "c".to_owned(), me.clone(), None);
    let reach = transport::TransportSettings {
        cluster: "c".to_owned(),
        safety: crate::wire::SafetyCode::Classic,
        me,
        announce: AnnouncedValues::default(),
        credentials: Arc::new(crate::channel::Credentials::none()),
        budget: crate::base::Budget::new(8 << 20),
        dial_timeout: second,
        unacknowledged_max: second,
    };
    let metrics = crate::telemetry::Metrics::new("c");
    let (counts, status) = (metrics.clone(), machine.status());
    let changes_noted = move || {
        let text = counts.encode(&status, Moment::default(), Moment::default());
        let mut changes = text.lines().filter(|line| line.starts_with("bellwether_leader_changes_total{"));
        changes.any(|line| !line.ends_with(" 0"))
    };
    let sent = Sent { messages: Arc::default(), changes_noted: Arc::new(changes_noted) };
    let transport = Transport::start(reach, listener, Arc::new(|_| ()), Arc::new(sent.clone())).unwrap();
    let look = discovery::DiscoverySettings {
        service: None,
        peers: Vec::new(),
        peer_port: 4041,
        refresh: second,
        refresh_hurried: second,
    };
    let discovery = discovery::spawn(look, |_| ()).unwrap();
    let published_state = Arc::new(PublishedState::new(
        machine.status(),
        crate::base::Clock::new(crate::base::Reading::take()),
        metrics.clone(),
    ));
    let stop = Arc::new(Stop::default());
    let flag = Arc::clone(&stop);
    let driver = Driver::new(machine, state, transport, published_state, discovery, flag, &settings);
    (driver, stop, sent)
}

/// The state in this folder, with a thread that writes known peers as `write` does.
fn state(
    dir: &Path,
    write: impl FnMut(&KnownPeers) -> Result<(), crate::store::PeersError> + Send + 'static,
) -> State {
    State { store: Store::open(dir).unwrap().0, peers: PeersWriter::spawn(write).unwrap() }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

impl Driver {
    fn answers(&self) -> Answers {
        let credentials = Arc::new(crate::channel::Credentials::none());
        Answers {
            state: Arc::clone(&self.published_state),
            credentials,
            applications: None,
            election: String::new(),
        }
    }

    fn snapshot(&self) -> crate::http::Snapshot {
        self.answers().snapshot()
    }

    /// Turns as by itself when no input comes, until this holds.
    fn turn_until(&mut self, what: &str, holds: impl Fn(&Driver) -> bool) {
        let (_sender, inputs) = sync_channel::<Input>(1);
        let mut patience = Patience::default();
        let deadline = boottime().plus(PATIENCE);
        while !holds(self) {
            assert!(boottime() < deadline, "in time: {what}");
            let (next, turn_every) = (self.timers.next(), self.turn_every);
            let input = patience.next_input(&inputs, || self.fast(), next, turn_every);
            assert!(input.is_none(), "nothing comes");
            let event = self.timer();
            assert!(!self.turn(event).unwrap(), "it goes on");
        }
    }

    fn leads(&self) -> bool {
        let snapshot = self.snapshot();
        snapshot.status.leads(snapshot.now, snapshot.turned)
    }
}

/// A leader's first message. It changes the epoch, names the leader, and is answered; by itself it is no
/// reason to publish.
fn heartbeat() -> Event {
    received(Body::Heartbeat { sequence: 1, pace: Pace::default() })
}

/// Process 2 says so, in epoch 5.
fn received(body: Body) -> Event {
    let message = Message { epoch: Epoch(5), priority: Priority::DEFAULT, body };
    Event::Received { from: peer(2).id, message }
}

/// Discovery has answered, and names no peer.
fn no_peers() -> Event {
    Event::Discovered { addresses: BTreeSet::new(), complete: true }
}

/// One voter, with times that are short enough to be waited for.
fn lone_voter() -> Settings {
    let ms = Duration::from_millis;
    Settings {
        safety: Safety::Majority { voters: [peer(1).name].into() },
        founding: crate::election::Founding::Yes,
        heartbeat: ms(100),
        failure_timeout: ms(2000),
        stable_margin: ms(1),
        ..Settings::default()
    }
}

#[test]
fn a_full_queue_puts_no_resignation_off() {
    let (driver, stop, _) = driver(Settings::default(), None);
    let (sender, inputs) = sync_channel(4);
    let unused = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    for _ in 0..2 {
        let sender = sender.clone();
        std::thread::spawn(move || {
            while sender.send(Input::Report(Report::Event(Event::Refused(unused)))).is_ok() {}
        });
    }
    stop.asked.store(true, Ordering::Release);
    let (done, is_done) = channel();
    std::thread::spawn(move || done.send(driver.run(inputs).is_ok()));
    assert_eq!(is_done.recv_timeout(PATIENCE), Ok(true));
}

#[test]
fn nothing_is_sent_and_nothing_published_before_the_record_is_durable() {
    let dir = folder();
    let (mut driver, _, sent) = driver(Settings::default(), Some(state(dir.path(), |_| Ok(()))));
    driver.turn(Event::Start).unwrap();
    driver.turn(Event::LinkUp(peer(2))).unwrap();
    assert_eq!(sent.take(), ["leader_query"]);
    let before = driver.snapshot();
    // No record can be written any more.
    fs::remove_file(dir.path().join("bellwether.record.tmp")).unwrap();
    fs::create_dir(dir.path().join("bellwether.record.tmp")).unwrap();
    let Err(DriverError::Save(_)) = driver.turn(heartbeat()) else { panic!("it goes on without its record") };
    assert!(driver.machine.status().leader.is_some(), "it would have followed, and said so");
    assert_eq!(sent.take(), [""; 0]);
    let after = driver.snapshot();
    assert!(Arc::ptr_eq(&before.status, &after.status), "a status was published");
    assert_eq!(before.turned, after.turned, "a turn was told of");
}

#[test]
fn what_depends_on_the_record_follows_when_it_is_durable() {
    let dir = folder();
    let (mut driver, _, sent) = driver(Settings::default(), Some(state(dir.path(), |_| Ok(()))));
    driver.turn(Event::Start).unwrap();
    driver.turn(Event::LinkUp(peer(2))).unwrap();
    sent.take();
    driver.turn(heartbeat()).unwrap();
    assert!(sent.take().contains(&"heartbeat_ack"));
    assert_eq!(driver.snapshot().status.epoch, Epoch(5));
    drop(driver);
    assert_eq!(Store::open(dir.path()).unwrap().1.unwrap().epoch, Epoch(5));
}

/// A line wakes the thread that writes it: time that a failover would take longer.
#[test]
fn no_message_waits_for_a_line_of_the_log() {
    let (mut driver, _, sent) = driver(Settings::default(), None);
    driver.turn(Event::Start).unwrap();
    driver.turn(Event::LinkUp(peer(2))).unwrap();
    sent.take();
    driver.turn(heartbeat()).unwrap();
    assert!(sent.take_with_notes().contains(&("heartbeat_ack", false)));
    driver.turn(heartbeat()).unwrap();
    assert!(sent.take_with_notes().contains(&("heartbeat_ack", true)), "the leader was noted meanwhile");
}

/// A pause in the middle of a turn then counts as one. What a turn arms is due from its beginning, which
/// shows it.
#[test]
fn a_turn_is_stamped_with_its_beginning() {
    let settings = Settings::default();
    let (mut driver, ..) = driver(settings.clone(), None);
    let before = boottime();
    driver.turn(Event::Start).unwrap();
    let turned = driver.snapshot().turned;
    assert!(before <= turned);
    assert_eq!(driver.timers.next(), Some((Timer::Margin, turned.plus(settings.stable_margin))));
}

/// A turn that comes before the next timer is due is the passing of time.
#[test]
fn a_timer_fires_when_it_is_due_and_only_once() {
    let (mut driver, ..) = driver(Settings::default(), None);
    let now = driver.fast();
    driver.timers.arm(Timer::Margin, now, PATIENCE);
    assert!(matches!(driver.timer(), Event::Turn));
    driver.timers.arm(Timer::Margin, now, Duration::ZERO);
    assert!(matches!(driver.timer(), Event::Timer(Timer::Margin)));
    assert!(matches!(driver.timer(), Event::Turn));
}

#[test]
fn reports_and_found_addresses_become_events() {
    let (mut driver, ..) = driver(Settings::default(), None);
    let address = peer(2).address;
    let refused = driver.event(Input::Report(Report::Event(Event::Refused(address))));
    assert!(matches!(refused, Some(Event::Refused(a)) if a == address));
    let found = driver.event(Input::Found { addresses: [address].into(), complete: true });
    assert!(
        matches!(found, Some(Event::Discovered { addresses, complete: true }) if addresses.contains(&address))
    );
    let none = driver.event(Input::Found { addresses: BTreeSet::new(), complete: false });
    assert!(matches!(none, Some(Event::Discovered { addresses, .. }) if addresses.is_empty()));
    assert!(driver.transport.names(address), "an answer that names none takes back nothing");
    assert!(driver.event(Input::Wake).is_none());
}

/// Discovery looks more often while this process knows no live peer, or starts and is not named.
#[test]
fn discovery_is_told_whether_to_hurry() {
    let (mut driver, ..) = driver(Settings::default(), None);
    let mut told = Vec::new();
    let Peer { id, incarnation, .. } = peer(2);
    let addresses = [driver.machine.me().address, peer(2).address].into();
    let named = Event::Discovered { addresses, complete: true };
    let crash = Event::Crashed { id, incarnation };
    for event in [Event::Start, Event::LinkUp(peer(2)), named, Event::Turn, crash] {
        driver.turn(event).unwrap();
        told.push(driver.hurried);
    }
    assert_eq!(told, [true, true, false, false, true]);
}

#[test]
fn the_round_trip_of_each_acknowledged_heartbeat_is_counted() {
    let ms = Duration::from_millis;
    let settings = Settings { heartbeat: ms(100), stable_margin: ms(1), ..Settings::default() };
    let (mut driver, _, sent) = driver(settings, None);
    driver.turn(Event::Start).unwrap();
    driver.turn(no_peers()).unwrap();
    driver.turn_until("it leads", Driver::leads);
    driver.turn(Event::LinkUp(peer(2))).unwrap();
    sent.take();
    driver.turn_until("a heartbeat", |_| sent.take().contains(&"heartbeat"));
    let epoch = driver.snapshot().status.epoch;
    let mut hear = |body| {
        let message = Message { epoch, priority: Priority::DEFAULT, body };
        driver.turn(Event::Received { from: peer(2).id, message }).unwrap();
        let metrics = driver.answers().metrics();
        let count = metrics.lines().find(|line| line.starts_with("bellwether_heartbeat_rtt_seconds_count"));
        count.unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(hear(Body::LeaderQuery { list: ListWanted::Whole }), "0");
    // The heartbeats that it may have sent by now.
    let acknowledge = |sequence| Body::HeartbeatAck { sequence, membership: MembershipVersion::default() };
    assert!((1..20).any(|sequence| hear(acknowledge(sequence)) == "1"));
    assert_eq!(hear(Body::LeaderQuery { list: ListWanted::Whole }), "1");
}

#[test]
fn what_is_worth_a_note_is_published_at_once() {
    let (mut driver, ..) = driver(Settings::default(), None);
    driver.publish_every = Duration::MAX;
    driver.turn(Event::Start).unwrap();
    driver.turn(Event::LinkUp(peer(2))).unwrap();
    driver.turn(heartbeat()).unwrap();
    let status = driver.snapshot().status;
    assert_eq!(status.leader.as_ref().map(|leader| leader.peer.id), Some(peer(2).id));
    // A turn that brings only a newer last-heard time is not published.
    driver.turn(heartbeat()).unwrap();
    assert!(Arc::ptr_eq(&status, &driver.snapshot().status));
    // A heartbeat does not say since when the leader leads; its answer does.
    let leader = Some(Incumbent { peer: peer(2), elected_at_ms: 7 });
    driver.turn(received(Body::LeaderInfo { leader, entries: [].into() })).unwrap();
    let since = driver.snapshot().status.leader.as_ref().map(|leader| leader.elected_at_ms);
    assert_eq!(since, Some(7));
}

#[test]
fn a_renewed_lease_is_published_at_once() {
    let dir = folder();
    let (mut driver, ..) = driver(lone_voter(), Some(state(dir.path(), |_| Ok(()))));
    driver.turn(Event::Start).unwrap();
    driver.turn(no_peers()).unwrap();
    driver.turn_until("it leads", Driver::leads);
    driver.publish_every = Duration::MAX;
    let first = driver.snapshot().status.valid_until.unwrap();
    driver.turn_until("the lease that is published is a later one", |driver| {
        driver.snapshot().status.valid_until.unwrap() > first
    });
    assert_eq!(driver.snapshot().status.valid_until, driver.machine.status().valid_until);
}

/// The file of known peers cannot be written for longer than a lease, while members join: the leader renews
/// all the same.
#[test]
fn a_leader_keeps_its_lease_while_known_peers_cannot_be_written() {
    let dir = folder();
    let (began, has_begun) = channel();
    let (go_on, stalled) = channel::<()>();
    let (store, _) = Store::open(dir.path()).unwrap();
    let mut stalling = store.peers_file();
    let write = move |known: &KnownPeers| {
        began.send(known.members.len()).unwrap();
        let _ = stalled.recv();
        stalling.write(known)
    };
    let state = State { store, peers: PeersWriter::spawn(write).unwrap() };
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        let lease = lone_voter().failure_timeout;
        let (mut driver, ..) = driver(lone_voter(), Some(state));
        driver.turn(Event::Start).unwrap();
        driver.turn(no_peers()).unwrap();
        driver.turn_until("it leads", Driver::leads);
        let elected = driver.snapshot().status.epoch;
        let until = driver.snapshot().status.valid_until.unwrap();
        assert_eq!(has_begun.recv_timeout(PATIENCE), Ok(0), "the election itself was news");
        for k in 2..=4 {
            driver.turn(Event::LinkUp(peer(k))).unwrap();
        }
        driver.turn_until("it leads for a lease more", |driver| {
            assert!(driver.leads(), "the lease is over");
            driver.snapshot().status.valid_until.unwrap() > until.plus(lease)
        });
        assert_eq!(driver.snapshot().status.epoch, elected);
        done.send((driver, has_begun)).unwrap();
    });
    // The driver is there although the write has not ended.
    let (driver, has_begun) = is_done.recv_timeout(PATIENCE).expect("the driver waits for the writer");
    assert!(has_begun.try_recv().is_err(), "that write has not ended");
    go_on.send(()).unwrap();
    assert_eq!(has_begun.recv_timeout(PATIENCE), Ok(3), "then the latest is written, and nothing in between");
    drop(go_on);
    drop(driver);
    assert!(has_begun.recv_timeout(PATIENCE).is_err(), "the thread has ended");
    let (store, _) = Store::open(dir.path()).unwrap();
    assert_eq!(store.peers_file().read().unwrap().unwrap().members.len(), 3);
}

/// The first operator waits no longer: that is nothing to the next one.
#[test]
fn an_operator_is_answered_what_came_of_its_operation() {
    let (mut driver, ..) = driver(Settings::default(), None);
    driver.turn(Event::Start).unwrap();
    for (operation, waits, cordoned) in [
        (Operation::Cordon, false, true),
        (Operation::Cordon, true, true),
        (Operation::Uncordon, true, false),
    ] {
        let (answer, answered) = sync_channel(1);
        let answered = waits.then_some(answered);
        let event = driver.event(Input::Operation { operation, within: PATIENCE, answer }).unwrap();
        driver.turn(event).unwrap();
        assert!(driver.asked.is_empty());
        if let Some(answered) = answered {
            assert_eq!(answered.try_recv().unwrap().unwrap().candidacy.cordoned, cordoned);
        }
    }
}

#[test]
fn operators_that_ask_at_once_are_all_answered() {
    let (mut driver, ..) = driver(Settings::default(), None);
    driver.turn(Event::Start).unwrap();
    let (answers, answered): (Vec<_>, Vec<_>) = (0..2).map(|_| sync_channel(1)).unzip();
    let ask = |answer| Input::Operation { operation: Operation::Cordon, within: PATIENCE, answer };
    let events: Vec<Event> = answers.into_iter().map(|answer| driver.event(ask(answer)).unwrap()).collect();
    for event in events {
        driver.turn(event).unwrap();
    }
    assert!(answered.iter().all(|answered| answered.try_recv().is_ok()));
}

/// The holder counts from what the clocks showed when the turn began, which `lasts` counts from too.
#[test]
fn an_application_is_answered_as_of_the_turn_that_grants() {
    let dir = folder();
    let (mut driver, ..) = driver(lone_voter(), Some(state(dir.path(), |_| Ok(()))));
    driver.turn(Event::Start).unwrap();
    driver.turn(no_peers()).unwrap();
    driver.turn_until("it leads", Driver::leads);
    for waits in [false, true] {
        let request = HoldRequest::Take { lasts: Duration::from_millis(500) };
        let (answer, answered) = sync_channel(1);
        let answered = waits.then_some(answered);
        let event = driver.event(Input::Hold { request, answer }).unwrap();
        driver.turn(event).unwrap();
        if let Some(answered) = answered {
            let (held, reading) = answered.try_recv().unwrap();
            assert!(matches!(held.outcome, HoldOutcome::Granted { hold: 2, .. }), "{held:?}");
            assert_eq!(driver.clock.fast_at(&reading), driver.clock.fast());
        }
    }
    assert_eq!(driver.machine.status().holds, 2);
}
