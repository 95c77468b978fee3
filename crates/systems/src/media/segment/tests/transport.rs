//! MPEG-2 transport streams.

use proptest::prelude::*;

use super::muxer::{Muxer, PMT, SOUND, VIDEO, section, unit};
use super::*;

const H264: (u8, u16, &[u8]) = (0x1b, VIDEO, &[]);
const AAC: (u8, u16, &[u8]) = (0x0f, SOUND, &[]);

/// Pictures with these time stamps, and sound beside each.
fn stream(stamps: &[u64]) -> Muxer {
    let mut muxer = Muxer::default();
    muxer.tables(&[H264, AAC]);
    for stamp in stamps {
        muxer.pes(VIDEO, Some(*stamp), &unit(700, true));
        muxer.pes(SOUND, Some(*stamp), &[0xff, 0xf1, 1, 2, 3]);
    }
    muxer
}

fn in_order(count: u64) -> Vec<u64> {
    (0..count).map(|number| 126_000 + number * 3_600).collect()
}

#[test]
fn pictures_are_counted_and_sound_is_not() {
    let counted = counted(&stream(&in_order(50)).bytes);
    assert_eq!((pictures(&counted), counted.is_media, counted.is_cut), (Some(50), true, false));
    assert_eq!(times(&counted), (0..50).map(|number| number * 40).collect::<Vec<_>>());
    assert!(counted.left_out.is_empty());
}

#[test]
fn packets_of_192_and_204_bytes_are_read_too() {
    let plain = stream(&in_order(20)).bytes;
    let stamp = |number: u32| (number * 10_007).to_be_bytes();
    let stamped: Vec<u8> =
        plain.chunks(188).zip(0..).flat_map(|(packet, number)| [&stamp(number), packet].concat()).collect();
    let guarded: Vec<u8> = plain.chunks(188).flat_map(|packet| [packet, &[0x47; 16]].concat()).collect();
    for bytes in [stamped, guarded] {
        assert_eq!(pictures(&counted(&bytes)), Some(20));
    }
}

#[test]
fn times_wrap_and_pictures_come_out_of_order() {
    let near_the_wrap: Vec<u64> =
        (0..10).map(|number| ((1 << 33) - 18_000 + number * 3_600) % (1 << 33)).collect();
    assert_eq!(times(&counted(&stream(&near_the_wrap).bytes)), (0..10).map(|at| at * 40).collect::<Vec<_>>());
    // I P B B as they are decoded.
    let reordered: Vec<u64> = [0, 3, 1, 2, 6, 4, 5].iter().map(|at| 900_000 + at * 3_600).collect();
    assert_eq!(times(&counted(&stream(&reordered).bytes)), [0, 40, 80, 120, 160, 200, 240]);
    // Where the clock jumps only the count is known.
    let jumped = [in_order(5), vec![9_000_000_000 % (1 << 33), 9_000_003_600 % (1 << 33)]].concat();
    let counted = counted(&stream(&jumped).bytes);
    assert_eq!((pictures(&counted), times(&counted).len()), (Some(7), 0));
}

#[test]
fn several_pictures_of_a_pes_packet_count_and_none_counts_twice() {
    let mut muxer = Muxer::default();
    muxer.tables(&[H264]);
    muxer.pes(VIDEO, Some(0), &[unit(300, true), unit(90, true), unit(400, true)].concat());
    // The last one continues in a packet without a time stamp.
    muxer.pes(VIDEO, None, &unit(500, false));
    let counted = counted(&muxer.bytes);
    assert_eq!((pictures(&counted), times(&counted).len()), (Some(3), 0));
}

#[test]
fn without_delimiters_packets_with_a_time_stamp_count() {
    let mut muxer = Muxer::default();
    muxer.tables(&[H264]);
    for stamp in in_order(12) {
        muxer.pes(VIDEO, Some(stamp), &unit(400, false));
    }
    assert_eq!(pictures(&counted(&muxer.bytes)), Some(12));
}

#[test]
fn other_codecs_are_counted_by_their_own_marks() {
    let hevc: &[u8] = &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x26, 1];
    let mpeg2_frame: &[u8] = &[0, 0, 1, 0, 0, 0x0a, 0, 0, 1, 0xb5, 0x8f, 0xff, 0xf3, 0x80, 0, 0, 1, 1];
    let mpeg2_field: &[u8] = &[0, 0, 1, 0, 0, 0x0a, 0, 0, 1, 0xb5, 0x8f, 0xff, 0xf1, 0x80, 0, 0, 1, 1];
    let mpeg4: &[u8] = &[0, 0, 1, 0xb6, 0x10];
    let registered: &[u8] = &[5, 4, b'A', b'V', b'0', b'1'];
    for (stream, payload, expected) in [
        ((0x24, VIDEO, &[][..]), hevc, 10),
        ((0x02, VIDEO, &[][..]), mpeg2_frame, 10),
        ((0x02, VIDEO, &[][..]), mpeg2_field, 5),
        ((0x10, VIDEO, &[][..]), mpeg4, 10),
        ((0xea, VIDEO, &[][..]), &[1, 2, 3][..], 10),
        ((0x06, VIDEO, registered), &[1, 2, 3][..], 10),
    ] {
        let mut muxer = Muxer::default();
        muxer.tables(&[stream]);
        for stamp in in_order(10) {
            muxer.pes(VIDEO, Some(stamp), payload);
        }
        assert_eq!(pictures(&counted(&muxer.bytes)), Some(expected), "{stream:?}");
    }
}

#[test]
fn sound_alone_has_no_pictures() {
    let mut muxer = Muxer::default();
    muxer.tables(&[AAC]);
    for stamp in in_order(40) {
        muxer.pes(SOUND, Some(stamp), &[0xff, 0xf1, 1, 2, 3]);
    }
    let counted = counted(&muxer.bytes);
    assert_eq!((pictures(&counted), counted.is_media), (Some(0), true));
}

#[test]
fn streams_that_are_not_counted_are_named() {
    let mut muxer = Muxer::default();
    muxer.tables(&[H264, AAC, (0x1b, 0x102, &[]), (0x15, 0x103, &[]), (0x06, 0x104, &[0x59, 0])]);
    muxer.pes(VIDEO, Some(0), &unit(300, true));
    let counted = counted(&muxer.bytes);
    let left_out: Vec<&str> = counted.left_out.iter().map(String::as_str).collect();
    assert_eq!(
        left_out,
        ["a second stream of pictures (H.264)", "a stream of subtitles", "a stream of timed metadata"]
    );
    assert_eq!(pictures(&counted), Some(1));
}

#[test]
fn tables_of_an_earlier_segment_hold_until_others_come() {
    let (_, known) = counted_after(Known::default(), &stream(&in_order(3)).bytes, 500);
    let mut muxer = Muxer::default();
    for stamp in in_order(8) {
        muxer.pes(VIDEO, Some(stamp), &unit(300, true));
    }
    assert!(why(&counted(&muxer.bytes)).contains("without a Program Association Table"));
    let (after, known) = counted_after(known, &muxer.bytes, 188);
    assert_eq!(pictures(&after), Some(8));
    // Behind a discontinuity the same program has other streams.
    let mut muxer = Muxer::default();
    muxer.tables(&[(0x24, 0x200, &[])]);
    muxer.pes(0x200, Some(0), &[0, 0, 1, 0x46, 1, 0x50]);
    let (after, _) = counted_after(known, &muxer.bytes, 188);
    assert_eq!((pictures(&after), after.left_out.len()), (Some(1), 0));
}

#[test]
fn lost_repeated_and_foreign_bytes_are_passed_over() {
    let whole = stream(&in_order(30)).bytes;
    // The first packet twice over, as is allowed.
    let at = 2 * 188;
    let twice = [&whole[..at + 188], &whole[at..]].concat();
    assert_eq!(pictures(&counted(&twice)), Some(30));
    let behind_others = [b"G, and something else that is no packet", &whole[..]].concat();
    assert_eq!(pictures(&counted(&behind_others)), Some(30));
    let torn = [&whole[..188 * 20], &[0x55; 77], &whole[188 * 20..]].concat();
    assert_eq!(pictures(&counted(&torn)), Some(30));
    let cut = counted(&whole[..whole.len() - 50]);
    assert!(cut.is_cut && pictures(&cut) == Some(30));
}

#[test]
fn scrambled_pictures_are_not_counted() {
    let mut bytes = stream(&in_order(5)).bytes;
    for packet in bytes.chunks_mut(188).filter(|packet| packet[1] & 0x1f == 1 && packet[2] == 0) {
        packet[3] |= 0x80;
    }
    assert!(why(&counted(&bytes)).contains("scrambled"));
    let mut muxer = Muxer::default();
    muxer.tables(&[(0xdb, VIDEO, &[])]);
    muxer.pes(VIDEO, Some(0), &unit(200, true));
    assert!(why(&counted(&muxer.bytes)).contains("scrambled"));
}

#[test]
fn damaged_tables_are_not_believed() {
    let mut muxer = Muxer::default();
    muxer.tables(&[H264]);
    muxer.pes(VIDEO, Some(0), &unit(200, true));
    let whole = muxer.bytes.clone();
    for at in [188 + 188 - 20, 188 + 188 - 3] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(why(&counted(&damaged)).contains("without a Program Map Table"));
    }
    // A map over three packets, and one that states more than it has.
    let many: Vec<(u8, u16, &[u8])> =
        (0..60).map(|number| (0x15, 0x300 + number, &[][..])).chain([H264]).collect();
    let mut muxer = Muxer::default();
    muxer.tables(&many);
    muxer.pes(VIDEO, Some(0), &unit(200, true));
    assert_eq!(pictures(&counted(&muxer.bytes)), Some(1));
    let mut muxer = Muxer::default();
    muxer.tables(&[]);
    muxer.table(PMT, &section(2, &[0xe1, 0, 0xf0, 0, 0x1b, 0xe1, 0, 0xff, 0xff]));
    muxer.pes(VIDEO, Some(0), &unit(200, true));
    assert!(why(&counted(&muxer.bytes)).contains("without a Program Map Table"));
}

proptest! {
    #[test]
    fn anything_is_counted(bytes in prop::collection::vec(any::<u8>(), 0..2_000), piece in 1usize..400) {
        let bytes = [&[SYNC_BYTE][..], &bytes].concat();
        counted_after(Known::default(), &bytes, piece);
    }

    #[test]
    fn a_damaged_stream_is_counted_the_same_however_it_is_cut(
        flips in prop::collection::vec((0usize..20_000, any::<u8>()), 0..20), piece in 1usize..500,
    ) {
        let mut bytes = stream(&in_order(25)).bytes;
        for (at, bits) in flips {
            let length = bytes.len();
            bytes[at % length] ^= bits;
        }
        let whole = counted_after(Known::default(), &bytes, usize::MAX).0;
        prop_assert_eq!(counted_after(Known::default(), &bytes, piece).0, whole);
    }
}

const SYNC_BYTE: u8 = 0x47;
