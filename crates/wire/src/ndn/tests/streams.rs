use super::*;
use crate::ndn::types::MOST_PACKET_BYTES;

type Read = Vec<Result<Chunk, Problem>>;

fn read(pieces: impl IntoIterator<Item = Chunk>) -> (Read, bool) {
    let mut reader = Reader::default();
    let mut items = Vec::new();
    for piece in pieces {
        reader.push(piece);
        items.extend(reader.by_ref());
    }
    (items, reader.is_between_packets())
}

/// The chunks, each cut into pieces of these lengths in turn.
fn cut(chunks: &[Chunk], lengths: &[usize]) -> Vec<Chunk> {
    let mut lengths = lengths.iter().cycle();
    let mut pieces = Vec::new();
    for chunk in chunks {
        let mut rest = chunk.clone();
        while !rest.is_empty() {
            let after = rest.split_off(*lengths.next().expect("they come round"));
            pieces.push(std::mem::replace(&mut rest, after));
        }
    }
    pieces
}

fn fault(bytes: &[u8]) -> Option<Problem> {
    let (items, _) = read([Chunk::bytes(bytes)]);
    items.into_iter().find_map(Result::err)
}

#[test]
fn packets_follow_each_other() {
    let packets = [
        Interest::of(name("/a")).write(),
        LpPacket::nack(NackReason::NoRoute, Interest::of(name("/b")).write()).write(),
    ];
    let (items, is_between) = read([Chunk::bytes([packets[0].head(), packets[1].head()].concat())]);
    assert_eq!((items, is_between), (packets.iter().cloned().map(Ok).collect(), true));
    let mut half = packets[0].clone();
    let _ = half.split_off(5);
    assert_eq!(read([half]), (Vec::new(), false));
}

#[test]
fn a_wrong_stream_ends() {
    let first = Interest::of(name("/a")).write();
    let at = first.len() as u64;
    let behind = |bytes: &[u8]| fault(&[first.head(), bytes].concat());
    let problem = |fault| Some(Problem { at, fault });
    assert_eq!(behind(b"\x07\x00"), problem(Fault::PacketType(7)));
    assert_eq!(behind(b"\x06\xfd\x00\x10"), problem(Fault::NotShortest));
    assert_eq!(behind(b"\x06\xfe\x00\x00\xff\xff"), problem(Fault::NotShortest));
    let limit = MOST_PACKET_BYTES as u64;
    assert_eq!(behind(b"\x06\xfd\x22\x5d"), problem(Fault::TooLong { bytes: 8801, limit }));
    assert_eq!(behind(b"\x06\xfd\x22\x5c"), None);
    assert_eq!(behind(b"\x06\xfe\x00\x01\x00\x00"), problem(Fault::TooLong { bytes: 65542, limit }));
    assert_eq!(behind(b"\x06\xff"), problem(Fault::TooLong { bytes: u64::MAX, limit }));

    let mut reader = Reader::with_limit(100);
    reader.push(Chunk::bytes(*b"\x06\x63"));
    assert!(reader.next().is_some_and(|item| item.is_err()));
    // No more bytes arrive, and no more are kept.
    reader.push(first);
    assert!(reader.next().is_none());
}

#[test]
fn filler_ends_a_packet_and_begins_none() {
    let (items, _) = read([Chunk::filler(5)]);
    assert_eq!(items, [Err(Problem { at: 0, fault: Fault::Filler })]);
    let (items, _) = read([Chunk::with_filler(*b"\x06\x05a", 2), Chunk::bytes(*b"bc")]);
    assert_eq!(items, [Err(Problem { at: 0, fault: Fault::RealAfterFiller })]);
    let (items, _) = read([Chunk::with_filler(*b"\x06\x05a", 2), Chunk::filler(2)]);
    assert_eq!(items, [Ok(Chunk::with_filler(*b"\x06\x05a", 4))]);
}

/// As a simulated TCP's segment has it: filler with real bytes behind it is zeros.
#[test]
fn zeros_that_were_filler_are_filler_again() {
    let (items, _) = read([Chunk::with_filler(*b"\x06\x05a", 2), Chunk::bytes(*b"\0\0\x05\x00")]);
    assert_eq!(items, [Ok(Chunk::with_filler(*b"\x06\x05a", 4)), Ok(Chunk::bytes(*b"\x05\x00"))]);

    // The last byte of the content's length is zero too.
    let written = Data::of(name("/a"), Chunk::filler(256)).write();
    let mut zeros = written.head().to_vec();
    zeros.resize(written.len(), 0);
    assert!(Data::read(&Chunk::bytes(zeros.clone())).is_err(), "on a socket it is none");
    let read = Data::read(&refilled(Chunk::bytes(zeros))).expect("it is one");
    assert_eq!((read.content, read.signature), (Chunk::bytes([0; 256]), Signature::ZEROS));
    assert_eq!(refilled(written.clone()), written);
    let signed = Data::of(name("/a"), Chunk::bytes([0; 60])).write();
    assert_eq!(refilled(signed.clone()), signed);
}

proptest! {
    #[test]
    fn cuts_do_not_matter(packets in vec(any_lp(), 0..5), lengths in vec(1usize..400, 1..6)) {
        let written: Vec<Chunk> = packets.iter().map(LpPacket::write).collect();
        let expected: Read = written.iter().cloned().map(Ok).collect();
        prop_assert_eq!(read(written.clone()), (expected.clone(), true));
        prop_assert_eq!(read(cut(&written, &lengths)), (expected, true));
    }

    #[test]
    fn any_bytes_are_taken(mut bytes in vec(any::<u8>(), 0..200), lengths in vec(1usize..20, 1..4)) {
        if let Some(first) = bytes.first_mut() {
            *first = [5, 6, 100, *first][usize::from(*first % 4)];
        }
        let whole = Chunk::bytes(bytes);
        let items = read([whole.clone()]);
        prop_assert!(items.0.iter().rev().skip(1).all(Result::is_ok));
        prop_assert_eq!(read(cut(&[whole], &lengths)), items);
    }
}
