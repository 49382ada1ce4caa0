//! How fast leadership leaves an application that dies, with real processes on loopback:
//! `cargo bench --bench application`.
//!
//! The leader's application ends its lifeline, as its own end does. Measured is the time until all processes
//! name the next leader. No hold is out. It fails when a median is over its bound.

#[path = "../tests/processes/rounds.rs"]
#[allow(dead_code)]
mod rounds;
#[path = "../tests/support/wait.rs"]
mod wait;

use bellwether::demo::process_cluster::{ClusterPlan, ProcessCluster};
use rounds::PATIENCE;
use rustix::process::Signal;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const N: usize = 3;
const ROUNDS: usize = 25;
/// What is promised of the medians.
const BOUND: Duration = Duration::from_millis(20);
const LIFELINE: &[u8] = b"POST /lifeline HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn main() -> ExitCode {
    println!("| lifeline's end, {N} processes | rounds | median ms | max ms |\n| --- | --- | --- | --- |");
    let rows = [("classic", false), ("majority", true)].map(|(what, majority)| row(what, majority));
    match rows.into_iter().collect::<Result<Vec<bool>, _>>() {
        Ok(within) if within.iter().all(|within| *within) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a row; returns whether its median is within the bound.
fn row(what: &str, majority: bool) -> Result<bool, Box<dyn Error>> {
    // In memory, so that the rules are measured and not a disk.
    let states = tempfile::tempdir_in("/dev/shm")?;
    let mut cluster = ProcessCluster::new(ClusterPlan {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_bellwether")),
        n: N,
        base_port: None,
        flags: vec!["--preempt".to_owned(), "never".to_owned()],
        majority: majority.then(|| states.path().to_owned()),
        logs: Some(states.path().to_owned()),
        relay: None,
    })?;
    cluster.start_all()?;
    let mut now = cluster.agree(0, PATIENCE)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let lifeline = open(cluster.ports(now.leader).http)?;
        let begun = Instant::now();
        drop(lifeline);
        let next = cluster.agree(now.epoch, PATIENCE)?;
        times.push(begun.elapsed());
        // A restart forgets that its application has died: twice would keep it from leading for long.
        cluster.signal(now.leader, Signal::TERM);
        cluster.wait(now.leader, PATIENCE)?;
        rounds::bring_back(&mut cluster, now.leader, &[], &next)?;
        now = next;
    }
    times.sort();
    let (median, max) = (times[times.len() / 2], times[times.len() - 1]);
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("| {what} | {ROUNDS} | {:.1} | {:.1} |", ms(median), ms(max));
    Ok(median <= BOUND)
}

/// A lifeline that counts.
fn open(port: u16) -> Result<TcpStream, Box<dyn Error>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(LIFELINE)?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    if !head.ends_with(b" 200") {
        return Err(format!("no lifeline: {:?}", String::from_utf8_lossy(&head)).into());
    }
    Ok(stream)
}
