//! Frames to bytes.

use super::{FRAME_BYTES_MAX, HEADER_BYTES, Hello, LENGTH_BYTES, REFUSE_TEXT_BYTES_MAX, Refusal, Stamp, tag};
use crate::election::{Body, Epoch, LimitError, Message, VoteRequest, check_cluster};
use serde::Serialize;

/// A message's frame. The error says which part is beyond its limit; a receiver would refuse it.
pub fn encode_message(stamp: &Stamp, message: &Message) -> Result<Vec<u8>, LimitError> {
    check_cluster(&stamp.cluster)?;
    stamp.priority.check()?;
    message.check()?;
    let frame = begin(tag::of(&message.body));
    let frame = put(frame, &(stamp, message.epoch));
    let frame = match &message.body {
        Body::Election | Body::Answer | Body::Ask | Body::ProposeTransfer => frame,
        Body::Coordinator { elected_at_ms } => put(frame, elected_at_ms),
        Body::Heartbeat { sequence, membership } | Body::HeartbeatAck { sequence, membership } => {
            put(frame, &(sequence, membership))
        }
        Body::Membership { version, entries } => put(frame, &(version, entries)),
        Body::Join { version, entry } => put(frame, &(version, entry)),
        Body::Leave { version, id } => put(frame, &(version, id)),
        Body::Resign { successor, leaving } => put(frame, &(successor, leaving)),
        Body::Tell { leader, entries } => put(frame, &(leader, entries)),
        Body::VoteRequest(VoteRequest { ballot, contender, transfer, config }) => {
            put(frame, &(ballot, contender, transfer, config))
        }
        Body::Vote { ballot, outcome, config } => put(frame, &(ballot, outcome, config)),
        Body::Renew { sequence, membership, lease_ms, config } => {
            // A leader writes list and configuration in its own epoch, all but always: as distances that costs a byte
            // each, not nine, and so keeps the longest name of a cluster within a heartbeat's 128 bytes.
            let behind = |epoch: Epoch| message.epoch.0.wrapping_sub(epoch.0);
            let membership = (behind(membership.epoch), membership.version);
            put(frame, &(sequence, membership, lease_ms, (behind(config.epoch), config.version)))
        }
        Body::Renewed { sequence, membership, promised, config, flags } => {
            put(frame, &(sequence, membership, promised, config, flags))
        }
        Body::Configuration { config } => put(frame, &(config,)),
        Body::Recover { round, incarnation } => put(frame, &(round, incarnation)),
        Body::Recovered { round, incarnation, state, flags } => {
            put(frame, &(round, incarnation, state, flags))
        }
        Body::TransferReady { majority } => put(frame, &(majority,)),
    };
    Ok(seal(frame))
}

/// A Hello's frame. The error says which part is beyond its limit.
pub fn encode_hello(hello: &Hello) -> Result<Vec<u8>, LimitError> {
    check_cluster(&hello.cluster)?;
    hello.peer.check()?;
    Ok(seal(put(begin(tag::HELLO), hello)))
}

/// A Refuse's frame. The text is cut to [`REFUSE_TEXT_BYTES_MAX`] bytes, and a space takes each control character's
/// place, so that any error's text will do.
pub fn encode_refuse(why: Refusal, text: &str) -> Vec<u8> {
    let text = text.replace(char::is_control, " ");
    let mut end = text.len().min(REFUSE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    seal(put(begin(tag::REFUSE), &(why, &text[..end])))
}

/// A Bye's frame.
pub fn encode_bye() -> Vec<u8> {
    seal(begin(tag::BYE))
}

/// A frame of this kind without payload, and with gaps for length and checksum.
fn begin(tag: u16) -> Vec<u8> {
    // Most frames are heartbeats and fit into this; the others grow.
    let mut frame = Vec::with_capacity(128);
    frame.extend_from_slice(&[0; LENGTH_BYTES]);
    frame.extend_from_slice(&tag.to_le_bytes());
    frame.resize(HEADER_BYTES, 0);
    frame
}

/// Adds fields to the payload.
// postcard fails where a sequence's length is not known ahead, where a `Serialize` refuses its value, and where the
// output is full. A `Vec` grows, and the types of this module are plain structures, strings and vectors.
#[allow(clippy::expect_used)]
fn put<T: Serialize>(frame: Vec<u8>, fields: &T) -> Vec<u8> {
    postcard::to_extend(fields, frame).expect("invariant: every frame can be serialised")
}

/// Fills in length and checksum.
fn seal(mut frame: Vec<u8>) -> Vec<u8> {
    // The limits on texts and lists, checked before, keep every frame below this; `tests/wire.rs` has the largest.
    assert!(frame.len() <= FRAME_BYTES_MAX, "invariant: a frame is at most {FRAME_BYTES_MAX} bytes");
    let length = (frame.len() - LENGTH_BYTES) as u32;
    let checksum = super::checksum(&frame);
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    frame[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    frame
}
