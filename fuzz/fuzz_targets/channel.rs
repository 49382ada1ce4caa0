//! `properties::channel`, for any bytes.
#![no_main]

#[path = "../../tests/fuzz/properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    properties::channel(bytes);
});
