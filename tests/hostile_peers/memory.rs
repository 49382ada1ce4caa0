//! F5: what one process can be made to keep.

use crate::client::{Claim, Link};
use crate::rows::alone;
use crate::siege::{Attacker, Level, Siege, Stop};
use crate::wire::{Message, Peer};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// What a process keeps does not depend on the level; both sizes are seen.
const CLUSTERS: [(Level, usize); 2] = [(Level::Classic, 3), (Level::Majority, 5)];
const LASTING: Duration = Duration::from_secs(2);
/// By how much resident memory may grow. A release build has 5 MiB to begin with, and 20 in all.
const RESIDENT_MORE_KIB_MAX: u64 = 15 * 1024;
/// The longest frame, all of it.
const FRAME_BYTES: usize = 128 * 1024;
const MEMBERS_MAX: u16 = 256;
/// As many links as a process has at most, but for those of the cluster itself.
const LINKS: u16 = 506;
const LINKS_PER_PEER: u16 = 4;
/// How many threads share an attack of many connections.
const HANDS: u16 = 8;

/// A member whose texts are as long as they may be.
pub fn longest(peer: Peer) -> Peer {
    Peer { name: format!("{:x<253}", peer.name), revision: "r".repeat(63), ..peer }
}

/// Fails if an attack has made a process keep too much.
pub fn within_bounds(siege: &Siege, what: &str) {
    let more = siege.resident_more_kib();
    println!("{:?}, {} processes: {what}: {more} KiB more", siege.level, siege.real.n());
    assert!(more <= RESIDENT_MORE_KIB_MAX, "{what}: {more} KiB more; {RESIDENT_MORE_KIB_MAX} are allowed");
}

/// 506 links from so many addresses, each with a frame of 128 KiB that lacks its last byte.
fn unfinished_frames(sources: u16) {
    alone(&CLUSTERS, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let target = siege.address(siege.before.leader);
        let claims: Vec<Claim> = (0..LINKS / LINKS_PER_PEER + 1)
            .map(|number| {
                let (claim, from) = (siege.stranger(number), siege.stranger(number % sources));
                Claim {
                    source: from.source,
                    peer: Peer { address: from.peer.address, ..claim.peer },
                    ..claim
                }
            })
            .collect();
        let mut frame = vec![0u8; FRAME_BYTES - 1];
        frame[..4].copy_from_slice(&(FRAME_BYTES as u32 - 4).to_le_bytes());
        let attackers = (0..HANDS).map(|hand| {
            let (claims, frame) = (&claims, &frame);
            Box::new(move |stop: &Stop| {
                let mut links: Vec<Link> = Vec::new();
                for number in (0..LINKS).filter(|number| number % HANDS == hand) {
                    let link = claims[usize::from(number / LINKS_PER_PEER)].link(target);
                    links.extend(link.ok().filter(|_| !stop.is_over()));
                    if let Some(link) = links.last_mut() {
                        link.send(frame);
                    }
                }
            }) as Attacker
        });
        siege.flood(attackers.collect(), |_| std::thread::sleep(LASTING));
        within_bounds(&siege, "unfinished frames");
        siege.lift();
    });
}

// red before: F5
#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_of_unfinished_frames_of_one_address_takes_no_memory() {
    unfinished_frames(1);
}

// red before: F5
#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_of_unfinished_frames_of_many_addresses_takes_no_memory() {
    unfinished_frames(250);
}

/// Lists of 256 members with the longest names, faster than they can be looked at: at the same time others
/// make the process write epochs to its disk.
// red before: F5
#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_of_long_lists_takes_no_memory() {
    alone(&CLUSTERS, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let target = siege.address(siege.before.leader);
        let entries: Vec<_> =
            (0..MEMBERS_MAX).map(|number| (longest(siege.stranger(number).peer), true)).collect();
        let list = Message::LeaderInfo { leader: None, entries };
        let epoch = siege.before.epoch;
        let attackers = (0..HANDS).map(|hand| {
            let claim = siege.stranger(hand);
            let frame = list.frame(&claim.cluster, &claim.peer, epoch);
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(target) else { return };
                for ahead in 1.. {
                    let word = Message::LeaderQuery;
                    let sent = if hand == 0 { link.say(epoch + ahead, &word) } else { link.send(&frame) };
                    if stop.is_over() || !sent {
                        return;
                    }
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.flood(attackers, |_| std::thread::sleep(LASTING));
        within_bounds(&siege, "long lists");
        siege.lift();
    });
}

/// A connection that asks for `/members` and takes nothing of the answer.
fn ask_and_do_not_read(http: SocketAddr, from: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_recv_buffer_size(1024)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect(&http.into())?;
    let mut stream = TcpStream::from(socket);
    for _ in 0..8 {
        stream.write_all(b"GET /members HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    }
    Ok(stream)
}

/// Strangers with the longest names fill the list of members, and 256 clients of the status port ask for it.
// red before: F5
#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_of_slow_readers_of_a_long_list_takes_no_memory() {
    alone(&CLUSTERS, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (target, http) = (siege.address(siege.before.leader), siege.http(siege.before.leader));
        let joined = |number| {
            let claim = siege.stranger(number);
            Claim { peer: longest(claim.peer.clone()), ..claim }.link(target).ok()
        };
        let members: Vec<Link> = (0..MEMBERS_MAX - 1 - n as u16).filter_map(joined).collect();
        let attackers = (0..HANDS).map(|hand| {
            let sources = (0..MEMBERS_MAX).filter(|number| number % HANDS == hand);
            let sources: Vec<Ipv4Addr> = sources.map(|number| siege.stranger(number).source).collect();
            Box::new(move |stop: &Stop| {
                let slow = sources.iter().map(|source| ask_and_do_not_read(http, *source));
                let slow: Vec<TcpStream> = slow.filter_map(Result::ok).collect();
                while !stop.is_over() {
                    // A byte now and then: they are slow, and not gone.
                    slow.iter().for_each(|mut stream| _ = stream.read(&mut [0]));
                    std::thread::sleep(Duration::from_millis(50));
                }
            }) as Attacker
        });
        siege.flood(attackers.collect(), |_| std::thread::sleep(LASTING));
        drop(members);
        within_bounds(&siege, "slow readers");
        siege.lift();
    });
}
