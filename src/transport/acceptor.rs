//! The peer port's side of the handshake.

use super::handshake::{Verdict, judge};
use super::identity::{self, Doubt, Way, settle};
use super::{Inner, session};
use crate::election::Peer;
use crate::net::{Service, Step};
use crate::wire::{self, Frame};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// Lets in a peer that says a proper Hello, and tells all others why not.
pub(super) struct Acceptor {
    pub(super) inner: Arc<Inner>,
}

/// What a peer has said of itself in its Hello.
pub(super) struct Welcome {
    peer: Box<Peer>,
    /// The Hello's token.
    token: u64,
    /// The length of the Hello's frame, in bytes; what follows belongs to the link.
    hello_bytes: usize,
}

impl Service for Acceptor {
    type Admitted = Welcome;

    fn received(&mut self, received: &[u8], remote: SocketAddr) -> Step<Welcome> {
        let (frame, hello_bytes) = match wire::decode(received, wire::HELLO_BYTES_MAX) {
            Ok(None) => return Step::Wait,
            Ok(Some(frame)) => frame,
            Err(error) => {
                self.inner.counts.refused();
                self.inner.warn(format_args!("{remote} was refused at the peer port: {error}"));
                return Step::Close;
            }
        };
        let hello = match frame {
            Frame::Hello(hello) => hello,
            Frame::Confirm(question) => {
                let bytes = wire::encode_confirmed(identity::answer(&self.inner, &question));
                return Step::Reply { bytes, consumed: received.len(), close: true };
            }
            _ => {
                self.inner.counts.refused();
                return Step::Close;
            }
        };
        match judge(&self.inner, &hello, remote) {
            Verdict::Welcome(peer) => Step::Detach(Welcome { peer, token: hello.token, hello_bytes }),
            Verdict::Self_ => {
                Step::Reply { bytes: self.inner.hello(0), consumed: received.len(), close: true }
            }
            Verdict::Refuse(why, text) => {
                self.inner.counts.refused();
                self.inner.warn(format_args!(
                    "{:?} (id {}, cluster {:?}) at {remote} was refused: {text}",
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

    fn detached(&mut self, stream: TcpStream, remote: SocketAddr, received: Vec<u8>, welcome: Welcome) {
        let inner = Arc::clone(&self.inner);
        let admitted = self.inner.links.run(move || {
            let Welcome { peer, token, hello_bytes } = welcome;
            let timeout = Some(inner.settings.dial_timeout);
            let Ok(reached) = stream.local_addr() else { return };
            let reached = SocketAddr::new(reached.ip().to_canonical(), reached.port());
            if let Err(Doubt::Refused(why, text)) = settle(&inner, &peer, Way::Accepted { token, reached }) {
                inner.counts.refused();
                inner.warn(format_args!("{text}"));
                if stream.set_write_timeout(timeout).is_ok() {
                    // Best effort: it is refused whether it hears why or not.
                    let _ = (&stream).write_all(&wire::encode_refuse(why, &text));
                }
                return;
            }
            if stream.set_write_timeout(timeout).is_ok() && (&stream).write_all(&inner.hello(0)).is_ok() {
                session::serve(&inner, *peer, stream, received[hello_bytes..].to_vec());
            }
        });
        if let Err(saturated) = admitted {
            self.inner.counts.refused();
            self.inner.warn(format_args!("{remote} was turned away: {saturated}"));
        }
    }
}
