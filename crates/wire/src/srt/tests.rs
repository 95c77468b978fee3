use proptest::collection::vec;
use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::*;

fn packet(content: PacketContent<'_>) -> Packet<'_> {
    Packet { timestamp_us: 0x0102_0304, socket: 0x0a0b_0c0d, content }
}

fn number(number: u32) -> SequenceNumber {
    SequenceNumber::new(number).expect("31 bits")
}

fn range(first: u32, last: u32) -> LossRange {
    LossRange { first: number(first), last: number(last) }
}

/// Bytes as the draft's figures have them.
fn is_written_as(content: PacketContent<'_>, words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let packet = packet(content);
    assert_eq!(packet.write(), Chunk::bytes(bytes.clone()));
    assert_eq!(Packet::parse(&bytes[..]), Ok(packet));
}

fn problem(words: &[u32]) -> Problem {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    Packet::parse(&bytes[..]).expect_err("a problem")
}

const HEAD: [u32; 2] = [0x0102_0304, 0x0a0b_0c0d];

#[test]
fn a_data_packet_is_that_of_the_figure() {
    let data = Data {
        sequence: number(0x7fff_ffff),
        in_order: true,
        key: 2,
        is_retransmitted: true,
        message: 0x03ab_cdef,
        payload: (&b"abcd"[..]).into(),
        ..Data::default()
    };
    is_written_as(
        PacketContent::Data(data),
        &[0x7fff_ffff, 0xf400_0000 | 0x03ab_cdef, HEAD[0], HEAD[1], 0x6162_6364],
    );
    let first = Data { position: Position::First, ..Data::default() };
    is_written_as(PacketContent::Data(first), &[0, 0b10 << 30, HEAD[0], HEAD[1]]);
}

#[test]
fn a_payload_may_be_filler_and_a_header_may_not() {
    let data = Data { payload: Body::filler(1316), ..Data::default() };
    let written = packet(PacketContent::Data(data)).write();
    assert_eq!((written.head().len(), written.len()), (HEADER_BYTES, HEADER_BYTES + 1316));
    assert_eq!(Packet::parse(&written), Ok(packet(PacketContent::Data(data))));
    let cut = Chunk::with_filler(&written.head()[..10], 40);
    assert_eq!(Packet::parse(&cut), Err(Problem { at: 8, fault: Fault::Filler }));
}

#[test]
fn acknowledgements_have_three_lengths() {
    let light = AckReport { next: number(7), ..AckReport::default() };
    is_written_as(PacketContent::Ack { number: 0, ack: light }, &[0x8002_0000, 0, HEAD[0], HEAD[1], 7]);
    let small = AckReport { round_trip_us: Some((100_000, 50_000)), free_packets: 8192, ..light };
    let words = [0x8002_0000, 0, HEAD[0], HEAD[1], 7, 100_000, 50_000, 8192];
    is_written_as(PacketContent::Ack { number: 0, ack: small }, &words);
    let full = AckReport { rates: Some([1, 2, 3]), ..small };
    let words = [0x8002_0000, 9, HEAD[0], HEAD[1], 7, 100_000, 50_000, 8192, 1, 2, 3];
    is_written_as(PacketContent::Ack { number: 9, ack: full }, &words);
}

#[test]
fn losses_are_single_or_ranges() {
    let losses = vec![range(5, 5), range(8, 11), range(0x7fff_fffe, 1)];
    let words = [0x8003_0000, 0, HEAD[0], HEAD[1], 5, 0x8000_0008, 11, 0xffff_fffe, 1];
    is_written_as(PacketContent::Nak(losses.clone()), &words);
    assert_eq!(losses.iter().map(LossRange::packets).sum::<u32>(), 1 + 4 + 4);
    let fault = |words: &[u32]| problem(words).fault;
    assert_eq!(fault(&[0x8003_0000, 0, 0, 0, 0x8000_0008, 7]), Fault::Range);
    assert_eq!(fault(&[0x8003_0000, 0, 0, 0, 0x8000_0008, 0x8000_0009]), Fault::Sequence);
    assert_eq!(fault(&[0x8003_0000, 0, 0, 0, 0x8000_0008]), Fault::Truncated { missing: 4 });
    assert_eq!(fault(&[0x8003_0000, 0, 0, 0]), Fault::NoLoss);
}

#[test]
fn short_packets_are_those_of_the_figures() {
    is_written_as(PacketContent::KeepAlive, &[0x8001_0000, 0, HEAD[0], HEAD[1], 0]);
    is_written_as(PacketContent::Shutdown, &[0x8005_0000, 0, HEAD[0], HEAD[1], 0]);
    is_written_as(PacketContent::AckAck { number: 3 }, &[0x8006_0000, 3, HEAD[0], HEAD[1], 0]);
    let request = DropRequest { message: 4, packets: range(5, 6) };
    is_written_as(PacketContent::DropRequest(request), &[0x8007_0000, 4, HEAD[0], HEAD[1], 5, 6]);
    is_written_as(PacketContent::PeerError { code: 4000 }, &[0x8008_0000, 4000, HEAD[0], HEAD[1], 0]);
    // The draft's own form, without a word behind the header, is read too.
    let bare: Vec<u8> =
        [0x8006_0000, 3, HEAD[0], HEAD[1]].iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    assert_eq!(Packet::parse(&bare[..]), Ok(packet(PacketContent::AckAck { number: 3 })));
}

#[test]
fn a_conclusion_has_its_extensions() {
    let latencies = Latencies { version: 0x0001_0401, flags: 0xbf, receiver_ms: 120, sender_ms: 80 };
    let handshake = Handshake {
        version: 5,
        encryption: 0,
        extension: extension_fields::HS | extension_fields::CONFIG,
        initial: number(42),
        mtu: 1500,
        flow_window: 8192,
        kind: HandshakeKind::Conclusion,
        socket: 77,
        cookie: 0xcafe,
        address: [127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        extensions: vec![Extension::Request(latencies), Extension::Other { kind: 5, contents: b"eman" }],
    };
    assert_eq!((handshake.latencies(), handshake.other(5)), (Some(latencies), Some(&b"eman"[..])));
    #[rustfmt::skip]
    let words = [
        0x8000_0000, 0, HEAD[0], HEAD[1],
        5, 5, 42, 1500, 8192, 0xffff_ffff, 77, 0xcafe, 0x7f00_0001, 0, 0, 0,
        0x0001_0003, 0x0001_0401, 0xbf, 120 << 16 | 80,
        0x0005_0001, 0x656d_616e,
    ];
    is_written_as(PacketContent::Handshake(handshake), &words);
    assert_eq!(problem(&words[..words.len() - 1]).fault, Fault::Truncated { missing: 4 });
    let refused = Handshake { kind: HandshakeKind::Rejection(1008), ..induction() };
    let written = packet(PacketContent::Handshake(refused.clone())).write();
    assert_eq!(Packet::parse(&written), Ok(packet(PacketContent::Handshake(refused))));
}

fn induction() -> Handshake<'static> {
    Handshake {
        version: 4,
        encryption: 0,
        extension: 2,
        initial: number(0),
        mtu: 1500,
        flow_window: 8192,
        kind: HandshakeKind::Induction,
        socket: 1,
        cookie: 0,
        address: [0; 16],
        extensions: Vec::new(),
    }
}

#[test]
fn a_cut_packet_says_where() {
    let whole = packet(PacketContent::Handshake(induction())).write();
    for length in 0..whole.len() {
        let problem = Packet::parse(&whole.head()[..length]).expect_err("cut");
        assert!(problem.at <= length as u64 && matches!(problem.fault, Fault::Truncated { .. }));
        assert!(problem.to_string().starts_with("at byte "), "{problem}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_packet_or_a_problem(bytes in vec(any::<u8>(), 0..200), filler in 0u32..40) {
        let datagram = Chunk::with_filler(bytes, filler);
        if let Ok(packet) = Packet::parse(&datagram) {
            let written = packet.write();
            prop_assert_eq!(Packet::parse(&written), Ok(packet));
        }
    }

    #[test]
    fn any_control_packet_is_read_back(kind in 0u32..10, words in vec(any::<u32>(), 3..30)) {
        let mut bytes: Vec<u8> = (1 << 31 | kind << 16).to_be_bytes().to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        if let Ok(packet) = Packet::parse(&bytes[..]) {
            let written = packet.write();
            prop_assert_eq!(Packet::parse(&written), Ok(packet));
        }
    }

    #[test]
    fn data_is_read_back(
        sequence in 0..SequenceNumber::COUNT, message in 0u32..1 << 26, key in 0u8..4,
        in_order in any::<bool>(), is_retransmitted in any::<bool>(), payload in vec(any::<u8>(), 0..64), filler in 0u32..1400,
    ) {
        let chunk = Chunk::with_filler(payload, filler);
        let data = Data {
            sequence: number(sequence), message, key, in_order, is_retransmitted, position: Position::Last,
            payload: (&chunk).into(),
        };
        let written = packet(PacketContent::Data(data)).write();
        prop_assert_eq!(Packet::parse(&written), Ok(packet(PacketContent::Data(data))));
    }

    #[test]
    fn losses_are_read_back(losses in vec((any::<u32>(), 0u32..1000), 1..50)) {
        let losses: Vec<LossRange> = losses.into_iter().map(|(first, more)| LossRange {
            first: SequenceNumber::of(first.into()),
            last: SequenceNumber::of(u64::from(first) + u64::from(more)),
        }).collect();
        let written = packet(PacketContent::Nak(losses.clone())).write();
        prop_assert_eq!(Packet::parse(&written), Ok(packet(PacketContent::Nak(losses))));
    }

    #[test]
    fn a_count_is_found_by_its_number(count in 1u64 << 32..u64::MAX / 2, off in -(1i64 << 29)..1i64 << 29) {
        let near = count.checked_add_signed(off).unwrap();
        prop_assert_eq!(SequenceNumber::of(count).near(near), count);
        prop_assert_eq!(i64::from(SequenceNumber::of(near).to(SequenceNumber::of(count))), -off);
    }
}
