//! `properties::control`, for any bytes.
#![no_main]

#[path = "../../tests/fuzz/properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    properties::control(bytes);
});
