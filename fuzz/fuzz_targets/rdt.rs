//! Any datagram, real or with filler behind it, is packets and perhaps a problem; what is read is written and read again as
//! the same, alone and, where it can say its length, before another packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::rdt::{Body, MOST_BITS, Packet, parse, write};

fn one(packet: &Packet<'_>) {
    let alone = packet.write();
    assert_eq!(parse(&alone).collect::<Vec<_>>(), [Ok(packet.clone())]);
    if let Packet::Ack(ack) = packet {
        assert!(ack.sequences().count() <= ack.streams.len() * (1 + usize::from(MOST_BITS)));
        assert!(ack.lost_sequences().count() <= ack.sequences().count());
    }
    let has_filler = match packet {
        // A datagram's filler is its last packet's; these two say no length that we know, or were given one.
        Packet::Other { .. } => return,
        Packet::StreamEnd(end) if end.reason.is_some() => return,
        Packet::Data(data) => {
            assert_eq!(alone.len(), data.header_bytes(false) + data.payload.len());
            data.payload.filler_bytes() > 0
        }
        _ => false,
    };
    let pair = [packet.clone(), Packet::RttRequest];
    let written = write(&pair);
    let read: Vec<_> = parse(&written).map(|packet| packet.expect("ours")).collect();
    assert!(read.len() == 2 && (has_filler || read == pair));
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how much filler comes behind the rest.
    let Some((&filler, bytes)) = bytes.split_first() else { return };
    let datagram = Chunk::with_filler(bytes, filler.into());
    let read: Vec<_> = parse(&datagram).collect();
    assert!(read.iter().rev().skip(1).all(Result::is_ok), "a problem is the last");
    assert!(read.len() <= datagram.len() / 3 + 1);
    read.iter().flatten().for_each(one);
    // What is real is read the same where there is no filler.
    if filler == 0 {
        assert!(parse(Body::from(bytes)).eq(read));
    }
});
