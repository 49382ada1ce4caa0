//! Messages to bytes and back, made from the one table of messages.

use super::reader::{DecodeError, Reader};
use super::writer::{begin, put};
use super::{Frame, Stamp};
use crate::election::{
    Ballot, Body, ConfigVersion, Entry, Epoch, Flags, Incarnation, Incumbent, Learnt, LimitError, ListWanted,
    MEMBERS_MAX, MembershipVersion, Message, Pace, ProcessId, RecoveredState, VOTERS_MAX, VoteOutcome,
    VoteRequest, VoterConfig, message_table,
};
use std::collections::BTreeSet;
use std::sync::Arc;

macro_rules! codec {
    ($($(#[$doc:meta])* $protocol:ident $number:literal $name:literal $variant:ident
        $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?;)*) => {
        /// A message's frame, which is not sealed yet. Its fields stand one after the other.
        pub(super) fn frame(stamp: &Stamp, message: &Message) -> Vec<u8> {
            match &message.body {
                $(Body::$variant { $($($field,)*)? } => {
                    let frame = put(begin($number), &(stamp, message.priority, message.epoch));
                    $($(let frame = put(frame, $field);)*)?
                    frame
                })*
            }
        }

        /// Reads the message of this number; none: this version has no such message.
        pub(super) fn read(number: u16, payload: &[u8]) -> Result<Option<Frame>, DecodeError> {
            match number {
                $($number => Reader::new($name, payload).message(|_fields| {
                    Ok(Body::$variant { $($($field: <$type as Field>::read(_fields)?,)*)? })
                }).map(Some),)*
                _ => Ok(None),
            }
        }
    };
}
message_table!(codec);

/// How a field is read. A list is not trusted in its length.
trait Field: Sized {
    fn read(fields: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// Fields whose size their type bounds.
macro_rules! plain {
    ($($field:ty),* $(,)?) => {
        $(impl Field for $field {
            fn read(fields: &mut Reader<'_>) -> Result<$field, DecodeError> {
                fields.take()
            }
        })*
    };
}
plain!(
    bool,
    u32,
    u64,
    Ballot,
    ConfigVersion,
    Entry,
    Flags,
    Incarnation,
    MembershipVersion,
    Option<Epoch>,
    Option<Incumbent>,
    Option<MembershipVersion>,
    Option<ProcessId>,
    ProcessId,
    VoteOutcome,
);

/// Fields that a message of an earlier version ends without.
macro_rules! added {
    ($($field:ty),* $(,)?) => {
        $(impl Field for $field {
            fn read(fields: &mut Reader<'_>) -> Result<$field, DecodeError> {
                if fields.is_empty() { Ok(<$field>::default()) } else { fields.take() }
            }
        })*
    };
}
added!(Learnt, ListWanted, Pace);

/// A list as postcard writes it, its length first. That length is not trusted: nothing is reserved ahead of
/// what has really been read.
impl Field for Arc<[Entry]> {
    fn read(fields: &mut Reader<'_>) -> Result<Arc<[Entry]>, DecodeError> {
        let announced: u64 = fields.take()?;
        if announced > MEMBERS_MAX as u64 {
            fields.allow(Err(LimitError::Members(announced)))?;
        }
        let mut entries = Vec::new();
        for _ in 0..announced {
            entries.push(fields.take()?);
        }
        Ok(entries.into())
    }
}

/// A configuration, of whose names the same holds.
impl Field for VoterConfig {
    fn read(fields: &mut Reader<'_>) -> Result<VoterConfig, DecodeError> {
        let version = fields.take()?;
        let announced: u64 = fields.take()?;
        if announced > VOTERS_MAX as u64 {
            let voters = usize::try_from(announced).unwrap_or(usize::MAX);
            fields.allow(Err(LimitError::Voters(voters)))?;
        }
        let mut voters = BTreeSet::new();
        for _ in 0..announced {
            voters.insert(fields.take()?);
        }
        Ok(VoterConfig { version, voters, lease_ms: fields.take()?, bound_ms: fields.take()? })
    }
}

impl Field for Option<VoterConfig> {
    fn read(fields: &mut Reader<'_>) -> Result<Option<VoterConfig>, DecodeError> {
        Ok(if fields.take()? { Some(VoterConfig::read(fields)?) } else { None })
    }
}

/// By the number that postcard gives each variant.
impl Field for RecoveredState {
    fn read(fields: &mut Reader<'_>) -> Result<RecoveredState, DecodeError> {
        match fields.take::<u32>()? {
            0 => Ok(RecoveredState::Empty),
            1 => Ok(RecoveredState::Founding(VoterConfig::read(fields)?)),
            2 => Ok(RecoveredState::Founded(VoterConfig::read(fields)?)),
            _ => Err(fields.payload_error(postcard::Error::DeserializeBadEnum)),
        }
    }
}

impl Field for VoteRequest {
    fn read(fields: &mut Reader<'_>) -> Result<VoteRequest, DecodeError> {
        let (ballot, contender, transfer) = (fields.take()?, fields.take()?, fields.take()?);
        Ok(VoteRequest { ballot, contender, transfer, config: VoterConfig::read(fields)? })
    }
}
