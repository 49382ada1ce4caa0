//! A relay in front of a peer port: a network that a bench can slow down or cut. Each direction of each
//! connection has a delay of its own, of 1 to 150 ms, that jumps twice a second. There is none before
//! [`begin_to_delay`]. Bytes keep their order. What is cut is held back, as by a broken cable: no connection
//! ends.

use bellwether::wire::{Frame, HELLO_BYTES_MAX, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const DELAY_MAX_MS: u64 = 150;
const JUMPS_EVERY: Duration = Duration::from_millis(500);
/// The connections that a relay takes in its life; no cluster of five needs as many.
const CONNECTIONS_MAX: u64 = 10_000;
/// What may be on its way in one direction.
const PIECES_MAX: usize = 1_024;
const PIECE_BYTES: usize = 16 * 1_024;

static DELAYS: AtomicBool = AtomicBool::new(false);
static CABLES: Mutex<Cables> = Mutex::new(Cables { peers: BTreeMap::new(), cut: BTreeSet::new() });
static HEALED: Condvar = Condvar::new();

/// Which processes are cut off.
struct Cables {
    /// The peer port behind each relay's port.
    peers: BTreeMap<u16, u16>,
    /// The peer ports of those that are.
    cut: BTreeSet<u16>,
}

/// The peer ports of the two processes of a connection. The one that has dialled names its relay in its
/// Hello.
#[derive(Clone)]
struct Ends {
    dialled: u16,
    dialler: Arc<OnceLock<u16>>,
}

/// Bytes, and when they are due.
type Piece = (Instant, Vec<u8>);

/// From now on all relays of this process delay what passes.
pub fn begin_to_delay() {
    DELAYS.store(true, Ordering::Relaxed);
}

/// From now on nothing passes from or to the process with this peer port.
pub fn cut(peer: u16) {
    cables().cut.insert(peer);
}

/// Passes on what was held back.
pub fn heal(peer: u16) {
    cables().cut.remove(&peer);
    HEALED.notify_all();
}

fn cables() -> MutexGuard<'static, Cables> {
    CABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cables {
    fn are_cut(&self, ends: &Ends) -> bool {
        let dialler = ends.dialler.get();
        self.cut.contains(&ends.dialled) || dialler.is_some_and(|peer| self.cut.contains(peer))
    }
}

/// Starts a relay to a peer port of 127.0.0.1. It ends with the process. Returns its own port.
///
/// # Errors
/// Where no port or thread is to be had.
pub fn start(peer: u16) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    cables().peers.insert(port, peer);
    std::thread::Builder::new().name(format!("relay-{peer}")).spawn(move || {
        for number in 0..CONNECTIONS_MAX {
            let Ok((near, _)) = listener.accept() else { return };
            let ends = Ends { dialled: peer, dialler: Arc::default() };
            // Where the process is down, its relay closes the connection.
            let _ = connect(near, (Ipv4Addr::LOCALHOST, peer).into(), &ends, number ^ u64::from(port) << 32);
        }
    })?;
    Ok(port)
}

/// Carries a connection, in both directions.
fn connect(near: TcpStream, far: SocketAddr, ends: &Ends, seed: u64) -> io::Result<()> {
    let far = TcpStream::connect(far)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    for (from, to, seed) in [(near.try_clone()?, far.try_clone()?, seed), (far, near, seed | 1 << 63)] {
        let (pieces, due) = sync_channel(PIECES_MAX);
        let (received, sent) = (ends.clone(), ends.clone());
        std::thread::Builder::new().spawn(move || receive(from, &pieces, &received, seed))?;
        std::thread::Builder::new().spawn(move || send(to, &due, &sent))?;
    }
    Ok(())
}

fn receive(mut from: TcpStream, pieces: &SyncSender<Piece>, ends: &Ends, seed: u64) {
    let (begun, mut bytes) = (Instant::now(), vec![0; PIECE_BYTES]);
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        // The first Hello of a connection is that of the process that has dialled.
        if ends.dialler.get().is_none()
            && let Ok(Some((Frame::Hello(hello), _))) = decode(&bytes[..length], HELLO_BYTES_MAX)
            && let Some(peer) = cables().peers.get(&hello.peer.address.port())
        {
            let _ = ends.dialler.set(*peer);
        }
        let jumps = begun.elapsed().as_millis() / JUMPS_EVERY.as_millis();
        let drawn = BuildHasherDefault::<DefaultHasher>::default().hash_one((seed, jumps));
        let delay_ms = if DELAYS.load(Ordering::Relaxed) { 1 + drawn % DELAY_MAX_MS } else { 0 };
        let due = Instant::now() + Duration::from_millis(delay_ms);
        if pieces.send((due, bytes[..length].to_vec())).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Read);
}

fn send(mut to: TcpStream, due: &Receiver<Piece>, ends: &Ends) {
    for (due, bytes) in due {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // A bench heals what it cuts, or ends.
        let cables = HEALED.wait_while(cables(), |cables| cables.are_cut(ends));
        drop(cables);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // Also where the other side has ended: this one hears of it.
    let _ = to.shutdown(Shutdown::Both);
}
