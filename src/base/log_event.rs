//! A log line: the name of its event, its keys, and its text (docs/logs.md has the table).

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use log::kv::{self, Key, Source, VisitSource};
use log::{Level, Record};

/// What stands behind a key.
#[derive(Clone, PartialEq, Debug)]
pub enum Field {
    /// Any text, also of a peer: each format escapes it in its own way.
    Text(String),
    /// A whole number.
    Number(u64),
    /// Milliseconds, to a tenth.
    Ms(f64),
    /// Yes or no.
    Bool(bool),
}

impl From<&str> for Field {
    fn from(text: &str) -> Field {
        Field::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Field {
        Field::Text(text)
    }
}

impl From<SocketAddr> for Field {
    fn from(address: SocketAddr) -> Field {
        Field::Text(address.to_string())
    }
}

impl From<IpAddr> for Field {
    fn from(address: IpAddr) -> Field {
        Field::Text(address.to_string())
    }
}

impl From<u64> for Field {
    fn from(number: u64) -> Field {
        Field::Number(number)
    }
}

impl From<u16> for Field {
    fn from(number: u16) -> Field {
        Field::Number(number.into())
    }
}

impl From<u32> for Field {
    fn from(number: u32) -> Field {
        Field::Number(number.into())
    }
}

impl From<usize> for Field {
    fn from(number: usize) -> Field {
        Field::Number(number.try_into().unwrap_or(u64::MAX))
    }
}

impl From<bool> for Field {
    fn from(yes: bool) -> Field {
        Field::Bool(yes)
    }
}

impl From<Duration> for Field {
    fn from(duration: Duration) -> Field {
        Field::Ms((duration.as_secs_f64() * 10_000.0).round() / 10.0)
    }
}

/// The keys of a line, in order. The event is the first.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEvent {
    level: Level,
    keys: Vec<(&'static str, Field)>,
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
    pub fn with(mut self, key: &'static str, value: impl Into<Field>) -> LogEvent {
        self.keys.push((key, value.into()));
        self
    }

    /// One more key, where there is a value for it.
    #[must_use]
    pub fn with_some(self, key: &'static str, value: Option<impl Into<Field>>) -> LogEvent {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// How many lines of this kind a limit has held back since the last one. Zero adds no key.
    #[must_use]
    pub fn not_shown(self, held_back: u64) -> LogEvent {
        self.with_some("not_shown", (held_back > 0).then_some(held_back))
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
                Field::Text(text) => kv::Value::from(text.as_str()),
                Field::Number(number) => kv::Value::from(*number),
                Field::Ms(ms) => kv::Value::from(*ms),
                Field::Bool(yes) => kv::Value::from(*yes),
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
