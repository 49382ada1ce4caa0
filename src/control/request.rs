//! What an operator asks for, from the bytes of a request.

use crate::config::DURATION_MAX;
use crate::election::{NAME_BYTES_MAX, Operation};
use crate::telemetry::escape::{escaped, shortened};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest request, in bytes: several times that of one with the longest name.
pub const BYTES_MAX: usize = 4 * 1024;
const EXAMPLE: &str = r#"{"operation":"cordon","timeout_ms":10000}"#;
/// How much of a text that should not be there is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 120;

/// What is asked, and how long for the answer at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// What.
    pub operation: Operation,
    /// How long the operator waits; not zero, at most [`DURATION_MAX`].
    pub within: Duration,
}

/// Why a request is refused before the election hears of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRequest {
    /// There is no end of the line in [`BYTES_MAX`].
    #[error("the request is longer than {BYTES_MAX} bytes; send one line of JSON")]
    TooLong,
    /// The line did not come.
    #[error("no request came within {}s; send one line of JSON at once", .0.as_secs())]
    Late(Duration),
    /// It is no JSON object, or one with other fields.
    #[error("the request is not one of ours: {0}; send a line such as {EXAMPLE}")]
    NotJson(String),
    /// It asks for something else.
    #[error("there is no operation \"{name}\"; there are {}", Operation::NAMES.join(", "))]
    NoOperation {
        /// What it asks for, escaped.
        name: String,
    },
    /// A transfer to no process.
    #[error("transfer needs the name of a member; send it as \"to\"")]
    NoName,
    /// No member has such a name.
    #[error("the name has {0} bytes, and a member's has at most {NAME_BYTES_MAX}")]
    LongName(usize),
    /// A field of another operation.
    #[error("{operation} takes no {field:?}; leave it out")]
    Unexpected {
        /// The operation.
        operation: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A time that is zero, or too long.
    #[error("{field} is {ms}; it has to be from 1 to {} milliseconds", DURATION_MAX.as_millis())]
    OutOfBounds {
        /// The field.
        field: &'static str,
        /// What it says.
        ms: u64,
    },
}

/// A request as it is sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    operation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    for_ms: Option<u64>,
    timeout_ms: u64,
}

/// The request in what has been received; none when its line has not ended. What follows the line is left
/// unread.
///
/// # Errors
/// [`BadRequest`] says what to send instead.
pub fn parse(received: &[u8]) -> Result<Option<Request>, BadRequest> {
    match received.iter().take(BYTES_MAX).position(|byte| *byte == b'\n') {
        Some(end) => {
            let line: Line = serde_json::from_slice(&received[..end]).map_err(|error| {
                BadRequest::NotJson(shortened(escaped(&error.to_string()), SHOWN_BYTES_MAX))
            })?;
            checked(line).map(Some)
        }
        None if received.len() >= BYTES_MAX => Err(BadRequest::TooLong),
        None => Ok(None),
    }
}

fn checked(line: Line) -> Result<Request, BadRequest> {
    let Line { operation, to, for_ms, timeout_ms } = line;
    let within = time("timeout_ms", timeout_ms)?;
    let aside = for_ms.map(|ms| time("for_ms", ms)).transpose()?;
    let operation = match (operation.as_str(), to) {
        ("resign", None) => Operation::Resign { stand_aside: aside },
        ("transfer", Some(to)) if to.len() > NAME_BYTES_MAX => return Err(BadRequest::LongName(to.len())),
        ("transfer", Some(to)) if !to.is_empty() => Operation::Transfer { to },
        ("transfer", _) => return Err(BadRequest::NoName),
        ("cordon", None) => Operation::Cordon,
        ("uncordon", None) => Operation::Uncordon,
        (name, _) => {
            let known = Operation::NAMES.into_iter().find(|known| *known == name);
            return Err(match known {
                Some(operation) => BadRequest::Unexpected { operation, field: "to" },
                None => BadRequest::NoOperation { name: shortened(escaped(&operation), SHOWN_BYTES_MAX) },
            });
        }
    };
    match operation {
        Operation::Resign { .. } => {}
        _ if aside.is_none() => {}
        other => return Err(BadRequest::Unexpected { operation: other.name(), field: "for_ms" }),
    }
    Ok(Request { operation, within })
}

fn time(field: &'static str, ms: u64) -> Result<Duration, BadRequest> {
    match Duration::from_millis(ms) {
        time if time.is_zero() || time > DURATION_MAX => Err(BadRequest::OutOfBounds { field, ms }),
        time => Ok(time),
    }
}

/// A request as one line.
pub fn encode(request: &Request) -> Vec<u8> {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let Request { operation, within } = request;
    let line = Line {
        operation: operation.name().to_owned(),
        to: match operation {
            Operation::Transfer { to } => Some(to.clone()),
            Operation::Resign { .. } | Operation::Cordon | Operation::Uncordon => None,
        },
        for_ms: match operation {
            Operation::Resign { stand_aside } => stand_aside.map(ms),
            Operation::Transfer { .. } | Operation::Cordon | Operation::Uncordon => None,
        },
        timeout_ms: ms(*within),
    };
    // Texts and numbers are JSON, always.
    let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn read(text: &str) -> Result<Option<Request>, BadRequest> {
        parse(text.as_bytes())
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        for operation in [
            Operation::Resign { stand_aside: None },
            Operation::Resign { stand_aside: Some(MINUTE) },
            Operation::Transfer { to: "web-1 \"\\\n\u{202e}".to_owned() },
            Operation::Transfer { to: "\u{1}".repeat(NAME_BYTES_MAX) },
            Operation::Cordon,
            Operation::Uncordon,
        ] {
            let request = Request { operation, within: MINUTE };
            let bytes = encode(&request);
            assert_eq!(parse(&bytes), Ok(Some(request)));
            assert_eq!(parse(&bytes[..bytes.len() - 1]), Ok(None), "it ends with its line");
        }
    }

    #[test]
    fn each_wrong_request_is_refused_with_what_to_send() {
        let long = format!(r#"{{"operation":"transfer","to":"{}","timeout_ms":1}}"#, "n".repeat(254));
        for (text, words) in [
            ("\n", "EOF"),
            ("resign\n", "expected"),
            ("[]\n", "send a line such as"),
            ("{}\n", "missing field `operation`"),
            ("GET / HTTP/1.1\r\n", "send a line such as"),
            ("{\"operation\":\"cordon\"}\n", "missing field `timeout_ms`"),
            ("{\"operation\":\"cordon\",\"timeout_ms\":1,\"x\":1}\n", "unknown field `x`"),
            ("{\"operation\":\"cordon\",\"timeout_ms\":1,\"timeout_ms\":1}\n", "duplicate field"),
            ("{\"operation\":\"cordon\",\"timeout_ms\":-1}\n", "expected u64"),
            (
                "{\"operation\":\"cordon\",\"timeout_ms\":0}\n",
                "timeout_ms is 0; it has to be from 1 to 3600000",
            ),
            ("{\"operation\":\"cordon\",\"timeout_ms\":3600001}\n", "timeout_ms is 3600001"),
            ("{\"operation\":\"resign\",\"for_ms\":0,\"timeout_ms\":1}\n", "for_ms is 0"),
            (
                "{\"operation\":\"resign\",\"for_ms\":18446744073709551615,\"timeout_ms\":1}\n",
                "for_ms is 1844",
            ),
            ("{\"operation\":\"resign\",\"to\":\"a\",\"timeout_ms\":1}\n", "resign takes no \"to\""),
            ("{\"operation\":\"cordon\",\"for_ms\":1,\"timeout_ms\":1}\n", "cordon takes no \"for_ms\""),
            ("{\"operation\":\"transfer\",\"timeout_ms\":1}\n", "needs the name of a member"),
            ("{\"operation\":\"transfer\",\"to\":\"\",\"timeout_ms\":1}\n", "needs the name of a member"),
            (&(long + "\n"), "the name has 254 bytes"),
            (
                "{\"operation\":\"exit\",\"timeout_ms\":1}\n",
                "no operation \"exit\"; there are resign, transfer",
            ),
            ("{\"operation\":\"\\u001b[2J\",\"timeout_ms\":1}\n", r#"no operation "\u{1b}[2J""#),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_line_ends_within_its_bytes_or_is_too_long() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read(&" ".repeat(BYTES_MAX - 1)), Ok(None));
        assert_eq!(read(&" ".repeat(BYTES_MAX)), Err(BadRequest::TooLong));
        assert_eq!(read(&format!("{}\n", " ".repeat(BYTES_MAX))), Err(BadRequest::TooLong));
        let cordon = r#"{"operation":"cordon","timeout_ms":1}"#;
        let padded = format!("{}{cordon}\nand more", " ".repeat(BYTES_MAX - 1 - cordon.len()));
        assert!(matches!(read(&padded), Ok(Some(Request { operation: Operation::Cordon, .. }))));
    }
}
