//! Any datagram, real or with filler behind it, is a packet or a problem; what is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::srt::{Body, PacketContent, HEADER_BYTES, Packet};

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how much filler comes behind the rest.
    let Some((&filler, bytes)) = bytes.split_first() else { return };
    let datagram = Chunk::with_filler(bytes, filler.into());
    let Ok(packet) = Packet::parse(&datagram) else { return };
    let written = packet.write();
    assert_eq!(Packet::parse(&written).as_ref(), Ok(&packet));
    match &packet.content {
        PacketContent::Data(data) => assert_eq!(written.len(), HEADER_BYTES + data.payload.len()),
        PacketContent::Nak(losses) => {
            assert!(!losses.is_empty() && losses.len() * 4 <= datagram.len());
            assert!(losses.iter().all(|range| range.packets() >= 1));
        }
        PacketContent::Handshake(handshake) => drop((handshake.latencies(), handshake.other(5))),
        _ => {}
    }
    // What is real is read the same where there is no filler.
    if filler == 0 {
        assert_eq!(Packet::parse(Body::from(bytes)), Ok(packet));
    }
});
