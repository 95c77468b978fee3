use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::*;

fn all(datagram: &Chunk) -> Vec<Result<Packet<'_>, Problem>> {
    parse(datagram).collect()
}

fn sequence(number: u16) -> SequenceNumber {
    SequenceNumber::new(number).expect("below 0xff00")
}

/// Byte for byte as Wireshark's dissector reads it.
fn is_written_as(packet: &Packet<'_>, bytes: &[u8]) {
    assert_eq!(packet.write(), Chunk::bytes(bytes));
    assert_eq!(parse(bytes).collect::<Vec<_>>(), [Ok(packet.clone())]);
}

fn problem(bytes: &[u8]) -> Problem {
    parse(bytes).last().expect("there is something").expect_err("a problem")
}

#[test]
fn a_data_packet_has_what_it_needs() {
    let data = DataPacket {
        stream: 1,
        sequence: sequence(0x0102),
        rule: 3,
        timestamp_ms: 0x0a0b_0c0d,
        payload: (&b"ab"[..]).into(),
        ..DataPacket::default()
    };
    is_written_as(&Packet::Data(data), b"\x02\x01\x02\x03\x0a\x0b\x0c\x0dab");
    let more = DataPacket {
        stream: 31,
        is_reliable: true,
        total_reliable: Some(0x0304),
        is_back_to_back: true,
        is_slow: true,
        rule: 63,
        ..data
    };
    let bytes = b"\x7f\x01\x02\xff\x0a\x0b\x0c\x0d\x00\x1f\x03\x04\x00\x3fab";
    is_written_as(&Packet::Data(more), bytes);
    assert_eq!((data.header_bytes(false), more.header_bytes(false), more.header_bytes(true)), (8, 14, 16));
}

#[test]
fn the_last_packet_of_a_datagram_takes_the_rest() {
    let first = DataPacket { payload: (&b"abc"[..]).into(), ..DataPacket::default() };
    let last = DataPacket { sequence: sequence(1), payload: Body::filler(600), ..first };
    let latency = Packet::LatencyReport { server_time_ms: 77 };
    let packets = [latency, Packet::Data(first), Packet::Data(last)];
    let datagram = write(&packets);
    let bytes = b"\x80\xff\x08\0\x09\0\0\0\x4d\x80\0\0\0\x0d\0\0\0\0\0abc\0\0\x01\0\0\0\0\0";
    assert_eq!(datagram, Chunk::with_filler(*bytes, 600));
    assert_eq!(all(&datagram), packets.map(Ok));
    // Filler becomes zeros before another packet.
    let filler = DataPacket { payload: Body::filler(2), ..first };
    let zeros = DataPacket { payload: (&[0; 2][..]).into(), ..first };
    let datagram = write(&[Packet::Data(filler), Packet::RttRequest]);
    assert_eq!(all(&datagram), [Ok(Packet::Data(zeros)), Ok(Packet::RttRequest)]);
}

#[test]
fn an_acknowledgement_is_of_a_last_number_and_those_before() {
    let lost = [sequence(3), sequence(5)];
    let ack = AckPacket::of(2, sequence(0), sequence(9), |number| !lost.contains(&number));
    // 8 is bit 0; 5 is bit 3, 3 is bit 5.
    is_written_as(&Packet::Ack(ack.clone()), b"\0\xff\x02\0\x02\0\x09\0\x09\x02\xd7\x01");
    assert_eq!(ack.lost_sequences().collect::<Vec<_>>(), lost.map(|number| (2, number)));
    let nak = AckPacket::lost(0, sequence(0xfeff), sequence(1));
    is_written_as(&Packet::Ack(nak.clone()), b"\x40\xff\x02\0\0\0\x01\0\x02\x01\0");
    let numbers: Vec<_> = nak.lost_sequences().map(|(_, number)| number.get()).collect();
    assert_eq!(numbers, [0xfeff, 0, 1]);
    let one = AckPacket::of(0, sequence(7), sequence(7), |_| true);
    is_written_as(&Packet::Ack(one), b"\0\xff\x02\0\0\0\x07\0\0\0");
}

#[test]
fn of_what_is_too_long_ago_an_acknowledgement_says_nothing() {
    let ack = AckPacket::lost(0, sequence(0), sequence(5000));
    assert_eq!(ack.lost_sequences().count(), 1 + usize::from(MOST_BITS));
    assert_eq!(ack.lost_sequences().next(), Some((0, sequence(5000 - MOST_BITS))));
    let backwards = AckPacket::lost(0, sequence(5), sequence(4));
    assert_eq!(backwards.lost_sequences().collect::<Vec<_>>(), [(0, sequence(4))]);
}

#[test]
fn the_other_packets() {
    is_written_as(&Packet::RttRequest, b"\0\xff\x03");
    let response = Packet::RttResponse { seconds: 1, micros: 2 };
    is_written_as(&response, b"\0\xff\x04\0\0\0\x01\0\0\0\x02");
    let congestion = Packet::Congestion { send: -1, receive: 2 };
    is_written_as(&congestion, b"\0\xff\x05\xff\xff\xff\xff\0\0\0\x02");
    let end =
        StreamEnd { stream: 1, packet_sent: true, sequence: 5, timestamp_ms: 9, ..StreamEnd::default() };
    is_written_as(&Packet::StreamEnd(end), b"\x06\xff\x06\0\x05\0\0\0\x09");
    let reason = EndReason { code: 0x8004_0005, text: b"why\0" };
    let end = StreamEnd { stream: 31, total_reliable: Some(4), reason: Some(reason), ..end };
    let bytes = b"\xff\xff\x06\0\x05\0\0\0\x09\0\x1f\0\x04\0\0\0\x80\x04\0\x05why\0";
    is_written_as(&Packet::StreamEnd(end), bytes);
    is_written_as(&Packet::LatencyReport { server_time_ms: 1 }, b"\0\xff\x08\0\0\0\x01");
    let report = BandwidthReport { interval: 1, bandwidth_bps: 2, sequence: 3 };
    is_written_as(&Packet::BandwidthReport(report), b"\0\xff\x01\0\x01\0\0\0\x02\x03");
    let request = TransportInfoRequest { rtt_ms: Some(7), wants_buffers: true };
    is_written_as(&Packet::TransportInfoRequest(request), b"\x03\xff\x09\0\0\0\x07");
    let rtt = RttInfo { request_time_ms: 7, response_time_ms: Some(8) };
    let buffer = BufferInfo { stream: 1, lowest_timestamp_ms: 2, highest_timestamp_ms: 3, bytes: 4 };
    let info = TransportInfo { rtt: Some(rtt), buffers: Some(vec![buffer]) };
    let bytes = b"\x07\xff\x0a\0\0\0\x07\0\0\0\x08\0\x01\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04";
    is_written_as(&Packet::TransportInfo(info), bytes);
}

#[test]
fn what_is_not_read_is_kept() {
    let other =
        |packet_type, flags, body: &'static [u8]| Packet::Other { packet_type, flags, body: body.into() };
    is_written_as(&other(types::REPORT, 0, b"abc"), b"\0\xff\x07abc");
    is_written_as(&other(0xff7f, 0x80, b"\0\x04abc"), b"\x80\xff\x7f\0\x04abc");
    // A report of another layout than the known one.
    is_written_as(&other(types::BANDWIDTH_REPORT, 0, b"abc"), b"\0\xff\x01abc");
    // Packets with a length may have another packet behind them.
    let packets = [
        other(types::BANDWIDTH_PROBE, 0x80, b"\0\x08\x01ab"),
        other(types::ASM_ACTION, 0x84, b"\0\x05\0\x09ab"),
        Packet::RttRequest,
    ];
    let datagram = Chunk::bytes(*b"\x80\xff\x0b\0\x08\x01ab\x84\xff\0\0\x05\0\x09ab\0\xff\x03");
    assert_eq!(all(&datagram), packets.clone().map(Ok));
    assert_eq!(write(&packets), datagram);
}

#[test]
fn what_is_wrong_is_said() {
    let truncated = |at, missing| Problem { at, fault: Fault::Truncated { missing } };
    assert_eq!(problem(b"\0"), truncated(1, 2));
    assert_eq!(problem(b"\0\0\x01\0\0\0\0"), truncated(4, 1));
    assert_eq!(problem(b"\0\xff\x03\x80\0\x01\0\x0b\0\0\0\0"), truncated(8, 2));
    assert_eq!(problem(b"\x80\0\x01\0\x04\0\0\0\0\0"), Problem { at: 3, fault: Fault::Length(4) });
    // Its length leaves no room for the timestamp.
    assert_eq!(problem(b"\x80\0\x01\0\x09\0\0\0\0\0"), truncated(6, 1));
    let ack = |rest: &[u8]| [b"\0\xff\x02\0\0", rest].concat();
    assert_eq!(problem(&ack(b"\xff\x01\0\0\0")), Problem { at: 5, fault: Fault::Sequence(0xff01) });
    let bitmap = Fault::Bitmap { bits: 9, bytes: 1 };
    assert_eq!(problem(&ack(b"\0\x01\0\x09\x01")), Problem { at: 7, fault: bitmap });
    assert_eq!(problem(b"\x01\xff\x02"), Problem { at: 0, fault: Fault::Extension });
    assert_eq!(problem(b"\x01\xff\x0a\xff\xff\0\0"), truncated(5, 14 * 65_535 - 2));
    let header = Chunk::with_filler(*b"\0\0\x01\0", 600);
    assert_eq!(all(&header), [Err(Problem { at: 4, fault: Fault::Filler })]);
}

#[test]
fn numbers_wrap_below_the_types() {
    assert_eq!(SequenceNumber::new(0xff00), None);
    assert_eq!(sequence(0xfeff).next(), sequence(0));
    assert_eq!(SequenceNumber::of(0xff00 * 3 + 5), sequence(5));
    assert_eq!(sequence(3).ahead_of(sequence(0xfefe)), 5);
    assert_eq!(sequence(0xfefe).ahead_of(sequence(3)), -5);
    assert_eq!(sequence(0xff00 / 2).ahead_of(sequence(0)), 32_640);
    assert_eq!(sequence(0xff00 / 2 + 1).ahead_of(sequence(0)), -32_639);
}

fn any_sequence() -> impl Strategy<Value = SequenceNumber> {
    (0..SequenceNumber::COUNT).prop_map(sequence)
}

/// Streams and rules around the limits of five and six bits.
fn any_number() -> impl Strategy<Value = u16> {
    prop_oneof![0u16..70, any::<u16>()]
}

/// A payload that the packets of one test share.
const PAYLOAD: &[u8] = b"some bytes of media";

fn any_body() -> impl Strategy<Value = Body<'static>> {
    (0..PAYLOAD.len()).prop_map(|bytes| PAYLOAD[..bytes].into())
}

fn any_data() -> impl Strategy<Value = Packet<'static>> {
    let flags = any::<[bool; 3]>();
    let rest = (option::of(any::<u16>()), any_number(), any::<u32>(), any_body());
    (any_number(), any_sequence(), flags, rest).prop_map(|(stream, sequence, flags, rest)| {
        let [is_reliable, is_back_to_back, is_slow] = flags;
        let (total_reliable, rule, timestamp_ms, payload) = rest;
        Packet::Data(DataPacket {
            stream,
            sequence,
            is_reliable,
            total_reliable,
            is_back_to_back,
            is_slow,
            rule,
            timestamp_ms,
            payload,
        })
    })
}

fn any_ack() -> impl Strategy<Value = AckPacket> {
    let one =
        (any::<u16>(), any_sequence(), 0u16..300, any::<u64>()).prop_map(|(stream, last, before, mask)| {
            let first = last.plus(-i32::from(before));
            AckPacket::of(stream, first, last, |number| mask >> (number.get() % 64) & 1 == 1)
                .streams
                .remove(0)
        });
    (any::<bool>(), vec(one, 0..4)).prop_map(|(lost_high, streams)| AckPacket { lost_high, streams })
}

/// One behind which there may be others.
fn any_packet() -> impl Strategy<Value = Packet<'static>> {
    let end = (any_number(), any::<bool>(), any::<(u16, u32)>(), option::of(any::<u16>())).prop_map(
        |(stream, packet_sent, (sequence, timestamp_ms), total_reliable)| {
            let end = StreamEnd { stream, packet_sent, sequence, timestamp_ms, total_reliable, reason: None };
            Packet::StreamEnd(end)
        },
    );
    let buffer = any::<(u16, u32, u32, u32)>().prop_map(|(stream, lowest, highest, bytes)| BufferInfo {
        stream,
        lowest_timestamp_ms: lowest,
        highest_timestamp_ms: highest,
        bytes,
    });
    let info = (option::of(any::<(u32, Option<u32>)>()), option::of(vec(buffer, 0..4)));
    prop_oneof![
        any_data(),
        any_ack().prop_map(Packet::Ack),
        Just(Packet::RttRequest),
        any::<(u32, u32)>().prop_map(|(seconds, micros)| Packet::RttResponse { seconds, micros }),
        any::<(i32, i32)>().prop_map(|(send, receive)| Packet::Congestion { send, receive }),
        end,
        any::<u32>().prop_map(|server_time_ms| Packet::LatencyReport { server_time_ms }),
        any::<(u16, u32, u8)>().prop_map(|(interval, bandwidth_bps, sequence)| {
            Packet::BandwidthReport(BandwidthReport { interval, bandwidth_bps, sequence })
        }),
        any::<(Option<u32>, bool)>().prop_map(|(rtt_ms, wants_buffers)| {
            Packet::TransportInfoRequest(TransportInfoRequest { rtt_ms, wants_buffers })
        }),
        info.prop_map(|(rtt, buffers)| {
            let rtt =
                rtt.map(|(request_time_ms, response_time_ms)| RttInfo { request_time_ms, response_time_ms });
            Packet::TransportInfo(TransportInfo { rtt, buffers })
        }),
    ]
}

proptest! {
    /// Packets that share a datagram come out of it, in their order.
    #[test]
    fn packets_are_read_as_written(packets in vec(any_packet(), 1..8)) {
        let datagram = write(&packets);
        prop_assert_eq!(all(&datagram), packets.into_iter().map(Ok).collect::<Vec<_>>());
    }

    /// The same for filler, which stays filler.
    #[test]
    fn filler_stays_filler(packet in any_data(), bytes in 0u32..2000) {
        let Packet::Data(data) = packet else { unreachable!() };
        let data = DataPacket { payload: Body::filler(bytes), ..data };
        let datagram = Packet::Data(data).write();
        prop_assert_eq!(datagram.head().len(), data.header_bytes(false));
        prop_assert_eq!(all(&datagram), [Ok(Packet::Data(data))]);
    }

    /// Any bytes are packets, and perhaps a problem at the end; a parsed packet is written and read again as
    /// the same.
    #[test]
    fn takes_anything(
        pieces in vec(prop_oneof![
            vec(any::<u8>(), 0..12),
            (any::<u8>(), 0u8..14).prop_map(|(flags, kind)| vec![flags, 0xff, kind]),
            any_packet().prop_map(|packet| packet.write().head().to_vec()),
        ], 0..8),
        filler in 0u32..40,
    ) {
        let datagram = Chunk::with_filler(pieces.concat(), filler);
        let read = all(&datagram);
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        for packet in read.into_iter().flatten() {
            let again = packet.write();
            prop_assert_eq!(all(&again), [Ok(packet)]);
        }
    }

    #[test]
    fn an_acknowledgement_says_what_it_was_told(last in any_sequence(), before in 0u16..2040, mask: u64) {
        let came = |number: SequenceNumber| mask >> (number.get() % 64) & 1 == 1;
        let ack = AckPacket::of(7, last.plus(-i32::from(before)), last, came);
        let expected: Vec<_> =
            (0..=before).rev().map(|back| last.plus(-i32::from(back))).map(|n| (7, n, came(n))).collect();
        prop_assert_eq!(ack.sequences().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn distances_are_what_is_added(number in any_sequence(), packets in -32_639i32..=32_640) {
        prop_assert_eq!(number.plus(packets).ahead_of(number), packets);
    }
}
