//! Listening sockets.

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// How many connections the kernel completes for a listener ahead of its accepting them (the host's
/// `somaxconn` may make it fewer).
pub const BACKLOG: i32 = 1024;

/// Why a port cannot be listened on, and what to do about it. Nothing is left open.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another socket has the port.
    #[error(
        "cannot listen on {address}: the port is in use; stop the process that has it, or choose another port"
    )]
    InUse {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The port may not be used by this user.
    #[error(
        "cannot listen on {address}: not permitted; choose a port of 1024 or above, or grant \
         CAP_NET_BIND_SERVICE"
    )]
    NotPermitted {
        /// What was asked for.
        address: SocketAddr,
    },
    /// No interface of this host has the address.
    #[error(
        "cannot listen on {address}: this host does not have that address; use one of its own, or [::] or \
         0.0.0.0 for all of them"
    )]
    NotHere {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The host has no IPv6.
    #[error(
        "cannot listen on {address}: this host has no IPv6; use an IPv4 address, 0.0.0.0 for all of them"
    )]
    NoIpv6 {
        /// What was asked for.
        address: SocketAddr,
    },
    /// Anything else.
    #[error(
        "cannot listen on {address}: {reason}; choose another address or port, or mend what the reason names"
    )]
    Other {
        /// What was asked for.
        address: SocketAddr,
        /// The system's words.
        reason: io::Error,
    },
}

/// Listens on `address`; port 0 takes any free one. `[::]` takes IPv4 connections too, and becomes `0.0.0.0`
/// where the host has no IPv6. Connections that linger from an earlier process do not stand in the way
/// (SO_REUSEADDR).
pub fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    listen_with(address, bind)
}

fn listen_with(
    address: SocketAddr,
    bind: impl Fn(SocketAddr) -> io::Result<TcpListener>,
) -> Result<TcpListener, ListenError> {
    let error = match bind(address) {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    let all_ipv6 = address.is_ipv6() && address.ip().is_unspecified();
    if all_ipv6 && without_ipv6(&error) {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
        return bind(address).map_err(|error| explain(address, error));
    }
    Err(explain(address, error))
}

/// Whether binding an IPv6 address failed because there is no IPv6. EADDRNOTAVAIL for the unspecified address
/// is what some hosts with IPv6 switched off at boot say.
fn without_ipv6(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT | Errno::ADDRNOTAVAIL)
    )
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn explain(address: SocketAddr, reason: io::Error) -> ListenError {
    match Errno::from_io_error(&reason) {
        Some(Errno::ADDRINUSE) => ListenError::InUse { address },
        Some(Errno::ACCESS | Errno::PERM) => ListenError::NotPermitted { address },
        Some(Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT) if address.is_ipv6() => {
            ListenError::NoIpv6 { address }
        }
        Some(Errno::ADDRNOTAVAIL) => ListenError::NotHere { address },
        _ => ListenError::Other { address, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn all_addresses_take_ipv4_too() {
        let listener = listen(address("[::]:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        if listener.local_addr().unwrap().is_ipv6() {
            TcpStream::connect(("::1", port)).unwrap();
        }
    }

    #[test]
    fn a_port_in_use_says_so() {
        let first = listen(address("127.0.0.1:0")).unwrap();
        let taken = first.local_addr().unwrap();
        let error = listen(taken).unwrap_err();
        assert!(matches!(error, ListenError::InUse { address } if address == taken));
        assert!(error.to_string().contains(&taken.to_string()));
    }

    #[test]
    fn an_address_of_another_host_says_so() {
        let error = listen(address("198.51.100.1:0")).unwrap_err();
        assert!(matches!(error, ListenError::NotHere { .. }), "{error}");
    }

    #[test]
    fn a_port_is_free_again_at_once() {
        let listener = listen(address("127.0.0.1:0")).unwrap();
        let taken = listener.local_addr().unwrap();
        let client = TcpStream::connect(taken).unwrap();
        // This side closes first, so that it is this side's port that lingers.
        drop(listener.accept().unwrap());
        drop(listener);
        drop(client);
        listen(taken).unwrap();
    }

    #[test]
    fn without_ipv6_all_addresses_are_those_of_ipv4() {
        let no_ipv6 = |address: SocketAddr| {
            if address.is_ipv6() {
                return Err(Errno::AFNOSUPPORT.into());
            }
            bind(address)
        };
        let listener = listen_with(address("[::]:0"), no_ipv6).unwrap();
        assert_eq!(listener.local_addr().unwrap().ip(), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let error = listen_with(address("[::1]:0"), no_ipv6).unwrap_err();
        assert!(matches!(error, ListenError::NoIpv6 { .. }), "{error}");
    }
}
