//! Whether a newcomer is the process that it says it is.
//!
//! What a Hello says is not believed where it concerns a process that is known: one with the same id or the
//! same address, or in `majority` the same name. A connection counts only once the process at the known
//! address has confirmed that the Hello is its own. It does so by the token that it drew for the dial. An
//! unknown id at an unknown address of the host that it connects from is a new member. So it is at another
//! host's address, unless a process there says otherwise. A member may live there that counts as failed, or
//! that a full table has forgotten.

use super::Inner;
use super::dial::{ask_over, connect};
use super::hello_check::two_of_one_name;
use crate::channel::Channel;
use crate::election::{Instance, Peer};
use crate::wire::{self, Confirm, Confirmed, Frame, Refusal, SafetyCode};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A newcomer has at most this many others confirmed: each takes a dial.
const QUESTIONS_MAX: usize = 2;

/// How the connection with a newcomer came about.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// The newcomer has dialled: the token of its Hello, where it reached this process, and from where.
    Accepted { token: u64, reached: SocketAddr, from: IpAddr },
    /// This process has dialled this address.
    Dialled(SocketAddr),
}

/// Why a connection does not count.
pub(super) enum Doubt {
    /// The newcomer is refused, and told so.
    Refused(Refusal, String),
    /// This process has dialled one address and found a process that lives at another one. It is to be
    /// dialled there.
    LivesAt(SocketAddr),
}

/// What a newcomer says that it is, for others that come meanwhile. To be kept until the newcomer has a link.
pub(super) struct Claim {
    inner: Arc<Inner>,
    number: u64,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.inner.table().claim_ends(self.number);
    }
}

/// Says whether a connection counts as one with this peer.
///
/// # Errors
/// What stands against it.
pub(super) fn settle(inner: &Arc<Inner>, newcomer: &Peer, way: Way) -> Result<Claim, Doubt> {
    let names_count = inner.settings.safety == SafetyCode::Majority;
    let (number, known) = inner.table().claim(newcomer, names_count);
    let claim = Claim { inner: Arc::clone(inner), number };
    let far = matches!(way, Way::Accepted { from, .. } if from != newcomer.address.ip());
    if far || !known.is_empty() {
        compare(inner, newcomer, &known, way)?;
    }
    Ok(claim)
}

/// Compares a newcomer with the processes that have something in common with it, if there are any, and with
/// the one at its address.
fn compare(inner: &Inner, newcomer: &Peer, known: &[Peer], way: Way) -> Result<(), Doubt> {
    let (token, reached) = match way {
        Way::Accepted { token, reached, .. } => (token, reached),
        Way::Dialled(address) if address != newcomer.address => {
            return Err(Doubt::LivesAt(newcomer.address));
        }
        Way::Dialled(address) => (0, address),
    };
    let advertised = inner.table().advertised();
    let question = |peer: &Peer| Confirm { instance: instance(peer), token, reached: (reached, advertised) };
    let elsewhere = known.iter().filter(|peer| peer.address != newcomer.address).take(QUESTIONS_MAX);
    // The newcomer waits for an answer meanwhile, for a dial timeout. It is asked last.
    let questions = elsewhere.clone().count() + 1;
    let timeout = inner.settings.dial_timeout.mul_f64(0.75 / questions as f64);
    for other in elsewhere {
        let same = instance(other) == instance(newcomer);
        match confirm(inner, other.address, &question(other), timeout) {
            Said::Answer(Confirmed::Own) if same => return Ok(()),
            Said::Answer(Confirmed::Own | Confirmed::Foreign) => {
                let (why, text) = refusal(other, newcomer);
                return Err(Doubt::Refused(why, text));
            }
            // It is there, and may answer later. An incarnation does not move, and so keeps its address too.
            Said::Nothing => return Err(unconfirmed(newcomer)),
            Said::Answer(Confirmed::Another) | Said::NotThere if same => return Err(unconfirmed(newcomer)),
            Said::Answer(Confirmed::Another) | Said::NotThere => {}
        }
    }
    if matches!(way, Way::Dialled(_)) {
        return Ok(());
    }
    match confirm(inner, newcomer.address, &question(newcomer), timeout) {
        Said::Answer(Confirmed::Own) => Ok(()),
        Said::NotThere if known.is_empty() => Ok(()),
        _ => Err(unconfirmed(newcomer)),
    }
}

/// What came of a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Answer(Confirmed),
    /// The connection opened, and no answer came in time. The process may be slow, or stopped.
    Nothing,
    /// No connection opened.
    NotThere,
}

fn instance(peer: &Peer) -> Instance {
    Instance { id: peer.id, incarnation: peer.incarnation }
}

/// What the process at an address says to a question.
fn confirm(inner: &Inner, address: SocketAddr, question: &Confirm, timeout: Duration) -> Said {
    let Ok(channel) = connect(inner, address, timeout) else { return Said::NotThere };
    match ask_over(inner, channel, address, &wire::encode_confirm(question), timeout) {
        Ok((_, Ok((Frame::Confirmed(answer), _)))) => Said::Answer(answer),
        _ => Said::Nothing,
    }
}

/// This process's answer to such a question.
pub(super) fn answer(inner: &Inner, question: &Confirm) -> Confirmed {
    if question.instance != instance(&inner.settings.me) {
        Confirmed::Another
    } else if inner.table().dials(question.token, question.reached) {
        Confirmed::Own
    } else {
        Confirmed::Foreign
    }
}

/// Why the newcomer is refused.
fn refusal(known: &Peer, newcomer: &Peer) -> (Refusal, String) {
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

fn unconfirmed(newcomer: &Peer) -> Doubt {
    let text = format!(
        "{:?} (id {}) is refused: the process at {} does not confirm this connection. Let --advertise name \
         the address at which other members reach this process",
        newcomer.name, newcomer.id, newcomer.address
    );
    Doubt::Refused(Refusal::Identity, text)
}

/// Closes a connection of which nothing is wanted: deliberately, so that the peer gathers no evidence.
pub(super) fn say_bye(channel: &Channel) {
    // A peer that does not hear it finds out by a dial that this process is alive.
    let _ = channel.send(&wire::encode_bye(), || false);
}
