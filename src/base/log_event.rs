//! A log line: the name of its event, its keys, and its text (docs/logs.md has the table).

use super::RateLimit;
use super::clock::boottime;
use crate::election::Peer;
use core::fmt;
use core::time::Duration;
use log::kv::{self, Key, Source, VisitSource};
use log::{Level, Record};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// A duration as lines have it: in milliseconds, to a tenth.
pub fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

/// The keys of a line, in order. The event is the first.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEvent {
    level: Level,
    /// Texts, which may be a peer's and are escaped by each format in its own way, numbers, yes and no.
    keys: Vec<(&'static str, Value)>,
}

impl LogEvent {
    /// For what an operator has to mend.
    pub fn error(event: &'static str) -> LogEvent {
        LogEvent::of(Level::Error, event)
    }

    /// For what an operator may have to mend.
    pub fn warn(event: &'static str) -> LogEvent {
        LogEvent::of(Level::Warn, event)
    }

    /// For what is as it should be.
    pub fn info(event: &'static str) -> LogEvent {
        LogEvent::of(Level::Info, event)
    }

    /// For the search of a fault in the election itself.
    pub fn debug(event: &'static str) -> LogEvent {
        LogEvent::of(Level::Debug, event)
    }

    /// For the search of where time goes.
    pub fn trace(event: &'static str) -> LogEvent {
        LogEvent::of(Level::Trace, event)
    }

    fn of(level: Level, event: &'static str) -> LogEvent {
        LogEvent { level, keys: vec![("event", event.into())] }
    }

    /// One more key.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> LogEvent {
        self.keys.push((key, value.into()));
        self
    }

    /// One more key, where there is a value for it.
    #[must_use]
    pub fn with_some(self, key: &'static str, value: Option<impl Into<Value>>) -> LogEvent {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// A process: its name, id and address. What a peer says of itself is its own word.
    #[must_use]
    pub fn peer(self, peer: &Peer) -> LogEvent {
        self.with("name", peer.name.as_str())
            .with("id", peer.id.to_string())
            .with("address", peer.address.to_string())
    }

    /// How many lines of this kind a limit has held back since the last one. Zero adds no key.
    #[must_use]
    pub fn not_shown(self, held_back: u64) -> LogEvent {
        self.with_some("not_shown", (held_back > 0).then_some(held_back))
    }

    /// Logs it, unless this limit holds it back.
    pub fn say_within(self, limit: &mut RateLimit, text: impl fmt::Display) {
        if let Some(held_back) = limit.allow(boottime()) {
            self.not_shown(held_back).say(text);
        }
    }

    /// The same with a limit of several threads, which is not locked while the line is written.
    pub fn say_within_shared(self, limit: &Mutex<RateLimit>, text: impl fmt::Display) {
        let allowed = limit.lock().unwrap_or_else(PoisonError::into_inner).allow(boottime());
        if let Some(held_back) = allowed {
            self.not_shown(held_back).say(text);
        }
    }

    /// Logs it, with this text.
    pub fn say(&self, text: impl fmt::Display) {
        if self.level > log::max_level() {
            return;
        }
        log::logger().log(
            &Record::builder()
                .level(self.level)
                .target(env!("CARGO_CRATE_NAME"))
                .key_values(&self)
                .args(format_args!("{text}"))
                .build(),
        );
    }
}

impl Source for LogEvent {
    fn visit<'kvs>(&'kvs self, visitor: &mut dyn VisitSource<'kvs>) -> Result<(), kv::Error> {
        for (key, value) in &self.keys {
            let value = match value {
                Value::String(text) => kv::Value::from(text.as_str()),
                Value::Bool(yes) => kv::Value::from(*yes),
                Value::Null => continue,
                number => match number.as_u64() {
                    Some(whole) => kv::Value::from(whole),
                    None => kv::Value::from(number.as_f64().unwrap_or_default()),
                },
            };
            visitor.visit_pair(Key::from_str(key), value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl fmt::Display for LogEvent {
    /// Its level and keys, for tests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.level)?;
        self.keys.iter().try_for_each(|(key, value)| write!(f, " {key}={value:?}"))
    }
}
