use etherparse::{IpFragOffset, PacketBuilder};
use proptest::prelude::*;

use super::*;

const SERVER: [u8; 4] = [10, 1, 0, 1];
const PLAYER: [u8; 4] = [10, 2, 0, 1];

fn ip() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(SERVER, PLAYER, 64)
}

fn built(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn udp(payload: &[u8]) -> Vec<u8> {
    built(|b| ip().udp(5004, 6000).write(b, payload).unwrap())
}

#[test]
fn udp_is_read_without_padding() {
    let mut frame = udp(b"payload");
    assert_eq!(frame.len(), 14 + 20 + 8 + 7);
    frame.resize(60, 0); // Ethernet pads to 60 bytes.
    let read = parse_frame(&frame);
    assert_eq!((read.source, read.destination), (Some(SERVER.into()), Some(PLAYER.into())));
    assert_eq!((read.ip_bytes, read.ecn), (35, Ecn::NotEct));
    assert_eq!(
        read.headers,
        Headers {
            transport: TransportHeader::Udp,
            header_bytes: 8,
            payload_bytes: 7,
            payload_head: b"payload"
        }
    );
}

#[test]
fn tcp_options_are_not_payload() {
    let frame = built(|b| {
        let options = [etherparse::TcpOptionElement::Timestamp(1, 2)];
        ip().tcp(554, 40_000, 7, 1_000).syn().ack(9).options(&options).unwrap().write(b, b"xy").unwrap();
    });
    let read = parse_frame(&frame);
    assert_eq!(read.headers.transport, TransportHeader::Tcp { seq: 7, ack: 9, flags: 18 });
    assert_eq!((read.ip_bytes, read.headers.payload_bytes, read.headers.payload_head), (54, 2, &b"xy"[..]));
}

#[test]
fn both_directions_of_a_connection_have_one_value() {
    let segment = |from, to, ports: (u16, u16)| {
        built(|b| {
            let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
            ip.tcp(ports.0, ports.1, 7, 1_000).write(b, b"xy").unwrap();
        })
    };
    let down = parse_frame(&segment(SERVER, PLAYER, (80, 40_000))).connection(Direction::Down);
    assert_eq!(parse_frame(&segment(PLAYER, SERVER, (40_000, 80))).connection(Direction::Up), down);
    for (from, to, ports) in
        [(SERVER, PLAYER, (80, 40_001)), (SERVER, PLAYER, (40_000, 80)), (PLAYER, SERVER, (80, 40_000))]
    {
        assert_ne!(parse_frame(&segment(from, to, ports)).connection(Direction::Down), down);
    }
    // A packet without ports is no connection, and that is no error.
    assert_eq!(parse_frame(&[0; 20]).connection(Direction::Up), parse_frame(&[]).connection(Direction::Down));
}

#[test]
fn icmp_echo_is_a_probe_and_other_icmp_is_not() {
    let request = built(|b| ip().icmpv4_echo_request(5, 6).write(b, &[1; 56]).unwrap());
    let read = parse_frame(&request);
    assert_eq!(read.headers.transport, TransportHeader::IcmpEcho { seq: 6 });
    assert_eq!(read.headers.payload_bytes, 56);
    let reply = built(|b| ip().icmpv4_echo_reply(5, 6).write(b, &[1; 56]).unwrap());
    assert_eq!(parse_frame(&reply).headers.transport, TransportHeader::IcmpEcho { seq: 6 });
    let mut unreachable = request;
    unreachable[34] = 3;
    assert_eq!(parse_frame(&unreachable).headers.transport, TransportHeader::Other);
}

#[test]
fn ecn_bits() {
    for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
        let mut frame = udp(b"x");
        frame[15] = 0xb8 | bits;
        assert_eq!(parse_frame(&frame).ecn, ecn);
    }
}

#[test]
fn later_fragments_of_a_datagram_are_its_payload() {
    let mut first = udp(&[9; 100]);
    first[20] = 0x20; // more fragments
    let mut later = udp(&[9; 100]);
    later[20..22].copy_from_slice(&IpFragOffset::try_new(16).unwrap().value().to_be_bytes());
    let read = parse_frame(&first);
    assert_eq!((read.headers.header_bytes, read.headers.payload_bytes), (8, 100));
    assert_eq!(read.fragment, Fragment::part(0, true));
    // It has the ports, so it is hashed as the whole datagram would be.
    assert_eq!(read.hash, parse_frame(&udp(&[9; 100])).hash);
    let read = parse_frame(&later);
    assert_eq!((read.headers.transport, read.headers.payload_bytes), (TransportHeader::Udp, 108));
    assert_eq!((read.headers.header_bytes, read.headers.payload_head), (0, &[][..]), "nothing to classify");
    assert_eq!((read.fragment, read.protocol), (Fragment::part(16, false), Protocol::Udp));
    assert_eq!(read.hash, flow_hash(SERVER, PLAYER, 17, 0));
}

#[test]
fn identification_and_flags_are_those_of_the_header() {
    let mut frame = udp(b"x");
    frame[18..20].copy_from_slice(&0xabcd_u16.to_be_bytes());
    frame[20] = 0x40;
    let read = parse_frame(&frame);
    assert_eq!((read.identification, read.fragment), (0xabcd, Fragment::WHOLE_DF));
    assert!(read.fragment.is_whole());
    // A header with options is not the path's to cut.
    let mut options = udp(b"four");
    options[14] = 0x46;
    options[20] = 0;
    let read = parse_frame(&options);
    assert!(read.fragment.dont_fragment());
}

#[test]
fn what_is_not_ipv4_has_no_addresses() {
    let mut arp = vec![0xff; 12];
    arp.extend([0x08, 0x06]);
    arp.extend([0; 28]);
    let read = parse_frame(&arp);
    assert_eq!((read.source, read.ip_bytes, read.headers.transport), (None, 28, TransportHeader::Other));
    assert_eq!(parse_frame(&[]).ip_bytes, 0);
}

#[test]
fn hashes_tell_connections_and_directions_apart() {
    let ports = |a: u16, b: u16| built(|x| ip().udp(a, b).write(x, b"x").unwrap());
    let hash = |frame: &[u8]| parse_frame(frame).hash;
    let one = hash(&ports(5004, 6000));
    assert_eq!(one, hash(&ports(5004, 6000)));
    let swapped = flow_hash(PLAYER, SERVER, 17, 6000 << 16 | 5004);
    for other in [hash(&ports(5005, 6000)), hash(&ports(6000, 5004)), swapped] {
        assert_ne!(one, other);
    }
    // Over many flows the low bits, which a flow queue uses, are as even as chance would have them.
    let mut buckets = [0u32; 64];
    for port in 0..6_400 {
        buckets[flow_hash(SERVER, PLAYER, 17, 5004 << 16 | port) as usize % 64] += 1;
    }
    assert!(buckets.iter().all(|&n| (50..=150).contains(&n)), "{buckets:?}");
}

proptest! {
    /// Any bytes are read, and never more payload than there is.
    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let read = parse_frame(&bytes);
        prop_assert!(read.ip_bytes as usize <= bytes.len());
        prop_assert!(read.headers.payload_bytes as usize <= bytes.len());
    }

    /// Damaged packets are accepted too; they reach far more of the reader.
    #[test]
    fn damaged_packets(
        tcp in any::<bool>(),
        cut in 0usize..80,
        damage in proptest::collection::vec((0usize..80, any::<u8>()), 0..6),
    ) {
        let mut bytes = if tcp {
            built(|b| ip().tcp(1, 2, 3, 4).write(b, &[7; 26]).unwrap())
        } else {
            udp(&[7; 38])
        };
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(80 - cut);
        let read = parse_frame(&bytes);
        prop_assert!(read.ip_bytes as usize + 14 <= bytes.len().max(14));
        prop_assert!(read.headers.payload_bytes <= read.ip_bytes.max(bytes.len() as u32));
        prop_assert_eq!(read.headers.payload_head.len(), if read.headers.payload_head.is_empty() { 0 } else { read.headers.payload_bytes as usize });
    }
}
