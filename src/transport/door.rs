//! The peer port's side of the handshake.

use super::{Inner, dial, link};
use crate::election::Peer;
use crate::net::{Service, Step};
use crate::wire::{self, Frame, Hello, Refusal};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// Lets in who says a proper Hello, and answers others with why not.
pub(super) struct Door {
    pub(super) inner: Arc<Inner>,
}

/// What a Hello is answered with.
enum Verdict {
    Welcome(Box<Peer>),
    /// This process has dialled itself: say who one is, so that it notices.
    Self_,
    Refuse(Refusal, String),
}

/// Judges a Hello, on either side of a connection.
fn judge(inner: &Inner, hello: &Hello, remote: SocketAddr) -> Verdict {
    let me = &inner.settings.me;
    if hello.cluster != inner.settings.cluster {
        let text = format!("this is cluster \"{}\", not \"{}\"", inner.settings.cluster, hello.cluster);
        return Verdict::Refuse(Refusal::Cluster, text);
    }
    if hello.peer.id == me.id {
        if hello.peer.incarnation == me.incarnation {
            return Verdict::Self_;
        }
        let text = format!("{} has this id too: {}", me.name, me.id);
        return Verdict::Refuse(Refusal::OwnId, text);
    }
    if hello.negotiate((wire::VERSION_MIN, wire::VERSION)).is_none() {
        let text = format!("versions {} to {} are spoken here", wire::VERSION_MIN, wire::VERSION);
        return Verdict::Refuse(Refusal::Version, text);
    }
    let mut peer = hello.peer.clone();
    peer.address = reachable(peer.address, remote);
    Verdict::Welcome(Box::new(peer))
}

/// The address that a peer is reached at: what it says, with the connection's own address where it does not know.
fn reachable(claimed: SocketAddr, remote: SocketAddr) -> SocketAddr {
    let ip = if claimed.ip().is_unspecified() { remote.ip() } else { claimed.ip() };
    SocketAddr::new(ip.to_canonical(), claimed.port())
}

/// What the side that dialled makes of the other side's first frame.
pub(super) enum Answered {
    /// It is a peer.
    Peer(Box<Peer>),
    /// It is this process.
    Self_,
    /// It refuses this process, or is refused.
    Refused(String),
}

pub(super) fn judge_answer(inner: &Inner, frame: Frame, remote: SocketAddr) -> Answered {
    match frame {
        Frame::Hello(hello) => match judge(inner, &hello, remote) {
            Verdict::Welcome(peer) => Answered::Peer(peer),
            Verdict::Self_ => Answered::Self_,
            Verdict::Refuse(_, text) => Answered::Refused(format!(
                "{} (id {}, cluster \"{}\") at {remote} is refused: {text}",
                hello.peer.name, hello.peer.id, hello.cluster
            )),
        },
        Frame::Refuse { why, text } => Answered::Refused(format!(
            "{remote} refuses {} (id {}, cluster \"{}\"): {text} ({why:?})",
            inner.settings.me.name, inner.settings.me.id, inner.settings.cluster
        )),
        _ => Answered::Refused(format!("{remote} answered with something that is no handshake")),
    }
}

impl Service for Door {
    fn received(&mut self, received: &[u8], remote: SocketAddr) -> Step {
        let frame = match wire::decode(received, wire::HELLO_BYTES_MAX) {
            Ok(None) => return Step::Wait,
            Ok(Some((frame, _))) => frame,
            Err(error) => {
                self.inner.counts.refused();
                self.inner.warn(format_args!("{remote} was refused at the peer port: {error}"));
                return Step::Close;
            }
        };
        let Frame::Hello(hello) = frame else {
            self.inner.counts.refused();
            return Step::Close;
        };
        match judge(&self.inner, &hello, remote) {
            Verdict::Welcome(_) => Step::Detach,
            Verdict::Self_ => {
                Step::Reply { bytes: self.inner.hello(), consumed: received.len(), close: true }
            }
            Verdict::Refuse(why, text) => {
                self.inner.counts.refused();
                self.inner.warn(format_args!(
                    "{} (id {}, cluster \"{}\") at {remote} was refused: {text}",
                    hello.peer.name, hello.peer.id, hello.cluster
                ));
                Step::Reply { bytes: wire::encode_refuse(why, &text), consumed: received.len(), close: true }
            }
        }
    }

    fn overdue(&mut self, _received: &[u8], _remote: SocketAddr) -> Option<Vec<u8>> {
        self.inner.counts.refused();
        None
    }

    fn overflow(&mut self, _received: &[u8], _remote: SocketAddr) -> Option<Vec<u8>> {
        self.inner.counts.refused();
        None
    }

    fn detached(&mut self, stream: TcpStream, remote: SocketAddr, received: Vec<u8>) {
        let inner = Arc::clone(&self.inner);
        let admitted = self.inner.links.run(move || {
            let Ok(Some((Frame::Hello(hello), length))) = wire::decode(&received, wire::HELLO_BYTES_MAX)
            else {
                return;
            };
            let Verdict::Welcome(peer) = judge(&inner, &hello, remote) else { return };
            let timeout = Some(inner.settings.dial_timeout);
            if let Some(known) = dial::twin(&inner, &peer) {
                let text = dial::two_of_one_id(&known, &peer);
                inner.counts.refused();
                inner.warn(format_args!("{text}"));
                if stream.set_write_timeout(timeout).is_ok() {
                    // Best effort: it is refused whether it hears why or not.
                    let _ = (&stream).write_all(&wire::encode_refuse(Refusal::OwnId, &text));
                }
                return;
            }
            if stream.set_write_timeout(timeout).is_ok() && (&stream).write_all(&inner.hello()).is_ok() {
                link::serve(&inner, *peer, stream, received[length..].to_vec());
            }
        });
        if let Err(saturated) = admitted {
            self.inner.counts.refused();
            self.inner.warn(format_args!("{remote} was turned away: {saturated}"));
        }
    }
}
