//! What a process that reaches the peer port can try, and what has to hold against it (docs/safety.md says
//! what cannot).
//!
//! `cargo test --test hostile_peers`. The attackers know the wire from its documentation alone
//! (`tests/hostile_peers/wire.rs`), have no secret, and connect from other addresses than the processes. In
//! `classic` and in `majority`, against 3 and 5 processes: no process ends, no two lead at one instant, and
//! nothing of an attack outlasts it ([`siege::Siege::lift`]).
//!
//! A flood takes all of two cores, so that it says something of an optimised program alone:
//! `cargo test --profile checks --test hostile_peers flood -- --ignored`.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests are tests.

#[path = "hostile_peers/addresses.rs"]
mod addresses;
#[path = "hostile_peers/cgroup.rs"]
mod cgroup;
#[path = "hostile_peers/client.rs"]
mod client;
#[path = "hostile_peers/configurations.rs"]
mod configurations;
#[path = "hostile_peers/connections.rs"]
mod connections;
#[path = "hostile_peers/epochs.rs"]
mod epochs;
#[path = "hostile_peers/everything.rs"]
mod everything;
#[path = "hostile_peers/golden.rs"]
mod golden;
#[allow(dead_code)] // Shared with other tests, which need more of it. So are the next ones.
#[path = "processes/harness.rs"]
mod harness;
#[allow(dead_code)]
#[path = "chaos/history.rs"]
mod history;
#[path = "hostile_peers/impostors.rs"]
mod impostors;
#[path = "hostile_peers/members.rs"]
mod members;
#[path = "hostile_peers/memory.rs"]
mod memory;
#[path = "hostile_peers/ranks.rs"]
mod ranks;
#[allow(dead_code)]
#[path = "processes/rounds.rs"]
mod rounds;
#[path = "hostile_peers/rows.rs"]
mod rows;
#[allow(dead_code)]
#[path = "chaos/sampler.rs"]
mod sampler;
#[path = "hostile_peers/sealed.rs"]
mod sealed;
#[path = "hostile_peers/siege.rs"]
mod siege;
#[allow(dead_code)]
#[path = "processes/usage.rs"]
mod usage;
#[path = "support/wait.rs"]
mod wait;
#[path = "hostile_peers/wire.rs"]
mod wire;
