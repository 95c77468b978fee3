//! Fragmented MP4, packed audio, and unsupported containers.

use proptest::prelude::*;

use super::*;

fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut bytes = (content.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend(kind);
    bytes.extend(content);
    bytes
}

/// Returns a fragment with these samples of each track.
fn fragment(tracks: &[(u32, &[u32])]) -> Vec<u8> {
    let mut moof = boxed(b"mfhd", &[0; 8]);
    for (id, runs) in tracks {
        let mut traf = boxed(b"tfhd", &[&[0; 4], &id.to_be_bytes()[..]].concat());
        runs.iter()
            .for_each(|count| traf.extend(boxed(b"trun", &[&[0; 4], &count.to_be_bytes()[..]].concat())));
        moof.extend(boxed(b"traf", &traf));
    }
    [boxed(b"moof", &moof), boxed(b"mdat", &[7; 400])].concat()
}

fn movie(tracks: &[(u32, &[u8; 4], &[u8; 4])]) -> Vec<u8> {
    let traks: Vec<u8> = tracks
        .iter()
        .flat_map(|(id, handler, format)| {
            let tkhd = [&[0; 12], &id.to_be_bytes()[..], &[0; 68]].concat();
            let hdlr = [&[0; 8], &handler[..], &[0; 13]].concat();
            let stsd = [&[0, 0, 0, 0, 0, 0, 0, 1][..], &boxed(format, &[0; 20])].concat();
            let minf = boxed(b"minf", &boxed(b"stbl", &boxed(b"stsd", &stsd)));
            let mdia = boxed(b"mdia", &[boxed(b"hdlr", &hdlr), minf].concat());
            boxed(b"trak", &[boxed(b"tkhd", &tkhd), mdia].concat())
        })
        .collect();
    [boxed(b"ftyp", b"iso5"), boxed(b"moov", &[boxed(b"mvhd", &[0; 100]), traks].concat())].concat()
}

#[test]
fn samples_of_all_runs_and_fragments_are_counted() {
    let one = (1, &[50][..]);
    let segment = [boxed(b"styp", b"msdh"), fragment(&[one]), fragment(&[(1, &[20, 5])])].concat();
    assert_eq!(pictures(&counted(&segment)), Some(75));
    // Fragments far behind the first are counted too.
    let far = [fragment(&[one]), boxed(b"mdat", &vec![0; 600_000]), fragment(&[one])].concat();
    assert_eq!(pictures(&counted_after(Known::default(), &far, 10_000).0), Some(100));
}

#[test]
fn filler_is_passed_over() {
    let mut counter = Counter::new(Known::default());
    let mut head = fragment(&[(1, &[25])]);
    head.truncate(head.len() - 400);
    counter.push(&Chunk::bytes(head));
    counter.push(&Chunk::filler(400));
    counter.push(&Chunk::bytes(fragment(&[(1, &[25])])));
    let (counted, _) = counter.finish();
    assert_eq!((pictures(&counted), counted.is_cut), (Some(50), false));
}

#[test]
fn tracks_are_what_their_handlers_are() {
    let init =
        movie(&[(1, b"soun", b"mp4a"), (2, b"vide", b"av01"), (3, b"text", b"wvtt"), (4, b"vide", b"avc1")]);
    let (_, known) = counted_after(Known::default(), &init, 33);
    let segment = fragment(&[(1, &[94]), (2, &[50]), (3, &[2]), (4, &[50])]);
    let (counted, _) = counted_after(known.clone(), &segment, 50);
    assert_eq!(pictures(&counted), Some(50));
    let left_out: Vec<&str> = counted.left_out.iter().map(String::as_str).collect();
    assert_eq!(left_out, ["a second track of pictures (avc1)", "a track of wvtt"]);
    let (counted, _) = counted_after(known.clone(), &fragment(&[(1, &[94])]), 50);
    assert_eq!((pictures(&counted), counted.is_media), (Some(0), true));
    let (counted, _) = counted_after(known, &fragment(&[(9, &[94])]), 50);
    assert!(why(&counted).contains("track 9"));
    // Without the movie several tracks have no meaning.
    assert!(why(&counted_after(Known::default(), &segment, 9).0).contains("no initialisation segment"));
    // A segment that brings its movie with it.
    let (counted, _) = counted_after(Known::default(), &[init, segment].concat(), 9);
    assert_eq!(pictures(&counted), Some(50));
}

#[test]
fn a_segment_that_is_cut_is_seen() {
    let whole = fragment(&[(1, &[50])]);
    assert!(!counted(&whole).is_cut);
    for left in [whole.len() - 1, whole.len() - 402, 20] {
        assert!(counted(&whole[..left]).is_cut, "{left}");
    }
    // The last box may go on to the end.
    let mut open = whole.clone();
    let at = whole.len() - 408;
    open[at..at + 4].fill(0);
    assert!(!counted(&open[..open.len() - 10]).is_cut);
}

#[test]
fn packed_audio_is_sound() {
    let adts: &[u8] = &[0xff, 0xf1, 0x50, 0x80, 0x2e, 0x7f, 0xfc, 1, 2, 3];
    for bytes in [
        adts.to_vec(),
        [b"ID3\x04\0\0\0\0\0\x3f", adts].concat(),
        vec![0x0b, 0x77, 1, 2],
        vec![0xff, 0xfb, 0x90, 0],
    ] {
        let counted = counted(&bytes);
        assert_eq!((pictures(&counted), counted.is_media), (Some(0), true));
    }
}

#[test]
fn other_containers_are_named() {
    let text = counted(b"WEBVTT\n\n00:00.000 --> 00:01.000\nwords");
    assert_eq!((pictures(&text), text.is_media), (Some(0), false));
    for (bytes, expected) in [
        (&b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f\x42\x86"[..], "WebM"),
        (b"<!DOCTYPE html><html>", "<!DOCTYPE html>"),
        (b"", "an empty segment"),
        (b"abc", "begins with \"abc\""),
        (b"\x47", "no packets of MPEG-TS"),
    ] {
        assert!(why(&counted(bytes)).contains(expected), "{expected}: {:?}", counted(bytes));
    }
}

#[test]
fn boxes_that_contradict_themselves_are_not_counted() {
    let small = [fragment(&[(1, &[5])]), vec![0, 0, 0, 3], b"moof".to_vec(), vec![0; 20]].concat();
    assert!(why(&counted(&small)).contains("contradict"));
    let huge =
        [boxed(b"styp", b"msdh"), 0xf000_0000u32.to_be_bytes().to_vec(), b"moof".to_vec(), vec![0; 20]]
            .concat();
    assert!(why(&counted(&huge)).contains("a moof box of"));
}

/// A fragment of track 1 with this trun box.
fn run(content: &[u8]) -> Vec<u8> {
    let tfhd = boxed(b"tfhd", &[&[0; 4], &1u32.to_be_bytes()[..]].concat());
    boxed(b"moof", &boxed(b"traf", &[tfhd, boxed(b"trun", content)].concat()))
}

#[test]
fn runs_that_have_no_room_for_their_samples_are_not_counted() {
    let pictures_alone = counted_after(Known::default(), &movie(&[(1, b"vide", b"avc1")]), 1_000).1;
    for (flags, count, rest, expected) in [
        (0, u32::MAX, 0, "a run of 4294967295 samples"),
        (0x200, 1_000_000, 4_000, "a run of 1000000 samples in 4008 B"),
        (0x205, 10, 40, "a run of 10 samples in 48 B"),
    ] {
        let header = [u32::to_be_bytes(flags), u32::to_be_bytes(count)].concat();
        let segment = run(&[header, vec![0; rest]].concat());
        for known in [Known::default(), pictures_alone.clone()] {
            assert_eq!(why(&counted_after(known, &segment, 1_000).0), expected);
        }
    }
    assert_eq!(why(&counted(&run(&[0; 6]))), "a run of samples that is cut");
    let whole = run(&[&[0, 0, 2, 5, 0, 0, 0, 10][..], &[0; 48]].concat());
    assert_eq!(pictures(&counted(&whole)), Some(10));
    // A track of pictures without any is no sound.
    let (empty, _) = counted_after(pictures_alone, &run(&[0; 8]), 1_000);
    assert_eq!((pictures(&empty), empty.is_media), (Some(0), false));
}

proptest! {
    #[test]
    fn anything_behind_a_box_is_counted(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..100) {
        for kind in [b"styp", b"moof", b"moov"] {
            counted_after(Known::default(), &[boxed(kind, &bytes), bytes.clone()].concat(), piece);
        }
    }
}
