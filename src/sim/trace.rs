//! What happened in a run, as lines that people read.

use super::clock::{MS, Ns};
use super::node::place_of;
use crate::election::describe::Describer;
use crate::election::{Body, Event, Message, Notification, ProcessId};

/// The most lines that are kept; a run has some thousands.
const LINES_MAX: usize = 200_000;

/// The lines so far, if they are wanted: a run without a reader formats nothing.
#[derive(Debug, Default)]
pub(super) struct Trace {
    on: bool,
    pub(super) lines: Vec<String>,
}

impl Trace {
    /// A trace that is kept.
    pub(super) fn kept() -> Trace {
        Trace { on: true, lines: Vec::new() }
    }

    /// Whether lines are wanted.
    pub(super) fn on(&self) -> bool {
        self.on
    }

    pub(super) fn line(&mut self, now: Ns, text: &str) {
        if self.lines.len() < LINES_MAX {
            self.last(now, text);
        }
    }

    /// The last line, which is kept even after a full trace.
    pub(super) fn last(&mut self, now: Ns, text: &str) {
        if self.on {
            self.lines.push(format!("{:>3}.{:06}  {text}", now / (1000 * MS), now / 1000 % 1_000_000));
        }
    }

    /// A machine is told something. Messages that arrive are shown where they leave and where they arrive,
    /// heartbeats and the mere passing of time not at all.
    pub(super) fn event(&mut self, now: Ns, place: usize, event: &Event) {
        let text = match event {
            Event::Received { message, .. } if quiet(message) => return,
            Event::Turn | Event::Start => return,
            Event::Received { from, message } => {
                format!("p-{place} <- p-{}  {}", place_of(*from), words().message(message))
            }
            Event::Timer(timer) => format!("p-{place}         {timer:?} timer"),
            Event::LinkUp(peer) => format!("p-{place}         linked with p-{}", place_of(peer.id)),
            Event::LinkDown { id, .. } => format!("p-{place}         link with p-{} closed", place_of(*id)),
            Event::Crashed { id, incarnation } => {
                format!(
                    "p-{place}         evidence that p-{} instance {} crashed",
                    place_of(*id),
                    incarnation.0
                )
            }
            Event::Refused(address) => format!("p-{place}         refused at {address}"),
            Event::TurnedAway => format!("p-{place}         is turned away"),
            Event::Discovered { addresses, .. } => {
                format!("p-{place}         finds {} addresses", addresses.len())
            }
            Event::ReachedSelf(_) => format!("p-{place}         reached itself"),
            Event::Advertise(address) => format!("p-{place}         is at {address}"),
            Event::Operation { operation, .. } => format!("p-{place}         is asked: {operation:?}"),
            Event::Hold(request) => format!("p-{place}         is asked by its application: {request:?}"),
            Event::Application(sign) => format!("p-{place}         hears of its application: {sign:?}"),
            Event::Stop => format!("p-{place}         is told to stop"),
        };
        if matches!(event, Event::Timer(crate::election::Timer::Heartbeat)) {
            return;
        }
        self.line(now, &text);
    }

    pub(super) fn sent(&mut self, now: Ns, place: usize, to: ProcessId, message: &Message) {
        if !quiet(message) {
            self.line(now, &format!("p-{place} -> p-{}  {}", place_of(to), words().message(message)));
        }
    }

    pub(super) fn noted(&mut self, now: Ns, place: usize, note: &Notification) {
        self.line(now, &format!("p-{place}         * {}", words().notification(note)));
    }
}

/// Describes with places for ids.
pub(super) fn words() -> Describer<impl Fn(ProcessId) -> String> {
    Describer(|id| format!("p-{}", place_of(id)))
}

/// Messages of which there are too many to read.
fn quiet(message: &Message) -> bool {
    matches!(
        message.body,
        Body::Heartbeat { .. }
            | Body::HeartbeatAck { .. }
            | Body::Renew { .. }
            | Body::Renewed { .. }
            | Body::Recover { .. }
            | Body::Recovered { .. }
    )
}
