//! Frames of any bytes and length make blocks whose lengths agree.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use streamgauge_record::{PacketDirection, PcapngWriter};

fuzz_target!(|input: (String, Vec<(u64, bool, Vec<u8>)>)| {
    let (name, frames) = input;
    let mut file = Vec::new();
    let mut writer = PcapngWriter::new(&mut file, Path::new("c")).unwrap();
    let tap = writer.interface(&name).unwrap();
    for (at, out, frame) in &frames {
        let direction = if *out { PacketDirection::Outbound } else { PacketDirection::Inbound };
        writer.packet(tap, *at, direction, frame).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), frames.len() as u64);
    let mut blocks = 0;
    let mut rest = &file[..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        assert_eq!(rest[4..8], rest[length - 4..length]);
        rest = &rest[length..];
        blocks += 1;
    }
    assert_eq!(blocks, 2 + frames.len());
});
