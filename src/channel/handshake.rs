//! The handshake, step by step: the accepting side's thread waits for no one connection. [`open`] takes all
//! steps of the dialling side.

use super::stream::{Channel, DontWait, drain};
use super::{FIRST_FRAME_BYTES_MAX, Keys, PROTOCOL, WrongName};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first bytes of a TLS record of a handshake: type and version.
const RECORD: [u8; 2] = [0x16, 0x03];
const READ_BYTES: usize = 4096;

/// Whether a connection begins as a sealed one does; none: too few bytes have come to tell. A Hello of 790
/// bytes or so may begin with the same two bytes, but then with a zero.
pub fn looks_sealed(first: &[u8]) -> Option<bool> {
    match first {
        [a, b, c, ..] => Some([*a, *b] == RECORD && *c != 0),
        [a, b] if [*a, *b] == RECORD => None,
        [a] if *a == RECORD[0] => None,
        [] => None,
        _ => Some(false),
    }
}

/// Why a handshake failed. None of these says anything about whether the peer is alive.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The peer does not hold an accepted key, or its bytes are no handshake.
    #[error(
        "the peer did not prove that it is a member; compare peer keys in bellwether status of both ({0})"
    )]
    Refused(rustls::Error),
    /// The peer does not accept this process's key.
    #[error(
        "the peer does not accept this process's proof; compare peer keys in bellwether status of both ({0})"
    )]
    Denied(rustls::Error),
    /// It speaks TLS, but no protocol of ours.
    #[error("the peer speaks TLS, but another protocol")]
    Protocol,
    /// It sent more than a handshake takes.
    #[error("the peer's handshake is longer than {0} bytes")]
    TooLong(usize),
}

impl From<rustls::Error> for HandshakeError {
    fn from(error: rustls::Error) -> HandshakeError {
        match error {
            rustls::Error::AlertReceived(_) => HandshakeError::Denied(error),
            _ => HandshakeError::Refused(error),
        }
    }
}

/// How far a handshake has come.
#[derive(Debug)]
pub struct Progress {
    /// What to send now; it may be empty.
    pub reply: Vec<u8>,
    /// Whether the peer has proved itself: what it says is in [`Handshake::said`].
    pub proved: bool,
}

/// One side of one handshake.
pub struct Handshake {
    connection: Connection,
    keys: Arc<Keys>,
    /// How many bytes it has taken.
    bytes: usize,
    /// What the peer has said since its proof.
    said: Vec<u8>,
}

impl Handshake {
    /// The accepting side of a handshake of which nothing has come yet.
    ///
    /// # Errors
    /// If the keys are of no use, which would be a bug.
    pub fn new(keys: Arc<Keys>) -> Result<Handshake, HandshakeError> {
        let connection = ServerConnection::new(Arc::clone(&keys.server))?.into();
        Ok(Handshake { connection, keys, bytes: 0, said: Vec::new() })
    }

    /// The dialling side of a handshake with this host. Its first bytes are the reply to none.
    ///
    /// # Errors
    /// If the keys are of no use, which would be a bug.
    pub fn dialling(keys: Arc<Keys>, host: IpAddr) -> Result<Handshake, HandshakeError> {
        let name = ServerName::IpAddress(host.into());
        let connection = ClientConnection::new(Arc::clone(&keys.client), name)?.into();
        Ok(Handshake { connection, keys, bytes: 0, said: Vec::new() })
    }

    /// Takes what has come since the last call.
    ///
    /// # Errors
    /// The connection is to be closed, with the alert as its last bytes.
    pub fn feed(&mut self, mut sealed: &[u8]) -> Result<Progress, (HandshakeError, Vec<u8>)> {
        while !sealed.is_empty() {
            // A stranger gets room for no frame.
            let proved = !self.connection.is_handshaking();
            let most = self.keys.handshake_bytes_max + if proved { FIRST_FRAME_BYTES_MAX } else { 0 };
            let too_long = || (HandshakeError::TooLong(most), Vec::new());
            let offered = sealed.len().min(most.saturating_sub(self.bytes));
            if offered == 0 {
                return Err(too_long());
            }
            let mut left = &sealed[..offered];
            let read = self.connection.read_tls(&mut left);
            let taken = offered - left.len();
            self.bytes += taken;
            sealed = &sealed[taken..];
            match self.connection.process_new_packets() {
                // It has ended the channel, so nothing more is read. A member does not go on then.
                Ok(state) if state.peer_has_closed() && !sealed.is_empty() => {
                    return Err((HandshakeError::Protocol, Vec::new()));
                }
                Ok(_) => {}
                Err(error) => return Err((error.into(), self.reply())),
            }
            drain(self.connection.reader(), &mut self.said);
            if read.is_err() {
                return Err(too_long());
            }
        }
        let proved = !self.connection.is_handshaking();
        if proved && self.connection.alpn_protocol() != Some(PROTOCOL) {
            return Err((HandshakeError::Protocol, Vec::new()));
        }
        Ok(Progress { reply: self.reply(), proved })
    }

    /// What the peer has said since its proof.
    pub fn said(&self) -> &[u8] {
        &self.said
    }

    /// Says whether the peer, which has proved itself, may have this name.
    ///
    /// # Errors
    /// If its certificate is another member's.
    pub fn may_be_named(&self, name: &str) -> Result<(), WrongName> {
        self.keys.may_be_named(self.connection.peer_certificates(), name)
    }

    /// The last words to a peer, sealed.
    pub fn last_words(&mut self, plain: &[u8]) -> Vec<u8> {
        let _ = self.connection.writer().write_all(plain);
        self.connection.send_close_notify();
        self.reply()
    }

    /// The channel that it has made, and what the peer has said over it so far.
    pub fn into_channel(self, stream: TcpStream) -> (Channel, Vec<u8>) {
        (Channel::sealed(stream, self.connection, self.keys), self.said)
    }

    fn reply(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        while self.connection.wants_write() {
            // Writing into memory does not fail.
            if self.connection.write_tls(&mut reply).is_err() {
                break;
            }
        }
        reply
    }
}

/// The dialling side, all of it. The channel stands once the peer has answered the first frame. Before that
/// the peer may not have looked at this side's proof.
///
/// # Errors
/// `InvalidData` where the peer did not prove itself. `UnexpectedEof` or `ConnectionReset` where it closed
/// the connection, `TimedOut` where it took too long.
pub fn open(stream: TcpStream, keys: &Arc<Keys>, deadline: Instant) -> io::Result<Channel> {
    let invalid = |error: HandshakeError| io::Error::new(ErrorKind::InvalidData, error);
    let host = stream.peer_addr()?.ip();
    let mut handshake = Handshake::dialling(Arc::clone(keys), host).map_err(invalid)?;
    let (mut sealed, mut count) = ([0; READ_BYTES], 0);
    loop {
        let progress = match handshake.feed(&sealed[..count]) {
            Ok(progress) => progress,
            Err((error, alert)) => {
                // The alert tells the peer why; it is no matter if it does not arrive.
                let _ = DontWait(&stream).write(&alert);
                return Err(invalid(error));
            }
        };
        DontWait(&stream).write_all(&progress.reply)?;
        if progress.proved {
            break;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        count = match (&stream).read(&mut sealed) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        };
    }
    match handshake.into_channel(stream) {
        (channel, said) if said.is_empty() => Ok(channel),
        // A member answers a first frame, and says nothing before it.
        _ => Err(invalid(HandshakeError::Protocol)),
    }
}
