//! RIST's packets, written here word by word.

use super::*;

fn datagram(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn the_last_bit_of_the_source_says_whether_it_was_sent_before() {
    let mut c = told(&[], &[DatagramProtocol::Rist]);
    let mut show = |words: &[u32]| {
        let info = c.classify(SUBJECT, Direction::Down, 1, &udp(&datagram(words)));
        (info.kind, info.seq, info.flags & packet_flags::RETRANSMIT != 0)
    };
    assert_eq!(show(&[0x8021_0007, 1, 0xaabb_cc00, 0x4700_0000]), (PacketKind::Media, Some(7), false));
    assert_eq!(show(&[0x8021_0005, 1, 0xaabb_cc01, 0x4700_0000]), (PacketKind::Media, Some(5), true));
    // An empty report, and a request by ranges behind it.
    let request = [0x80c9_0001, 8, 0x80cc_0003, 0xaabb_cc00, 0x5249_5354, 5 << 16];
    assert_eq!(show(&request), (PacketKind::Rtcp, None, false));
}

#[test]
fn a_datagram_below_a_header_is_payload_of_nobody() {
    let mut c = told(&[], &[DatagramProtocol::Rist]);
    let info = c.classify(SUBJECT, Direction::Down, 1, &udp(&[0x80, 33, 0, 1]));
    assert_eq!((info.kind, info.seq), (PacketKind::Media, None));
}
