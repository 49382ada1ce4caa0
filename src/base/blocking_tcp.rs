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

/// A fortieth of a dial's time is its first try's.
const FIRST_TRY_PART: u32 = 40;

/// Connects, in two tries. The kernel sends a lost SYN again only after a second. It may be lost on the way,
/// or where a process that ends is closing its listener.
///
/// # Errors
/// The address refuses, or answers neither try within the timeout.
pub fn connect_in_two_tries(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + timeout;
    match TcpStream::connect_timeout(&address, timeout / FIRST_TRY_PART) {
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            TcpStream::connect_timeout(&address, left(deadline)?)
        }
        tried => tried,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    /// The ports whose SYN to this port has no answer yet.
    fn unanswered(to: u16) -> BTreeSet<u16> {
        let port = |address: &str| u16::from_str_radix(address.rsplit(':').next().unwrap(), 16).unwrap();
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let sockets = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let dials = sockets.filter(|fields| port(fields[2]) == to && fields[3] == "02");
        dials.map(|fields| port(fields[1])).collect()
    }

    #[test]
    fn a_syn_that_is_dropped_is_sent_again_before_the_kernel_would() {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        // Its queue takes one connection. The kernel drops all further SYNs.
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let _queued = TcpStream::connect(address).unwrap();
        let dial = std::thread::spawn(move || connect_in_two_tries(address, Duration::from_secs(4)));
        let mut from = BTreeSet::new();
        while from.len() < 2 {
            from.append(&mut unanswered(address.port()));
            assert!(!dial.is_finished(), "the dial is over, from {from:?}");
        }
        // There is room for it now, once the kernel sends the second one again.
        listener.accept().unwrap();
        assert!(dial.join().unwrap().is_ok());
    }
}
