mod guesses;
mod messages;
mod ndn;
mod quic;
mod rdt;
mod rist;
mod srt;

use proptest::prelude::*;

use super::*;

const SUBJECT: FlowId = FlowId(0);
const RIVAL: FlowId = FlowId(1);
const ACK: u8 = tcp::ACK;

/// Makes a subject and a flow of cross traffic, both with these protocols.
fn told(tcp: &[StreamProtocol], udp: &[DatagramProtocol]) -> Classifier {
    let protocols = Protocols { tcp: tcp.to_vec(), udp: udp.to_vec() };
    Classifier::new([(Role::Subject, protocols.clone()), (Role::Rival, protocols)])
}

fn classifier() -> Classifier {
    told(&[StreamProtocol::Rtsp], &[DatagramProtocol::ReliableUdp])
}

fn tcp(seq: u32, flags: u8, payload: &[u8]) -> Headers<'_> {
    Headers {
        transport: TransportHeader::Tcp { seq, ack: 0, flags },
        header_bytes: 20,
        payload_bytes: payload.len() as u32,
        payload_head: payload,
    }
}

fn udp(payload: &[u8]) -> Headers<'_> {
    Headers {
        transport: TransportHeader::Udp,
        header_bytes: 8,
        payload_bytes: payload.len() as u32,
        payload_head: payload,
    }
}

fn rtp(seq: u16, ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend(seq.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(ssrc.to_be_bytes());
    packet.extend([7; 100]);
    packet
}

/// A receiver report without blocks.
const RTCP: [u8; 8] = [0x80, 201, 0, 1, 0, 0, 0, 9];

fn kind_of(headers: &Headers<'_>) -> PacketKind {
    classifier().classify(SUBJECT, Direction::Down, 1, headers).kind
}

fn again(c: &mut Classifier, ports: u64, headers: &Headers<'_>) -> bool {
    c.classify(SUBJECT, Direction::Down, ports, headers).flags & packet_flags::RETRANSMIT != 0
}

#[test]
fn payload_is_named_by_role() {
    for headers in [tcp(1, ACK, b"abc"), udp(b"abc"), udp(&rtp(1, 1))] {
        let mut c = classifier();
        assert_eq!(c.classify(SUBJECT, Direction::Down, 1, &headers).kind, PacketKind::Media);
        assert_eq!(c.classify(RIVAL, Direction::Down, 1, &headers).kind, PacketKind::Cross);
        assert_eq!(c.classify(FlowId::OTHER, Direction::Down, 1, &headers).kind, PacketKind::Other);
    }
}

#[test]
fn tcp_control_is_signalling_and_the_rest_without_payload_acknowledges() {
    assert_eq!(kind_of(&tcp(1, tcp::SYN, b"")), PacketKind::Signalling);
    assert_eq!(kind_of(&tcp(1, tcp::SYN | ACK, b"")), PacketKind::Signalling);
    assert_eq!(kind_of(&tcp(1, tcp::FIN | ACK, b"")), PacketKind::Signalling);
    assert_eq!(kind_of(&tcp(1, tcp::RST, b"")), PacketKind::Signalling);
    assert_eq!(kind_of(&tcp(1, ACK, b"")), PacketKind::Ack);
    // The last data of a connection often carries its FIN: it is payload all the same.
    assert_eq!(kind_of(&tcp(1, tcp::FIN | ACK, b"data")), PacketKind::Media);
}

#[test]
fn rtsp_text_is_signalling_in_either_role() {
    for text in [
        &b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"[..],
        b"DESCRIBE rtsp://10.1.0.1/a RTSP/1.0\r\nCSeq: 2\r\n\r\n",
        b"PLAY rtsp://10.1.0.1/a RTSP/2.0\r\n",
        b"SETUP rtsp://10.1.0.1/cut-short-before-the-line-en",
    ] {
        assert_eq!(kind_of(&tcp(1, ACK, text)), PacketKind::Signalling);
        let rival = classifier().classify(RIVAL, Direction::Up, 1, &tcp(1, ACK, text));
        assert_eq!(rival.kind, PacketKind::Signalling);
    }
    assert_eq!(kind_of(&tcp(1, ACK, b"PLAY with me\r\nRTSP/1.0")), PacketKind::Media);
}

#[test]
fn interleaved_frames_are_media_unless_all_of_it_is_rtcp() {
    let frame = |channel: u8, inner: &[u8]| {
        let mut bytes = vec![b'$', channel];
        bytes.extend((inner.len() as u16).to_be_bytes());
        bytes.extend(inner);
        bytes
    };
    let media = frame(0, &rtp(77, 5));
    let info = classifier().classify(SUBJECT, Direction::Down, 1, &tcp(4_000, ACK, &media));
    assert_eq!((info.kind, info.seq), (PacketKind::Media, Some(4_000)));
    assert_eq!(kind_of(&tcp(1, ACK, &frame(1, &RTCP))), PacketKind::Rtcp);
    assert_eq!(kind_of(&tcp(1, ACK, &frame(1, &RTCP).repeat(2))), PacketKind::Rtcp);
    assert_eq!(kind_of(&tcp(1, ACK, &[frame(1, &RTCP), media].concat())), PacketKind::Media);
    let answer = b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n".to_vec();
    assert_eq!(kind_of(&tcp(1, ACK, &[answer, frame(0, &rtp(77, 5))].concat())), PacketKind::Media);
}

#[test]
fn rtcp_is_told_from_rtp_by_its_type() {
    assert_eq!(kind_of(&udp(&RTCP)), PacketKind::Rtcp);
    let mut c = classifier();
    // Marker bit set: 96 + 128 = 224 is above RTCP's types.
    let mut marked = rtp(5, 1);
    marked[1] |= 0x80;
    let info = c.classify(SUBJECT, Direction::Down, 1, &udp(&marked));
    assert_eq!((info.kind, info.seq), (PacketKind::Media, Some(5)));
    // It declares a greater length than the datagram's.
    let mut longer = RTCP;
    longer[3] = 200;
    assert_eq!(kind_of(&udp(&longer)), PacketKind::Media);
}

#[test]
fn rtcp_that_acknowledges_is_an_acknowledgement() {
    let app =
        |name: &[u8; 4]| [&[0x80, 204, 0, 4, 0, 0, 0, 9], &name[..], &[0, 0, 0, 1, 0, 0, 0, 7]].concat();
    for (name, kind) in [(b"qtak", PacketKind::Ack), (b"ack ", PacketKind::Ack), (b"QTSS", PacketKind::Rtcp)]
    {
        assert_eq!(kind_of(&udp(&app(name))), kind);
        assert_eq!(kind_of(&udp(&[&RTCP[..], &app(name)].concat())), kind, "after a report");
    }
    // A report with a block, a CNAME, a client report, and then the acknowledgement.
    let block = [&[0x81, 201, 0, 7], &[0; 28][..]].concat();
    let compound = [&block[..], &[0x81, 202, 0, 1, 0, 0, 0, 9], &app(b"QTSS"), &app(b"qtak")].concat();
    assert_eq!(kind_of(&udp(&compound)), PacketKind::Ack);
    assert_eq!(kind_of(&udp(&compound[..compound.len() - 12])), PacketKind::Rtcp, "the name is not there");
    // The name elsewhere than in an APP.
    let mut report = block;
    report[8..12].copy_from_slice(b"qtak");
    assert_eq!(kind_of(&udp(&report)), PacketKind::Rtcp);
}

#[test]
fn probes_and_others() {
    let echo = Headers {
        transport: TransportHeader::IcmpEcho { seq: 3 },
        header_bytes: 8,
        payload_bytes: 56,
        payload_head: &[],
    };
    let info = classifier().classify(RIVAL, Direction::Down, 0, &echo);
    assert_eq!((info.kind, info.seq, info.payload_bytes), (PacketKind::Probe, Some(3), 56));
    let other = Headers { transport: TransportHeader::Other, ..echo };
    assert_eq!(classifier().classify(FlowId::OTHER, Direction::Up, 0, &other).kind, PacketKind::Other);
    // A code that no plan has is counted with "other" rather than with a flow.
    assert_eq!(classifier().classify(FlowId(9), Direction::Up, 0, &udp(b"x")).kind, PacketKind::Other);
}

#[test]
fn tcp_bytes_sent_again_are_retransmissions() {
    let mut c = classifier();
    assert!(!again(&mut c, 1, &tcp(99, tcp::SYN, b"")));
    assert!(again(&mut c, 1, &tcp(99, tcp::SYN, b"")), "the SYN again");
    assert!(!again(&mut c, 1, &tcp(100, ACK, &[0; 10])));
    assert!(!again(&mut c, 1, &tcp(110, ACK, &[0; 10])));
    assert!(again(&mut c, 1, &tcp(100, ACK, &[0; 10])));
    assert!(again(&mut c, 1, &tcp(115, ACK, &[0; 10])), "partly new");
    assert!(!again(&mut c, 1, &tcp(125, ACK, &[0; 1])), "the new part counted");
    assert!(!again(&mut c, 1, &tcp(126, tcp::FIN | ACK, b"")));
    assert!(again(&mut c, 1, &tcp(126, tcp::FIN | ACK, b"")), "the FIN again");
    assert!(!again(&mut c, 1, &tcp(126, ACK, b"")), "an acknowledgement sends nothing");
    assert!(!again(&mut c, 1, &tcp(5_000_000, tcp::SYN, b"")), "the ports used anew");
    assert!(!again(&mut c, 1, &tcp(5_000_001, ACK, &[0; 10])));
}

#[test]
fn connections_are_counted_in_both_directions_alike() {
    let mut c = classifier();
    let mut number = |flow, direction, ports, headers: &Headers<'_>| {
        c.classify(flow, direction, ports, headers).connection
    };
    let (up, down) = (Direction::Up, Direction::Down);
    assert_eq!(number(SUBJECT, up, 70, &tcp(99, tcp::SYN, b"")), Some(0));
    assert_eq!(number(SUBJECT, down, 70, &tcp(5, tcp::SYN | ACK, b"")), Some(0));
    assert_eq!(number(SUBJECT, up, 80, &tcp(9, tcp::SYN, b"")), Some(1));
    assert_eq!(number(RIVAL, up, 80, &tcp(9, tcp::SYN, b"")), Some(0), "each flow counts its own");
    assert_eq!(number(SUBJECT, up, 70, &tcp(99, tcp::SYN, b"")), Some(0), "the SYN again");
    assert_eq!(number(SUBJECT, down, 70, &tcp(6, ACK, b"data")), Some(0));
    assert_eq!(number(SUBJECT, down, 70, &udp(b"data")), None);
    // The same ports, used anew: the answer and the packets after it are the new one's.
    assert_eq!(number(SUBJECT, up, 70, &tcp(50_000, tcp::SYN, b"")), Some(2));
    assert_eq!(number(SUBJECT, down, 70, &tcp(70_000, tcp::SYN | ACK, b"")), Some(2));
    assert_eq!(number(SUBJECT, up, 70, &tcp(50_001, ACK, b"")), Some(2));
    assert_eq!(number(SUBJECT, down, 80, &tcp(1, tcp::RST, b"")), Some(1));
}

#[test]
fn ten_thousand_connections_are_told_apart() {
    let mut c = classifier();
    for _ in 0..2 {
        for ports in 0..10_000u32 {
            let info = c.classify(SUBJECT, Direction::Down, u64::from(ports) << 20, &tcp(9, ACK, b"data"));
            assert_eq!(info.connection, Some(ports));
        }
    }
}

#[test]
fn directions_flows_and_connections_are_apart() {
    let mut c = classifier();
    let data = tcp(100, ACK, &[0; 10]);
    assert!(!again(&mut c, 1, &data));
    assert!(!again(&mut c, 2, &data));
    assert_eq!(c.classify(SUBJECT, Direction::Up, 1, &data).flags, 0);
    assert_eq!(c.classify(RIVAL, Direction::Down, 1, &data).flags, 0);
    assert!(again(&mut c, 1, &data));
    assert!(again(&mut c, 2, &data));
}

#[test]
fn rtp_numbers_sent_again_are_retransmissions() {
    let mut c = classifier();
    let mut send = |seq, ssrc| again(&mut c, 1, &udp(&rtp(seq, ssrc)));
    assert!(!send(65_534, 1));
    assert!(!send(65_535, 1));
    assert!(!send(1, 1), "past the wrap, leaving one out");
    assert!(!send(0, 1), "late, but for the first time");
    assert!(send(65_535, 1));
    assert!(send(0, 1));
    assert!(!send(0, 2), "another source");
    assert!(!send(30_000, 1), "a source that began anew");
    assert!(!send(29_999, 1));
}

/// The truth about a sender of whole segments, kept without sequence arithmetic.
#[derive(Default)]
struct Sent(std::collections::HashSet<u64>);

proptest! {
    /// Every repeat out of the last two windows is seen, across the wrap of sequence space.
    #[test]
    fn tcp_agrees_with_a_set(start in any::<u32>(), steps in proptest::collection::vec((0u64..40, 1u64..3), 1..300)) {
        let mut c = classifier();
        let (mut next, mut sent) = (0u64, Sent::default());
        for (back, segments) in steps {
            let first = next.saturating_sub(if back < 8 { back } else { 0 });
            for segment in first..first + segments {
                let seq = start.wrapping_add((segment * 1_448) as u32);
                let expected = !sent.0.insert(segment);
                prop_assert_eq!(again(&mut c, 1, &tcp(seq, ACK, &[0; 1_448])), expected);
                next = next.max(segment + 1);
            }
        }
    }

    /// The same for RTP.
    #[test]
    fn rtp_agrees_with_a_set(start in any::<u16>(), steps in proptest::collection::vec((0u64..600, 0u64..30), 1..300)) {
        let mut c = classifier();
        let (mut next, mut sent) = (1u64, Sent::default());
        for (back, skip) in steps {
            let number = if back < 500 { (next + skip).saturating_sub(back) } else { next + skip };
            let expected = !sent.0.insert(number);
            prop_assert_eq!(again(&mut c, 1, &udp(&rtp(start.wrapping_add(number as u16), 1))), expected);
            next = next.max(number + 1);
        }
    }

    /// Any headers are taken.
    #[test]
    fn takes_anything(
        packets in proptest::collection::vec(
            (any::<u16>(), any::<bool>(), any::<u32>(), 0u8..4, any::<u32>(), any::<u8>(), any::<u32>(),
             proptest::collection::vec(any::<u8>(), 0..64)),
            0..50,
        ),
        which in 0usize..4,
    ) {
        use {DatagramProtocol as Udp, StreamProtocol as Tcp};
        let mut c = match which {
            0 => told(&[], &[]),
            1 => told(&[Tcp::Rtsp, Tcp::Http], &[Udp::Quic]),
            2 => told(&[Tcp::RtspRdt], &[Udp::Rdt]),
            _ => told(&[Tcp::Opaque], &[Udp::ReliableUdp, Udp::Rtp]),
        };
        for (flow, up, connection, transport, seq, flags, payload_bytes, head) in packets {
            let transport = match transport {
                0 => TransportHeader::Tcp { seq, ack: 0, flags },
                1 => TransportHeader::Udp,
                2 => TransportHeader::IcmpEcho { seq: seq as u16 },
                _ => TransportHeader::Other,
            };
            let direction = if up { Direction::Up } else { Direction::Down };
            let headers = Headers { transport, header_bytes: 8, payload_bytes, payload_head: &head };
            let info = c.classify(FlowId(flow % 3), direction, u64::from(connection), &headers);
            prop_assert_eq!(info.payload_bytes, payload_bytes);
            let is_tcp = matches!(transport, TransportHeader::Tcp { .. });
            prop_assert!(info.seq.is_some() || !is_tcp);
            prop_assert_eq!(info.connection.is_some(), is_tcp);
        }
    }
}
