//! Any bytes are a capture, or are refused: they end, and break nothing.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use streamgauge_capture::{Capture, CaptureReader, Flows, decompressed};

fuzz_target!(|bytes: &[u8]| {
    let Ok(plain) = decompressed(Cursor::new(bytes.to_vec())) else { return };
    let Ok(reader) = CaptureReader::new(plain, "fuzz") else { return };
    let Ok(mut capture) = Capture::new(reader, None) else { return };
    let mut flows = Flows::default();
    capture.read(&mut flows, |_, _| {});
    assert!(capture.ending().is_some());
});
