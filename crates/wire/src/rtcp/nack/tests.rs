use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::rtcp::{parse, write};

/// RFC 4585 sections 6.1 and 6.2.1, with the E bit of [MS-RTSP] section 2.2.4.
#[test]
fn a_compound_of_a_windows_media_player() {
    let compounds = windows_media_nacks(7, 0x2f73_682b, 9, &[0xffff, 0, 2, 100]);
    let [compound] = &compounds[..] else { panic!("{compounds:?}") };
    let datagram = write(compound);
    let cname = b"796092459@WMS:7ff42e07-3c7c-4eb5-9c17-6bdd11ad90de";
    let report = b"\x80\xc9\x00\x01\0\0\0\x07";
    let nack = b"\x91\xcd\x00\x04\0\0\0\x07\0\0\0\x09\xff\xff\x00\x05\x00\x64\x00\x00";
    assert_eq!(datagram[..8], report[..]);
    assert_eq!(datagram[8..18], *b"\x81\xca\x00\x0f\0\0\0\x07\x01\x32");
    assert_eq!(datagram[18..][..cname.len()], cname[..]);
    assert_eq!(datagram[datagram.len() - nack.len()..], nack[..]);
    assert_eq!(parse(&datagram).collect::<Result<Vec<_>, _>>().as_ref(), Ok(compound));
    let Packet::Nack(nack) = &compound[2] else { panic!("{compound:?}") };
    assert_eq!(nack.sequences().collect::<Vec<_>>(), [0xffff, 0, 2, 100]);
    let Packet::Cname { cname, .. } = &compound[1] else { panic!("{compound:?}") };
    assert_eq!(rtx_ssrc_of(cname), Some(0x2f73_682b));
    assert_eq!(rtx_ssrc_of("someone@host"), None);
    assert_eq!(rtx_ssrc_of("4294967296@WMS:7ff42e07-3c7c-4eb5-9c17-6bdd11ad90de"), None);
}

#[test]
fn other_feedback_is_no_nack() {
    // FMT 4 has no owner.
    let other = b"\x84\xcd\x00\x02\0\0\0\x07\0\0\0\x09";
    let expected = Packet::Other { packet_type: TRANSPORT_FEEDBACK, app: None };
    assert_eq!(parse(other).collect::<Vec<_>>(), [Ok(expected)]);
    let wrong = Problem { fault: Fault::Contents, packet_type: TRANSPORT_FEEDBACK };
    for cut in [&b"\x81\xcd\x00\x01\0\0\0\x07"[..], b"\xa1\xcd\x00\x02\0\0\0\x07\0\0\0\x08"] {
        assert_eq!(parse(cut).collect::<Vec<_>>(), [Err(wrong)], "{cut:?}");
    }
    let padded = b"\xa1\xcd\x00\x04\0\0\0\x07\0\0\0\x09\0\x05\0\0\0\0\0\x04";
    let entries = vec![NackEntry { first: 5, mask: 0 }];
    let nack = NackPacket { receiver_ssrc: 7, media_ssrc: 9, e_bit: false, entries };
    assert_eq!(parse(padded).collect::<Vec<_>>(), [Ok(Packet::Nack(nack))]);
}

proptest! {
    #[test]
    fn nacks_are_read_as_written(
        (receiver_ssrc, media_ssrc, e_bit) in any::<(u32, u32, bool)>(),
        entries in vec(any::<(u16, u16)>().prop_map(|(first, mask)| NackEntry { first, mask }), 0..40),
    ) {
        let packet = Packet::Nack(NackPacket { receiver_ssrc, media_ssrc, e_bit, entries });
        let datagram = write(std::slice::from_ref(&packet));
        prop_assert_eq!(parse(&datagram).collect::<Vec<_>>(), [Ok(packet)]);
    }

    /// Compounds name the given numbers, once each, and there is no compound too many.
    #[test]
    fn compounds_name_what_they_were_to(first: u16, gaps in vec(1u16..40, 1..300)) {
        let mut sequence = first;
        let sequences: Vec<u16> = gaps.iter().map(|gap| {
            sequence = sequence.wrapping_add(*gap);
            sequence
        }).collect();
        let mut named = Vec::new();
        for compound in windows_media_nacks(1, 2, 3, &sequences) {
            let Packet::Nack(nack) = &compound[2] else { panic!("{compound:?}") };
            prop_assert!(nack.entries.len() <= MOST_WINDOWS_MEDIA_NACKS);
            named.extend(nack.sequences());
        }
        prop_assert_eq!(named, sequences);
    }
}
