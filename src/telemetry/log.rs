//! The log: one line a record, on stderr, as text for people or as JSON.
//!
//! A thread that logs never waits for the reader of stderr: lines pass through a bounded queue that one
//! thread drains.

use super::escape::{escaped, shortened, value};
use super::log_writer::LogWriter;
use crate::base::LogEvent;
use env_logger::{Builder, Target};
use log::kv::{self, Key, Source, VisitSource};
use log::{LevelFilter, Record};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// How long the end of the process waits for the rest of the log.
const FLUSH_LONGEST: Duration = Duration::from_millis(200);
/// How many bytes of one message, and of one value, are written; what is longer ends in an ellipsis.
const MESSAGE_BYTES_MAX: usize = 4096;
/// How many hexadecimal digits of an id people are shown; enough to tell the members of an election apart.
const ID_DIGITS: usize = 8;

static PROGRESS: OnceLock<Arc<super::log_writer::Progress>> = OnceLock::new();

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// `2026-11-21T09:00:00.123Z INFO  event: message key=value`, control characters spelled out, and the
    /// first digits of ids.
    Text,
    /// `{"ts":…,"level":…,"target":…,"event":…,"election":…,…,"msg":…}`, with a key for each value.
    Json,
}

/// Waits for what is queued, for a fifth of a second at most, when it is dropped.
#[must_use = "what is still queued is written when it is dropped"]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        flush();
    }
}

/// Starts the log of a process of this election. Libraries are heard from warnings on. A process has one log:
/// a second start changes nothing.
pub fn init(level: LevelFilter, format: LogFormat, election: &str) -> LogGuard {
    let writer = Writer { format, election: election.to_owned() };
    let at_a_loss = writer.clone();
    let lost_line = move |lost: u64| {
        let keys = Pairs::of(&LogEvent::warn("log_lines_lost").with("lost", lost));
        let text = "log lines were lost, because stderr was not read fast enough";
        at_a_loss.line(SystemTime::now(), "WARN", env!("CARGO_CRATE_NAME"), &keys, text)
    };
    // Without a thread for it, the log still works; it only may block.
    let (target, progress) = match LogWriter::new(std::io::stderr(), lost_line) {
        Ok(queue) => {
            let progress = queue.progress();
            (Target::Pipe(Box::new(queue)), Some(progress))
        }
        Err(_) => (Target::Stderr, None),
    };
    let started = Builder::new()
        .filter_level(level.min(LevelFilter::Warn))
        .filter_module(env!("CARGO_CRATE_NAME"), level)
        .target(target)
        .format(move |out, record| out.write_all(&writer.record(SystemTime::now(), record)))
        .try_init();
    if let (Ok(()), Some(progress)) = (started, progress) {
        let _first_and_only = PROGRESS.set(progress);
    }
    LogGuard(())
}

/// Waits until everything that was logged so far is written, for a fifth of a second at most: before an exit
/// that runs no destructors.
pub fn flush() {
    flush_within(FLUSH_LONGEST);
}

/// As [`flush`], for as long as this at most. It is for the last line, which says why the process ends: the
/// end must not wait for a reader.
pub fn flush_within(longest: Duration) {
    if let Some(progress) = PROGRESS.get() {
        progress.wait(longest);
    }
}

/// The keys of a record, in order.
#[derive(Default)]
struct Pairs(Vec<(String, Value)>);

impl Pairs {
    fn of(source: &dyn Source) -> Pairs {
        let mut pairs = Pairs::default();
        // Pairs refuse no value.
        let _ok = source.visit(&mut pairs);
        pairs
    }
}

impl<'kvs> VisitSource<'kvs> for Pairs {
    fn visit_pair(&mut self, key: Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let number = || value.to_u64().map(Value::from);
        let other = || value.to_bool().map(Value::from).or_else(|| value.to_f64().map(Value::from));
        let text = || shortened(value.to_string(), MESSAGE_BYTES_MAX).into();
        self.0.push((key.to_string(), number().or_else(other).unwrap_or_else(text)));
        Ok(())
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// One line as JSON, in the order of its fields.
#[derive(Serialize)]
struct Json<'a> {
    ts: &'a str,
    level: &'a str,
    target: &'a str,
    election: &'a str,
    #[serde(flatten)]
    keys: &'a Pairs,
    msg: &'a str,
}

/// Turns records into lines.
#[derive(Clone)]
struct Writer {
    format: LogFormat,
    election: String,
}

impl Writer {
    fn record(&self, at: SystemTime, record: &Record<'_>) -> Vec<u8> {
        let keys = Pairs::of(record.key_values());
        self.line(at, record.level().as_str(), record.target(), &keys, &record.args().to_string())
    }

    /// One line with its end.
    fn line(&self, at: SystemTime, level: &str, target: &str, keys: &Pairs, message: &str) -> Vec<u8> {
        let ts = humantime::format_rfc3339_millis(at).to_string();
        let mut line = match self.format {
            LogFormat::Text => {
                let text = shortened(text(keys, message), MESSAGE_BYTES_MAX);
                format!("{ts} {level:<5} {text}").into_bytes()
            }
            LogFormat::Json => {
                let msg = &shortened(message.to_owned(), MESSAGE_BYTES_MAX);
                let (ts, election) = (&ts, &self.election);
                // Text and numbers always have a JSON form.
                serde_json::to_vec(&Json { ts, level, target, election, keys, msg }).unwrap_or_default()
            }
        };
        line.push(b'\n');
        line
    }
}

/// `event: message key=value`. A library's record has neither an event nor keys.
fn text(keys: &Pairs, message: &str) -> String {
    let mut text = String::new();
    let (events, others) = keys.0.iter().partition::<Vec<_>, _>(|(key, _)| key == "event");
    for (_, event) in events {
        text += &format!("{}: ", event.as_str().unwrap_or_default());
    }
    text += &escaped(message);
    for (key, shown) in others {
        let shown = match shown {
            Value::String(id) if key == "id" || key.ends_with("_id") => id.chars().take(ID_DIGITS).collect(),
            Value::String(text) => value(text),
            other => other.to_string(),
        };
        text += &format!(" {key}={shown}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Level;

    fn text(format: LogFormat, event: Option<&LogEvent>, message: &str) -> String {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_251_600_123);
        let writer = Writer { format, election: "web".to_owned() };
        let mut record = Record::builder();
        record.level(Level::Info).target("bellwether");
        if let Some(event) = event {
            record.key_values(event);
        }
        String::from_utf8(writer.record(at, &record.args(format_args!("{message}")).build())).unwrap()
    }

    fn gone() -> LogEvent {
        LogEvent::info("member_gone")
            .with("name", "web 0")
            .with("id", "9aa4d102-3df2-470f-a9a7-e9c4515d1150")
            .with("gap_ms", crate::base::ms(Duration::from_micros(1_250)))
            .with("me", true)
            .with("epoch", 7u64)
            .with_some("reason", None::<&str>)
            .not_shown(0)
    }

    #[test]
    fn writes_text_for_people() {
        assert_eq!(
            text(LogFormat::Text, Some(&gone()), "member is gone"),
            "2026-11-21T09:00:00.123Z INFO  member_gone: member is gone name=\"web 0\" id=9aa4d102 \
             gap_ms=1.3 me=true epoch=7\n"
        );
        assert_eq!(text(LogFormat::Text, None, "a\nb"), "2026-11-21T09:00:00.123Z INFO  a\\nb\n");
    }

    #[test]
    fn writes_json_for_machines() {
        assert_eq!(
            text(LogFormat::Json, Some(&gone()), "a\nb\"c"),
            concat!(
                r#"{"ts":"2026-11-21T09:00:00.123Z","level":"INFO","target":"bellwether","election":"web","#,
                r#""event":"member_gone","name":"web 0","id":"9aa4d102-3df2-470f-a9a7-e9c4515d1150","#,
                r#""gap_ms":1.3,"me":true,"epoch":7,"msg":"a\nb\"c"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_message_cannot_forge_a_line() {
        let forged = "peer\n2026-11-21T09:00:00.124Z ERROR forged\r\u{1b}[1A";
        let event = LogEvent::info("member_up").with("name", forged);
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = text(format, Some(&event), forged);
            assert_eq!(line.chars().filter(|c| c.is_control()).count(), 1, "{line}");
        }
        let line = text(LogFormat::Text, Some(&LogEvent::info("member_up").with("name", "a epoch=9")), "");
        assert!(line.ends_with("name=\"a epoch=9\"\n"), "{line}");
    }

    #[test]
    fn a_line_is_of_bounded_length() {
        let long = "\u{1}".repeat(1_000_000);
        let event = LogEvent::info("member_up").with("name", long.as_str());
        assert!(text(LogFormat::Text, Some(&event), &long).len() < MESSAGE_BYTES_MAX + 50);
        assert!(text(LogFormat::Json, Some(&event), &long).len() < 2 * 6 * MESSAGE_BYTES_MAX + 250);
    }
}
