//! Any file is a RealMedia file that holds together or a problem within it, and so is what lies in its packets: each frame
//! goes through fragments and comes back. The same bytes are OpaqueData that are read again, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::rm::{Assembler, OpaqueData, RealMedia, VideoFrame, fragment};

fuzz_target!(|file: &[u8]| {
    if let Ok(opaque) = OpaqueData::read(file) {
        let again = opaque.write().expect("what was read has an encoding for each rule");
        assert_eq!(OpaqueData::read(&again).ok(), Some(opaque));
    }
    let read = match RealMedia::read(file) {
        Ok(read) => read,
        Err(problem) => return assert!(problem.at <= file.len() as u64),
    };
    assert!(read.packets.len() <= file.len() / 12);
    let mut assembler = Assembler::default();
    for packet in &read.packets {
        assert!(read.stream(packet.stream).is_some());
        let payload = packet.payload(file);
        assert_eq!(payload.len(), usize::from(packet.bytes));
        let Ok(frames) = assembler.push(Chunk::bytes(payload)) else { continue };
        assert!(assembler.bytes() <= file.len());
        for frame in frames {
            let frame = VideoFrame { timestamp_ms: None, ..frame };
            let Ok(packets) = fragment(&frame, 200) else { continue };
            let mut again = Assembler::default();
            let found: Vec<_> =
                packets.into_iter().flat_map(|packet| again.push(packet).expect("our own")).collect();
            assert_eq!(found, [frame]);
        }
    }
});
