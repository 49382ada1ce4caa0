//! The handshake: what either side makes of the other's first frame.

use super::Inner;
use crate::channel::WrongName;
use crate::election::{AnnouncedValues, Peer};
use crate::wire::{self, Hello, Refusal, SafetyCode};
use std::net::SocketAddr;

/// What a process has said of itself in its Hello.
pub(super) struct Introduction {
    pub(super) peer: Peer,
    /// What it announces to applications.
    pub(super) announce: AnnouncedValues,
}

/// What a Hello is answered with.
pub(super) enum Verdict {
    Welcome(Box<Introduction>),
    /// This process has dialled itself: it answers with its own Hello, so that the dialling side notices.
    Self_,
    Refuse(Refusal, String),
}

/// Judges a Hello, on either side of a connection. `named`: whether the peer's proof allows its name.
pub(super) fn judge(
    inner: &Inner,
    hello: &Hello,
    remote: SocketAddr,
    named: Result<(), WrongName>,
) -> Verdict {
    let me = &inner.settings.me;
    if hello.cluster != inner.settings.cluster {
        // A stranger that guesses names is not told the right one.
        let text = "this is another election; give both the same --election, or leave each out of the \
                    other's peers";
        return Verdict::Refuse(Refusal::Cluster, text.to_owned());
    }
    if hello.peer.id == me.id {
        if hello.peer.incarnation == me.incarnation {
            return Verdict::Self_;
        }
        let text = format!(
            "{:?} has this id too: {}; give each process a --state-dir of its own, and not a copy",
            me.name, me.id
        );
        return Verdict::Refuse(Refusal::OwnId, text);
    }
    if hello.negotiate((wire::VERSION_MIN, wire::VERSION)).is_none() {
        let text = format!("versions {} to {} are spoken here", wire::VERSION_MIN, wire::VERSION);
        return Verdict::Refuse(Refusal::Version, text);
    }
    let (ours, theirs) = (inner.settings.safety, hello.safety);
    if ours != theirs {
        let text = format!(
            "--safety is {ours} here, and {theirs} there, and all processes of an election need the same. \
             Give both the same, with all processes stopped in between, or another --election"
        );
        return Verdict::Refuse(Refusal::Safety, text);
    }
    if let Err(wrong) = named {
        return Verdict::Refuse(Refusal::Identity, wrong.to_string());
    }
    if ours == SafetyCode::Majority && hello.peer.name == me.name {
        return Verdict::Refuse(Refusal::Name, two_of_one_name(me, &hello.peer));
    }
    let mut peer = hello.peer.clone();
    peer.address = reachable(peer.address, remote);
    if peer.address.ip() != remote.ip().to_canonical() && !inner.table().names(peer.address) {
        let text = format!(
            "it advertises {}, but connects from {}, and discovery names no such address; correct its \
             --advertise, or let --service or --peers name that address",
            peer.address,
            remote.ip().to_canonical()
        );
        return Verdict::Refuse(Refusal::Address, text);
    }
    Verdict::Welcome(Box::new(Introduction { peer, announce: hello.announce.clone() }))
}

/// Why the second of two live processes with one name is refused.
pub(super) fn two_of_one_name(known: &Peer, newcomer: &Peer) -> String {
    format!(
        "{:?} at {} is refused: a live process at {} has this name too, and a name has one vote. End one of \
         the two, or give it another --name",
        newcomer.name, newcomer.address, known.address
    )
}

/// The address that a peer is reached at: what it says, with the connection's own address where it does not
/// know.
fn reachable(claimed: SocketAddr, remote: SocketAddr) -> SocketAddr {
    let ip = if claimed.ip().is_unspecified() { remote.ip() } else { claimed.ip() };
    SocketAddr::new(ip.to_canonical(), claimed.port())
}

impl Refusal {
    /// Whether the next dial will be refused too, unless an operator changes something at one of the ends.
    /// Discovery may name an address a moment later. A third process that has this identity may end.
    pub(super) fn is_lasting(self) -> bool {
        matches!(self, Refusal::Cluster | Refusal::Version | Refusal::Malformed | Refusal::Safety)
    }
}
