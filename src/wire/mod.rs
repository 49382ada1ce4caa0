//! Frames: what travels between two processes, and how it is encoded.
//!
//! ```text
//! u32 LE   length of everything after these four bytes
//! u16 LE   tag: what kind of frame it is (see `tag`)
//! u32 LE   CRC-32 of tag and payload
//! …        payload: postcard; of a message: stamp, priority, epoch, the fields of its body in their order
//! ```
//!
//! The rules that let versions live together:
//!
//! - A tag's number is never reused. A sound frame with a number that this version does not know is
//!   [`Frame::Unknown`]: it is counted and skipped.
//! - A field is only ever added **at the end of a payload**. Bytes after the fields that this version knows
//!   are ignored. Structures that stand inside a payload (a member, a stamp) are never changed: a changed one
//!   needs a new tag, sent only where [`Hello::negotiate`] found a version that has it.
//! - Hello, Refuse and Bye keep their layout for good, since they are read before a version is agreed upon. A
//!   field that a Hello lacks at its end has the value that says what its sender does: the first version knew
//!   no safety level.
//! - The limits below are part of the format: a receiver refuses what is beyond them. Raising one needs a new
//!   version.
//!
//! What leaves is checked by the same rules as what arrives
//! ([`Message::check`](crate::election::Message::check)), so every encoded frame can be decoded. An IPv6
//! address travels without its scope and flow label: they mean nothing on another machine.
//!
//! The checksum finds damage, not forgery: it is no signature.

mod decode;
mod encode;
mod hello;
mod messages;
mod reader;
mod tag;
mod writer;

pub use decode::decode;
pub use encode::{encode_bye, encode_confirm, encode_confirmed, encode_hello, encode_message, encode_refuse};
pub use hello::{Confirm, Confirmed, Hello, Refusal, SafetyCode};
pub use reader::DecodeError;

use crate::election::{Message, ProcessId};
use serde::{Deserialize, Serialize};

/// The version of the protocol that this program speaks best.
pub const VERSION: u16 = 1;
/// The oldest version that it can also speak.
pub const VERSION_MIN: u16 = 1;

/// The longest frame, all of it, in bytes. A list of the most members with the longest names needs about 93
/// KiB; the rest is room for fields to come.
pub const FRAME_BYTES_MAX: usize = 128 * 1024;
/// The longest frame, all of it, in bytes, until the handshake is over: a stranger makes no process keep more
/// than this. The longest Hello, with all that a process may announce, has less than three quarters of it.
pub const HELLO_BYTES_MAX: usize = 4 * 1024;
/// The longest explanation in a Refuse, in bytes.
pub const REFUSE_TEXT_BYTES_MAX: usize = 256;

/// The bytes of the length field, which does not count itself.
const LENGTH_BYTES: usize = 4;
/// The bytes before the payload: length, tag and checksum.
const HEADER_BYTES: usize = 10;

/// The sender of a message. It is stamped on every message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The cluster's name: peers of another cluster are refused.
    pub cluster: String,
    /// The sender's id.
    pub id: ProcessId,
}

/// One frame, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// The first frame on every connection, from both sides.
    Hello(Hello),
    /// Instead of an answer to a Hello, before the connection is closed.
    Refuse {
        /// Why.
        why: Refusal,
        /// For people; at most [`REFUSE_TEXT_BYTES_MAX`] bytes.
        text: String,
    },
    /// Instead of a Hello, on a connection of its own.
    Confirm(Confirm),
    /// The answer to that.
    Confirmed(Confirmed),
    /// The sender closes this connection deliberately: its end is no evidence of a crash.
    Bye,
    /// A message of the election.
    Message {
        /// Its sender.
        stamp: Stamp,
        /// What it says.
        message: Message,
    },
    /// A sound frame of a kind that this version does not know. To be counted and skipped.
    Unknown {
        /// Its number.
        tag: u16,
    },
}

/// The checksum of a whole frame: of its tag and its payload.
fn checksum(frame: &[u8]) -> u32 {
    crate::base::checksum(&[&frame[LENGTH_BYTES..LENGTH_BYTES + 2], &frame[HEADER_BYTES..]])
}
