//! The header of an object in packets, as MMS and HTTP carry it.

use streamgauge_base::Chunk;
use streamgauge_wire::mms::{DataPacket, data_flags};

/// Returns the packets of `head`, each with at most `most_bytes` of it ([MS-MMSP] section 2.2.2).
pub fn packets(head: &[u8], incarnation: u8, most_bytes: usize) -> Vec<Chunk> {
    let last = head.len().div_ceil(most_bytes).saturating_sub(1);
    let flags = |place| match (place, place == last) {
        (0, true) => data_flags::WHOLE,
        (0, false) => data_flags::FIRST,
        (_, true) => data_flags::LAST,
        (_, false) => 0,
    };
    let packet = |(place, part): (usize, &[u8])| {
        let (location, flags) = (place as u32, flags(place));
        DataPacket { location, incarnation, flags, payload: part.into() }.write()
    };
    head.chunks(most_bytes).enumerate().map(packet).collect()
}
