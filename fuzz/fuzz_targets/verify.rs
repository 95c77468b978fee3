//! Any bytes are a record's Parquet file or an error, never a panic.
#![no_main]

use std::path::Path;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use streamgauge_record::{verify_events_in, verify_packets_in};

fuzz_target!(|bytes: &[u8]| {
    // libFuzzer takes every panic for a finding, also those of the Parquet library that verification catches.
    std::panic::set_hook(Box::new(|_| ()));
    let file = Bytes::copy_from_slice(bytes);
    let _ = verify_packets_in(file.clone(), Path::new("p"));
    let _ = verify_events_in(file, Path::new("e"));
});
