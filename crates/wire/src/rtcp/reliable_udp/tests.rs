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
    let acks = AckPacket::of(0x0102_0304, 0xa0b0_c0d0, &[1, 0xfffe, 33, 0xffff, 1]);
    assert_eq!(write(&[Packet::Ack(acks[0].clone())]), VECTOR);
    assert_eq!(acks.len(), 1);
    let Some(Ok(Packet::Ack(ack))) = parse(&VECTOR).next() else { panic!("no acknowledgement") };
    assert_eq!(ack.sequences().collect::<Vec<_>>(), [0xfffe, 0xffff, 1, 33]);

    let mut old = VECTOR;
    old[8..12].copy_from_slice(b"ack ");
    assert_eq!(parse(&old).next(), Some(Ok(Packet::Ack(ack))));
    assert_eq!(AckPacket::of(1, 2, &[]), []);
}

#[test]
fn numbers_too_far_apart_for_one_mask_take_several() {
    let acks = AckPacket::of(1, 2, &[0, 1024, 1025, 3000]);
    let shape: Vec<_> = acks.iter().map(|ack| (ack.base, ack.mask.len())).collect();
    assert_eq!(shape, [(0, 32), (1025, 0), (3000, 0)]);
}

#[test]
fn an_acknowledgement_without_its_base_is_cut_short() {
    let short = [0x80, 204, 0, 3, 1, 2, 3, 4, b'q', b't', b'a', b'k', 0, 0, 0, 1];
    let problem = Problem { fault: Fault::Truncated, packet_type: 204 };
    assert_eq!(parse(&short).collect::<Vec<_>>(), [Err(problem)]);
}

/// A client report on 6 of `items`, which are a whole number of words.
fn report(items: &[u8]) -> Vec<u8> {
    let words = (items.len() / 4) as u8;
    [&[0x80, 204, 0, 4 + words, 0, 0, 0, 5, b'Q', b'T', b'S', b'S', 0, 0, 0, 6, 0, 0, 0, words], items]
        .concat()
}

#[test]
fn a_client_report_is_items() {
    let items = *b"rr\0\x04\0\x03\xd0\x90ls\0\x02\x02\x80ob\0\x04\0\x01\0\0:)\0\0\0\0";
    let expected = ClientReport {
        client_ssrc: 5,
        server_ssrc: 6,
        receive_bps: Some(250_000),
        loss_percent_256: Some(640),
        overbuffer_window: Some(65_536),
        quality: Some(Quality::Better),
        ..ClientReport::default()
    };
    assert_eq!(parse(&report(&items)).next(), Some(Ok(Packet::ClientReport(expected.clone()))));
    // Ours have the quality where Apple's list has it.
    let ours = *b"rr\0\x04\0\x03\xd0\x90ls\0\x02\x02\x80:)\0\0ob\0\x04\0\x01\0\0\0\0";
    assert_eq!(write(&[Packet::ClientReport(expected)]), report(&ours));
}

#[test]
fn the_data_of_an_unknown_item_is_read_as_items() {
    let window = |items: &[u8]| match parse(&report(items)).next() {
        Some(Ok(Packet::ClientReport(report))) => Ok(report.overbuffer_window),
        other => Err(other),
    };
    assert_eq!(window(b"zz\0\x04ob\0\x04\0\0\0\x09"), Ok(Some(9)));
    assert_eq!(window(b"zz\0\x02xyob\0\x04\0\0\0\x09\0\0"), Ok(None), "out of step");
    let problem = |fault| Err(Some(Err(Problem { fault, packet_type: 204 })));
    assert_eq!(window(b"ob\0\x02\0\x09\0\0"), problem(Fault::Item));
    assert_eq!(window(b"ob\0\x04"), problem(Fault::Item));
    let mut subtype = report(b"ob\0\x04\0\0\0\x09");
    subtype[0] |= 1;
    assert_eq!(parse(&subtype).next(), Some(Err(Problem { fault: Fault::Subtype, packet_type: 204 })));
    let mut longer = report(b"ob\0\x04\0\0\0\x09");
    longer[19] = 3;
    assert_eq!(parse(&longer).next(), Some(Err(Problem { fault: Fault::Truncated, packet_type: 204 })));
}

#[test]
fn a_hint_recommends_a_timeout() {
    let bytes = [
        0x81, 204, 0, 6, 0, 0, 0, 6, b'q', b't', b's', b'i', 0, 0, 0, 5, 0, 0, 0, 2, b'a', b't', 0, 4, 0, 0,
        0, 20,
    ];
    let hint = Packet::Hint(Hint { server_ssrc: 6, client_ssrc: 5, ack_timeout_ms: 20 });
    assert_eq!(parse(&bytes).collect::<Vec<_>>(), [Ok(hint.clone())]);
    assert_eq!(write(&[hint]), bytes);
}

proptest! {
    #[test]
    fn what_is_acknowledged_is_read_back(first: u16, near in proptest::collection::vec(0u16..4000, 1..200)) {
        let sequences: Vec<u16> = near.iter().map(|n| first.wrapping_add(*n)).collect();
        let acks = AckPacket::of(1, 2, &sequences);
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
