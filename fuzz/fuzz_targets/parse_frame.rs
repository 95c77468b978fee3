//! Any bytes are a frame, and never more payload than there is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_record::parse_frame;

fuzz_target!(|bytes: &[u8]| {
    let frame = parse_frame(bytes);
    assert!(frame.ip_bytes as usize <= bytes.len());
    assert!(frame.headers.payload_head.len() <= bytes.len());
    assert!(frame.headers.payload_bytes as usize <= bytes.len());
});
