//! The socket: where it is, that it is this user's alone, and which process is at the other end.

use crate::config::ControlSocket;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::process::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file is its owner's alone.
const MODE: u32 = 0o600;
/// How long a process may take to accept a connection, where others wait too.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no control socket. Nothing was changed, but for a socket that no process listens on, which
/// may be gone.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process has it.
    #[error("another process listens on {0}; stop it, or give each process a --control-socket of its own")]
    InUse(ControlSocket),
    /// There is something else.
    #[error("{path:?} is {kind}, and is left alone; remove it, or give another --control-socket")]
    NoSocket {
        /// The path.
        path: PathBuf,
        /// What is there.
        kind: &'static str,
    },
    /// The system refuses it.
    #[error(
        "cannot make {socket}: {source}; make its folder and let this user write there, or give another \
         --control-socket, or none"
    )]
    System {
        /// What was asked for.
        socket: ControlSocket,
        /// The system's words.
        source: io::Error,
    },
}

/// A socket that listens.
#[derive(Debug)]
pub struct Bound {
    pub(super) listener: UnixListener,
    pub(super) file: Option<SocketFile>,
}

/// The file of a socket. It is removed when this is dropped, unless another process has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Makes the socket; none where it is switched off. A socket that a former process has left there is
/// replaced; nothing else is.
///
/// # Errors
/// [`SocketError`] says what to mend.
pub fn bind(socket: &ControlSocket) -> Result<Option<Bound>, SocketError> {
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::AddrInUse => SocketError::InUse(socket.clone()),
        _ => SocketError::System { socket: socket.clone(), source },
    };
    match socket {
        ControlSocket::Off => Ok(None),
        ControlSocket::Abstract(name) => {
            let address = SocketAddr::from_abstract_name(name).map_err(failed)?;
            let listener = UnixListener::bind_addr(&address).map_err(failed)?;
            Ok(Some(Bound { listener, file: None }))
        }
        ControlSocket::Path(path) => {
            if let Some(kind) = in_the_way(path).map_err(failed)? {
                return Err(SocketError::NoSocket { path: path.clone(), kind });
            }
            remove_stale(path).map_err(failed)?;
            let listener = UnixListener::bind(path).map_err(failed)?;
            let file = Some(SocketFile { path: path.clone(), identity: identity(path).map_err(failed)? });
            // Until then other users may connect; they are refused by their credentials.
            fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
            Ok(Some(Bound { listener, file }))
        }
    }
}

/// What is there, where it is something other than a socket. Of a link: the link itself, since what it names
/// is none of this program's business.
fn in_the_way(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = match fs::symlink_metadata(path) {
        Ok(there) => there.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(match kind {
        _ if kind.is_socket() => None,
        _ if kind.is_symlink() => Some("a symbolic link"),
        _ if kind.is_dir() => Some("a folder"),
        _ => Some("a file, and no socket"),
    })
}

/// Removes a socket that no process listens on any more. If one does, there is nothing to remove, and the
/// caller's bind fails.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(there) = identity(path) else { return Ok(()) };
    let refused = connect_by(&SockAddr::unix(path)?, None)
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    // Another process may have replaced it meanwhile.
    if refused && identity(path).is_ok_and(|still| still == there) {
        return fs::remove_file(path);
    }
    Ok(())
}

/// The file's device and number.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|there| (there.dev(), there.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|there| there == self.identity) {
            // Where it stays, the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connects with the process that listens there, and looks whose it is: another user's may have taken an
/// abstract name, or a path in a shared folder.
pub(super) fn connect(socket: &ControlSocket) -> io::Result<UnixStream> {
    let address = match socket {
        ControlSocket::Off => return Err(io::Error::new(ErrorKind::NotFound, "there is none (`none`)")),
        ControlSocket::Path(path) => SockAddr::unix(path)?,
        // What begins with a zero is an abstract name (unix(7)).
        ControlSocket::Abstract(name) => SockAddr::unix(format!("\0{name}"))?,
    };
    let stream = connect_by(&address, Some(CONNECT_TIMEOUT))?;
    let listens = Caller::of(&stream)?;
    let me = geteuid().as_raw();
    if me != 0 && !listens.may_ask() {
        let why = format!("a process of another user (uid {}) listens there", listens.uid);
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok(stream)
}

/// Connects; waits for room in the listener's queue for that long, or not at all.
fn connect_by(address: &SockAddr, timeout: Option<Duration>) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(timeout.is_none())?;
    // connect(2) of such a socket waits as long as its writes (unix(7)).
    socket.set_write_timeout(timeout)?;
    socket.connect(address)?;
    Ok(socket.into())
}

/// The process at the other end of a connection, as the kernel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Caller {
    pub(super) uid: u32,
    /// 0: a process of another PID namespace.
    pub(super) pid: i32,
}

impl Caller {
    /// The process that has connected, or that listens.
    pub(super) fn of(stream: &UnixStream) -> io::Result<Caller> {
        // rustix's SO_PEERCRED has a pid that cannot be 0, and a caller from another container has that one.
        let credentials = getsockopt(stream, PeerCredentials)?;
        Ok(Caller { uid: credentials.uid(), pid: credentials.pid() })
    }

    /// Whether it may ask: root may, and this process's own user.
    pub(super) fn may_ask(self) -> bool {
        self.uid == 0 || self.uid == geteuid().as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn at(path: &Path) -> ControlSocket {
        ControlSocket::Path(path.to_owned())
    }

    #[test]
    fn a_path_is_its_owners_alone_and_goes_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let bound = bind(&at(&path)).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let Err(SocketError::InUse(_)) = bind(&at(&path)) else { panic!("taken from a live process") };
        let stream = connect(&at(&path)).unwrap();
        let me = Caller { uid: geteuid().as_raw(), pid: std::process::id().cast_signed() };
        assert_eq!(Caller::of(&stream).unwrap(), me);
        drop(bound);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_a_former_process_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        let former = SocketFile { path: path.clone(), identity: identity(&path).unwrap() };
        let _bound = bind(&at(&path)).unwrap().unwrap();
        if former.identity != identity(&path).unwrap() {
            drop(former);
            assert!(path.exists(), "a former process removes no other's");
        }
        connect(&at(&path)).unwrap();
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "kept").unwrap();
        fs::create_dir(path("folder")).unwrap();
        let _listener = UnixListener::bind(path("other")).unwrap();
        symlink(path("other"), path("link")).unwrap();
        for (name, words) in [("file", "no socket"), ("folder", "a folder"), ("link", "a symbolic link")] {
            let error = bind(&at(&path(name))).unwrap_err();
            assert!(matches!(error, SocketError::NoSocket { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(fs::read(path("file")).unwrap(), b"kept");
        let error = bind(&at(&path("nowhere/a.sock"))).unwrap_err();
        assert!(matches!(error, SocketError::System { .. }), "{error}");
    }

    #[test]
    fn a_name_is_free_again_with_its_process() {
        let name = ControlSocket::Abstract(format!("bellwether-test-{}", std::process::id()));
        assert_eq!(connect(&name).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let bound = bind(&name).unwrap().unwrap();
        assert!(matches!(bind(&name), Err(SocketError::InUse(_))));
        connect(&name).unwrap();
        drop(bound);
        bind(&name).unwrap().unwrap();
    }

    #[test]
    fn none_is_no_socket() {
        assert!(bind(&ControlSocket::Off).unwrap().is_none());
        assert!(connect(&ControlSocket::Off).is_err());
    }
}
