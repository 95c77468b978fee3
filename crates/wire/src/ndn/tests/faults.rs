use super::*;
use crate::ndn::tlv::{Elements, put_element};
use crate::ndn::types::*;

fn element(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_element(&mut bytes, kind, value);
    bytes
}

fn of(kind: u32, parts: &[&[u8]]) -> Chunk {
    Chunk::bytes(element(kind, &parts.concat()))
}

fn interest(parts: &[&[u8]]) -> Result<Interest, Fault> {
    Interest::read(&of(INTEREST, parts)).map_err(|problem| problem.fault)
}

fn data(parts: &[&[u8]]) -> Result<Data, Fault> {
    Data::read_unchecked(&of(DATA, parts)).map_err(|problem| problem.fault)
}

fn lp(parts: &[&[u8]]) -> Result<LpPacket, Fault> {
    LpPacket::read(of(LP_PACKET, parts)).map_err(|problem| problem.fault)
}

/// `/a`
const NAME_A: &[u8] = &[7, 3, 8, 1, b'a'];
const NONCE_1: &[u8] = &[10, 4, 0, 0, 0, 1];
const INFO: &[u8] = &[22, 3, 27, 1, 0];

fn value() -> Vec<u8> {
    element(SIGNATURE_VALUE, &[0; 32])
}

#[test]
fn numbers_are_in_their_shortest_form() {
    let fault = |bytes: &[u8]| Elements::of_bytes(bytes).next().map_err(|problem| problem.fault);
    for bytes in [&[253, 0, 252, 0][..], &[254, 0, 0, 255, 255, 0], &[255, 0, 0, 0, 0, 255, 255, 255, 255, 0]]
    {
        assert_eq!(fault(bytes), Err(Fault::NotShortest));
    }
    assert_eq!(fault(&[8, 253, 0, 0]), Err(Fault::NotShortest));
    assert_eq!(fault(&[0, 0]), Err(Fault::TypeRange));
    assert_eq!(fault(&[255, 0, 0, 0, 1, 0, 0, 0, 0, 0]), Err(Fault::TypeRange));
    assert!(fault(&[254, 255, 255, 255, 255, 0]).is_ok());
    assert_eq!(fault(&[8]), Err(Fault::Truncated { missing: 1 }));
    assert_eq!(fault(&[253, 1]), Err(Fault::Truncated { missing: 1 }));
    assert_eq!(fault(&[8, 3, 0]), Err(Fault::Truncated { missing: 2 }));
    let endless = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255];
    assert_eq!(fault(&endless), Err(Fault::Truncated { missing: u64::MAX }));
    assert_eq!(Elements::of_bytes(&[]).next(), Ok(None));
}

#[test]
fn an_interest_is_in_order() {
    let plain = Interest { nonce: Some(1), ..Interest::of(name("/a")) };
    assert_eq!(interest(&[NAME_A, NONCE_1]), Ok(plain.clone()));
    assert_eq!(interest(&[]), Err(Fault::Missing { expected: NAME }));
    assert_eq!(interest(&[NONCE_1, NAME_A]), Err(Fault::Missing { expected: NAME }));
    assert_eq!(interest(&[&[7, 0]]), Err(Fault::EmptyName));
    assert_eq!(interest(&[NAME_A, NONCE_1, NONCE_1]), Err(Fault::Critical(NONCE)));
    assert_eq!(interest(&[NAME_A, NONCE_1, &[33, 0]]), Err(Fault::Critical(CAN_BE_PREFIX)));
    // Unknown types: critical if odd or up to 31; the rest is passed over, but not before the name.
    for critical in [31, 99, 127, 1001] {
        assert_eq!(interest(&[NAME_A, &element(critical, b""), NONCE_1]), Err(Fault::Critical(critical)));
    }
    for other in [32, 128, 1000, 70_000] {
        assert_eq!(
            interest(&[NAME_A, &element(other, b"x"), NONCE_1, &element(other, b"")]),
            Ok(plain.clone())
        );
    }
    assert_eq!(interest(&[&element(128, b""), NAME_A]), Err(Fault::Missing { expected: NAME }));
    // HopLimit's type is not critical: out of order it is passed over.
    assert_eq!(interest(&[NAME_A, &[12, 1, 9, 34, 1, 9, 34, 1, 8]]).map(|read| read.hop_limit), Ok(Some(9)));
}

#[test]
fn lengths_are_those_of_the_specification() {
    fn length<T>(element: u32, bytes: u64) -> Result<T, Fault> {
        Err(Fault::Length { element, bytes })
    }
    assert_eq!(interest(&[NAME_A, &[33, 1, 0]]), length(CAN_BE_PREFIX, 1));
    assert_eq!(interest(&[NAME_A, &[18, 1, 0]]), length(MUST_BE_FRESH, 1));
    assert_eq!(interest(&[NAME_A, &[10, 3, 0, 0, 0]]), length(NONCE, 3));
    assert_eq!(interest(&[NAME_A, &[12, 3, 0, 0, 0]]), length(INTEREST_LIFETIME, 3));
    assert_eq!(interest(&[NAME_A, &[34, 2, 0, 0]]), length(HOP_LIMIT, 2));
    assert_eq!(interest(&[&element(NAME, &[1, 1, 0])]), length(1, 1));
    assert_eq!(interest(&[&element(NAME, &[254, 0, 1, 0, 0, 0])]), Err(Fault::TypeRange));
    assert_eq!(data(&[NAME_A, &[20, 2, 24, 0]]), length(CONTENT_TYPE, 0));
    assert_eq!(data(&[NAME_A, &[20, 2, 26, 0]]), length(FINAL_BLOCK_ID, 0));
    assert_eq!(data(&[NAME_A, &[20, 6, 26, 4, 8, 0, 8, 0]]), length(FINAL_BLOCK_ID, 4));
    assert_eq!(data(&[NAME_A, INFO, &[23, 1, 0]]), length(SIGNATURE_VALUE, 1));
    assert_eq!(lp(&[&[81, 4, 0, 0, 0, 0]]), length(SEQUENCE, 4));
    assert_eq!(lp(&[&[98, 0]]), length(PIT_TOKEN, 0));
    assert_eq!(lp(&[&element(PIT_TOKEN, &[0; 33])]), length(PIT_TOKEN, 33));
}

#[test]
fn a_data_is_in_order() {
    let value = value();
    assert!(data(&[NAME_A, INFO, &value]).is_ok_and(|read| read.content.is_empty()));
    assert!(
        data(&[NAME_A, &[20, 0, 21, 1, 9], &element(128, b""), INFO, &value, &element(128, b"")]).is_ok()
    );
    assert_eq!(data(&[NAME_A, &[21, 0, 20, 0], INFO, &value]), Err(Fault::Critical(META_INFO)));
    assert_eq!(data(&[NAME_A, INFO, &value, &value]), Err(Fault::Critical(SIGNATURE_VALUE)));
    assert_eq!(data(&[NAME_A, &value]), Err(Fault::Missing { expected: SIGNATURE_INFO }));
    assert_eq!(data(&[NAME_A, INFO]), Err(Fault::Missing { expected: SIGNATURE_VALUE }));
    assert_eq!(data(&[NAME_A]), Err(Fault::Missing { expected: SIGNATURE_INFO }));
    assert_eq!(data(&[NAME_A, &[22, 0], &value]), Err(Fault::Missing { expected: SIGNATURE_TYPE }));
    assert_eq!(data(&[NAME_A, &[22, 4, 27, 1, 0, 8], &value]), Err(Fault::Truncated { missing: 1 }));
}

#[test]
fn filler_stands_for_no_header() {
    let cut =
        |real: &[u8], filler| Data::read(&Chunk::with_filler(real, filler)).map_err(|problem| problem.fault);
    assert_eq!(cut(&[], 40), Err(Fault::Filler));
    assert_eq!(cut(&[6, 40], 40), Err(Fault::Filler));
    assert_eq!(cut(&[6, 40, 7], 39), Err(Fault::Filler));
    assert_eq!(cut(&[6, 40, 7, 3, 8, 1, b'a'], 35), Err(Fault::Filler));
    assert_eq!(cut(&[6, 40, 7, 3, 8, 1, b'a', 21], 34), Err(Fault::Filler));
    let absent = cut(&[6, 40, 7, 3, 8, 1, b'a', 21, 3, b'x'], 32).expect("a payload of three bytes");
    assert_eq!(absent.content, Chunk::with_filler(*b"x", 2));
    assert_eq!(absent.signature, Signature::Absent { bytes: 30 });
    let asked = Interest::read(&Chunk::with_filler([5, 9, 7, 3, 8, 1, b'a'], 4));
    assert_eq!(asked.map_err(|problem| problem.fault), Err(Fault::Filler));
    let token = LpPacket::read(Chunk::with_filler([100, 4, 98], 3));
    assert_eq!(token.map_err(|problem| problem.fault), Err(Fault::Filler));
}

#[test]
fn header_fields_are_known_or_may_be_ignored() {
    let (index, mark) = (&[82, 1, 0][..], &[253, 3, 64, 1, 1][..]);
    assert_eq!(lp(&[index, mark]).map(|read| read.congestion_mark), Ok(Some(1)));
    assert_eq!(lp(&[mark, index]), Err(Fault::HeaderField(FRAG_INDEX)));
    assert_eq!(lp(&[mark, mark]), Err(Fault::HeaderField(CONGESTION_MARK)));
    for ignored in [804, 844, 956] {
        assert!(lp(&[&element(ignored, b"x"), &element(ignored, b"x"), mark]).is_ok());
    }
    for refused in [84, 96, 128, 796, 801, 802, 957, 960, 1000] {
        assert_eq!(lp(&[&element(refused, b"")]), Err(Fault::HeaderField(refused)));
    }
    assert_eq!(lp(&[&[80, 0], mark]), Err(Fault::HeaderField(CONGESTION_MARK)));
    assert_eq!(lp(&[&[80, 0], &element(844, b"")]), Err(Fault::HeaderField(844)));
    assert_eq!(
        lp(&[&element(NACK, &element(NACK_REASON, &[7]))]).map(|read| read.nack),
        Ok(Some(NackReason::Other(7)))
    );
    assert_eq!(lp(&[&element(NACK, b"")]).map(|read| read.nack), Ok(Some(NackReason::Unspecified)));
    assert_eq!(lp(&[&element(NACK, &[8, 0])]), Err(Fault::HeaderField(8)));
    assert_eq!(lp(&[&[82, 1, 2, 83, 1, 2]]), Err(Fault::Fragment { index: 2, count: 2 }));
    assert_eq!(lp(&[&[82, 1, 0, 83, 1, 2]]), Err(Fault::Fragment { index: 0, count: 2 }), "no Sequence");
    assert_eq!(lp(&[&[83, 1, 0]]), Err(Fault::Fragment { index: 0, count: 0 }));
    let many = [&element(SEQUENCE, &[0; 8])[..], &[83, 2, 1, 1]].concat();
    assert_eq!(lp(&[&many]), Err(Fault::Fragment { index: 0, count: 257 }));
}

#[test]
fn a_packet_is_all_that_there_is() {
    let packet = Interest::of(name("/a")).write();
    let longer = Chunk::bytes([packet.head(), &[0]].concat());
    for fault in [
        Interest::read(&longer).map(|_| ()),
        LpPacket::read(longer.clone()).map(|_| ()),
        Packet::read(&longer).map(|_| ()),
    ] {
        assert_eq!(fault, Err(Problem { at: packet.len() as u64, fault: Fault::Trailing(1) }));
    }
    let huge = Data::of(name("/a"), Chunk::filler(8800)).write();
    let limit = Err(Fault::TooLong { bytes: huge.len() as u64, limit: 8800 });
    assert_eq!(Data::read(&huge).map_err(|problem| problem.fault), limit);
    assert_eq!(
        Interest::read(&of(DATA, &[])).map_err(|p| p.fault),
        Err(Fault::Missing { expected: INTEREST })
    );
    assert_eq!(Packet::read(&of(LP_PACKET, &[])).map_err(|p| p.fault), Err(Fault::PacketType(LP_PACKET)));
    assert_eq!(LpPacket::read(of(7, &[])).map_err(|p| p.fault), Err(Fault::PacketType(7)));
    assert_eq!(Packet::read(&Chunk::default()).map_err(|p| p.fault), Err(Fault::Truncated { missing: 1 }));
}

#[test]
fn a_problem_says_where_and_what() {
    let problem = Interest::read(&of(INTEREST, &[NAME_A, &[99, 0]])).expect_err("99 is critical");
    let text = "at byte 7: an element of the critical type 99, which is unknown, repeated or out of order";
    assert_eq!(problem.to_string(), text);
}

/// Reads it as every possible kind, and reads the result again after it is written.
fn take(packet: &Chunk) -> Result<(), TestCaseError> {
    if let Ok(read) = Packet::read(packet) {
        let written = match &read {
            Packet::Interest(interest) => interest.write(),
            Packet::Data(data) => data.write(),
        };
        prop_assert_eq!(Packet::read(&written), Ok(read));
    }
    if let Ok(read) = LpPacket::read(packet.clone()) {
        prop_assert_eq!(LpPacket::read(read.write()), Ok(read));
    }
    Ok(())
}

proptest! {
    /// No packet is a part of one.
    #[test]
    fn what_is_cut_short_is_refused(packet in any_lp(), at: prop::sample::Index) {
        let mut written = packet.write();
        let _ = written.split_off(at.index(written.len()));
        prop_assert!(LpPacket::read(written.clone()).is_err());
        prop_assert!(Packet::read(&written).is_err());
    }

    #[test]
    fn any_packet_is_taken(
        packet in any_lp(), flips in vec((any::<prop::sample::Index>(), 1u8..), 1..4),
        mut bytes in vec(any::<u8>(), 0..100), filler in 0u32..100,
    ) {
        for whole in [packet.write(), packet.fragment.unwrap_or_default()] {
            let mut damaged = whole.head().to_vec();
            for (at, flip) in &flips {
                let at = at.index(damaged.len());
                damaged[at] ^= flip;
            }
            take(&Chunk::with_filler(damaged, whole.filler_bytes() as u32))?;
        }
        if let [first, second, ..] = &mut bytes[..] {
            (*first, *second) = ([5, 6, 100, *first][usize::from(*first % 4)], 98 + filler as u8);
        }
        bytes.resize(100, 0);
        take(&Chunk::with_filler(bytes, filler))?;
    }
}
