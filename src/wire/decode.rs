//! Bytes to frames. The bytes are a stranger's: nothing in them is believed before it is checked.

use super::reader::{DecodeError, Reader};
use super::{
    Frame, HEADER_BYTES, Hello, LENGTH_BYTES, REFUSE_TEXT_BYTES_MAX, Refusal, SafetyCode, checksum, messages,
    tag,
};
use crate::election::{AnnouncedValues, check_cluster, check_text};

/// The first frame in `bytes`, and how many bytes it takes; None: it is not all there yet.
///
/// `limit` bounds the whole frame, in bytes; a longer one is an error as soon as its length field is there.
/// Memory is taken only for what is really in the frame: a few times its size at most, whatever lengths it
/// announces inside.
pub fn decode(bytes: &[u8], limit: usize) -> Result<Option<(Frame, usize)>, DecodeError> {
    let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let total = u64::from(u32::from_le_bytes(*length)) + LENGTH_BYTES as u64;
    if total > limit as u64 {
        return Err(DecodeError::TooLong { bytes: total, bytes_max: limit });
    }
    if total < HEADER_BYTES as u64 {
        return Err(DecodeError::TooShort { bytes: total, bytes_min: HEADER_BYTES });
    }
    let Some(frame) = bytes.get(..total as usize) else {
        return Ok(None);
    };
    let announced = u32::from_le_bytes([frame[6], frame[7], frame[8], frame[9]]);
    let computed = checksum(frame);
    if announced != computed {
        return Err(DecodeError::Checksum { announced, computed });
    }
    let frame = payload(u16::from_le_bytes([frame[4], frame[5]]), &frame[HEADER_BYTES..])?;
    Ok(Some((frame, total as usize)))
}

/// Reads a payload whose checksum was right.
fn payload(number: u16, payload: &[u8]) -> Result<Frame, DecodeError> {
    match number {
        tag::HELLO => hello(Reader::new("hello", payload)),
        tag::REFUSE => refuse(Reader::new("refuse", payload)),
        tag::BYE => Ok(Frame::Bye),
        tag::CONFIRM => Ok(Frame::Confirm(Reader::new("confirm", payload).take()?)),
        tag::CONFIRMED => Ok(Frame::Confirmed(Reader::new("confirmed", payload).take()?)),
        number => Ok(messages::read(number, payload)?.unwrap_or(Frame::Unknown { tag: number })),
    }
}

fn hello(mut fields: Reader<'_>) -> Result<Frame, DecodeError> {
    let (version_min, version_max, cluster, peer) = fields.take()?;
    let safety = if fields.is_empty() { SafetyCode::Classic } else { fields.take()? };
    let token = if fields.is_empty() { 0 } else { fields.take()? };
    let announce = if fields.is_empty() { AnnouncedValues::default() } else { fields.take()? };
    let hello = Hello { version_min, version_max, cluster, peer, safety, token, announce };
    fields.allow(check_cluster(&hello.cluster))?;
    fields.allow(hello.announce.check())?;
    fields.allow(hello.peer.check())?;
    Ok(Frame::Hello(hello))
}

fn refuse(mut fields: Reader<'_>) -> Result<Frame, DecodeError> {
    let why: Refusal = fields.take()?;
    let text: &str = fields.take()?;
    fields.allow(check_text("the text", text, REFUSE_TEXT_BYTES_MAX))?;
    Ok(Frame::Refuse { why, text: text.to_owned() })
}
