//! Frames to bytes.

use super::writer::{begin, put, seal};
use super::{Confirm, Confirmed, Hello, REFUSE_TEXT_BYTES_MAX, Refusal, Stamp, messages, tag};
use crate::election::{LimitError, Message, check_cluster};

/// A message's frame. The error says which part is beyond its limit; a receiver would refuse it.
pub fn encode_message(stamp: &Stamp, message: &Message) -> Result<Vec<u8>, LimitError> {
    check_cluster(&stamp.cluster)?;
    message.check()?;
    Ok(seal(messages::frame(stamp, message)))
}

/// A Hello's frame. The error says which part is beyond its limit.
pub fn encode_hello(hello: &Hello) -> Result<Vec<u8>, LimitError> {
    check_cluster(&hello.cluster)?;
    hello.peer.check()?;
    hello.announce.check()?;
    Ok(seal(put(begin(tag::HELLO), hello)))
}

/// A Refuse's frame. The text is cut to [`REFUSE_TEXT_BYTES_MAX`] bytes, and a space takes each control
/// character's place, so that any error's text will do.
pub fn encode_refuse(why: Refusal, text: &str) -> Vec<u8> {
    let text = text.replace(char::is_control, " ");
    let mut end = text.len().min(REFUSE_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    seal(put(begin(tag::REFUSE), &(why, &text[..end])))
}

/// A question whether a Hello is the receiver's own.
pub fn encode_confirm(question: &Confirm) -> Vec<u8> {
    seal(put(begin(tag::CONFIRM), question))
}

/// The answer to that question.
pub fn encode_confirmed(answer: Confirmed) -> Vec<u8> {
    seal(put(begin(tag::CONFIRMED), &answer))
}

/// A Bye's frame.
pub fn encode_bye() -> Vec<u8> {
    seal(begin(tag::BYE))
}
