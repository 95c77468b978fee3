//! Any bytes, real or with filler behind them, are a packet or a problem; what is read is written and read again as the
//! same. A stream gives the same packets however it is cut; fragments stay within limits; text is a name or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::ndn::{
    Data, Fragmenter, LpPacket, Name, Packet, Problem, Reader, Reassembler, ReassemblyLimits, types,
};

fn read(pieces: impl Iterator<Item = Chunk>) -> Vec<Result<Chunk, Problem>> {
    let mut reader = Reader::default();
    let mut items = Vec::new();
    for piece in pieces {
        reader.push(piece);
        items.extend(reader.by_ref());
    }
    items
}

fn names(name: &Name) {
    assert!(name.len() <= types::MOST_COMPONENTS && name.as_bytes().len() <= types::MOST_NAME_BYTES);
    assert_eq!(name.components().count(), name.len());
    assert_eq!(name.to_string().parse().as_ref(), Ok(name));
    let parent = name.parent();
    assert!(name.starts_with(&parent) && parent <= *name);
    if let Some(last) = name.last() {
        assert_eq!(parent.child(last).as_ref(), Ok(name));
    }
}

fn packet(bytes: &Chunk) {
    // With a digest that is another's it is written with its own.
    if let Ok(data) = Data::read_unchecked(bytes) {
        assert_eq!(Data::read(&data.write()), Ok(data));
    }
    let Ok(packet) = Packet::read(bytes) else { return };
    names(packet.name());
    let written = match &packet {
        Packet::Interest(interest) => interest.write(),
        Packet::Data(data) => data.write(),
    };
    assert_eq!(Packet::read(&written), Ok(packet));
}

fn fragments(packet: &LpPacket, most: usize) {
    let Ok(pieces) = Fragmenter::of(most, 0).cut(packet) else { return };
    let mut reassembler = Reassembler::default();
    let whole: Vec<_> = pieces
        .into_iter()
        .rev()
        .inspect(|piece| assert!(piece.len() <= most))
        .filter_map(|piece| reassembler.push(Instant::ZERO, LpPacket::read(piece).expect("ours")))
        .collect();
    assert_eq!(whole, [LpPacket { sequence: None, frag_index: None, frag_count: None, ..packet.clone() }]);
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the rest is cut, or how much filler comes behind it.
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let whole = Chunk::bytes(bytes);
    let items = read(std::iter::once(whole.clone()));
    assert_eq!(read(bytes.chunks(usize::from(cut) + 1).map(Chunk::bytes)), items);
    assert!(items.iter().rev().skip(1).all(Result::is_ok));
    packet(&whole);
    packet(&Chunk::with_filler(bytes, cut.into()));

    let limits = ReassemblyLimits { packets: 3, bytes: 10_000, age: Duration::from_millis(10) };
    let mut reassembler = Reassembler::of(limits);
    let mut now = Instant::ZERO;
    for item in items.into_iter().flatten() {
        packet(&item);
        let Ok(read) = LpPacket::read(item) else { continue };
        assert_eq!(LpPacket::read(read.write()).as_ref(), Ok(&read));
        if let Some(fragment) = &read.fragment {
            packet(fragment);
        }
        if !read.is_fragmented() {
            fragments(&read, usize::from(cut));
        }
        now += Duration::from_millis(1);
        let _ = reassembler.push(now, read);
        assert!(reassembler.waiting() <= limits.packets && reassembler.bytes() <= limits.bytes);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(name) = text.parse()
    {
        names(&name);
    }
});
