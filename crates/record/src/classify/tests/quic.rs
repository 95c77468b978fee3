//! QUIC's packets (RFC 9000 section 17), written here byte by byte.

use super::*;

const V2: u32 = 0x6b33_43cf;

/// Makes a packet with a long header of that type and `payload` bytes, its number among them.
fn long(version: u32, kind: u8, payload: usize) -> Vec<u8> {
    let mut packet = vec![0xc0 | kind << 4];
    packet.extend(version.to_be_bytes());
    packet.extend([4, 1, 2, 3, 4]);
    packet.extend([0]);
    let initial = if version == V2 { 1 } else { 0 };
    if kind == initial {
        packet.extend([0x40, 5, 9, 9, 9, 9, 9]); // a token, its length in two bytes
    }
    packet.extend((0x4000 | payload as u16).to_be_bytes());
    packet.extend(vec![0xa5; payload]);
    packet
}

fn kind(payload: &[u8]) -> PacketKind {
    told(&[], &[DatagramProtocol::Quic]).classify(SUBJECT, Direction::Down, 1, &udp(payload)).kind
}

#[test]
fn what_sets_a_connection_up_is_signalling() {
    for (version, [initial, zero_rtt, handshake, retry]) in [(1, [0, 1, 2, 3]), (V2, [1, 2, 3, 0])] {
        let short = [vec![0x45], vec![0xa5; 60]].concat();
        assert_eq!(kind(&long(version, initial, 1_150)), PacketKind::Signalling);
        assert_eq!(kind(&long(version, handshake, 800)), PacketKind::Signalling);
        assert_eq!(kind(&long(version, retry, 100)), PacketKind::Signalling);
        assert_eq!(kind(&long(version, zero_rtt, 800)), PacketKind::Media);
        let both = [long(version, initial, 100), long(version, handshake, 700)].concat();
        assert_eq!(kind(&both), PacketKind::Signalling);
        assert_eq!(kind(&[&both[..], &[0; 300]].concat()), PacketKind::Signalling, "padded");
        assert_eq!(kind(&[&both[..], &short].concat()), PacketKind::Media);
        assert_eq!(kind(&[both, long(version, zero_rtt, 100)].concat()), PacketKind::Media);
    }
    let negotiation = [&[0x8f, 0, 0, 0, 0, 0, 0][..], &1u32.to_be_bytes()].concat();
    assert_eq!(kind(&negotiation), PacketKind::Signalling);
}

#[test]
fn all_else_is_payload() {
    assert_eq!(kind(&[vec![0x45], vec![0xa5; 1_199]].concat()), PacketKind::Media);
    assert_eq!(kind(&rtp(1, 1)), PacketKind::Media, "no RTP is looked for where QUIC is told");
    let initial = long(1, 0, 1_150);
    for cut in 1..initial.len() {
        // Cut short, its length is greater than the remaining bytes.
        let _ = kind(&initial[..cut]);
    }
    assert_eq!(kind(&initial[..900]), PacketKind::Signalling, "but it is an Initial");
    assert_eq!(kind(&initial[..8]), PacketKind::Media);
}
