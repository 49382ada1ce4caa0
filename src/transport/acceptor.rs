//! The peer port's side of the handshake.

use super::duplicate_identity::{find_duplicate, refusal};
use super::handshake::{Verdict, judge};
use super::{Inner, session};
use crate::net::{Service, Step};
use crate::wire::{self, Frame};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// Lets in who says a proper Hello, and answers others with why not.
pub(super) struct Acceptor {
    pub(super) inner: Arc<Inner>,
}

impl Service for Acceptor {
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

    fn detached(&mut self, stream: TcpStream, remote: SocketAddr, received: Vec<u8>) {
        let inner = Arc::clone(&self.inner);
        let admitted = self.inner.links.run(move || {
            let Ok(Some((Frame::Hello(hello), length))) = wire::decode(&received, wire::HELLO_BYTES_MAX)
            else {
                return;
            };
            let Verdict::Welcome(peer) = judge(&inner, &hello, remote) else { return };
            let timeout = Some(inner.settings.dial_timeout);
            if let Some(known) = find_duplicate(&inner, &peer) {
                let (why, text) = refusal(&known, &peer);
                inner.counts.refused();
                inner.warn(format_args!("{text}"));
                if stream.set_write_timeout(timeout).is_ok() {
                    // Best effort: it is refused whether it hears why or not.
                    let _ = (&stream).write_all(&wire::encode_refuse(why, &text));
                }
                return;
            }
            if stream.set_write_timeout(timeout).is_ok() && (&stream).write_all(&inner.hello()).is_ok() {
                session::serve(&inner, *peer, stream, received[length..].to_vec());
            }
        });
        if let Err(saturated) = admitted {
            self.inner.counts.refused();
            self.inner.warn(format_args!("{remote} was turned away: {saturated}"));
        }
    }
}
