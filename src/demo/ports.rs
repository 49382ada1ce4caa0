//! Free ports on loopback.

use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Where free ports are looked for: below those that the kernel gives to outgoing connections. A process that
/// is down for a moment must find its port free again. And a process that dials a port without a listener
/// must not, by chance, be given that very port and reach itself.
const FIRST: u16 = 10_000;
const END_USUALLY: u16 = 32_768;
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The two ports of a sidecar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Its peer port.
    pub peer: u16,
    /// Its HTTP port.
    pub http: u16,
}

/// Ports that no other cluster takes while this value exists: it holds the UDP port of the same number, which
/// no sidecar uses.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) ports: Vec<Ports>,
    _held: Vec<UdpSocket>,
}

/// Finds free ports for `n` sidecars.
pub(super) fn free(n: usize) -> io::Result<Reservation> {
    let range = FIRST..end();
    let start = fastrand::u16(range.clone());
    let mut found = Vec::new();
    let mut held = Vec::new();
    for port in (start..range.end).chain(range.start..start) {
        if found.len() == 2 * n {
            break;
        }
        // Reserved first, so that of two clusters that look at the same time only one goes on to try it.
        let Ok(reserved) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { continue };
        if bind(port).is_ok() {
            found.push(port);
            held.push(reserved);
        }
    }
    if found.len() < 2 * n {
        return Err(ErrorKind::AddrInUse.into());
    }
    let ports = found.chunks(2).map(|pair| Ports { peer: pair[0], http: pair[1] }).collect();
    Ok(Reservation { ports, _held: held })
}

/// The first port that the kernel gives to outgoing connections, where it leaves room below.
fn end() -> u16 {
    let range = std::fs::read_to_string(OUTGOING).unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    first.filter(|first| *first > 2 * FIRST).unwrap_or(END_USUALLY)
}

/// The ports from `base` on, two for each sidecar, if all of them are free; else the first that isn't, and
/// why.
pub(super) fn from(base: u16, n: usize) -> Result<Reservation, (u16, io::Error)> {
    // The command line accepts no base that would run past the last port.
    let pairs = (0..n).map(|i| base.saturating_add(2 * u16::try_from(i).unwrap_or(u16::MAX)));
    let ports: Vec<Ports> = pairs.map(|http| Ports { http, peer: http.saturating_add(1) }).collect();
    for port in ports.iter().flat_map(|p| [p.http, p.peer]) {
        bind(port).map_err(|error| (port, error))?;
    }
    Ok(Reservation { ports, _held: Vec::new() })
}

/// Fails while another socket listens there. It does not listen itself. A process that another thread starts
/// at this moment has a copy of every descriptor until it runs its program, and would hold the port for as
/// long.
fn bind(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}
