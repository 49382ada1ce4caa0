//! Blocking connections with a deadline, and the end of one.

use core::net::SocketAddr;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Connects with the first address that answers in time.
///
/// # Errors
/// None does. A refusal counts for more than another failure: a host without IPv6 has no such address, and
/// that says nothing of what listens there.
pub fn connect(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(ErrorKind::TimedOut);
    for address in addresses {
        match TcpStream::connect_timeout(address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(_) if failure.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// What is left until then.
///
/// # Errors
/// Nothing: [`ErrorKind::TimedOut`].
pub fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns when the other side has ended the connection, or its half of it. What it sends is thrown away.
pub fn await_end(mut stream: &TcpStream) {
    let mut scratch = [0; 256];
    loop {
        match stream.read(&mut scratch) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
