//! What the tests of the election share: a world in virtual time, and the trace of what happens in it.

// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod network;
pub mod trace;
pub mod world;
