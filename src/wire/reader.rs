//! The fields of a payload, one after another. The bytes are a stranger's: nothing in them is believed before
//! it is checked.

use super::{Frame, Stamp, VERSION};
use crate::election::{Body, LimitError, Message, check_cluster};
use serde::Deserialize;

/// Why bytes are no frame. None of these can be mended by reading on: the connection is to be closed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The length field announces more than the limit.
    #[error("the frame announces {bytes} bytes in all; at most {bytes_max} are allowed here")]
    TooLong {
        /// The announced length of the whole frame.
        bytes: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// The length field announces less than a header.
    #[error("the frame announces {bytes} bytes in all; the shortest frame has {bytes_min}")]
    TooShort {
        /// The announced length of the whole frame.
        bytes: u64,
        /// The header's length.
        bytes_min: usize,
    },
    /// The frame was damaged on its way, or is none.
    #[error("the frame says its checksum is {announced:08x}, but it is {computed:08x}: damaged, or no frame")]
    Checksum {
        /// What the frame says.
        announced: u32,
        /// What it should have said.
        computed: u32,
    },
    /// The checksum is right, but the payload is not of its kind.
    #[error("{frame} frame: its payload of {bytes} bytes is not what version {VERSION} has there: {source}")]
    Payload {
        /// The frame's kind.
        frame: &'static str,
        /// The payload's length.
        bytes: usize,
        /// What the decoder found.
        source: postcard::Error,
    },
    /// The payload can be read, but has something in it that is not allowed.
    #[error("{frame} frame: {source}")]
    Limit {
        /// The frame's kind.
        frame: &'static str,
        /// What was seen, and what is allowed.
        source: LimitError,
    },
}

/// Takes one field after another from a payload. What is left in the end is a newer version's.
pub(super) struct Reader<'a> {
    frame: &'static str,
    bytes: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The payload of a frame with this name.
    pub(super) fn new(frame: &'static str, payload: &'a [u8]) -> Reader<'a> {
        Reader { frame, bytes: payload.len(), rest: payload }
    }

    /// Reads what all messages have in common, then lets `body` read its fields.
    pub(super) fn message(
        mut self,
        body: impl FnOnce(&mut Reader<'a>) -> Result<Body, DecodeError>,
    ) -> Result<Frame, DecodeError> {
        let stamp: Stamp = self.take()?;
        self.allow(check_cluster(&stamp.cluster))?;
        let (priority, epoch) = (self.take()?, self.take()?);
        let message = Message { epoch, priority, body: body(&mut self)? };
        self.allow(message.check())?;
        Ok(Frame::Message { stamp, message })
    }

    pub(super) fn take<T: Deserialize<'a>>(&mut self) -> Result<T, DecodeError> {
        let (value, rest) =
            postcard::take_from_bytes(self.rest).map_err(|source| self.payload_error(source))?;
        self.rest = rest;
        Ok(value)
    }

    /// The payload is not what this version has there.
    pub(super) fn payload_error(&self, source: postcard::Error) -> DecodeError {
        DecodeError::Payload { frame: self.frame, bytes: self.bytes, source }
    }

    /// Names the frame in an error of a limit.
    pub(super) fn allow(&self, checked: Result<(), LimitError>) -> Result<(), DecodeError> {
        checked.map_err(|source| DecodeError::Limit { frame: self.frame, source })
    }
}
