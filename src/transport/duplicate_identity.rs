//! Two live processes with one id, as when a state folder was copied. In `majority` also two with one name,
//! which would have one vote.

use super::Inner;
use super::dial::{DialOutcome, dial};
use super::handshake::two_of_one_name;
use crate::election::Peer;
use crate::wire::{self, Refusal, SafetyCode};
use std::io::Write;
use std::net::TcpStream;

/// Another incarnation of this newcomer, or in `majority` another process of its name, that is alive
/// elsewhere. Then the newer one is refused: two of one id would push out each other again and again, and two
/// of one name would vote twice. A connected peer that does not answer a fresh dial is gone; so is one whose
/// address the newcomer has.
pub(super) fn find_duplicate(inner: &Inner, newcomer: &Peer) -> Option<Peer> {
    let known = {
        let table = inner.table();
        let mut known = table.former(newcomer.id, newcomer.incarnation);
        if inner.settings.safety == SafetyCode::Majority {
            known.extend(table.namesakes(newcomer));
        }
        known
    };
    let lives = |known: &Peer| match dial(inner, known.address) {
        Ok(DialOutcome::Peer { peer: found, stream, .. }) => {
            say_bye(&stream);
            found.id == known.id && found.incarnation == known.incarnation
        }
        _ => false,
    };
    known.iter().map(|link| &link.peer).find(|p| p.address != newcomer.address && lives(p)).cloned()
}

/// Why the newcomer is refused.
pub(super) fn refusal(known: &Peer, newcomer: &Peer) -> (Refusal, String) {
    if known.id == newcomer.id {
        (Refusal::OwnId, two_of_one_id(known, newcomer))
    } else {
        (Refusal::Name, two_of_one_name(known, newcomer))
    }
}

fn two_of_one_id(known: &Peer, newcomer: &Peer) -> String {
    format!(
        "{:?} at {} is refused: {:?} at {} is alive and has this id too: {}; give each process a state \
         folder of its own",
        newcomer.name, newcomer.address, known.name, known.address, known.id
    )
}

/// Closes a connection of which nothing is wanted: deliberately, so that the peer gathers no evidence.
pub(super) fn say_bye(stream: &TcpStream) {
    // A peer that does not hear it finds out by a dial that this process is alive.
    let _ = (&*stream).write_all(&wire::encode_bye());
}
