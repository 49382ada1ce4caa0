//! The fuzz targets on stable: each of `properties` is held against its corpus, and then against seeded
//! mutations of it.
//!
//! What a run does follows from its seed alone. `BELLWETHER_SEED` sets it, `BELLWETHER_FUZZ_CASES` the number
//! of mutations for each target. A failure prints both for that one input alone, and where it has put the
//! input.
//!
//! The corpus, `fuzz/corpus/TARGET/`, is made by `seeds`: `BELLWETHER_REWRITE=1 cargo test --test fuzz`
//! writes it anew. A file that is not of `seeds` stays: an input that once failed is kept there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap fails the test")]

mod mutate;
mod properties;
mod seeds;
mod tls;

use fastrand::Rng;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A reader of a stranger's bytes.
struct Target {
    name: &'static str,
    property: fn(&[u8]) -> &'static str,
    seeds: fn() -> Vec<(String, Vec<u8>)>,
    /// Outcomes of at least [`REACHED_MIN`] mutations: else the mutations do not get as far as they should.
    reached: &'static [&'static str],
}

#[rustfmt::skip]
const TARGETS: [Target; 6] = [
    Target {
        name: "frame",
        property: properties::frame,
        seeds: seeds::frames,
        reached: &[
            "payload", "limit", "unknown", "hello", "refuse", "bye", "election", "answer", "coordinator",
            "heartbeat",
            "heartbeat_ack", "membership", "join", "leave", "resign", "leader_query", "leader_info",
            "vote_request", "vote", "renew",
            "renewed", "configuration", "recover", "recovered", "propose_transfer", "transfer_ready",
        ],
    },
    Target {
        name: "handshake",
        property: properties::handshake,
        seeds: seeds::handshakes,
        reached: &["hello", "refuse", "payload", "limit", "too long", "unknown"],
    },
    Target {
        name: "channel",
        property: properties::channel,
        seeds: seeds::channels,
        reached: &["answered", "refused after an answer", "answered by the dialler", "waits", "refused",
         "too long", "decode error", "unexpected message", "illegal parameter", "protocol version"],
    },
    Target {
        name: "http_head",
        property: properties::http_head,
        seeds: seeds::http_heads,
        reached: &["request", "incomplete", "malformed", "too many headers", "unknown method", "unknown \
         version"],
    },
    Target {
        name: "control",
        property: properties::control,
        seeds: seeds::control_requests,
        reached: &["resign", "transfer", "cordon", "uncordon", "incomplete", "too long", "not json",
         "no operation", "no name", "unexpected", "out of bounds"],
    },
    Target {
        name: "record",
        property: properties::record,
        seeds: seeds::records,
        reached: &["record", "newer", "older", "corrupt"],
    },
];

/// How many mutations each target gets unless told otherwise.
const CASES: u64 = 20_000;
/// So many of them at least have each of the outcomes that a target names.
const REACHED_MIN: u64 = 60;

/// A number from the environment.
fn told(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target.name)
}

/// The files of the corpus by name, without those that a fuzzer has put there. They are not in the
/// repository, and with them a seed would give another run on each machine.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()));
    let found_by_fuzzer = |name: &str| name.len() == 40 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let mut corpus: Vec<_> = named.filter(|(name, _)| !found_by_fuzzer(name)).collect();
    corpus.sort();
    corpus
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = corpus(target);
    assert!(corpus.len() >= 10, "the corpus is found");
    for (name, bytes) in &corpus {
        let seen = std::panic::catch_unwind(|| (target.property)(bytes));
        seen.unwrap_or_else(|_| panic!("fuzz/corpus/{}/{name} failed", target.name));
    }
    let (seed, cases) = (told("BELLWETHER_SEED", 1), told("BELLWETHER_FUZZ_CASES", CASES));
    println!("{name}: BELLWETHER_SEED={seed} BELLWETHER_FUZZ_CASES={cases}");
    let mut seen = BTreeMap::<&str, u64>::new();
    for case in 0..cases {
        // A seed of its own for each, so that one can be done again alone.
        let seed = seed.wrapping_add(case);
        let bytes = mutate::mutated(&corpus, &mut Rng::with_seed(seed));
        match std::panic::catch_unwind(|| (target.property)(&bytes)) {
            Ok(outcome) => *seen.entry(outcome).or_default() += 1,
            Err(_) => {
                let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{seed}"));
                fs::write(&file, &bytes).unwrap();
                panic!(
                    "BELLWETHER_SEED={seed} BELLWETHER_FUZZ_CASES=1 of {name} failed; its input is in {}",
                    file.display()
                );
            }
        }
    }
    println!("{name}: {seen:?}");
    if cases >= CASES {
        let missed: Vec<_> = target
            .reached
            .iter()
            .filter(|outcome| seen.get(**outcome).is_none_or(|count| *count < REACHED_MIN))
            .collect();
        assert!(missed.is_empty(), "hardly a mutation got as far as {missed:?}: {seen:?}");
    }
}

#[test]
fn frame() {
    run("frame");
}

#[test]
fn handshake() {
    run("handshake");
}

#[test]
fn channel() {
    run("channel");
}

/// What no stranger does, a member does with the same keys.
#[test]
fn a_member_proves_itself_at_both_sides_of_the_channel() {
    let (mut accepting, mut dialling) = (properties::accepting(), properties::dialling());
    let mut proved = [false; 2];
    let mut to_dialler = Vec::new();
    while proved != [true; 2] {
        let dialled = dialling.feed(&to_dialler).unwrap();
        let accepted = accepting.feed(&dialled.reply).unwrap();
        assert!(!accepted.reply.is_empty() || accepted.proved, "the handshake goes on");
        (proved, to_dialler) = ([accepted.proved, dialled.proved], accepted.reply);
    }
}

#[test]
fn http_head() {
    run("http_head");
}

#[test]
fn control() {
    run("control");
}

#[test]
fn record() {
    run("record");
}

#[test]
fn the_corpus_is_what_is_made_for_it() {
    let rewrite = std::env::var_os("BELLWETHER_REWRITE").is_some();
    let mut wrong = Vec::new();
    for target in &TARGETS {
        for (name, bytes) in (target.seeds)() {
            let file = folder(target).join(&name);
            if fs::read(&file).is_ok_and(|found| found == bytes) {
                continue;
            }
            if rewrite {
                fs::create_dir_all(folder(target)).unwrap();
                fs::write(&file, &bytes).unwrap();
            } else {
                wrong.push(format!("{}/{name}", target.name));
            }
        }
    }
    assert!(wrong.is_empty(), "missing or different: {wrong:?}; BELLWETHER_REWRITE=1 writes the corpus anew");
}
