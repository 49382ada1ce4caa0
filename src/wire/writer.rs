//! A frame in the making: its header, its payload, its length and its checksum.

use super::{FRAME_BYTES_MAX, HEADER_BYTES, LENGTH_BYTES};
use serde::Serialize;

/// A frame of this kind without payload, and with gaps for length and checksum.
pub(super) fn begin(tag: u16) -> Vec<u8> {
    // Most frames are heartbeats and fit into this; the others grow.
    let mut frame = Vec::with_capacity(128);
    frame.extend_from_slice(&[0; LENGTH_BYTES]);
    frame.extend_from_slice(&tag.to_le_bytes());
    frame.resize(HEADER_BYTES, 0);
    frame
}

/// Adds fields to the payload.
// postcard fails where a sequence's length is not known ahead, where a `Serialize` refuses its value, and
// where the output is full. A `Vec` grows, and the types of this module are plain structures, strings and
// vectors.
#[allow(clippy::expect_used)]
pub(super) fn put<T: Serialize>(frame: Vec<u8>, fields: &T) -> Vec<u8> {
    postcard::to_extend(fields, frame).expect("invariant: every frame can be serialised")
}

/// Fills in length and checksum.
pub(super) fn seal(mut frame: Vec<u8>) -> Vec<u8> {
    // The limits on texts and lists, checked before, keep every frame below this; `tests/wire.rs` has the
    // largest.
    assert!(frame.len() <= FRAME_BYTES_MAX, "invariant: a frame is at most {FRAME_BYTES_MAX} bytes");
    let length = (frame.len() - LENGTH_BYTES) as u32;
    let checksum = super::checksum(&frame);
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    frame[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    frame
}
