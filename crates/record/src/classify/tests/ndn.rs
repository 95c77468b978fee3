//! NDN's packets, written here byte by byte.

use super::*;

fn element(kind: u8, value: &[u8]) -> Vec<u8> {
    let length = match value.len() {
        short @ ..253 => vec![short as u8],
        long => [&[253][..], &(long as u16).to_be_bytes()].concat(),
    };
    [&[kind][..], &length, value].concat()
}

/// Returns `/v/seg=NUMBER`.
fn name(number: u16) -> Vec<u8> {
    element(7, &[element(8, b"v"), element(50, &number.to_be_bytes())].concat())
}

fn interest(number: u16) -> Vec<u8> {
    element(5, &[name(number), element(10, &[1, 2, 3, 4])].concat())
}

fn data(number: u16) -> Vec<u8> {
    element(6, &[name(number), element(21, &[0; 1_000])].concat())
}

fn lp(fields: &[u8], fragment: &[u8]) -> Vec<u8> {
    element(100, &[fields, &element(80, fragment)].concat())
}

#[test]
fn interests_are_signalling_and_data_payload_by_their_segments() {
    let mut one = told(&[], &[DatagramProtocol::Ndn]);
    let mut show = |direction, payload: &[u8]| {
        let info = one.classify(SUBJECT, direction, 1, &udp(payload));
        (info.kind, info.seq, info.flags & packet_flags::RETRANSMIT != 0)
    };
    assert_eq!(show(Direction::Up, &interest(3)), (PacketKind::Signalling, None, false));
    assert_eq!(show(Direction::Down, &data(3)), (PacketKind::Media, Some(3), false));
    assert_eq!(show(Direction::Down, &data(300)), (PacketKind::Media, Some(300), false));
    assert_eq!(show(Direction::Down, &data(3)), (PacketKind::Media, Some(3), true));
    // In the link's packet; a fragment behind the first has no name.
    assert_eq!(show(Direction::Down, &lp(&[], &data(4))), (PacketKind::Media, Some(4), false));
    let second = element(82, &[1]);
    assert_eq!(show(Direction::Down, &lp(&second, &[9; 500])), (PacketKind::Media, None, false));
    let nack = [&[253, 3, 32][..], &[0]].concat();
    assert_eq!(show(Direction::Down, &lp(&nack, &interest(3))), (PacketKind::Signalling, None, false));
}

#[test]
fn nothing_that_is_cut_short_or_something_else_breaks_it() {
    let mut one = told(&[], &[DatagramProtocol::Ndn]);
    for whole in [interest(1), data(1), lp(&element(82, &[0]), &data(2))] {
        for cut in 0..whole.len().min(60) {
            one.classify(SUBJECT, Direction::Down, 1, &udp(&whole[..cut]));
        }
    }
    assert_eq!(one.classify(SUBJECT, Direction::Down, 1, &udp(&[0xff; 9])).kind, PacketKind::Media);
}
