//! How many instructions and allocations of memory the parts take that run all the time:
//! `cargo bench --bench instructions [-- --accept]`. callgrind counts instructions, so it needs valgrind.
//!
//! Each case runs twice, and the second time it does its work more often: the difference is the work alone.
//! benches/instructions/accepted.txt has the counts that are accepted. The bench fails where one takes more
//! than 5 % more than that. `--accept` writes the counts of now in their place, for the same commit.
//!
//! Counts are of this compiler and of the profile `bench`. Another compiler may want `--accept` too.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "instructions/flock.rs"]
mod flock;

use bellwether::base::Reading;
use bellwether::election::{
    Body, Entry, Epoch, Incarnation, Message, Moment, Pace, Priority, Role, Safety, Status,
};
use bellwether::http::{Feed, Snapshot, Source, request, routes};
use bellwether::wire::{self, Stamp};
use flock::{Flock, id};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// The system's allocator, and a count of what is asked of it.
#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// More than accepted, in per mille.
const MORE_MAX: u64 = 50;
/// How often a case does its work: the two runs.
const TIMES: [u64; 2] = [4, 24];

/// A unit of work, and the function that does a number of them.
type Case = (&'static str, fn(u64));

const CASES: [Case; 10] = [
    ("round of heartbeats, classic, n = 5", |times| rounds(Safety::Classic, 5, times)),
    ("round of heartbeats, classic, n = 100", |times| rounds(Safety::Classic, 100, times)),
    ("round of heartbeats, classic, n = 256", |times| rounds(Safety::Classic, 256, times)),
    ("round of heartbeats, majority, n = 5", |times| rounds(flock::majority(5), 5, times)),
    ("round of heartbeats, majority, n = 31", |times| rounds(flock::majority(31), 31, times)),
    ("what a process with 100 members publishes", |times| published(100, times)),
    ("heartbeat, encoded and decoded", |times| coded(heartbeat(), times)),
    ("list of 100 members, encoded and decoded", |times| coded(list(100), times)),
    ("GET /is-leader, parsed and answered", |times| asked("/is-leader", times)),
    ("GET /leader, parsed and answered", |times| asked("/leader", times)),
];

/// The leader's heartbeats to all, and each one's answer: 2n - 1 turns of the machine.
fn rounds(safety: Safety, n: usize, times: u64) {
    let mut flock = Flock::with_a_leader(n, safety);
    for _ in 0..times {
        flock.round();
    }
}

fn published(n: usize, times: u64) {
    let flock = Flock::with_a_leader(n, Safety::Classic);
    for _ in 0..times {
        black_box(flock.status(n));
    }
}

fn heartbeat() -> Body {
    Body::Heartbeat { sequence: 7, pace: Pace::default() }
}

fn list(n: usize) -> Body {
    let status = Flock::with_a_leader(n, Safety::Classic).status(n);
    let entries = status.members.iter().map(|m| Entry { peer: m.peer.clone(), state: m.state }).collect();
    Body::Membership { version: Default::default(), entries }
}

fn coded(body: Body, times: u64) {
    let stamp = Stamp { cluster: "bench".to_owned(), id: id(1) };
    let message = Message { epoch: Epoch(1), priority: Priority::DEFAULT, body };
    for _ in 0..times {
        let bytes = wire::encode_message(&stamp, black_box(&message)).unwrap();
        black_box(wire::decode(&bytes, wire::FRAME_BYTES_MAX).unwrap());
    }
}

/// A process that does nothing but answer.
struct Shown {
    status: Arc<Status>,
    feed: Feed,
    now: Moment,
}

impl Source for Shown {
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            status: Arc::clone(&self.status),
            now: self.now,
            reading: Reading::default(),
            turned: self.now,
            health: Ok(()),
            took_part: true,
            announced: Arc::new(BTreeMap::new()),
        }
    }
    fn feed(&self) -> &Feed {
        &self.feed
    }
    fn metrics(&self) -> String {
        String::new()
    }
}

fn asked(path: &str, times: u64) {
    let mut flock = Flock::with_a_leader(5, Safety::Classic);
    flock.round();
    let shown = Shown { status: flock.status(5).into(), feed: Feed::new(Incarnation(1)), now: flock.now() };
    assert_eq!(shown.status.role, Role::Leading);
    let received =
        format!("GET {path} HTTP/1.1\r\nHost: localhost:4040\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n");
    for _ in 0..times {
        let (request, _) = request::parse(black_box(received.as_bytes())).unwrap().unwrap();
        let response = routes::route(&request, &shown);
        assert_eq!(response.status_code().0, 200);
        black_box(response);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--case", case, times] => {
            let (_, work) = CASES[case.parse::<usize>().unwrap()];
            work(times.parse().unwrap());
            ExitCode::SUCCESS
        }
        [] => compare(false),
        ["--accept"] => compare(true),
        _ => {
            eprintln!("error: instructions takes --accept or nothing");
            ExitCode::from(2)
        }
    }
}

fn accepted_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions/accepted.txt")
}

/// What one unit of a case's work takes: instructions, and allocations of memory.
type Counts = [u64; 2];

/// Counts all cases, and prints each beside what is accepted, or writes them.
fn compare(accept: bool) -> ExitCode {
    let text = fs::read_to_string(accepted_file()).unwrap_or_default();
    let accepted: BTreeMap<&str, Counts> = text
        .lines()
        .filter_map(|line| line.rsplit_once("  "))
        .filter_map(|(counts, name)| Some((name, both(counts)?)))
        .collect();
    let (mut written, mut more) = (String::new(), 0);
    println!("{:<57} {:>12} {:>12}", "", "accepted", "now");
    for (case, (name, _)) in CASES.iter().enumerate() {
        let counts = count(case);
        writeln!(written, "{:>12} {:>8}  {name}", counts[0], counts[1]).unwrap();
        let accepted = accepted.get(name);
        for (of, what) in ["instructions", "allocations"].into_iter().enumerate() {
            let now = counts[of];
            let Some(before) = accepted.map(|accepted| accepted[of]) else {
                println!("{name:<42}, {what:<13} {:>12} {now:>12}", "none");
                more += 1;
                continue;
            };
            let change = (now as f64 / before.max(1) as f64 - 1.0) * 100.0;
            let too_many = now * 1000 > before * (1000 + MORE_MAX);
            more += usize::from(too_many);
            let verdict = if too_many { "more than 5 % more" } else { "" };
            println!("{name:<42}, {what:<13} {before:>12} {now:>12} {change:>+7.1}% {verdict}");
        }
    }
    if accept {
        fs::write(accepted_file(), written).expect("accepted.txt can be written");
        return ExitCode::SUCCESS;
    }
    if more > 0 {
        eprintln!("error: {more} counts are above the accepted ones; lower them, or accept them by --accept");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Two numbers.
fn both(counts: &str) -> Option<Counts> {
    let mut counts = counts.split_whitespace().map(str::parse);
    Some([counts.next()?.ok()?, counts.next()?.ok()?])
}

/// What one unit of a case's work takes.
fn count(case: usize) -> Counts {
    let (_, work) = CASES[case];
    // What is made once is made now.
    work(1);
    let [few, many] = TIMES.map(|times| [instructions(case, times), allocations(work, times)]);
    [0, 1].map(|of| (many[of] - few[of]) / (TIMES[1] - TIMES[0]))
}

/// How often memory is taken from the heap, or taken anew for what grows.
fn allocations(work: fn(u64), times: u64) -> u64 {
    let counted = Region::new(COUNTING);
    work(times);
    let change = counted.change();
    (change.allocations + change.reallocations) as u64
}

/// The instructions of one run.
fn instructions(case: usize, times: u64) -> u64 {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--case", &case.to_string(), &times.to_string()])
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .output()
        .expect("valgrind can be run: install the package valgrind");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "callgrind ended with {}:\n{said}", output.status);
    let collected = said.lines().find_map(|line| line.split_once("Collected :")).expect("what it collected");
    collected.1.trim().parse().expect("a number of instructions")
}
