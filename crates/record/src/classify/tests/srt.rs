//! SRT's packets, written here word by word.

use super::*;

fn packet(first: u32, second: u32) -> Vec<u8> {
    [first, second, 0x0102_0304, 7].iter().flat_map(|word| word.to_be_bytes()).chain([0; 4]).collect()
}

#[test]
fn data_is_payload_and_says_whether_it_was_sent_before() {
    let mut c = told(&[], &[DatagramProtocol::Srt]);
    let mut show = |first, second| {
        let info = c.classify(SUBJECT, Direction::Down, 1, &udp(&packet(first, second)));
        (info.kind, info.seq, info.flags & packet_flags::RETRANSMIT != 0)
    };
    assert_eq!(show(0x7fff_ffff, 0xc000_0001), (PacketKind::Media, Some(0x7fff_ffff), false));
    assert_eq!(show(0x7fff_ffff, 0xc400_0001), (PacketKind::Media, Some(0x7fff_ffff), true));
    for (control, kind) in [
        (0, PacketKind::Signalling),
        (1, PacketKind::Signalling),
        (2, PacketKind::Ack),
        (3, PacketKind::Ack),
        (5, PacketKind::Signalling),
        (6, PacketKind::Ack),
        (7, PacketKind::Signalling),
    ] {
        assert_eq!(show(1 << 31 | control << 16, 9), (kind, None, false), "type {control}");
    }
}

#[test]
fn a_datagram_below_a_header_is_payload_of_nobody() {
    let mut c = told(&[], &[DatagramProtocol::Srt]);
    let info = c.classify(SUBJECT, Direction::Down, 1, &udp(&packet(1 << 31, 0)[..15]));
    assert_eq!((info.kind, info.seq), (PacketKind::Media, None));
}
