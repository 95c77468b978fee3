use proptest::collection::vec;
use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::*;
use crate::body::Body;
use crate::rtcp::nack::{NackEntry, NackPacket};
use crate::rtcp::{self, Packet};

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn is_written_as(packet: Packet, words: &[u32]) {
    assert_eq!(rtcp::write(std::slice::from_ref(&packet)), bytes(words));
    assert_eq!(rtcp::parse(&bytes(words)).collect::<Vec<_>>(), [Ok(packet)]);
}

/// Packets 100 and 103 to 122 of TR-06-1's example.
fn missing() -> Vec<u16> {
    std::iter::once(100).chain(103..=122).collect()
}

#[test]
fn a_request_by_ranges_is_that_of_appendix_a() {
    let ranges = NackRange::of(&missing());
    assert_eq!(ranges, [NackRange { first: 100, more: 0 }, NackRange { first: 103, more: 19 }]);
    assert_eq!(ranges.iter().flat_map(|one| one.sequences()).collect::<Vec<_>>(), missing());
    is_written_as(
        Packet::Rist(RistApp::Ranges { source: 0xaabb_cc00, ranges }),
        &[0x80cc_0004, 0xaabb_cc00, 0x5249_5354, 100 << 16, 103 << 16 | 19],
    );
}

#[test]
fn a_request_by_bits_is_that_of_appendix_a() {
    let entries = NackEntry::of(&missing());
    let nack = NackPacket { receiver_ssrc: 0, media_ssrc: 0xaabb_cc00, e_bit: false, entries };
    is_written_as(
        Packet::Nack(nack),
        &[0x81cd_0004, 0, 0xaabb_cc00, 100 << 16 | 0b1111_1111_1111_1100, 117 << 16 | 0b1_1111],
    );
}

#[test]
fn ranges_wrap_with_the_numbers() {
    let sequences = [65_534, 65_535, 0, 1, 3];
    let ranges = NackRange::of(&sequences);
    assert_eq!(ranges, [NackRange { first: 65_534, more: 3 }, NackRange { first: 3, more: 0 }]);
    assert_eq!(ranges.iter().flat_map(|one| one.sequences()).collect::<Vec<_>>(), sequences);
    let all = NackRange { first: 7, more: u16::MAX };
    assert_eq!((all.sequences().count(), all.sequences().last()), (65_536, Some(6)));
}

#[test]
fn both_ways_of_the_echo() {
    let echo = Echo { source: 8, timestamp: 0x0102_0304_0506_0708, ..Echo::default() };
    is_written_as(
        Packet::Rist(RistApp::EchoRequest(echo)),
        &[0x82cc_0005, 8, 0x5249_5354, 0x0102_0304, 0x0506_0708, 0],
    );
    let echo = Echo { delay_us: 250, padding_words: 2, ..echo };
    is_written_as(
        Packet::Rist(RistApp::EchoResponse(echo)),
        &[0x83cc_0007, 8, 0x5249_5354, 0x0102_0304, 0x0506_0708, 250, 0, 0],
    );
    let cut = bytes(&[0x82cc_0004, 8, 0x5249_5354, 1, 2]);
    assert!(rtcp::parse(&cut).next().is_some_and(|read| read.is_err()));
    let other = bytes(&[0x81cc_0003, 8, 0x5249_5354, 1]);
    let known = Packet::Other { packet_type: rtcp::APP, app: Some(NAME) };
    assert_eq!(rtcp::parse(&other).collect::<Vec<_>>(), [Ok(known)]);
}

#[test]
fn a_repeated_packet_differs_in_the_last_bit_of_its_source() {
    let data = Data {
        sequence: 7,
        timestamp: 0x0a0b_0c0d,
        source: 0xaabb_cc00,
        payload: (&b"Gabc"[..]).into(),
        ..Data::default()
    };
    let again = Data { is_repeated: true, ..data };
    let words = |ssrc| bytes(&[0x8021_0007, 0x0a0b_0c0d, ssrc, 0x4761_6263]);
    for (data, ssrc) in [(data, 0xaabb_cc00), (again, 0xaabb_cc01)] {
        assert_eq!(data.write(), Chunk::bytes(words(ssrc)));
        assert_eq!(Data::parse(&words(ssrc)[..]), Ok(data));
    }
    assert_eq!(Data::parse(&bytes(&[0x8022_0007, 0, 0])[..]), Err(DataFault::Payload));
    assert_eq!(Data::parse(&[0x80, 33][..]), Err(DataFault::NoRtp));
}

#[test]
fn sources_extension_and_padding_are_no_payload() {
    // One further source, an extension of one word, and 4 bytes of padding.
    let words = [0xb121_0007, 1, 2, 3, 0x5249_0001, 4, 0x4761_6263, 0x0000_0004];
    let read = bytes(&words);
    let data = Data::parse(&read[..]).unwrap();
    assert_eq!((data.payload.head(), data.source, data.is_repeated), (&b"Gabc"[..], 2, false));
    let filled = Chunk::with_filler(&read[..], 100);
    assert_eq!(Data::parse(&filled), Err(DataFault::NoRtp), "its last byte is not known");
}

#[test]
fn the_tunnels_header_is_that_of_tr_06_2() {
    let ports = GrePorts { source: 1971, destination: 1968 };
    let payload = Body::from(&b"abcd"[..]);
    let reduced = Gre { sequence: None, protocol: GreProtocol::Reduced(ports), payload };
    let counted = Gre { sequence: Some(0x0102_0304), ..reduced };
    let kept = Gre { protocol: GreProtocol::KeepAlive, ..counted };
    let full = Gre { protocol: GreProtocol::Full, sequence: None, payload };
    for (gre, words) in [
        (reduced, &[0x0000_88b6, 1971 << 16 | 1968, 0x6162_6364][..]),
        (counted, &[0x1000_88b6, 0x0102_0304, 1971 << 16 | 1968, 0x6162_6364]),
        (kept, &[0x1000_88b5, 0x0102_0304, 0x6162_6364]),
        (full, &[0x0000_0800, 0x6162_6364]),
    ] {
        assert_eq!(gre.write(), Chunk::bytes(bytes(words)));
        assert_eq!(Gre::parse(&bytes(words)[..]), Ok(gre));
    }
    for (words, fault) in [
        (&[0x2000_88b6, 0][..], GreFault::Encrypted),
        (&[0x8000_88b6, 0], GreFault::Version),
        (&[0x0001_88b6, 0], GreFault::Version),
        (&[0x0000_1234, 0], GreFault::Protocol(0x1234)),
        (&[0x1000_88b6], GreFault::Truncated),
    ] {
        assert_eq!(Gre::parse(&bytes(words)[..]), Err(fault));
    }
}

#[test]
fn a_number_counts_on_by_the_nearest_way() {
    assert_eq!(count_of(3, 65_534), 65_539);
    assert_eq!(count_of(65_533, 65_539), 65_533);
    assert_eq!(count_of(65_535, 2), 65_535, "below 0 there is none");
    assert_eq!(count_of(5, 10 * 65_536 + 2), 10 * 65_536 + 5);
}

proptest! {
    #[test]
    fn data_is_written_and_read(
        sequence: u16, timestamp: u32, source: u32, is_repeated: bool,
        payload in vec(any::<u8>(), 0..40), filler in 0u32..2000,
    ) {
        let payload = Chunk::with_filler(payload, filler);
        let source = source_of(source);
        let data = Data { sequence, timestamp, source, is_repeated, payload: (&payload).into() };
        let written = data.write();
        prop_assert_eq!(Data::parse(&written), Ok(data));
    }

    #[test]
    fn as_few_ranges_as_hold_the_numbers(mut sequences in vec(0u16..300, 0..100)) {
        sequences.sort_unstable();
        sequences.dedup();
        let ranges = NackRange::of(&sequences);
        let named: Vec<u16> = ranges.iter().flat_map(|one| one.sequences()).collect();
        prop_assert_eq!(&named, &sequences);
        let gaps = sequences.windows(2).filter(|two| two[1] != two[0] + 1).count();
        prop_assert_eq!(ranges.len(), if sequences.is_empty() { 0 } else { gaps + 1 });
    }
}
