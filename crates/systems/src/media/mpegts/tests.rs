use proptest::prelude::*;
use streamgauge_base::{Duration, Instant};

use super::*;
use crate::media::segment::{Pictures, TransportStream};

const SIZES: [u32; 8] = [1, 150, 161, 162, 163, 3_000, 65_527, 200_000];

fn stream(sizes: &[u32]) -> Vec<Vec<u8>> {
    let mut muxer = Muxer::default();
    let pictures = sizes.iter().enumerate();
    pictures
        .map(|(place, &bytes)| {
            muxer.picture(3_600 * place as u64, bytes, place == 0, place.is_multiple_of(3))
        })
        .collect()
}

fn read(datagrams: &[&[u8]], lost: &[usize]) -> Vec<(u64, bool)> {
    let mut reader = PictureReader::default();
    for (place, datagram) in datagrams.iter().enumerate() {
        match lost.contains(&place) {
            true => reader.gap(),
            false => reader.push(Instant::ZERO, Duration::ZERO, datagram),
        }
    }
    reader.finish();
    std::iter::from_fn(|| reader.next_picture()).map(|picture| (picture.stamp, picture.is_whole)).collect()
}

#[test]
fn pictures_of_any_size_are_written_and_read() {
    let pictures = stream(&SIZES);
    for (place, (bytes, picture)) in SIZES.iter().zip(&pictures).enumerate() {
        assert_eq!(
            picture.len() as u64,
            packets_of(*bytes, place.is_multiple_of(3)) * PACKET_BYTES as u64,
            "{bytes} B"
        );
    }
    let expected: Vec<_> = (0..SIZES.len() as u64).map(|place| (9_000 + 3_600 * place, true)).collect();
    let datagrams: Vec<&[u8]> = pictures.iter().flat_map(|picture| picture.chunks(1316)).collect();
    assert_eq!(read(&datagrams, &[]), expected);
    // The reader of segments counts the same, with the same times.
    let mut segment = TransportStream::new(Default::default());
    // It counts access unit delimiters, for which the first picture is too small; then it waits for the tables.
    pictures[1..].iter().for_each(|picture| segment.push(picture));
    let (counted, _) = segment.finish();
    assert!(matches!(counted.pictures, Pictures::Counted { count: 5, .. }), "{:?}", counted.pictures);
}

#[test]
fn a_lost_datagram_costs_the_pictures_in_it_and_no_others() {
    let pictures = stream(&[20_000, 20_000, 1_000, 1_000, 20_000]);
    let datagrams: Vec<&[u8]> = pictures.iter().flat_map(|picture| picture.chunks(1316)).collect();
    let of_first = pictures[0].chunks(1316).count();
    let whole = |lost: &[usize]| read(&datagrams, lost).iter().map(|(_, whole)| *whole).collect::<Vec<_>>();
    assert_eq!(whole(&[of_first - 1]), [false, true, true, true, true], "the last of a picture");
    assert_eq!(whole(&[of_first + 1]), [true, false, true, true, true], "one within");
    // The first of a picture takes its time stamp with it: nothing of that picture is there.
    assert_eq!(whole(&[of_first]), [true, true, true, true]);
    assert_eq!(whole(&[2 * of_first]), [true, true, true, true], "all of a small picture");
}

#[test]
fn datagrams_across_pictures_are_read_too() {
    let bytes = stream(&[500; 20]).concat();
    let datagrams: Vec<&[u8]> = bytes.chunks(1316).collect();
    assert!(read(&datagrams, &[]).iter().all(|(_, whole)| *whole));
    let lossy = read(&datagrams, &[3]);
    assert!(lossy.len() < 20 && lossy.iter().filter(|(_, whole)| !whole).count() <= 2, "{lossy:?}");
}

proptest! {
    #[test]
    fn any_datagrams_are_read(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..20)) {
        let datagrams: Vec<&[u8]> = datagrams.iter().map(Vec::as_slice).collect();
        let _ = read(&datagrams, &[1]);
    }

    #[test]
    fn any_packets_are_read(packets in prop::collection::vec(prop::array::uniform8(any::<u8>()), 0..60)) {
        let mut bytes = stream(&[400])[0].clone();
        for head in packets {
            let mut packet = [0xff; PACKET_BYTES];
            packet[..8].copy_from_slice(&head);
            packet[..3].copy_from_slice(&[SYNC, 0x41, 0]);
            bytes.extend(packet);
        }
        prop_assert!(!read(&[&bytes], &[]).is_empty());
    }
}
