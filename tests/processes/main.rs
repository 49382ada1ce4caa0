//! What has to hold for real processes, on loopback and with the program as it is built.
//!
//! `cargo test --test processes` runs what takes a minute; `-- --ignored` the same for longer, and what needs
//! root or other languages.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod announce;
mod application;
mod authentication;
#[path = "../support/authority.rs"]
mod authority;
mod bad_input;
mod certificates;
mod client;
mod clocks;
mod clusters;
mod control;
mod demo;
mod ending;
mod exec;
mod failover;
mod harness;
mod holds;
#[path = "../support/log_table.rs"]
mod log_table;
mod logs;
mod majority;
mod pauses;
mod resources;
mod rollout;
mod rollout_majority;
mod rounds;
mod snippets;
mod state;
mod usage;
mod voters;
#[path = "../support/wait.rs"]
mod wait;
mod watch;
#[path = "../support/watch_client.rs"]
mod watch_client;
