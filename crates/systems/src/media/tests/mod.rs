mod content;
mod sdp;

use std::sync::Arc;

use proptest::prelude::*;
use streamgauge_base::Duration;

use super::*;
use crate::media::ClipSpec;

/// Returns a track of `units`, 20 ms apart.
fn track(codec: Codec, units: &[Vec<u8>]) -> Track {
    let mut offset = 0;
    let listed = (0..).zip(units).map(|(number, unit)| {
        let (at, bytes) = (Duration::from_millis(20) * number, unit.len() as u32);
        let made = Unit { at, shown: at, offset, bytes, kind: UnitKind::Predicted };
        offset += u64::from(bytes);
        made
    });
    let units_listed = listed.collect();
    Track { codec, clock_rate: 90_000, units: units_listed, bytes: Bytes::Shared(Arc::new(units.concat())) }
}

fn h264() -> Codec {
    Codec::H264 { sps: vec![vec![0x67, 1, 2]], pps: vec![vec![0x68, 3]], length_bytes: 4 }
}

/// AudioSpecificConfig of AAC-LC, 44.1 kHz, stereo.
fn aac() -> Codec {
    Codec::Aac { config: vec![0x12, 0x10], channels: 2 }
}

fn with_lengths(nals: &[Vec<u8>]) -> Vec<u8> {
    nals.iter().flat_map(|nal| [&(nal.len() as u32).to_be_bytes()[..], nal].concat()).collect()
}

/// The payloads of `unit`, after their sizes and markers are held to the rules.
fn payloads(track: &Track, unit: usize, max: u32) -> Result<Vec<Vec<u8>>, TestCaseError> {
    let made: Vec<Payload> = track.packets(unit, max).collect();
    for (number, payload) in made.iter().enumerate() {
        prop_assert!(!payload.chunk.is_empty() && payload.chunk.len() <= max as usize);
        prop_assert_eq!(payload.marker, number + 1 == made.len());
        prop_assert_eq!(payload.chunk.len(), payload.chunk.head().len(), "no filler among real bytes");
    }
    Ok(made.into_iter().map(|payload| payload.chunk.head().to_vec()).collect())
}

fn assembled(codec: &Codec, payloads: &[Vec<u8>]) -> Vec<u8> {
    assemble(codec, payloads.iter().map(Vec::as_slice))
}

/// NAL units of any size, with headers of types that are sent as they are (1 to 23).
fn nals() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let nal = (1u8..24, 0u8..4, prop_oneof![0usize..80, 0usize..6000], any::<u8>()).prop_map(
        |(kind, importance, length, fill)| {
            let body = (0..length).map(|at| fill.wrapping_add(at as u8));
            std::iter::once(importance << 5 | kind).chain(body).collect()
        },
    );
    prop::collection::vec(nal, 1..8)
}

proptest! {
    #[test]
    fn h264_comes_back_as_annex_b(nals in nals(), max in 100u32..=1460) {
        let track = track(h264(), &[with_lengths(&nals)]);
        let payloads = payloads(&track, 0, max)?;
        let expected: Vec<u8> = nals.iter().flat_map(|nal| [&[0, 0, 0, 1][..], nal].concat()).collect();
        prop_assert_eq!(assembled(&track.codec, &payloads), expected);
        // As many packets begin a NAL unit as there are fragmented ones and packets of whole ones.
        let begun = payloads.iter().filter(|payload| begins_unit(&track.codec, &payload[..payload.len().min(2)])).count();
        prop_assert!(begun >= 1 && begun <= nals.len());
        prop_assert!(begins_unit(&track.codec, &payloads[0]));
    }

    #[test]
    fn mpeg4_visual_comes_back_as_it_was(length in 5usize..8000, max in 100u32..=1460) {
        let unit: Vec<u8> = [0, 0, 1, 0xb6].into_iter().chain((4..length).map(|at| at as u8 | 1)).collect();
        let track = track(Codec::Mpeg4Visual { config: vec![0, 0, 1, 0xb0, 1] }, std::slice::from_ref(&unit));
        let payloads = payloads(&track, 0, max)?;
        let begun: Vec<bool> = payloads.iter().map(|payload| begins_unit(&track.codec, &payload[..payload.len().min(2)])).collect();
        prop_assert_eq!(begun.iter().filter(|&&begins| begins).count(), 1);
        prop_assert!(begun[0]);
        prop_assert_eq!(assembled(&track.codec, &payloads), unit);
    }

    #[test]
    fn aac_comes_back_with_adts_headers(
        sizes in prop::collection::vec(prop_oneof![1usize..400, 1usize..3000], 1..20), max in 100u32..=1460,
    ) {
        let units: Vec<Vec<u8>> = sizes.iter().zip(1u8..).map(|(&size, fill)| vec![fill; size]).collect();
        let track = track(aac(), &units);
        let mut stream = Vec::new();
        for unit in 0..units.len() {
            stream.extend(assembled(&track.codec, &payloads(&track, unit, max)?));
        }
        for unit in &units {
            let (header, rest) = stream.split_at(7);
            // Sync word, MPEG-4 without CRC; LC, 44.1 kHz (index 4), two channels; the length with its header.
            prop_assert_eq!(&header[..3], &[0xff, 0xf1, 1 << 6 | 4 << 2]);
            let length = usize::from(header[3] & 3) << 11 | usize::from(header[4]) << 3 | usize::from(header[5]) >> 5;
            prop_assert_eq!((header[3] >> 6, length), (2, 7 + unit.len()));
            prop_assert_eq!(&rest[..unit.len()], unit.as_slice());
            stream = rest[unit.len()..].to_vec();
        }
        prop_assert!(stream.is_empty());
    }

    #[test]
    fn frames_of_known_size_are_one_nal_unit_each(bytes in 1u32..20_000, max in 64u32..=1460, key: bool) {
        let clip = ClipSpec {
            name: String::new(), duration: Duration::from_secs(1), frame_interval: Duration::from_secs(1),
            frame_bytes: vec![bytes].into(), ..ClipSpec::default()
        };
        let mut asset = Asset::of_clip(&clip);
        let track = &mut asset.tracks[0];
        track.units[0].kind = if key { UnitKind::Key } else { UnitKind::Predicted };
        let made: Vec<Payload> = track.packets(0, max).collect();
        let sum: usize = made.iter().map(|payload| payload.chunk.len()).sum();
        let overhead = if bytes <= max { 0 } else { 2 * made.len() - 1 };
        prop_assert_eq!(sum, bytes as usize + overhead);
        for (number, payload) in made.iter().enumerate() {
            prop_assert!(payload.chunk.len() <= max as usize);
            prop_assert_eq!(payload.marker, number + 1 == made.len());
            prop_assert_eq!(begins_unit(&track.codec, payload.chunk.head()), number == 0);
            let nal_type = payload.chunk.head()[usize::from(bytes > max)] & 0x1f;
            prop_assert_eq!(nal_type, if key { 5 } else { 1 });
        }
        // All but the last are full.
        prop_assert!(made[..made.len() - 1].iter().all(|payload| payload.chunk.len() == max as usize));
    }

    #[test]
    fn garbage_assembles_without_panic(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6), which in 0..3,
    ) {
        let codec = [h264(), aac(), Codec::Mpeg4Visual { config: vec![] }][which as usize].clone();
        let bytes = assembled(&codec, &payloads);
        prop_assert!(bytes.len() <= 8 * payloads.iter().map(|payload| payload.len() + 1).sum::<usize>());
        for payload in &payloads {
            begins_unit(&codec, payload);
        }
    }

    #[test]
    fn lengths_that_lead_out_of_the_unit_are_harmless(unit in prop::collection::vec(any::<u8>(), 0..300)) {
        for length_bytes in 1..=4 {
            let codec = Codec::H264 { sps: vec![], pps: vec![], length_bytes };
            let track = track(codec, std::slice::from_ref(&unit));
            let sent: usize = payloads(&track, 0, 100)?.iter().map(Vec::len).sum();
            prop_assert!(sent <= 2 * unit.len());
        }
    }
}

#[test]
fn small_nal_units_share_a_packet_and_its_header_says_how_much_they_matter() {
    let nals = [vec![0x67, 1], vec![0x68, 2], vec![0x65, 3, 4]];
    let track = track(h264(), &[with_lengths(&nals)]);
    let made: Vec<Payload> = track.packets(0, 1400).collect();
    let expected = [0x78, 0, 2, 0x67, 1, 0, 2, 0x68, 2, 0, 3, 0x65, 3, 4];
    assert_eq!(made, [Payload { chunk: streamgauge_base::Chunk::bytes(expected), marker: true }]);
    assert_eq!(preamble(&track.codec), [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3]);
}

#[test]
fn small_blocks_of_sound_share_a_packet_that_goes_out_with_the_first() {
    let track = track(aac(), &[vec![1; 10], vec![2; 20], vec![3; 30], vec![4; 40], vec![5; 50]]);
    let sent: Vec<usize> = (0..5).map(|unit| track.packets(unit, 1400).len()).collect();
    assert_eq!(sent, [1, 0, 0, 0, 1]);
    let first = track.packets(0, 1400).next().unwrap();
    // Four headers of 16 bits: sizes shifted past the index.
    assert_eq!(first.chunk.head()[..10], [0, 64, 0, 10 << 3, 0, 20 << 3, 0, 30 << 3, 1, 64]);
    assert_eq!(first.chunk.len(), 10 + 100);
}

#[test]
fn a_clip_is_repeated_until_it_ends() {
    let clip = ClipSpec {
        name: "clip".into(),
        duration: Duration::from_millis(990),
        frame_interval: Duration::from_millis(100),
        frame_bytes: vec![1000, 200, 300, 400].into(),
        key_frames: vec![0, 2].into(),
        ..ClipSpec::default()
    };
    let asset = Asset::of_clip(&clip);
    let track = &asset.tracks[0];
    assert_eq!(track.units.len(), 10);
    assert_eq!(track.units[9].at, Duration::from_millis(900));
    assert_eq!((track.units[5].bytes, track.units[5].offset), (200, 2900));
    let keys: Vec<usize> = (0..10).filter(|&n| track.units[n].kind == UnitKind::Key).collect();
    assert_eq!(keys, [0, 2, 4, 6, 8]);
    assert_eq!(track.media_bytes(), 2 * 1900 + 1200);
    assert_eq!(track.duration(), Duration::from_secs(1));
    assert_eq!(track.bit_rate_bps(), 40_000);
    assert_eq!(track.ticks(Duration::from_millis(100)), 9000);
    let unnamed = Asset::of_clip(&ClipSpec { key_frames: vec![].into(), ..clip });
    let keys: Vec<usize> = (0..10).filter(|&n| unnamed.tracks[0].units[n].kind == UnitKind::Key).collect();
    assert_eq!(keys, [0, 4, 8]);
}
