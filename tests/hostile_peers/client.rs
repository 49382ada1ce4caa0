//! A stranger's connections: from an address of its choice, under any identity, with anything in them.

use crate::wire::{Confirmed, Frame, Message, Peer, confirmed, first, hello};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a process may take to answer a Hello: it may dial others before it does.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a process may leave a frame waiting before a stranger gives it up.
const WRITE_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a stranger waits for the next frame before it says something again.
const HEAR_TIMEOUT: Duration = Duration::from_millis(2);
/// The version of the protocol that a stranger says it speaks.
const VERSIONS: (u16, u16) = (1, 1);

/// What a stranger says of itself, all of it of its choice, and where its connections come from.
#[derive(Clone, Debug)]
pub struct Claim {
    pub cluster: String,
    /// 0: `classic`, 1: `majority`.
    pub safety: u8,
    pub peer: Peer,
    /// An address in 127.0.0.0/8.
    pub source: Ipv4Addr,
}

/// Why there is no link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoLink {
    /// The process said so, with a number and a text for people.
    Refused(u64, String),
    /// The connection ended, or nothing came.
    Closed(ErrorKind),
}

/// A connection that a process takes for a link.
pub struct Link {
    pub claim: Claim,
    /// What the process says of itself.
    pub answered: Peer,
    stream: TcpStream,
    received: Vec<u8>,
    open: bool,
}

impl Claim {
    /// Connects from the claim's source.
    pub fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((self.source, 0)).into())?;
        socket.connect_timeout(&to.into(), HELLO_TIMEOUT)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(stream)
    }

    /// What it says first on a connection.
    pub fn hello(&self) -> Vec<u8> {
        hello(VERSIONS, &self.cluster, &self.peer, self.safety, fastrand::u64(1..))
    }

    /// Connects, says Hello, and waits for the answer.
    pub fn link(&self, to: SocketAddr) -> Result<Link, NoLink> {
        self.link_with(to, &self.hello())
    }

    /// The same with these first bytes.
    pub fn link_with(&self, to: SocketAddr, hello: &[u8]) -> Result<Link, NoLink> {
        let (stream, received, answer) =
            self.say_first(to, hello).map_err(|error| NoLink::Closed(error.kind()))?;
        match answer {
            Frame::Hello(answered) => {
                Ok(Link { claim: self.clone(), answered, stream, received, open: true })
            }
            Frame::Refuse { why, text } => Err(NoLink::Refused(why, text)),
            _ => Err(NoLink::Closed(ErrorKind::InvalidData)),
        }
    }

    /// What a process answers to a first frame.
    pub fn ask(&self, to: SocketAddr, question: &[u8]) -> Option<Frame> {
        self.say_first(to, question).ok().map(|(_, _, answer)| answer)
    }

    /// Connects, says these first bytes, and waits for a frame.
    fn say_first(&self, to: SocketAddr, bytes: &[u8]) -> std::io::Result<(TcpStream, Vec<u8>, Frame)> {
        let mut stream = self.connect(to)?;
        stream.write_all(bytes)?;
        let mut received = Vec::new();
        let deadline = Instant::now() + HELLO_TIMEOUT;
        loop {
            if let Some((frame, length)) = first(&received) {
                received.drain(..length);
                return Ok((stream, received, frame));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if read(&mut stream, &mut received, left)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Link {
    /// Sends bytes of any kind; false: the process does not take them.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.open &= self.stream.write_all(bytes).is_ok();
        self.open
    }

    /// Says something in an epoch; false: the process does not take it.
    pub fn say(&mut self, epoch: u64, message: &Message) -> bool {
        self.send(&message.frame(&self.claim.cluster, &self.claim.peer, epoch))
    }

    /// The next frame that the process sends, if one comes soon.
    pub fn hear(&mut self) -> Option<Frame> {
        if let Some((frame, length)) = first(&self.received) {
            self.received.drain(..length);
            return Some(frame);
        }
        match read(&mut self.stream, &mut self.received, HEAR_TIMEOUT) {
            Ok(count) => self.open &= count > 0,
            Err(error) => self.open &= matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
        None
    }

    /// Whether the process still takes this for a link, as far as its end shows.
    pub fn is_open(&self) -> bool {
        self.open
    }
}

impl Drop for Link {
    /// Hangs up without a word, as a crash does.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads what is there, or comes within this time.
fn read(stream: &mut TcpStream, into: &mut Vec<u8>, within: Duration) -> std::io::Result<usize> {
    if within.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(within))?;
    let mut buffer = [0u8; 16 * 1024];
    let count = stream.read(&mut buffer)?;
    into.extend_from_slice(&buffer[..count]);
    Ok(count)
}

/// The port at which strangers listen, each at its own address. Like a process, a stranger confirms that a
/// Hello is its own when it is asked, and it confirms all else, too.
pub fn home_port() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        // One listener for all of 127.0.0.0/8, and for no other network.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind_device(Some(b"lo")).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()).unwrap();
        socket.listen(1024).unwrap();
        let listener = TcpListener::from(socket);
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || confirm_all(stream));
            }
        });
        port
    })
}

/// Answers one question. A process that wants more of a stranger waits in vain.
fn confirm_all(mut stream: TcpStream) {
    let mut received = Vec::new();
    while read(&mut stream, &mut received, HELLO_TIMEOUT).is_ok_and(|count| count > 0) {
        if let Some((Frame::Confirm(_), _)) = first(&received) {
            // The process may have gone meanwhile.
            let _ = stream.write_all(&confirmed(Confirmed::Own));
            return;
        }
    }
}

/// A port that no process of the cluster has a reason to connect to.
pub struct Trap(TcpListener);

impl Trap {
    /// Listens at this address, on any port.
    pub fn at(host: Ipv4Addr) -> Trap {
        let listener = TcpListener::bind((host, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Trap(listener)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// How many connections have come up to now.
    pub fn sprung(&self) -> usize {
        std::iter::from_fn(|| self.0.accept().ok()).count()
    }

    /// The first bytes of the next connection that has come, if there is one.
    pub fn overhear(&self) -> Option<Vec<u8>> {
        let (mut stream, _) = self.0.accept().ok()?;
        let mut received = Vec::new();
        read(&mut stream, &mut received, HELLO_TIMEOUT).ok()?;
        Some(received)
    }

    /// Answers each connection that has come with these bytes, and hangs up.
    pub fn answer(&self, bytes: &[u8]) {
        std::iter::from_fn(|| self.0.accept().ok()).for_each(|(mut stream, _)| _ = stream.write_all(bytes));
    }
}
