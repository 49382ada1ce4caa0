//! The driver: feeds the machine one event at a time and carries out its actions in order, those for the log
//! last.

use super::peers_writer::PeersWriter;
use super::published_state::PublishedState;
use super::stop::Stop;
use super::timers::{Patience, Timers};
use crate::base::{Clock, Reading, step, wall_ms};
use crate::discovery::Discovery;
use crate::election::{
    Action, Body, Event, HoldAnswer, HoldRequest, Machine, Message, Moment, Now, Operation, OperationOutcome,
    Record, Role, Settings, Sign, Timer,
};
use crate::store::{SaveError, Store};
use crate::telemetry::EventLog;
use crate::transport::{Connections, Report, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

/// A status in which only a last-heard time is new is not published more often than this. Where an eighth of
/// the lease in use, or of the failure timeout, is shorter, that is the limit: what the status says must not
/// look older than it is.
const PUBLISH_EVERY: Duration = Duration::from_millis(200);
const PUBLICATIONS_A_LEASE: u32 = 8;

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
    /// By an operator, by way of the control path.
    Operation {
        /// What is asked.
        operation: Operation,
        /// How long the operator waits.
        within: Duration,
        /// Takes the answer. It is dropped where there is none any more.
        answer: SyncSender<OperationOutcome>,
    },
    /// By an application of this host.
    Hold {
        /// What is asked.
        request: HoldRequest,
        /// Takes the answer, and what the clocks showed in the turn that the answer's time counts from.
        answer: SyncSender<(HoldAnswer, Reading)>,
    },
    /// By the application of this host, or by what probes it.
    Application(Sign),
    /// By a signal, which has raised the flag that the driver looks at.
    Wake,
}

/// Why the driver stopped itself.
#[derive(Debug, thiserror::Error)]
pub(super) enum DriverError {
    #[error(
        "the durable record could not be written, so this process stops (fail-stop): {0}. Make room in the \
         state folder, or make it writable, and start it again"
    )]
    Save(#[from] SaveError),
}

/// The state folder.
pub(super) struct State {
    pub(super) store: Store,
    pub(super) peers: PeersWriter,
}

/// One process at work.
pub(super) struct Driver {
    machine: Machine,
    state: Option<State>,
    transport: Transport,
    published_state: Arc<PublishedState>,
    event_log: EventLog,
    discovery: Discovery,
    connections: Connections,
    timers: Timers,
    /// The machine's time. All timers are on its fast clock.
    clock: Clock,
    /// What the kernel's clocks showed when the latest turn began.
    begun: Reading,
    /// The application that the latest turn is about: it is answered in that turn.
    application: Option<SyncSender<(HoldAnswer, Reading)>>,
    /// Raised by a signal, and told of the holds that a resignation waits for.
    stop: Arc<Stop>,
    /// The longest time between two turns: a fraction of the time for which an answer stands without one.
    turn_every: Duration,
    published: Moment,
    publish_every: Duration,
    /// How long an answer stands by what was published last.
    answer_ttl: Duration,
    /// Whether discovery was told to hurry.
    hurried: bool,
    /// How many operations operators have asked for.
    operations: u64,
    /// Those that have no answer yet, with their operators. The machine answers each in its time, and the
    /// control path has few operators at a time.
    asked: BTreeMap<u64, SyncSender<OperationOutcome>>,
}

impl Driver {
    pub(super) fn new(
        machine: Machine,
        state: Option<State>,
        transport: Transport,
        published_state: Arc<PublishedState>,
        discovery: Discovery,
        stop: Arc<Stop>,
        settings: &Settings,
    ) -> Driver {
        let begun = Reading::take();
        Driver {
            machine,
            state,
            transport,
            event_log: EventLog::new(published_state.metrics().clone()),
            published_state,
            discovery,
            connections: Connections::default(),
            timers: Timers::default(),
            clock: Clock::new(begun),
            begun,
            application: None,
            stop,
            turn_every: settings.turn_every(),
            published: Moment::default(),
            publish_every: PUBLISH_EVERY,
            answer_ttl: settings.failure_timeout,
            hurried: true,
            operations: 0,
            asked: BTreeMap::new(),
        }
    }

    /// Drives the machine until it says that it is done. The inputs end with it, so that none waits for an
    /// answer that does not come.
    ///
    /// # Errors
    /// When the process has to stop itself; nothing that depended on the failed step was sent.
    pub(super) fn run(mut self, inputs: Receiver<Input>) -> Result<(), DriverError> {
        let mut done = self.turn(Event::Start)?;
        let mut patience = Patience::default();
        while !done {
            let event = if self.stop.asked.swap(false, Ordering::AcqRel) {
                Some(Event::Stop)
            } else {
                let next = self.timers.next();
                match patience.next_input(&inputs, || self.fast(), next, self.turn_every) {
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

    /// What the fast clock shows now.
    fn fast(&self) -> Moment {
        self.clock.fast_at(&Reading::take())
    }

    /// The timer that is due, or else a turn, which only passes the time.
    fn timer(&mut self) -> Event {
        match self.timers.next() {
            Some((timer, due)) if due <= self.fast() => {
                self.timers.disarm(timer);
                Event::Timer(timer)
            }
            _ => Event::Turn,
        }
    }

    fn event(&mut self, input: Input) -> Option<Event> {
        match input {
            Input::Report(report) => self.connections.event(report),
            Input::Found { addresses, complete } => {
                // That none is published takes back nothing.
                if !addresses.is_empty() {
                    self.transport.name(addresses.clone());
                }
                Some(Event::Discovered { addresses, complete })
            }
            Input::Operation { operation, within, answer } => {
                self.operations += 1;
                self.asked.insert(self.operations, answer);
                Some(Event::Operation { number: self.operations, operation, within })
            }
            Input::Hold { request, answer } => {
                self.application = Some(answer);
                Some(Event::Hold(request))
            }
            Input::Application(sign) => Some(Event::Application(sign)),
            Input::Wake => None,
        }
    }

    /// One event and all that follows from it; true when the machine is done.
    fn turn(&mut self, event: Event) -> Result<bool, DriverError> {
        self.begun = Reading::take();
        self.clock.turn(self.begun);
        let now = Now {
            at: self.clock.fast(),
            slow: self.clock.slow(),
            suspends: self.clock.suspends(),
            wall_ms: wall_ms(),
        };
        log_turn(&event);
        let quiet = match &event {
            // It may say since when the leader leads.
            Event::Received { message, .. } => !matches!(message.body, Body::LeaderInfo { .. }),
            event => matches!(event, Event::Turn | Event::Timer(Timer::Heartbeat)),
        };
        let acknowledged = match &event {
            Event::Received {
                from,
                message: Message { body: Body::HeartbeatAck { .. } | Body::Renewed { .. }, .. },
            } => Some(*from),
            _ => None,
        };
        let mut actions = self.machine.handle(now, event).into_iter().peekable();
        if let Some(round_trip) = acknowledged.and_then(|id| self.machine.round_trip(id)) {
            self.published_state.metrics().heartbeat_round_trip(round_trip);
        }
        // Nothing leaves, and nothing is told, before what it depends on is durable.
        if let Some(Action::Persist(record)) = actions.next_if(|a| matches!(a, Action::Persist(_))) {
            self.persist(&record)?;
        }
        let changes =
            actions.peek().is_some() && !quiet || now.at.since(self.published) >= self.publish_every;
        let mut rest: Vec<Action> = actions.collect();
        // A line of the log wakes the thread that writes it. No message waits for that.
        rest.sort_by_key(|action| matches!(action, Action::Notification(_)));
        let told =
            |a: &Action| matches!(a, Action::Notification(_) | Action::Arm { timer: Timer::Lease, .. });
        // No answer stands for longer than the lease that is about to be named.
        let shortened = self.machine.answer_ttl() < self.answer_ttl;
        let status = (changes || shortened || rest.iter().any(told)).then(|| self.machine.status());
        if let Some(status) = &status {
            self.published = now.at;
            self.answer_ttl = status.answer_ttl;
            let lease = status.lease.unwrap_or(status.answer_ttl);
            self.publish_every = PUBLISH_EVERY.min(lease / PUBLICATIONS_A_LEASE);
            self.stop.waits.store(status.role == Role::Resigning, Ordering::Relaxed);
            self.transport.led_by(status.leader.as_ref().map(|leader| leader.peer.id));
        }
        let (announced, publishes) = (self.transport.announced(), status.is_some());
        self.published_state.turned(self.clock, status, announced, self.transport.listening());
        if publishes {
            step("published", "status", None);
        }
        let mut done = false;
        for action in rest {
            done |= self.carry_out(now.at, action)?;
        }
        if self.hurried != self.machine.hurries_discovery() {
            self.hurried = !self.hurried;
            self.discovery.hurry(self.hurried);
        }
        Ok(done)
    }

    /// Makes a record durable, where there is a state folder.
    fn persist(&mut self, record: &Record) -> Result<(), DriverError> {
        if let Some(State { store, .. }) = &mut self.state {
            store.save(record)?;
            step("persisted", "record", None);
        }
        Ok(())
    }

    fn carry_out(&mut self, now: Moment, action: Action) -> Result<bool, DriverError> {
        match action {
            Action::Persist(record) => self.persist(&record)?,
            Action::Remember(known) => {
                self.transport.know(known.alive().cloned());
                if let Some(State { peers, .. }) = &self.state {
                    peers.put(known);
                }
            }
            Action::Send { to, address, message } => self.transport.send(to, address, &message),
            Action::Seek(addresses) => self.transport.seek(addresses),
            Action::Refuse(id) => self.transport.refuse(id),
            Action::Arm { timer, after } => self.timers.arm(timer, now, after),
            Action::Disarm(timer) => self.timers.disarm(timer),
            Action::Notification(note) => self.event_log.note(&note, now),
            Action::Answer { number, outcome } => {
                if let Some(operator) = self.asked.remove(&number) {
                    // An operator that waits no longer needs no answer.
                    let _ = operator.try_send(outcome);
                }
            }
            Action::Held(held) => {
                if let Some(application) = self.application.take() {
                    // An application that waits no longer needs no answer.
                    let _ = application.try_send((held, self.begun));
                }
            }
            Action::Exit => return Ok(true),
        }
        Ok(false)
    }
}

/// Logs what a turn is about: a message by its name.
fn log_turn(event: &Event) {
    match event {
        Event::Received { from, message } => step("turn", message.body.name(), Some(*from)),
        Event::Crashed { id, .. } => step("turn", "crash", Some(*id)),
        Event::LinkDown { id, .. } => step("turn", "link_down", Some(*id)),
        Event::Stop => step("turn", "stop", None),
        Event::Timer(timer) => step("turn", format_args!("timer {timer:?}"), None),
        _ => step("turn", "other", None),
    }
}

#[cfg(test)]
mod tests;
