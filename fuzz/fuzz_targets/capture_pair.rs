//! Any two captures are matched, or are refused; each packet has one fate.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use streamgauge_capture::{CaptureSource, KnownBeforehand, analyse_pair};

// The first bytes are the length of the first file.
fuzz_target!(|bytes: &[u8]| {
    let Some((&[high, low], rest)) = bytes.split_first_chunk() else { return };
    let (one, other) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes([high, low]))));
    let base = (high & 0x80 != 0).then_some(20_000_000);
    let folder = std::env::temp_dir();
    let files = ["a", "b"].map(|name| folder.join(format!("streamgauge-fuzz-{}-{name}", std::process::id())));
    fs::write(&files[0], one).unwrap();
    fs::write(&files[1], other).unwrap();
    let [a, b] = files.each_ref().map(|path| CaptureSource { path, only: None });
    let a_is_receiver = [None, Some(false), Some(true)][usize::from(low % 3)];
    let known = KnownBeforehand { base_ns: base, a_is_receiver, ..KnownBeforehand::default() };
    let mut packets = 0u64;
    if let Ok(found) = analyse_pair(&a, &b, &known, |_| packets += 1) {
        let all: u64 = found.captures.iter().map(|capture| capture.packets).sum();
        assert!(packets <= all, "{packets} fates of {all} packets");
    }
});
