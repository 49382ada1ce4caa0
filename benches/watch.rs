//! How long a change takes until clients know of it, over loopback: `cargo bench --bench watch`.
//!
//! The changes are those of one status port, so what is measured is the way from the driver to a client, and
//! no election. `/` stands for what clients of nais/elector do: they ask again and again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/support/shown.rs"]
mod shown;
#[path = "../tests/support/watch_client.rs"]
mod watch_client;

use bellwether::http::{LIMITS, Server};
use shown::{Shown, serve};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use watch_client::Client;

const CHANGES: u64 = 1000;
const CROWD: usize = 300;
/// Clients that ask each second, and how many changes they see: a thousand times in all.
const POLLERS: u64 = 100;
const POLLED_CHANGES: u64 = 10;
const POLL_EVERY: Duration = Duration::from_secs(1);

/// When a client saw which epoch.
type Seen = (u64, Instant);

fn row(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let ms = |per_mille: usize| took[(took.len() - 1) * per_mille / 1000].as_secs_f64() * 1000.0;
    println!("| {what:<52} | {:>5} | {:>8.3} | {:>8.3} | {:>8.3} |", took.len(), ms(500), ms(990), ms(1000));
}

/// Publishes changes one after the other, each once `clients` clients have seen the one before. How long each
/// took until the last of them had it.
fn published(
    shown: &Shown,
    seen: &Receiver<Seen>,
    clients: usize,
    epochs: std::ops::RangeInclusive<u64>,
) -> Vec<Duration> {
    epochs
        .map(|epoch| {
            let at = Instant::now();
            shown.elects(epoch);
            let mut last = at;
            for _ in 0..clients {
                let (of, when) = seen.recv_timeout(Duration::from_secs(10)).unwrap();
                assert_eq!(of, epoch);
                last = last.max(when);
            }
            last - at
        })
        .collect()
}

fn epoch(state: &serde_json::Value) -> u64 {
    state["epoch"].as_u64().unwrap()
}

/// Reads a stream on a thread of its own, from the change after the present state on.
fn follow(address: SocketAddr, seen: Sender<Seen>) {
    let mut client = Client::follows(address, "/watch", "");
    client.event();
    std::thread::spawn(move || {
        while let Some((_, state)) = client.next_event() {
            if seen.send((epoch(&state), Instant::now())).is_err() {
                return;
            }
        }
    });
}

fn answer(client: &mut Client) -> serde_json::Value {
    let head = client.head();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    std::io::Read::read_exact(&mut client.0, &mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn streams((server, shown): &(Server, Arc<Shown>), clients: usize, changes: u64, what: &str) {
    let (sender, seen) = channel();
    (0..clients).for_each(|_| follow(server.local_address(), sender.clone()));
    let first = shown.epoch() + 1;
    row(what, published(shown, &seen, clients, first..=first + changes - 1));
}

fn long_polls((server, shown): &(Server, Arc<Shown>)) {
    let (sender, seen) = channel();
    let address = server.local_address();
    let mut version =
        answer(&mut Client::asks(address, "/watch", ""))["version"].as_str().unwrap().to_owned();
    let poll = move || loop {
        let target = format!("/watch?after={version}");
        let mut client = Client::asks(address, &target, "Connection: close\r\n");
        let state = answer(&mut client);
        let seen = (epoch(&state), Instant::now());
        version = state["version"].as_str().unwrap().to_owned();
        if !client.ended() || sender.send(seen).is_err() {
            return;
        }
    };
    let polling = std::thread::spawn(poll);
    shown.watched_by(1);
    let first = shown.epoch() + 1;
    row("/watch, long polls", published(shown, &seen, 1, first..=first + CHANGES - 1));
    // It is told once more, and ends.
    drop(seen);
    shown.elects(first + CHANGES);
    polling.join().unwrap();
}

/// Clients that ask each second, each at a moment of its own.
fn polling((server, shown): &(Server, Arc<Shown>), path: &'static str) {
    let (sender, seen) = channel();
    let (address, over) = (server.local_address(), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..POLLERS)
        .map(|number| {
            let (sender, over) = (sender.clone(), Arc::clone(&over));
            std::thread::spawn(move || {
                std::thread::sleep(POLL_EVERY * u32::try_from(number).unwrap() / 100);
                let mut known = None;
                while !over.load(Ordering::Relaxed) {
                    let mut state = answer(&mut Client::asks(address, path, "Connection: close\r\n"));
                    // The time of the last change is what differs in `/`.
                    state
                        .as_object_mut()
                        .unwrap()
                        .retain(|key, _| ["epoch", "last_update"].contains(&key.as_str()));
                    if known.replace(state.clone()).is_some_and(|known| known != state) {
                        sender.send(Instant::now()).unwrap();
                    }
                    std::thread::sleep(POLL_EVERY);
                }
            })
        })
        .collect();
    std::thread::sleep(2 * POLL_EVERY);
    let mut took = Vec::new();
    for _ in 0..POLLED_CHANGES {
        let at = Instant::now();
        shown.elects(shown.epoch() + 1);
        took.extend((0..POLLERS).map(|_| seen.recv_timeout(Duration::from_secs(10)).unwrap() - at));
    }
    over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    row(&format!("{path}, asked each second"), took);
}

/// Probes, while a crowd watches and is told of changes.
fn probes((server, shown): &(Server, Arc<Shown>)) {
    let (sender, seen) = channel();
    (0..CROWD).for_each(|_| follow(server.local_address(), sender.clone()));
    let over = &AtomicBool::new(false);
    let took = std::thread::scope(|scope| {
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                shown.elects(shown.epoch() + 1);
                (0..CROWD).for_each(|_| assert!(seen.recv().is_ok()));
            }
        });
        let probe = |_| {
            let at = Instant::now();
            let stream = TcpStream::connect(server.local_address()).unwrap();
            Client::over(stream, "GET /healthz", "Connection: close\r\n").head();
            at.elapsed()
        };
        let took = (0..CHANGES).map(probe).collect();
        over.store(true, Ordering::Relaxed);
        took
    });
    row("/healthz, while 300 streams are told without a pause", took);
}

fn main() {
    println!("| what | times | median ms | p99 ms | max ms |\n| --- | --- | --- | --- | --- |");
    streams(&serve(LIMITS, CROWD), 1, CHANGES, "/watch, a stream");
    long_polls(&serve(LIMITS, CROWD));
    streams(&serve(LIMITS, CROWD), CROWD, CHANGES / 10, "/watch, the last of 300 streams");
    polling(&serve(LIMITS, CROWD), "/leader");
    polling(&serve(LIMITS, CROWD), "/");
    probes(&serve(LIMITS, CROWD));
}
