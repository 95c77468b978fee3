//! A connection of any bytes, whole and cut up, gives the same messages and media; what is read is written and read again as
//! the same. So are datagrams, and payloads of RTP with ASF packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::Body;
use streamgauge_wire::mms::{
    DataPacket, MOST_RESENDS, MmsItem, Problem, Reader, ResendRequest, TcpHeader, parse, write,
};
use streamgauge_wire::rtp_asf::{self, RtpPacketPair};

fn read(mut reader: Reader, pieces: impl Iterator<Item = Chunk>) -> Vec<Result<MmsItem, Problem>> {
    let mut items = Vec::new();
    for piece in pieces {
        reader.push(piece);
        items.extend(reader.by_ref());
    }
    items
}

fn connection(reader: &Reader, cut: u8, bytes: &[u8]) {
    let items = read(reader.clone(), std::iter::once(Chunk::bytes(bytes)));
    assert_eq!(read(reader.clone(), bytes.chunks(usize::from(cut) + 1).map(Chunk::bytes)), items);
    assert!(items.iter().rev().skip(1).all(Result::is_ok), "a problem is the last");
    for item in items.iter().flatten() {
        match item {
            MmsItem::Message(message) => {
                let header = TcpHeader { sequence: cut.into(), time_sent_ms: 7 };
                let again = write(header, std::slice::from_ref(message));
                assert_eq!(parse(&again), Ok((header, vec![message.clone()])));
            }
            MmsItem::Data(packet) => {
                let data = DataPacket::parse(packet).expect("the reader looked at its length");
                assert_eq!(data.write(), *packet);
            }
        }
    }
}

fn payload(payload: &Chunk) {
    let units = rtp_asf::parse(payload);
    let length_of = units.length_of();
    let read: Vec<_> = units.collect();
    assert!(read.iter().rev().skip(1).all(Result::is_ok), "a fault is the last");
    assert!(read.len() <= payload.len() / 4 + 1);
    if let Ok(units) = read.into_iter().collect::<Result<Vec<_>, _>>() {
        // Reserved bits are left out. Filler before another packet is zeros then, which may be a header by the other length.
        let again = rtp_asf::write(&units, length_of);
        assert_eq!(again.len(), payload.len());
        let read = rtp_asf::parse(&again);
        assert!(read.length_of() != length_of || read.map(Result::unwrap).eq(units));
    }
    if let Ok(pair) = RtpPacketPair::parse(payload) {
        assert_eq!(RtpPacketPair::parse(&pair.write()), Ok(pair));
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the rest is cut, and how much filler is behind a payload.
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    connection(&Reader::of_requests(), cut, bytes);
    connection(&Reader::of_responses(), cut, bytes);
    if let Ok(data) = DataPacket::parse(Body::from(bytes)) {
        assert_eq!(data.write(), Chunk::bytes(bytes));
    }
    if let Ok(resend) = ResendRequest::parse(bytes) {
        assert!((1..=MOST_RESENDS).contains(&resend.sequences.len()));
        assert!(bytes.starts_with(&resend.write()));
    }
    payload(&Chunk::bytes(bytes));
    payload(&Chunk::with_filler(bytes, cut.into()));
});
