//! The table of frame numbers. A number is never reused, also not after its frame is gone.

use crate::election::Body;

pub(super) const HELLO: u16 = 1;
pub(super) const REFUSE: u16 = 2;
pub(super) const BYE: u16 = 3;

pub(super) const ELECTION: u16 = 16;
pub(super) const ANSWER: u16 = 17;
pub(super) const COORDINATOR: u16 = 18;
pub(super) const HEARTBEAT: u16 = 19;
pub(super) const HEARTBEAT_ACK: u16 = 20;
pub(super) const MEMBERSHIP: u16 = 21;
pub(super) const JOIN: u16 = 22;
pub(super) const LEAVE: u16 = 23;
pub(super) const RESIGN: u16 = 24;
pub(super) const ASK: u16 = 25;
pub(super) const TELL: u16 = 26;
pub(super) const VOTE_REQUEST: u16 = 37;
pub(super) const VOTE: u16 = 38;
pub(super) const RENEW: u16 = 39;
pub(super) const RENEWED: u16 = 40;
pub(super) const CONFIGURATION: u16 = 41;
pub(super) const RECOVER: u16 = 33;
pub(super) const RECOVERED: u16 = 42;
pub(super) const PROPOSE_TRANSFER: u16 = 35;
pub(super) const TRANSFER_READY: u16 = 36;

/// The number of a message's kind.
pub(super) fn of(body: &Body) -> u16 {
    match body {
        Body::Election => ELECTION,
        Body::Answer => ANSWER,
        Body::Coordinator { .. } => COORDINATOR,
        Body::Heartbeat { .. } => HEARTBEAT,
        Body::HeartbeatAck { .. } => HEARTBEAT_ACK,
        Body::Membership { .. } => MEMBERSHIP,
        Body::Join { .. } => JOIN,
        Body::Leave { .. } => LEAVE,
        Body::Resign { .. } => RESIGN,
        Body::Ask => ASK,
        Body::Tell { .. } => TELL,
        Body::VoteRequest(_) => VOTE_REQUEST,
        Body::Vote { .. } => VOTE,
        Body::Renew { .. } => RENEW,
        Body::Renewed { .. } => RENEWED,
        Body::Configuration { .. } => CONFIGURATION,
        Body::Recover { .. } => RECOVER,
        Body::Recovered { .. } => RECOVERED,
        Body::ProposeTransfer => PROPOSE_TRANSFER,
        Body::TransferReady { .. } => TRANSFER_READY,
    }
}
