//! Tests of the simulator itself.
