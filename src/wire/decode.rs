//! Bytes to frames. The bytes are a stranger's: nothing in them is believed before it is checked.

use super::{
    Frame, HEADER_BYTES, Hello, LENGTH_BYTES, Level, REFUSE_TEXT_BYTES_MAX, Refusal, Stamp, VERSION,
    checksum, tag,
};
use crate::election::{
    Body, ConfigVersion, Entry, Epoch, LimitError, MEMBERS_MAX, MembershipVersion, Message, ProcessId,
    RecoveredState, VOTERS_MAX, VoteRequest, VoterConfig, check_cluster, check_text,
};
use serde::Deserialize;
use std::collections::BTreeSet;

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

/// The first frame in `bytes`, and how many bytes it takes; None: it is not all there yet.
///
/// `limit` bounds the whole frame, in bytes; a longer one is an error as soon as its length field is there. Memory is
/// taken only for what is really in the frame: a few times its size at most, whatever lengths it announces inside.
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
fn payload(tag: u16, payload: &[u8]) -> Result<Frame, DecodeError> {
    let reader = |frame| Reader { frame, bytes: payload.len(), epoch: Epoch::ZERO, rest: payload };
    match tag {
        tag::HELLO => hello(reader("hello")),
        tag::REFUSE => refuse(reader("refuse")),
        tag::BYE => Ok(Frame::Bye),
        tag::ELECTION => message(reader("election"), |_| Ok(Body::Election)),
        tag::ANSWER => message(reader("answer"), |_| Ok(Body::Answer)),
        tag::COORDINATOR => {
            message(reader("coordinator"), |fields| Ok(Body::Coordinator { elected_at_ms: fields.take()? }))
        }
        tag::HEARTBEAT => message(reader("heartbeat"), |fields| {
            Ok(Body::Heartbeat { sequence: fields.take()?, membership: fields.take()? })
        }),
        tag::HEARTBEAT_ACK => message(reader("heartbeat_ack"), |fields| {
            Ok(Body::HeartbeatAck { sequence: fields.take()?, membership: fields.take()? })
        }),
        tag::MEMBERSHIP => message(reader("membership"), |fields| {
            Ok(Body::Membership { version: fields.take()?, entries: fields.entries()? })
        }),
        tag::JOIN => message(reader("join"), |fields| {
            Ok(Body::Join { version: fields.take()?, entry: fields.take()? })
        }),
        tag::LEAVE => message(reader("leave"), |fields| {
            Ok(Body::Leave { version: fields.take()?, id: fields.take::<ProcessId>()? })
        }),
        tag::RESIGN => message(reader("resign"), |fields| {
            Ok(Body::Resign { successor: fields.take()?, leaving: fields.take()? })
        }),
        tag::ASK => message(reader("ask"), |_| Ok(Body::Ask)),
        tag::TELL => message(reader("tell"), |fields| {
            Ok(Body::Tell { leader: fields.take()?, entries: fields.entries()? })
        }),
        tag::VOTE_REQUEST => message(reader("vote_request"), |fields| {
            let (ballot, contender, transfer) = (fields.take()?, fields.take()?, fields.take()?);
            Ok(Body::VoteRequest(VoteRequest { ballot, contender, transfer, config: fields.config()? }))
        }),
        tag::VOTE => message(reader("vote"), |fields| {
            let (ballot, outcome) = (fields.take()?, fields.take()?);
            let config = if fields.take()? { Some(fields.config()?) } else { None };
            Ok(Body::Vote { ballot, outcome, config })
        }),
        tag::RENEW => message(reader("renew"), |fields| {
            let sequence = fields.take()?;
            let (epoch, version) = fields.epoch_behind()?;
            let membership = MembershipVersion { epoch, version };
            let lease_ms = fields.take()?;
            let (epoch, version) = fields.epoch_behind()?;
            Ok(Body::Renew { sequence, membership, lease_ms, config: ConfigVersion { epoch, version } })
        }),
        tag::RENEWED => message(reader("renewed"), |fields| {
            Ok(Body::Renewed {
                sequence: fields.take()?,
                membership: fields.take()?,
                promised: fields.take()?,
                config: fields.take()?,
                flags: fields.take()?,
            })
        }),
        tag::CONFIGURATION => {
            message(reader("configuration"), |fields| Ok(Body::Configuration { config: fields.config()? }))
        }
        tag::RECOVER => message(reader("recover"), |fields| {
            Ok(Body::Recover { round: fields.take()?, incarnation: fields.take()? })
        }),
        tag::RECOVERED => message(reader("recovered"), |fields| {
            let (round, incarnation) = (fields.take()?, fields.take()?);
            Ok(Body::Recovered {
                round,
                incarnation,
                state: fields.recovered_state()?,
                flags: fields.take()?,
            })
        }),
        tag::PROPOSE_TRANSFER => message(reader("propose_transfer"), |_| Ok(Body::ProposeTransfer)),
        tag::TRANSFER_READY => {
            message(reader("transfer_ready"), |fields| Ok(Body::TransferReady { majority: fields.take()? }))
        }
        tag => Ok(Frame::Unknown { tag }),
    }
}

fn hello(mut fields: Reader<'_>) -> Result<Frame, DecodeError> {
    let (version_min, version_max, cluster, peer) = fields.take()?;
    let safety = if fields.rest.is_empty() { Level::Classic } else { fields.take()? };
    let hello = Hello { version_min, version_max, cluster, peer, safety };
    fields.allow(check_cluster(&hello.cluster))?;
    fields.allow(hello.peer.check())?;
    Ok(Frame::Hello(hello))
}

fn refuse(mut fields: Reader<'_>) -> Result<Frame, DecodeError> {
    let why: Refusal = fields.take()?;
    let text: &str = fields.take()?;
    fields.allow(check_text("the text", text, REFUSE_TEXT_BYTES_MAX))?;
    Ok(Frame::Refuse { why, text: text.to_owned() })
}

/// Reads what all messages have in common, then lets `body` read its fields.
fn message(
    mut fields: Reader<'_>,
    body: impl FnOnce(&mut Reader<'_>) -> Result<Body, DecodeError>,
) -> Result<Frame, DecodeError> {
    let stamp: Stamp = fields.take()?;
    fields.allow(check_cluster(&stamp.cluster))?;
    fields.allow(stamp.priority.check())?;
    let epoch: Epoch = fields.take()?;
    fields.epoch = epoch;
    let body = body(&mut fields)?;
    let message = Message { epoch, body };
    fields.allow(message.check())?;
    Ok(Frame::Message { stamp, message })
}

/// Takes one field after another from a payload. What is left in the end is a newer version's.
struct Reader<'a> {
    frame: &'static str,
    bytes: usize,
    /// The message's, once it has been read.
    epoch: Epoch,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<T: Deserialize<'a>>(&mut self) -> Result<T, DecodeError> {
        let (value, rest) =
            postcard::take_from_bytes(self.rest).map_err(|source| self.payload_error(source))?;
        self.rest = rest;
        Ok(value)
    }

    /// A list as postcard writes it, its length first. That length is not trusted: nothing is reserved ahead of what has
    /// really been read.
    fn entries(&mut self) -> Result<Vec<Entry>, DecodeError> {
        let announced: u64 = self.take()?;
        if announced > MEMBERS_MAX as u64 {
            self.allow(Err(LimitError::Members(announced)))?;
        }
        let mut entries = Vec::new();
        for _ in 0..announced {
            entries.push(self.take()?);
        }
        Ok(entries)
    }

    /// An epoch that is written as its distance below the message's, and the counter behind it.
    fn epoch_behind(&mut self) -> Result<(Epoch, u32), DecodeError> {
        let (behind, version): (u64, u32) = self.take()?;
        Ok((Epoch(self.epoch.0.wrapping_sub(behind)), version))
    }

    /// A configuration, of whose names the same holds.
    fn config(&mut self) -> Result<VoterConfig, DecodeError> {
        let version = self.take()?;
        let announced: u64 = self.take()?;
        if announced > VOTERS_MAX as u64 {
            let voters = usize::try_from(announced).unwrap_or(usize::MAX);
            self.allow(Err(LimitError::Voters(voters)))?;
        }
        let mut voters = BTreeSet::new();
        for _ in 0..announced {
            voters.insert(self.take()?);
        }
        Ok(VoterConfig { version, voters, lease_ms: self.take()?, bound_ms: self.take()? })
    }

    /// What a process knows from its record, by the number that postcard gives each variant.
    fn recovered_state(&mut self) -> Result<RecoveredState, DecodeError> {
        match self.take::<u32>()? {
            0 => Ok(RecoveredState::Empty),
            1 => Ok(RecoveredState::Founding(self.config()?)),
            2 => Ok(RecoveredState::Founded(self.config()?)),
            _ => Err(self.payload_error(postcard::Error::DeserializeBadEnum)),
        }
    }

    /// The payload is not what this version has there.
    fn payload_error(&self, source: postcard::Error) -> DecodeError {
        DecodeError::Payload { frame: self.frame, bytes: self.bytes, source }
    }

    /// Names the frame in an error of a limit.
    fn allow(&self, checked: Result<(), LimitError>) -> Result<(), DecodeError> {
        checked.map_err(|source| DecodeError::Limit { frame: self.frame, source })
    }
}
