//! The record's file: a line of header, then JSON for an operator to read.
//!
//! ```text
//! bellwether record format=2 crc32=0badcafe
//! {
//!   "cluster": …
//! ```
//!
//! The checksum is of everything after the header's line. The format's number is raised when an older program
//! must not use a newer one's record, or a newer one an older one's. A field that an older program may ignore
//! needs no new number.

use super::RECORD_BYTES_MAX;
use crate::base;
use crate::election::{Epoch, LimitError, NAME_BYTES_MAX, Record, check_cluster, check_text};

/// The one format that this program writes and reads.
pub const FORMAT: u32 = 2;

const MAGIC: &str = "bellwether record format=";
const CHECKSUM: &str = " crc32=";

/// The most that is passed on of what serde says, in characters.
const ERROR_CHARACTERS_MAX: usize = 200;

/// Why the bytes of a file are no record that this program can use.
#[derive(PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// A newer program wrote it, in this format.
    Newer(u32),
    /// An older program wrote it, in this format.
    Older(u32),
    /// It holds this epoch, above which no election can follow.
    EpochTooHigh(Epoch),
    /// They are damaged, or something else.
    Corrupt(String),
}

/// A record as the bytes of its file. The error says which part of the record is beyond its limit.
// JSON cannot express maps whose keys are no strings, and a `Serialize` may refuse its value; a record has
// neither.
#[allow(clippy::expect_used)]
pub fn to_bytes(record: &Record) -> Result<Vec<u8>, LimitError> {
    check(record)?;
    let mut json = serde_json::to_string_pretty(record).expect("invariant: every record can be serialised");
    json.push('\n');
    let checksum = base::checksum(&[json.as_bytes()]);
    let bytes = format!("{MAGIC}{FORMAT}{CHECKSUM}{checksum:08x}\n{json}").into_bytes();
    // The limits checked above keep every record below this; `tests/store.rs` has the largest.
    assert!(bytes.len() <= RECORD_BYTES_MAX, "invariant: a record is at most {RECORD_BYTES_MAX} bytes");
    Ok(bytes)
}

/// The record in the bytes of a file, of which the caller has read no more than one byte beyond
/// [`RECORD_BYTES_MAX`].
pub fn from_bytes(bytes: &[u8]) -> Result<Record, Unreadable> {
    let corrupt = |why: &str| Unreadable::Corrupt(why.to_owned());
    if bytes.is_empty() {
        return Err(corrupt("it is empty"));
    }
    // The format comes before the size: a newer one may allow more.
    let (format, rest) = bytes
        .strip_prefix(MAGIC.as_bytes())
        .and_then(number)
        .ok_or_else(|| corrupt("it does not begin as a record does"))?;
    if format > FORMAT {
        return Err(Unreadable::Newer(format));
    }
    if format == 0 {
        return Err(Unreadable::Corrupt(format!("there is no format {format}")));
    }
    if format < FORMAT {
        return Err(Unreadable::Older(format));
    }
    if bytes.len() > RECORD_BYTES_MAX {
        return Err(Unreadable::Corrupt(format!("it is longer than {RECORD_BYTES_MAX} bytes")));
    }
    let (announced, json) = rest
        .strip_prefix(CHECKSUM.as_bytes())
        .and_then(|rest| rest.split_at_checked(8))
        .and_then(|(digits, rest)| Some((digits, rest.strip_prefix(b"\n")?)))
        .ok_or_else(|| corrupt("its first line is incomplete"))?;
    let computed = format!("{:08x}", base::checksum(&[json]));
    if announced != computed.as_bytes() {
        let announced = announced.escape_ascii();
        return Err(Unreadable::Corrupt(format!(
            "its first line says that its checksum is {announced}, but it is {computed}: it is damaged, cut \
             off or edited"
        )));
    }
    let record = serde_json::from_slice(json)
        .map_err(|error| Unreadable::Corrupt(format!("it is not what a record is: {}", one_line(&error))))?;
    match check(&record) {
        Ok(()) => Ok(record),
        Err(LimitError::RecordEpoch(found)) => Err(Unreadable::EpochTooHigh(found)),
        Err(error) => Err(Unreadable::Corrupt(error.to_string())),
    }
}

/// What serde says, in one line that is not long: it quotes what it found, whatever that is.
pub(super) fn one_line(error: &serde_json::Error) -> String {
    error.to_string().replace(char::is_control, " ").chars().take(ERROR_CHARACTERS_MAX).collect()
}

/// The same limits as for what peers send, but for epochs: theirs is [`Epoch::RECORD_MAX`].
fn check(record: &Record) -> Result<(), LimitError> {
    check_cluster(&record.cluster)?;
    record.epoch.check_in_record()?;
    let Some(vote) = &record.vote else { return Ok(()) };
    check_text("the voter's name", &vote.name, NAME_BYTES_MAX)?;
    vote.config.version.epoch.check_in_record()?;
    vote.config.check()
}

/// The decimal number at the beginning, and what follows it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let end = bytes.iter().position(|b| !b.is_ascii_digit()).unwrap_or(bytes.len());
    let (digits, rest) = bytes.split_at(end);
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}
