//! Two live processes with one id, as when a state folder was copied.

use super::Inner;
use super::dial::{Answer, dial};
use crate::election::Peer;
use crate::wire;
use std::io::Write;
use std::net::TcpStream;

/// Another life of this newcomer that is alive elsewhere. Then the newer one is refused, or each would push out the other
/// for ever. A life that is connected still and does not answer a fresh dial is over; so is one whose address the
/// newcomer has.
pub(super) fn twin(inner: &Inner, newcomer: &Peer) -> Option<Peer> {
    let former = inner.table().former(newcomer.id, newcomer.incarnation);
    let lives = |known: &Peer| match dial(inner, known.address) {
        Ok(Answer::Peer { peer: found, stream, .. }) => {
            say_bye(&stream);
            found.id == known.id && found.incarnation == known.incarnation
        }
        _ => false,
    };
    former.iter().map(|link| &link.peer).find(|p| p.address != newcomer.address && lives(p)).cloned()
}

/// What is said of them.
pub(super) fn two_of_one_id(known: &Peer, newcomer: &Peer) -> String {
    format!(
        "{:?} at {} is refused: {:?} at {} is alive and has this id too: {}; give each process a state folder of its own",
        newcomer.name, newcomer.address, known.name, known.address, known.id
    )
}

/// Closes a connection of which nothing is wanted: deliberately, so that the peer gathers no evidence.
pub(super) fn say_bye(stream: &TcpStream) {
    // Who does not hear it finds out by a dial that this process lives.
    let _ = (&*stream).write_all(&wire::encode_bye());
}
