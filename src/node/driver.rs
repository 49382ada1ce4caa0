//! The driver: feeds the machine one event at a time and carries out its actions in order.

use super::board::{Board, wall_ms};
use super::timers::Timers;
use crate::discovery::Discovery;
use crate::election::{Action, Body, Event, Machine, Message, Moment, Now, Timer};
use crate::net::boottime;
use crate::store::{SaveError, Store};
use crate::telemetry::{Chronicle, Metrics};
use crate::transport::{Book, Report, Transport};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How many inputs are taken before the timers have their turn, however many wait.
const INPUTS_IN_A_ROW_MAX: u32 = 256;
/// A timer that is noticed this late says that the whole process was held up, and the messages that would have stopped
/// it may not have been read yet: they get [`GRACE`] first.
const LATE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(20);
/// A view that only tells when somebody was last heard is not published more often than this.
const PUBLISH_EVERY: Duration = Duration::from_millis(200);

/// What the driver is told.
#[derive(Debug)]
pub(super) enum Input {
    /// By the transport.
    Report(Report),
    /// By discovery.
    Found { addresses: BTreeSet<SocketAddr>, complete: bool },
    /// By a signal.
    Stop,
}

/// Why the driver stopped itself.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the durable record could not be written, so this process stops (fail-stop): {0}")]
    Save(#[from] SaveError),
}

/// One process at work.
pub(super) struct Driver {
    machine: Machine,
    store: Option<Store>,
    transport: Transport,
    board: Arc<Board>,
    chronicle: Chronicle,
    metrics: Metrics,
    discovery: Discovery,
    book: Book,
    timers: Timers,
    /// The longest time between two turns: a fraction of the time for which an answer stands without one.
    turn_every: Duration,
    published: Moment,
    alone: bool,
    /// What discovery named before: an answer of only some name servers adds to it, and takes nothing away.
    candidates: BTreeSet<SocketAddr>,
}

impl Driver {
    pub(super) fn new(
        machine: Machine,
        store: Option<Store>,
        transport: Transport,
        board: Arc<Board>,
        metrics: Metrics,
        discovery: Discovery,
        failure_timeout: Duration,
    ) -> Driver {
        Driver {
            machine,
            store,
            transport,
            board,
            chronicle: Chronicle::new(metrics.clone()),
            metrics,
            discovery,
            book: Book::default(),
            timers: Timers::default(),
            turn_every: failure_timeout / 6,
            published: Moment::default(),
            alone: true,
            candidates: BTreeSet::new(),
        }
    }

    /// Drives the machine until it says that it is done.
    ///
    /// # Errors
    /// When the process has to stop itself; nothing that depended on the failed step was sent.
    pub(super) fn run(mut self, inputs: &Receiver<Input>) -> Result<(), Failure> {
        let mut done = self.turn(Event::Start)?;
        let mut in_a_row = 0;
        while !done {
            let event = match self.wait(inputs, &mut in_a_row) {
                Some(input) => self.event(input),
                None => Some(self.timer()),
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
    fn wait(&self, inputs: &Receiver<Input>, in_a_row: &mut u32) -> Option<Input> {
        let now = boottime();
        let due = self.timers.next().map(|(_, due)| due);
        let mut wait = due.map_or(self.turn_every, |due| due.since(now)).min(self.turn_every);
        if wait.is_zero() {
            if *in_a_row >= INPUTS_IN_A_ROW_MAX {
                *in_a_row = 0;
                return None;
            }
            if due.is_some_and(|due| now.since(due) > LATE) {
                wait = GRACE;
            }
        }
        match inputs.recv_timeout(wait) {
            Ok(input) => {
                *in_a_row += 1;
                Some(input)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                *in_a_row = 0;
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
            Input::Found { addresses, complete } => {
                if complete {
                    self.candidates = addresses;
                } else {
                    self.candidates.extend(addresses);
                    while self.candidates.len() > crate::discovery::CANDIDATES_MAX {
                        self.candidates.pop_last();
                    }
                }
                Some(Event::Candidates(self.candidates.clone()))
            }
            Input::Stop => Some(Event::Stop),
        }
    }

    /// One event and all that follows from it; true when the machine is done.
    fn turn(&mut self, event: Event) -> Result<bool, Failure> {
        let now = Now { at: boottime(), wall_ms: wall_ms() };
        let quiet = matches!(event, Event::Received { .. } | Event::Turn | Event::Timer(Timer::Heartbeat));
        let acknowledged = match &event {
            Event::Received { from, message: Message { body: Body::HeartbeatAck { .. }, .. } } => Some(*from),
            _ => None,
        };
        let mut actions = self.machine.handle(now, event).into_iter().peekable();
        if let Some(round_trip) = acknowledged.and_then(|id| self.machine.round_trip(id)) {
            self.metrics.heartbeat_round_trip(round_trip);
        }
        // Nothing leaves, and nothing is told, before what it depends on is durable.
        if let Some(Action::Persist(record)) = actions.next_if(|a| matches!(a, Action::Persist(_)))
            && let Some(store) = &mut self.store
        {
            store.save(&record)?;
        }
        let changes = actions.peek().is_some() && !quiet || now.at.since(self.published) >= PUBLISH_EVERY;
        let rest: Vec<Action> = actions.collect();
        if changes || rest.iter().any(|a| matches!(a, Action::Note(_))) {
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

    fn carry_out(&mut self, now: Moment, action: Action) -> Result<bool, Failure> {
        match action {
            Action::Persist(record) => {
                if let Some(store) = &mut self.store {
                    store.save(&record)?;
                }
            }
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
