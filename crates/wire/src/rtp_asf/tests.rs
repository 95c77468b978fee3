use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn all(payload: &Chunk) -> Vec<Result<AsfUnit<'_>, Fault>> {
    parse(payload).collect()
}

/// A packet that those of one test share.
const PACKET: &[u8] = b"an ASF data packet, or some of it";

fn any_body(least: usize) -> impl Strategy<Value = Body<'static>> {
    (least..PACKET.len()).prop_map(|bytes| PACKET[..bytes].into())
}

fn any_packet(least: usize) -> impl Strategy<Value = AsfUnit<'static>> {
    let optional = (option::of(any::<i32>()), option::of(any::<u32>()), option::of(any::<u32>()));
    (any::<bool>(), optional, any_body(least)).prop_map(|(is_key, optional, packet)| {
        let (relative_ms, duration_ms, location) = optional;
        AsfUnit { relative_ms, duration_ms, location, ..AsfUnit::packet(is_key, packet) }
    })
}

fn any_fragment() -> impl Strategy<Value = AsfUnit<'static>> {
    (any_packet(0), 0..1u32 << 24, any_body(0)).prop_map(|(unit, offset, bytes)| AsfUnit {
        content: UnitContent::Fragment { offset, bytes },
        ..unit
    })
}

/// [MS-RTSP] section 4.1: 12 B of RTP's header and 4 of this one's before an ASF packet of 1,456 B fill an Ethernet frame.
#[test]
fn a_packet_of_the_usual_size() {
    let unit = AsfUnit::packet(true, Body::filler(12 + 1_444));
    let payload = write(&[unit], LengthOf::Packet);
    assert_eq!(20 + 8 + 12 + payload.len(), 1_500);
    assert_eq!(payload.head(), b"\xc0\x00\x05\xb0");
    assert_eq!(write(&[unit], LengthOf::HeaderAndPacket).head(), b"\xc0\x00\x05\xb4");
    let whole = AsfUnit { relative_ms: Some(-1), duration_ms: Some(2), location: Some(3), ..unit };
    assert_eq!((unit.header_bytes(), whole.header_bytes()), (4, 16));
    let header = b"\xf8\x00\x05\xb0\xff\xff\xff\xff\0\0\0\x02\0\0\0\x03";
    assert_eq!(write(&[whole], LengthOf::Packet).head(), header);
    let content = UnitContent::Fragment { offset: 0x1_0203, bytes: Body::from(&b"x"[..]) };
    assert_eq!(write(&[AsfUnit { content, ..unit }], LengthOf::Packet), Chunk::bytes(*b"\x80\x01\x02\x03x"));
}

/// [MS-RTSP] section 2.2.3.2.
#[test]
fn a_packet_pair() {
    assert_eq!(THREE_RANDOM_BYTES.map(place_of_three), [0, 1, 2]);
    assert_eq!(TWO_RANDOM_BYTES.map(place_of_two), [Some(0), Some(1)]);
    assert_eq!((place_of_two(1_454), place_of_three(1_283)), (None, 0));
    assert!(THREE_RANDOM_BYTES.iter().all(|bytes| *bytes >= LEAST_RANDOM_BYTES));
    let first = RtpPacketPair { is_first: true, random: Body::filler(1_454) };
    assert_eq!(first.write(), Chunk::with_filler(*b"\xc0\x00\x05\xae", 1_454));
    let third = RtpPacketPair { is_first: false, random: Body::filler(1_456) };
    let written = third.write();
    assert_eq!(RtpPacketPair::parse(&written), Ok(third));
    assert_eq!(20 + 8 + 12 + written.len(), 1_500);
    let cut = Chunk::bytes(&written.head()[..3]);
    assert_eq!(RtpPacketPair::parse(&cut), Err(Fault::Truncated));
    let fragment = Fault::Length { length: 0, left: 5 };
    assert_eq!(RtpPacketPair::parse(&b"\0\0\0\0x"[..]), Err(fragment));
    let left_over = Fault::Length { length: 1, left: 6 };
    assert_eq!(RtpPacketPair::parse(&b"\x40\0\0\x01xx"[..]), Err(left_over));
}

#[test]
fn what_is_wrong_is_said() {
    let last = |bytes: &[u8]| all(&Chunk::bytes(bytes)).pop().expect("something").expect_err("a fault");
    assert_eq!(last(b"\xc0\0\0"), Fault::Truncated);
    assert_eq!(last(b"\x60\0\0\x04\0"), Fault::Truncated);
    assert_eq!(last(b"\x40\0\0\x09abc"), Fault::Length { length: 9, left: 7 });
    let counted = Chunk::with_filler(*b"\x60\0\0\x04", 8);
    assert_eq!(all(&counted), [Err(Fault::Filler)]);
    assert_eq!(all(&Chunk::default()), []);
    // Every header of zeros is a fragment's, a header of filler is none.
    assert_eq!(all(&Chunk::filler(u32::MAX)), [Err(Fault::Filler)]);
}

proptest! {
    /// Units come out of a payload in their order, by either length.
    #[test]
    fn units_are_read_as_written(
        packets in vec(any_packet(1), 0..5),
        fragment in option::of(any_fragment()),
        by_letter: bool,
    ) {
        let length_of = if by_letter { LengthOf::Packet } else { LengthOf::HeaderAndPacket };
        let has_packets = !packets.is_empty();
        let units: Vec<_> = packets.into_iter().chain(fragment).collect();
        let payload = write(&units, length_of);
        // A payload that fits both meanings of the length is read by the specification's.
        let both = (Units { rest: Body::from(&payload), length_of: LengthOf::Packet }).all(|unit| unit.is_ok());
        if by_letter || !both {
            prop_assert_eq!(all(&payload), units.iter().copied().map(Ok).collect::<Vec<_>>());
            prop_assert!(!has_packets || parse(&payload).length_of() == length_of);
        }
    }

    /// One packet, as servers send it, is read by either length.
    #[test]
    fn one_packet_is_read_as_written(unit in any_packet(0), filler in 0u32..3000, by_letter: bool) {
        let length_of = if by_letter { LengthOf::Packet } else { LengthOf::HeaderAndPacket };
        for content in [unit.content, UnitContent::Packet(Body::filler(filler))] {
            let unit = AsfUnit { content, ..unit };
            let payload = write(&[unit], length_of);
            prop_assert_eq!(all(&payload), [Ok(unit)]);
        }
    }

    /// Fragments make up the packet, none is longer than it may be, and there is none too many.
    #[test]
    fn a_packet_is_split_and_put_together(unit in any_packet(0), bytes in 0u32..9000, most in 17usize..2000) {
        let parts: Vec<_> = unit.split(Body::filler(bytes), most).collect();
        let room = most - unit.header_bytes();
        prop_assert_eq!(parts.len(), (bytes as usize).div_ceil(room).max(1));
        let mut have = 0;
        for part in &parts {
            let payload = write(std::slice::from_ref(part), LengthOf::Packet);
            prop_assert!(payload.len() <= most);
            have += match part.content {
                UnitContent::Packet(packet) => {
                    prop_assert_eq!(parts.len(), 1);
                    packet.len()
                }
                UnitContent::Fragment { offset, bytes } => {
                    prop_assert_eq!(offset as usize, have);
                    prop_assert!(parts.len() > 1 && !bytes.is_empty());
                    bytes.len()
                }
            };
        }
        prop_assert_eq!(have, bytes as usize);
    }

    /// Any bytes are units, and perhaps a fault at the end; a parsed unit is written as it was, reserved bits
    /// aside.
    #[test]
    fn takes_anything(pieces in vec(prop_oneof![
        vec(any::<u8>(), 0..12),
        any_packet(0).prop_map(|unit| write(&[unit], LengthOf::Packet).head().to_vec()),
    ], 0..6), filler in 0u32..40) {
        let payload = Chunk::with_filler(pieces.concat(), filler);
        let read = all(&payload);
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        prop_assert!(read.len() <= payload.len() / LEAST_HEADER_BYTES + 1);
        let units: Vec<_> = read.into_iter().flatten().collect();
        let length_of = parse(&payload).length_of();
        let again = write(&units, length_of);
        prop_assert!(again.len() <= payload.len());
        let same = Units { rest: Body::from(&again), length_of };
        prop_assert_eq!(same.collect::<Result<Vec<_>, _>>(), Ok(units));
    }
}
