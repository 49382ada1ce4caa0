//! The peer port's side of the handshake: first the channel's, if there is one, then the Hello.

use super::handshake_limits::Admission;
use super::hello_check::{Introduction, Verdict, judge};
use super::identity_check::{self, Doubt, Way, settle};
use super::{Inner, refused, session};
use crate::base::LogEvent;
use crate::channel::{self, Channel, Handshake, PeerAuth};
use crate::election::Peer;
use crate::net::{Detached, Place, Service, Step};
use crate::wire::{self, Frame};
use std::net::SocketAddr;
use std::sync::Arc;

/// Lets in a peer that proves itself and says a proper Hello, and tells all others why not.
pub(super) struct Acceptor {
    pub(super) inner: Arc<Inner>,
    pub(super) admission: Admission,
}

/// What is kept of a connection.
#[derive(Default)]
pub(super) enum Session {
    /// Too few bytes have come to tell what it is.
    #[default]
    New,
    /// It speaks in clear.
    Clear,
    /// Its channel's handshake is under way.
    Sealed(Box<Sealed>),
}

pub(super) struct Sealed {
    handshake: Handshake,
    _slot: Place,
}

/// What a peer has said of itself in its Hello.
pub(super) struct Welcome {
    newcomer: Box<Introduction>,
    /// The Hello's token.
    token: u64,
    /// The length of the Hello's frame, in bytes; what follows belongs to the link.
    hello_bytes: usize,
    sealed: Option<Box<Sealed>>,
}

/// What the first frame of a connection asks for.
enum First {
    Wait,
    /// This is the only answer.
    Answer(Vec<u8>),
    Welcome(Welcome),
    Close,
}

/// Why a connection's first bytes cannot be read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(
        "the peer speaks TLS, and this process has neither a secret nor a certificate. Give all members the \
         same --peer-secret-file, or certificates of one authority (--peer-cert), or none of these"
    )]
    Sealed,
    #[error(transparent)]
    NoFrame(wire::DecodeError),
}

impl Unreadable {
    /// A member with a proof begins with TLS. As a frame these bytes have a length that is too great.
    fn of(said: &[u8], error: wire::DecodeError, proved: bool) -> Unreadable {
        let sealed = !proved && channel::looks_sealed(said) == Some(true);
        if sealed { Unreadable::Sealed } else { Unreadable::NoFrame(error) }
    }
}

impl Service for Acceptor {
    type Admitted = Welcome;
    type Session = Session;

    fn received(&mut self, session: &mut Session, received: &[u8], remote: SocketAddr) -> Step<Welcome> {
        if matches!(session, Session::New) {
            match self.begin(received, remote) {
                Ok(begun) => *session = begun,
                Err(step) => return step,
            }
        }
        let Session::Sealed(sealed) = session else {
            return match self.first_frame(received, remote, None) {
                First::Wait => Step::Wait,
                First::Answer(bytes) => {
                    Step::Reply { bytes, consumed: received.len(), close: true, held: None }
                }
                First::Welcome(welcome) => Step::Detach(welcome),
                First::Close => Step::Close,
            };
        };
        let progress = match sealed.handshake.feed(received) {
            Ok(progress) => progress,
            Err((error, alert)) => {
                self.inner.unauthenticated(remote, &error);
                return Step::Last(alert);
            }
        };
        if !progress.proved {
            return Step::Say(progress.reply);
        }
        match self.first_frame(sealed.handshake.said(), remote, Some(&sealed.handshake)) {
            First::Wait => Step::Say(progress.reply),
            First::Answer(plain) => {
                Step::Last([progress.reply, sealed.handshake.last_words(&plain)].concat())
            }
            First::Welcome(welcome) => match std::mem::take(session) {
                Session::Sealed(sealed) => Step::Detach(Welcome { sealed: Some(sealed), ..welcome }),
                Session::New | Session::Clear => Step::Close,
            },
            First::Close => Step::Close,
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

    fn detached(&mut self, detached: Detached<Welcome>) {
        let Detached { stream, remote, received, admitted: welcome, .. } = detached;
        let Some(place) = self.inner.place(remote.ip()) else { return self.inner.counts.refused() };
        let inner = Arc::clone(&self.inner);
        let admitted = self.inner.links.run(move || {
            let Welcome { newcomer, token, hello_bytes, sealed } = welcome;
            let (channel, said) = match sealed {
                Some(sealed) => sealed.handshake.into_channel(stream),
                None => (Channel::clear(stream), received),
            };
            let Ok(reached) = channel.stream().local_addr() else { return };
            let reached = SocketAddr::new(reached.ip().to_canonical(), reached.port());
            let way = Way::Accepted { token, reached, from: remote.ip().to_canonical() };
            let claim = match settle(&inner, &newcomer.peer, way) {
                Ok(claim) => claim,
                Err(doubt) => {
                    inner.counts.refused();
                    if let Doubt::Refused(why, text) = doubt {
                        inner.warn_of(remote.ip(), refused(&newcomer.peer), format_args!("{text}"));
                        // Best effort: it is refused whether it hears why or not.
                        let _ = channel.send(&wire::encode_refuse(why, &text), || false);
                    }
                    return;
                }
            };
            if channel.send(&inner.hello(0), || false).is_ok() {
                session::serve(&inner, *newcomer, channel, said[hello_bytes..].to_vec(), claim, false);
                drop(place);
            }
        });
        if let Err(saturated) = admitted {
            self.inner.counts.refused();
            let event = LogEvent::warn("connection_given_up").with("address", remote.to_string());
            self.inner.warn_of(remote.ip(), event, format_args!("a connection was turned away: {saturated}"));
        }
    }
}

impl Acceptor {
    /// Whether a connection speaks in clear or is sealed.
    ///
    /// # Errors
    /// What to do with it instead of going on.
    fn begin(&mut self, received: &[u8], remote: SocketAddr) -> Result<Session, Step<Welcome>> {
        let credentials = &self.inner.settings.credentials;
        let Some(keys) = credentials.keys() else { return Ok(Session::Clear) };
        match channel::looks_sealed(received) {
            None => return Err(Step::Wait),
            Some(false) if credentials.mode() == PeerAuth::Permissive => return Ok(Session::Clear),
            Some(false) => {
                let why = "it speaks in clear, and --peer-auth is required; give it the peer secret";
                self.inner.unauthenticated(remote, &why);
                return Err(Step::Close);
            }
            Some(true) => {}
        }
        let names = self.inner.table().names_of(remote.ip());
        let Some(slot) = self.admission.slot(remote.ip(), names) else {
            self.inner.counts.refused();
            return Err(Step::Close);
        };
        match Handshake::new(keys) {
            Ok(handshake) => Ok(Session::Sealed(Box::new(Sealed { handshake, _slot: slot }))),
            Err(error) => {
                self.inner.unauthenticated(remote, &error);
                Err(Step::Close)
            }
        }
    }

    /// Judges the first frame of a connection, whose peer has proved itself if it has to.
    fn first_frame(&mut self, said: &[u8], remote: SocketAddr, proof: Option<&Handshake>) -> First {
        let (frame, hello_bytes) = match wire::decode(said, wire::HELLO_BYTES_MAX) {
            Ok(None) => return First::Wait,
            Ok(Some(frame)) => frame,
            Err(error) => {
                let unreadable = Unreadable::of(said, error, proof.is_some());
                self.inner.counts.refused();
                let event = LogEvent::warn("peer_refused").with("address", remote.to_string());
                let text = format_args!("a connection was refused at the peer port: {unreadable}");
                self.inner.warn_of(remote.ip(), event, text);
                return First::Close;
            }
        };
        let hello = match frame {
            Frame::Hello(hello) => hello,
            Frame::Confirm(question) => {
                return First::Answer(wire::encode_confirmed(identity_check::answer(&self.inner, &question)));
            }
            _ => {
                self.inner.counts.refused();
                return First::Close;
            }
        };
        let named = proof.map_or(Ok(()), |proof| proof.may_be_named(&hello.peer.name));
        match judge(&self.inner, &hello, remote, named) {
            Verdict::Welcome(newcomer) => {
                First::Welcome(Welcome { newcomer, token: hello.token, hello_bytes, sealed: None })
            }
            Verdict::Self_ => First::Answer(self.inner.hello(0)),
            Verdict::Refuse(why, text) => {
                self.inner.counts.refused();
                let mut event = refused(&Peer { address: remote, ..hello.peer });
                if hello.cluster != self.inner.settings.cluster {
                    event = event.with("other_election", hello.cluster.as_str());
                }
                self.inner.warn_of(remote.ip(), event, format_args!("a peer was refused: {text}"));
                First::Answer(wire::encode_refuse(why, &text))
            }
        }
    }
}
