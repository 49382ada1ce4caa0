//! A relay in front of a peer port, which delays what passes. Each direction of each connection has a delay
//! of its own, of 1 to 150 ms, that jumps twice a second. There is none before [`begin_to_delay`]. Bytes keep
//! their order.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

const DELAY_MAX_MS: u64 = 150;
const JUMPS_EVERY: Duration = Duration::from_millis(500);
/// The connections that a relay takes in its life; no cluster of three needs as many.
const CONNECTIONS_MAX: u64 = 10_000;
/// What may be on its way in one direction.
const PIECES_MAX: usize = 1_024;
const PIECE_BYTES: usize = 16 * 1_024;

static DELAYS: AtomicBool = AtomicBool::new(false);

/// From now on all relays of this process delay what passes.
pub fn begin_to_delay() {
    DELAYS.store(true, Ordering::Relaxed);
}

/// Bytes, and when they are due.
type Piece = (Instant, Vec<u8>);

/// Starts a relay to a peer port of 127.0.0.1. It ends with the process. Returns its own port.
///
/// # Errors
/// Where no port or thread is to be had.
pub fn start(peer: u16) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::Builder::new().name(format!("relay-{peer}")).spawn(move || {
        for number in 0..CONNECTIONS_MAX {
            let Ok((near, _)) = listener.accept() else { return };
            // Where the process is down, its relay closes the connection.
            let _ = connect(near, (Ipv4Addr::LOCALHOST, peer).into(), number ^ u64::from(port) << 32);
        }
    })?;
    Ok(port)
}

/// Carries a connection, in both directions.
fn connect(near: TcpStream, far: SocketAddr, seed: u64) -> io::Result<()> {
    let far = TcpStream::connect(far)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    for (from, to, seed) in [(near.try_clone()?, far.try_clone()?, seed), (far, near, seed | 1 << 63)] {
        let (pieces, due) = sync_channel(PIECES_MAX);
        std::thread::Builder::new().spawn(move || receive(from, &pieces, seed))?;
        std::thread::Builder::new().spawn(move || send(to, &due))?;
    }
    Ok(())
}

fn receive(mut from: TcpStream, pieces: &SyncSender<Piece>, seed: u64) {
    let (begun, mut bytes) = (Instant::now(), vec![0; PIECE_BYTES]);
    while let Ok(length @ 1..) = from.read(&mut bytes) {
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

fn send(mut to: TcpStream, due: &Receiver<Piece>) {
    for (due, bytes) in due {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // Also where the other side has ended: this one hears of it.
    let _ = to.shutdown(Shutdown::Both);
}
