//! RDT's packets, written here byte by byte.

use super::*;

const LATENCY_REPORT: [u8; 9] = [0x80, 0xff, 8, 0, 9, 0, 0, 0, 1];
const LOST: [u8; 11] = [0x40, 0xff, 2, 0, 0, 0, 7, 0, 1, 1, 0];
const RTT_REQUEST: [u8; 3] = [0, 0xff, 3];
const RTT_RESPONSE: [u8; 11] = [0, 0xff, 4, 0, 0, 0, 1, 0, 0, 0, 2];
const STREAM_END: [u8; 11] = [0x86, 0xff, 6, 0, 7, 0, 0, 0, 40, 0, 0];

/// Makes data of stream 0 to 30, or beyond.
fn data(stream: u16, seq: u16, with_length: bool) -> Vec<u8> {
    let extended = if stream < 31 { vec![] } else { stream.to_be_bytes().to_vec() };
    let length = if with_length { (112 + extended.len() as u16).to_be_bytes().to_vec() } else { vec![] };
    let flags = [0, 0x80][usize::from(with_length)] | 0x40 | (stream.min(31) as u8) << 1;
    [&[flags][..], &seq.to_be_bytes(), &length, &[3, 0, 0, 0, 40], &extended, &[0, 0], &[7; 100]].concat()
}

fn one() -> Classifier {
    told(&[StreamProtocol::RtspRdt], &[DatagramProtocol::Rdt])
}

fn shown(c: &mut Classifier, direction: Direction, headers: &Headers<'_>) -> (PacketKind, Option<u32>, bool) {
    let info = c.classify(SUBJECT, direction, 1, headers);
    (info.kind, info.seq, info.flags & packet_flags::RETRANSMIT != 0)
}

#[test]
fn data_is_payload_by_the_numbers_of_its_stream() {
    let mut c = one();
    let mut show = |payload: &[u8]| shown(&mut c, Direction::Down, &udp(payload));
    let media = |seq, again| (PacketKind::Media, Some(seq), again);
    assert_eq!(show(&data(0, 7, false)), media(7, false));
    assert_eq!(show(&data(1, 7, false)), media(7, false), "another stream");
    assert_eq!(show(&data(31, 7, false)), media(7, false));
    assert_eq!(show(&data(500, 7, true)), media(7, false));
    assert_eq!(show(&data(500, 7, false)), media(7, true), "the same, its length not said");
    assert_eq!(show(&data(0, 9, false)), media(9, false));
    assert_eq!(show(&data(0, 8, false)), media(8, false), "late, but for the first time");
    assert_eq!(show(&data(0, 7, false)), media(7, true));
    // Behind the server's clock, and behind other data.
    assert_eq!(show(&[&LATENCY_REPORT[..], &data(0, 10, false)].concat()), media(10, false));
    assert_eq!(show(&[data(0, 11, true), data(0, 12, false)].concat()), media(11, false));
    assert_eq!(show(&data(0, 12, false)), media(12, true));
    let up = shown(&mut c, Direction::Up, &udp(&data(0, 12, false)));
    assert_eq!(up, media(12, false), "the other way");
    assert_eq!(c.classify(RIVAL, Direction::Down, 1, &udp(&data(0, 12, false))).kind, PacketKind::Cross);
}

#[test]
fn numbers_wrap_below_the_types() {
    let mut c = one();
    let mut again = |seq| shown(&mut c, Direction::Down, &udp(&data(0, seq, false))).2;
    assert!((0xfe00..0xff00).chain(0..0x100).all(|seq| !again(seq)));
    assert!((0xfe00..0xff00).chain(0..0x100).all(&mut again));
    assert!(!again(0x300) && again(0xff), "within the last 1024");
    assert!(!again(0x1000) && !again(0xff), "not within these");
}

#[test]
fn packets_without_media_are_told_apart() {
    for (kind, packets) in [
        (PacketKind::Ack, &[&LOST[..]][..]),
        (PacketKind::Ack, &[&RTT_REQUEST, &LOST]),
        (PacketKind::Probe, &[&RTT_REQUEST]),
        (PacketKind::Probe, &[&RTT_RESPONSE]),
        (PacketKind::Probe, &[&[0x80, 0xff, 11, 0, 9, 1, 0, 0, 0]]),
        (PacketKind::Probe, &[&STREAM_END, &RTT_RESPONSE]),
        (PacketKind::Signalling, &[&STREAM_END]),
        (PacketKind::Signalling, &[&LATENCY_REPORT]),
        (PacketKind::Signalling, &[&[0, 0xff, 5, 0, 0, 0, 1, 0, 0, 0, 1]]),
        (PacketKind::Signalling, &[&[3, 0xff, 9, 0, 0, 0, 1], &[1, 0xff, 10, 0, 0]]),
    ] {
        let datagram = packets.concat();
        let show = |headers: &Headers<'_>| shown(&mut one(), Direction::Up, headers);
        assert_eq!(show(&udp(&datagram)), (kind, None, false), "{packets:?}");
        let with_data = [&datagram, &data(0, 7, false)[..]].concat();
        if packets.iter().all(|packet| packet[2] != 2 && packet[2] != 10) {
            assert_eq!(show(&udp(&with_data)), (PacketKind::Media, Some(7), false), "{packets:?} and data");
        }
    }
    // Nothing that has a number.
    assert_eq!(shown(&mut one(), Direction::Up, &udp(&[0, 0xff])), (PacketKind::Media, None, false));
}

#[test]
fn interleaved_frames_are_media_unless_none_of_them_is() {
    let frame = |inner: &[u8]| [&[b'$', 2], &(inner.len() as u16).to_be_bytes()[..], inner].concat();
    let kind = |payload: &[u8]| shown(&mut one(), Direction::Down, &tcp(4_000, ACK, payload));
    let tcp_seq = Some(4_000);
    assert_eq!(kind(&frame(&data(0, 7, false))), (PacketKind::Media, tcp_seq, false));
    assert_eq!(kind(&frame(&STREAM_END)), (PacketKind::Signalling, tcp_seq, false));
    assert_eq!(kind(&frame(&RTT_REQUEST)), (PacketKind::Probe, tcp_seq, false));
    assert_eq!(kind(&[frame(&LOST), frame(&STREAM_END)].concat()), (PacketKind::Ack, tcp_seq, false));
    assert_eq!(kind(&[frame(&STREAM_END), frame(&data(0, 7, false))].concat()).0, PacketKind::Media);
    assert_eq!(kind(&[&frame(&STREAM_END)[..], b"$"].concat()).0, PacketKind::Media, "the rest is not known");
    // A packet that would be RTCP in an RTP session is data here.
    assert_eq!(kind(&frame(&[0x80, 201, 0, 0, 8, 0, 0, 0])).0, PacketKind::Media);
    let text = b"SET_PARAMETER rtsp://10.1.0.1/a RTSP/1.0\r\nCSeq: 2\r\nSubscribe: stream=0;rule=1\r\n\r\n";
    assert_eq!(kind(text).0, PacketKind::Signalling);

    let mut c = one();
    let media = frame(&data(0, 7, false));
    assert!(!again(&mut c, 1, &tcp(4_000, ACK, &media)));
    assert!(again(&mut c, 1, &tcp(4_000, ACK, &media)), "by TCP's numbers");
}

proptest! {
    /// Every repeat within the last 1024 is seen, across the wrap.
    #[test]
    fn rdt_agrees_with_a_set(start in 0u64..0xff00, steps in proptest::collection::vec((0u64..600, 0u64..30), 1..300)) {
        let mut c = one();
        let (mut next, mut sent) = (1u64, Sent::default());
        for (back, skip) in steps {
            let number = if back < 500 { (next + skip).saturating_sub(back) } else { next + skip };
            let expected = !sent.0.insert(number);
            let packet = data(3, ((start + number) % 0xff00) as u16, false);
            prop_assert_eq!(again(&mut c, 1, &udp(&packet)), expected);
            next = next.max(number + 1);
        }
    }
}
