//! The log: one line a record, on stderr, as text for people or as JSON.
//!
//! A thread that logs never waits for the reader of stderr: lines pass through a bounded queue that one
//! thread drains.

use super::escape::{escaped, shortened};
use super::log_writer::LogWriter;
use env_logger::{Builder, Target};
use log::{Level, LevelFilter};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// How long the end of the process waits for the rest of the log.
const FLUSH_LONGEST: Duration = Duration::from_millis(200);
/// How many bytes of one message are written; what is longer ends in an ellipsis.
const MESSAGE_BYTES_MAX: usize = 4096;

static PROGRESS: OnceLock<Arc<super::log_writer::Progress>> = OnceLock::new();

/// How the log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// `2026-11-21T09:00:00.123Z INFO  message key=value`, control characters spelled out.
    Text,
    /// `{"ts":…,"level":…,"target":…,"msg":…}`.
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

/// Starts the log. Libraries are heard from warnings on. A process has one log: a second start changes
/// nothing.
pub fn init(level: LevelFilter, format: LogFormat) -> LogGuard {
    let lost_line = move |lost| {
        let message = format!("log lines were lost, because stderr was not read fast enough lost={lost}");
        line(format, SystemTime::now(), Level::Warn, module_path!(), &message)
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
        .format(move |out, record| {
            let message = record.args().to_string();
            out.write_all(&line(format, SystemTime::now(), record.level(), record.target(), &message))
        })
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

/// One line with its end.
fn line(format: LogFormat, at: SystemTime, level: Level, target: &str, message: &str) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Json<'a> {
        ts: String,
        level: &'a str,
        target: &'a str,
        msg: String,
    }
    let ts = humantime::format_rfc3339_millis(at).to_string();
    let mut line = match format {
        LogFormat::Text => {
            format!("{ts} {:<5} {}", level.as_str(), shortened(escaped(message), MESSAGE_BYTES_MAX))
                .into_bytes()
        }
        LogFormat::Json => {
            let msg = shortened(message.to_owned(), MESSAGE_BYTES_MAX);
            // Strings alone always have a JSON form.
            serde_json::to_vec(&Json { ts, level: level.as_str(), target, msg }).unwrap_or_default()
        }
    };
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: LogFormat, message: &str) -> String {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_251_600_123);
        String::from_utf8(line(format, at, Level::Info, "bellwether::node", message)).unwrap()
    }

    #[test]
    fn writes_text_for_people() {
        assert_eq!(text(LogFormat::Text, "up name=web-0"), "2026-11-21T09:00:00.123Z INFO  up name=web-0\n");
    }

    #[test]
    fn writes_json_for_machines() {
        let json =
            r#"{"ts":"2026-11-21T09:00:00.123Z","level":"INFO","target":"bellwether::node","msg":"a\nb\"c"}"#;
        assert_eq!(text(LogFormat::Json, "a\nb\"c"), format!("{json}\n"));
    }

    #[test]
    fn a_message_cannot_forge_a_line() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = text(format, "peer\n2026-11-21T09:00:00.124Z ERROR forged\r\u{1b}[1A");
            assert_eq!(line.chars().filter(|c| c.is_control()).count(), 1, "{line}");
        }
    }

    #[test]
    fn a_line_is_of_bounded_length() {
        assert!(text(LogFormat::Text, &"\u{1}".repeat(1_000_000)).len() < MESSAGE_BYTES_MAX + 50);
        assert!(text(LogFormat::Json, &"\u{1}".repeat(1_000_000)).len() < 6 * MESSAGE_BYTES_MAX + 150);
    }
}
