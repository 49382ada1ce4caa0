//! What happened in a world, as lines that people read.

use bellwether::election::describe::Describer;
use bellwether::election::{Body, Message, Notification, ProcessId};
use std::time::Duration;

/// How much is written down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// Nothing.
    Off,
    /// Everything but heartbeats and their acknowledgements.
    On,
    /// Everything.
    Heartbeats,
}

/// The lines so far.
pub struct Trace {
    pub detail: Detail,
    pub lines: Vec<String>,
}

impl Trace {
    pub fn line(&mut self, now: Duration, text: &str) {
        if self.detail != Detail::Off {
            self.lines.push(format!("{:>4}.{:03}  {text}", now.as_secs(), now.subsec_millis()));
        }
    }

    /// A message leaves; `fate` says what the network does with it, empty if it carries it.
    pub fn sent(&mut self, now: Duration, from: usize, to: ProcessId, message: &Message, fate: &str) {
        let beat = matches!(
            message.body,
            Body::Heartbeat { .. } | Body::HeartbeatAck { .. } | Body::Renew { .. } | Body::Renewed { .. }
        );
        if self.detail == Detail::Off || beat && fate.is_empty() && self.detail < Detail::Heartbeats {
            return;
        }
        let text = format!("p{from} -> {}  {}{fate}", name(to), WORDS.message(message));
        self.line(now, &text);
    }

    pub fn noted(&mut self, now: Duration, place: usize, note: &Notification) {
        if self.detail != Detail::Off {
            let text = format!("p{place}        {}", WORDS.notification(note));
            self.line(now, &text);
        }
    }
}

/// The name of a process with one of the world's ids.
pub fn name(id: ProcessId) -> String {
    format!("p{}", super::world::number(id))
}

/// Describes with the world's names for ids.
pub const WORDS: Describer<fn(ProcessId) -> String> = Describer(name);
