//! The driver: feeds the machine one event at a time and carries out its actions in order.

use super::board::{Board, wall_ms};
use super::timers::{Patience, Timers};
use crate::discovery::Discovery;
use crate::election::{Action, Body, Event, Machine, Message, Moment, Now, Record, Settings, Timer};
use crate::net::boottime;
use crate::store::{SaveError, Store};
use crate::telemetry::Chronicle;
use crate::transport::{Book, Report, Transport};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// A view that only tells when somebody was last heard is not published more often than this, or than an eighth of the
/// failure timeout where that is shorter: what it says must not look older than it is.
const PUBLISH_EVERY: Duration = Duration::from_millis(200);

/// What the driver is told.
#[derive(Debug)]
pub(super) enum Input {
    /// By the transport.
    Report(Report),
    /// By discovery: all addresses where peers may be.
    Found {
        /// All addresses where peers may be.
        addresses: BTreeSet<SocketAddr>,
        /// Whether every name has answered.
        complete: bool,
    },
    /// By a signal, which has raised the flag that the driver looks at.
    Wake,
}

/// Why the driver stopped itself.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(
        "the durable record could not be written, so this process stops (fail-stop): {0}; make room in the state folder, or \
         make it writable, and start it again"
    )]
    Save(#[from] SaveError),
}

/// One process at work.
pub(super) struct Driver {
    machine: Machine,
    store: Option<Store>,
    transport: Transport,
    board: Arc<Board>,
    chronicle: Chronicle,
    discovery: Discovery,
    book: Book,
    timers: Timers,
    /// Raised by a signal. Not one more input: peers must not be able to put it off by filling the queue.
    stop: Arc<AtomicBool>,
    /// The longest time between two turns: a fraction of the time for which an answer stands without one.
    turn_every: Duration,
    published: Moment,
    publish_every: Duration,
    alone: bool,
}

impl Driver {
    pub(super) fn new(
        machine: Machine,
        store: Option<Store>,
        transport: Transport,
        board: Arc<Board>,
        discovery: Discovery,
        stop: Arc<AtomicBool>,
        settings: &Settings,
    ) -> Driver {
        Driver {
            machine,
            store,
            transport,
            chronicle: Chronicle::new(board.metrics().clone()),
            board,
            discovery,
            book: Book::default(),
            timers: Timers::default(),
            stop,
            turn_every: settings.turn_every(),
            published: Moment::default(),
            publish_every: PUBLISH_EVERY.min(settings.failure_timeout / 8),
            alone: true,
        }
    }

    /// Drives the machine until it says that it is done.
    ///
    /// # Errors
    /// When the process has to stop itself; nothing that depended on the failed step was sent.
    pub(super) fn run(mut self, inputs: &Receiver<Input>) -> Result<(), Failure> {
        let mut done = self.turn(Event::Start)?;
        let mut patience = Patience::default();
        while !done {
            let event = if self.stop.swap(false, Ordering::AcqRel) {
                Some(Event::Stop)
            } else {
                match self.wait(inputs, &mut patience) {
                    Some(input) => self.event(input),
                    None => Some(self.timer()),
                }
            };
            if let Some(event) = event {
                done = self.turn(event)?;
            }
        }
        self.discovery.stop();
        self.transport.close();
        Ok(())
    }

    /// The next input, or none when a timer or a turn is due. Inputs come first, so that a heartbeat that has arrived
    /// stops the timer that would have missed it.
    fn wait(&self, inputs: &Receiver<Input>, patience: &mut Patience) -> Option<Input> {
        let due = self.timers.next().map(|(_, due)| due);
        let wait = patience.wait(boottime(), due, self.turn_every);
        match wait.map(|wait| inputs.recv_timeout(wait)) {
            Some(Ok(input)) => Some(input),
            None | Some(Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => {
                *patience = Patience::default();
                None
            }
        }
    }

    /// The timer that is due, or else just the passing of time.
    fn timer(&mut self) -> Event {
        match self.timers.next() {
            Some((timer, due)) if due <= boottime() => {
                self.timers.disarm(timer);
                Event::Timer(timer)
            }
            _ => Event::Turn,
        }
    }

    fn event(&mut self, input: Input) -> Option<Event> {
        match input {
            Input::Report(report) => self.book.event(report),
            Input::Found { addresses, complete } => Some(Event::Candidates { addresses, complete }),
            Input::Wake => None,
        }
    }

    /// One event and all that follows from it; true when the machine is done.
    fn turn(&mut self, event: Event) -> Result<bool, Failure> {
        let now = Now { at: boottime(), wall_ms: wall_ms() };
        let quiet = matches!(event, Event::Received { .. } | Event::Turn | Event::Timer(Timer::Heartbeat));
        let acknowledged = match &event {
            Event::Received {
                from,
                message: Message { body: Body::HeartbeatAck { .. } | Body::Renewed { .. }, .. },
            } => Some(*from),
            _ => None,
        };
        let mut actions = self.machine.handle(now, event).into_iter().peekable();
        if let Some(round_trip) = acknowledged.and_then(|id| self.machine.round_trip(id)) {
            self.board.metrics().heartbeat_round_trip(round_trip);
        }
        // Nothing leaves, and nothing is told, before what it depends on is durable.
        if let Some(Action::Persist(record)) = actions.next_if(|a| matches!(a, Action::Persist(_))) {
            self.persist(&record)?;
        }
        let changes =
            actions.peek().is_some() && !quiet || now.at.since(self.published) >= self.publish_every;
        let rest: Vec<Action> = actions.collect();
        let told = |a: &Action| matches!(a, Action::Note(_) | Action::Arm { timer: Timer::Lease, .. });
        if changes || rest.iter().any(told) {
            self.board.publish(self.machine.view());
            self.published = now.at;
        }
        self.board.turned(now.at, self.transport.listening());
        let mut done = false;
        for action in rest {
            done |= self.carry_out(now.at, action)?;
        }
        if self.alone != self.machine.alone() {
            self.alone = !self.alone;
            self.discovery.alone(self.alone);
        }
        Ok(done)
    }

    /// Makes a record durable, where there is a state folder.
    fn persist(&mut self, record: &Record) -> Result<(), Failure> {
        if let Some(store) = &mut self.store {
            store.save(record)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, now: Moment, action: Action) -> Result<bool, Failure> {
        match action {
            Action::Persist(record) => self.persist(&record)?,
            Action::Send { to, address, message } => self.transport.send(to, address, &message),
            Action::Seek(addresses) => self.transport.seek(addresses),
            Action::Arm { timer, after } => self.timers.arm(timer, now, after),
            Action::Disarm(timer) => self.timers.disarm(timer),
            Action::Note(note) => self.chronicle.note(&note, now),
            Action::Exit => return Ok(true),
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Incarnation, Peer, Priority, ProcessId, Settings};
    use crate::{discovery, transport};
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::mpsc::{channel, sync_channel};
    use uuid::Uuid;

    struct Uncounted;

    impl transport::Counts for Uncounted {
        fn sent(&self, _: &'static str) {}
        fn received(&self, _: &'static str) {}
        fn unknown_frame(&self) {}
        fn refused(&self) {}
    }

    /// The driver of a process that nobody knows, and the flag that stops it.
    fn driver() -> (Driver, Arc<AtomicBool>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let me = Peer {
            id: ProcessId(Uuid::from_u128(1)),
            incarnation: Incarnation(1),
            name: "p1".to_owned(),
            address: listener.local_addr().unwrap(),
            priority: Priority::DEFAULT,
            revision: String::new(),
        };
        let settings = Settings::default();
        let second = Duration::from_secs(1);
        let machine = Machine::new(settings.clone(), "c".to_owned(), me.clone(), None);
        let reach = transport::Settings {
            cluster: "c".to_owned(),
            safety: crate::wire::Level::Classic,
            me,
            dial_timeout: second,
            unacknowledged_max: second,
        };
        let transport = Transport::start(reach, listener, Arc::new(|_| ()), Arc::new(Uncounted)).unwrap();
        let look = discovery::Settings {
            service: None,
            peers: Vec::new(),
            peer_port: 4041,
            refresh: second,
            refresh_alone: second,
        };
        let discovery = discovery::spawn(look, |_| ()).unwrap();
        let metrics = crate::telemetry::Metrics::new("c");
        let board = Arc::new(Board::new(machine.view(), metrics.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let driver = Driver::new(machine, None, transport, board, discovery, flag, &settings);
        (driver, stop)
    }

    #[test]
    fn whoever_fills_the_queue_puts_no_farewell_off() {
        let (driver, stop) = driver();
        let (sender, inputs) = sync_channel(4);
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        for _ in 0..2 {
            let sender = sender.clone();
            std::thread::spawn(move || while sender.send(Input::Report(Report::Refused(nobody))).is_ok() {});
        }
        stop.store(true, Ordering::Release);
        let (done, is_done) = channel();
        std::thread::spawn(move || done.send(driver.run(&inputs).is_ok()));
        assert_eq!(is_done.recv_timeout(Duration::from_secs(5)), Ok(true));
    }
}
