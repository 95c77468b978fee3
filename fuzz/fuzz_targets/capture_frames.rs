//! Frames of any bytes at any link layer and time become flows, with figures that hold together.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use streamgauge_capture::{Capture, CaptureReader, Flows};

/// Link types that are read, and one that is not.
const LINKS: [u32; 8] = [0, 1, 9, 101, 108, 113, 253, 276];

fuzz_target!(|input: (u8, bool, Vec<(u32, u32, u32, Vec<u8>)>)| {
    let (link, is_ns, frames) = input;
    let magic: u32 = if is_ns { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    for word in [magic, 0x0004_0002, 0, 0, u32::MAX, LINKS[usize::from(link) % LINKS.len()]] {
        file.extend(word.to_le_bytes());
    }
    for (seconds, part, original, bytes) in &frames {
        for word in [*seconds, *part, bytes.len() as u32, *original] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    let reader = CaptureReader::new(Cursor::new(file), "fuzz").unwrap();
    let mut capture = Capture::new(reader, None).unwrap();
    let mut flows = Flows::default();
    let mut packets = 0;
    capture.read(&mut flows, |_, _| packets += 1);
    let totals = &capture.totals;
    assert_eq!(totals.frames, frames.len() as u64);
    assert_eq!(packets, totals.frames - totals.unread - totals.not_ip - totals.copies);
    let placed: u64 = flows.flows.iter().flat_map(|flow| &flow.ways).map(|way| way.packets).sum();
    assert_eq!(placed + flows.beyond.0 + flows.orphans, packets);
});
