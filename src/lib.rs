//! bellwether: a leader election sidecar.
//!
//! It finds its peers through a headless Service's DNS, elects one leader with the Bully algorithm over
//! blocking TCP, and tells the application over local HTTP which process leads. ARCHITECTURE.md is the map of
//! this crate.

pub mod base;
pub mod channel;
pub mod client;
pub mod config;
pub mod control;
pub mod demo;
pub mod discovery;
pub mod election;
pub mod http;
#[cfg(feature = "inject")]
pub mod inject;
pub mod net;
pub mod node;
#[cfg(feature = "sim")]
pub mod sim;
pub mod status;
pub mod store;
mod telemetry;
mod transport;
pub mod wire;
