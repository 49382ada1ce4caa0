//! The numbers of the frames that are no messages. Those of messages are in the table of messages.

pub(super) const HELLO: u16 = 1;
pub(super) const REFUSE: u16 = 2;
pub(super) const BYE: u16 = 3;
pub(super) const CONFIRM: u16 = 4;
pub(super) const CONFIRMED: u16 = 5;
