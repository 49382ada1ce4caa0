//! Ports on loopback that nobody uses.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// The two ports of a sidecar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Its peer port.
    pub peer: u16,
    /// Its HTTP port.
    pub http: u16,
}

/// Finds free ports for `n` sidecars. All are held until the last is found, so they differ.
pub(super) fn free(n: usize) -> io::Result<Vec<Ports>> {
    let held: Vec<TcpListener> = (0..2 * n).map(|_| bind(0)).collect::<io::Result<_>>()?;
    let numbers: Vec<u16> =
        held.iter().map(|l| l.local_addr().map(|a| a.port())).collect::<io::Result<_>>()?;
    Ok(numbers.chunks(2).map(|pair| Ports { peer: pair[0], http: pair[1] }).collect())
}

/// The ports from `base` on, two for each sidecar, if all of them are free; else the first that isn't, and why.
pub(super) fn from(base: u16, n: usize) -> Result<Vec<Ports>, (u16, io::Error)> {
    // The command line accepts no base that would run past the last port.
    let pairs = (0..n).map(|i| base.saturating_add(2 * u16::try_from(i).unwrap_or(u16::MAX)));
    let ports: Vec<Ports> = pairs.map(|http| Ports { http, peer: http.saturating_add(1) }).collect();
    for port in ports.iter().flat_map(|p| [p.http, p.peer]) {
        bind(port).map_err(|error| (port, error))?;
    }
    Ok(ports)
}

fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
