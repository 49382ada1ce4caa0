//! An open channel: any thread writes, one thread reads.

use super::{Keys, WrongName};
use rustix::net::SendFlags;
use rustls::{Connection, Reader};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one read takes at most. rustls takes no more than 16 KiB before it is drained.
const READ_BYTES: usize = 2 * 1024;

/// A connection with a peer, in clear or sealed.
pub struct Channel {
    stream: TcpStream,
    sealing: Sealing,
}

enum Sealing {
    /// Frames of two threads must not mix.
    Clear(Mutex<()>),
    Sealed {
        connection: Box<Mutex<Connection>>,
        keys: Arc<Keys>,
    },
}

/// What a read brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Got {
    /// Bytes, perhaps none that the peer has said.
    Bytes,
    /// The peer has ended the channel in good order; it may have said something before that.
    Closed,
    /// The connection ended.
    Broken,
}

impl Channel {
    /// A channel in clear.
    pub fn clear(stream: TcpStream) -> Channel {
        Channel { stream, sealing: Sealing::Clear(Mutex::new(())) }
    }

    pub(super) fn sealed(stream: TcpStream, mut connection: Connection, keys: Arc<Keys>) -> Channel {
        // A frame may be longer than rustls keeps by default. What it keeps is written at once.
        connection.set_buffer_limit(None);
        Channel { stream, sealing: Sealing::Sealed { connection: Box::new(Mutex::new(connection)), keys } }
    }

    /// The keys of this process that it was made with; none: it is in clear.
    pub fn keys(&self) -> Option<&Arc<Keys>> {
        match &self.sealing {
            Sealing::Clear(_) => None,
            Sealing::Sealed { keys, .. } => Some(keys),
        }
    }

    /// Says whether the peer may have this name.
    ///
    /// # Errors
    /// If its certificate is another member's.
    pub fn may_be_named(&self, name: &str) -> Result<(), WrongName> {
        match &self.sealing {
            Sealing::Clear(_) => Ok(()),
            Sealing::Sealed { connection, keys } => {
                keys.may_be_named(lock(connection).peer_certificates(), name)
            }
        }
    }

    /// Its socket, for deadlines, addresses and its end.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Writes a whole frame, and never waits. Where the socket is full, `more_room` may give it room and say
    /// so.
    ///
    /// # Errors
    /// `WouldBlock` where the socket does not take all of it: the connection is of no use any more.
    pub fn send(&self, frame: &[u8], mut more_room: impl FnMut() -> bool) -> io::Result<()> {
        match &self.sealing {
            Sealing::Clear(one_at_a_time) => {
                let _guard = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
                let mut rest = frame;
                while !rest.is_empty() {
                    match DontWait(&self.stream).write(rest) {
                        Ok(sent) => rest = &rest[sent..],
                        Err(error) if error.kind() == ErrorKind::WouldBlock && more_room() => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
            Sealing::Sealed { connection, .. } => {
                let mut connection = lock(connection);
                connection.writer().write_all(frame)?;
                loop {
                    match flush(&mut connection, &self.stream) {
                        Err(error) if error.kind() == ErrorKind::WouldBlock && more_room() => {}
                        flushed => return flushed,
                    }
                }
            }
        }
    }

    /// Reads what has come, waiting as long as the socket's timeout, and adds what the peer has said.
    ///
    /// # Errors
    /// `InvalidData` where what came was not sealed by the peer; else the socket's.
    pub fn receive(&self, said: &mut Vec<u8>) -> io::Result<Got> {
        let mut bytes = [0; READ_BYTES];
        // Without the lock: writers go on meanwhile.
        let count = (&self.stream).read(&mut bytes)?;
        if count == 0 {
            return Ok(Got::Broken);
        }
        let Sealing::Sealed { connection, .. } = &self.sealing else {
            said.extend_from_slice(&bytes[..count]);
            return Ok(Got::Bytes);
        };
        let (mut connection, mut rest, mut closed) = (lock(connection), &bytes[..count], false);
        while !rest.is_empty() && !closed {
            connection.read_tls(&mut rest)?;
            let state = connection.process_new_packets();
            drain(connection.reader(), said);
            match state {
                Ok(state) => closed = state.peer_has_closed(),
                Err(error) => {
                    let _ = flush(&mut connection, &self.stream);
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
            }
        }
        // A change of keys is answered.
        flush(&mut connection, &self.stream)?;
        Ok(if closed { Got::Closed } else { Got::Bytes })
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    // A panicking thread ends the process in the sidecar.
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what waits, without waiting itself.
fn flush(connection: &mut Connection, stream: &TcpStream) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(&mut DontWait(stream))?;
    }
    Ok(())
}

/// Takes all that a connection has for its reader.
pub(super) fn drain(mut reader: Reader<'_>, said: &mut Vec<u8>) {
    let mut plain = [0; READ_BYTES];
    // It ends with WouldBlock when nothing is left, and with zero after the peer's end.
    while let Ok(count) = reader.read(&mut plain) {
        if count == 0 {
            return;
        }
        said.extend_from_slice(&plain[..count]);
    }
}

/// A socket to which writing never waits. It takes what there is room for.
pub(super) struct DontWait<'a>(pub(super) &'a TcpStream);

impl Write for DontWait<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
