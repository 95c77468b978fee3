use proptest::prelude::*;

use super::*;
use crate::rtcp::{Packet, parse, write};

/// Receiver 0x01020304 acknowledges of stream 0xa0b0c0d0 the packets 0xfffe, 0xffff, 1 and 33, which is 0x21.
const VECTOR: [u8; 28] = [
    0x80, 204, 0, 6, 1, 2, 3, 4, b'q', b't', b'a', b'k', 0xa0, 0xb0, 0xc0, 0xd0, 0, 0, 0xff, 0xfe, 0xa0, 0,
    0, 0, 0x20, 0, 0, 0,
];

#[test]
fn an_acknowledgement_is_base_and_mask() {
    let acks = Ack::of(0x0102_0304, 0xa0b0_c0d0, &[1, 0xfffe, 33, 0xffff, 1]);
    assert_eq!(write(&[Packet::Ack(acks[0].clone())]), VECTOR);
    assert_eq!(acks.len(), 1);
    let Some(Ok(Packet::Ack(ack))) = parse(&VECTOR).next() else { panic!("no acknowledgement") };
    assert_eq!(ack.sequences().collect::<Vec<_>>(), [0xfffe, 0xffff, 1, 33]);

    let mut old = VECTOR;
    old[8..12].copy_from_slice(b"ack ");
    assert_eq!(parse(&old).next(), Some(Ok(Packet::Ack(ack))));
    assert_eq!(Ack::of(1, 2, &[]), []);
}

proptest! {
    #[test]
    fn what_is_acknowledged_is_read_back(first: u16, near in proptest::collection::vec(0u16..4000, 1..200)) {
        let sequences: Vec<u16> = near.iter().map(|n| first.wrapping_add(*n)).collect();
        let acks = Ack::of(1, 2, &sequences);
        let datagram = write(&acks.iter().cloned().map(Packet::Ack).collect::<Vec<_>>());
        let mut read: Vec<u16> = Vec::new();
        for packet in parse(&datagram) {
            let Ok(Packet::Ack(ack)) = packet else { panic!("{packet:?}") };
            read.extend(ack.sequences());
        }
        let mut near = near;
        near.sort_unstable();
        near.dedup();
        prop_assert_eq!(read, near.iter().map(|n| first.wrapping_add(*n)).collect::<Vec<_>>());
        prop_assert!(acks.len() <= 4, "1025 numbers fit into one");
    }
}
