//! Files of one film at several rates: one object, and where it changes from one to another.

use std::net::{IpAddr, Ipv4Addr};

use streamgauge_base::Duration;
use streamgauge_wire::rm::{self, Assembler, OpaqueData, StreamProperties};

use super::super::object::{self, CodedFrames, Encoding, Object, Stream};
use super::super::{file, sdp, server};
use super::FILE;

const SECONDS: u64 = 4;

/// Returns the file, with this rate in its header.
fn at_rate(rate_bps: u32) -> Vec<u8> {
    let media = rm::RealMedia::read(FILE).unwrap();
    let mut streams = media.streams.clone();
    for stream in &mut streams {
        if stream.mime_type.starts_with("video/") {
            stream.avg_bit_rate_bps = rate_bps;
            stream.type_specific.extend(rate_bps.to_be_bytes());
        }
    }
    let mut file = rm::write_head("", media.properties.duration_ms, &streams);
    for packet in &media.packets {
        let payload = packet.payload(FILE);
        file.extend(rm::write_packet(packet.stream, packet.timestamp_ms, packet.is_key(), payload).unwrap());
    }
    file
}

#[test]
fn files_of_one_film_are_encodings_of_one_object_the_lowest_rate_first() {
    let files: Vec<_> = [225_000, 34_000, 100_000].map(|rate| (format!("{rate}.rm"), at_rate(rate))).into();
    let object = file::object_of("film.rm", &files).unwrap();
    let [video, sound] = &object.streams[..] else { panic!("pictures and sound") };
    let rates: Vec<_> = video.encodings.iter().map(|one| one.bit_rate_bps).collect();
    assert_eq!((rates, sound.encodings.len()), (vec![34_000, 100_000, 225_000], 1));
    let read = sdp::read(&sdp::describe(&object, IpAddr::V4(Ipv4Addr::LOCALHOST))).unwrap();
    let opaque: &OpaqueData = read.streams[0].opaque.as_ref().unwrap();
    assert_eq!(opaque.rules, [0, 0, 1, 1, 2, 2]);
    let ends = |rule| opaque.of_rule(rule).unwrap().ends_with(&rates_of(rule).to_be_bytes());
    assert!((0..6).all(ends));

    let refused = |files: &[(String, Vec<u8>)]| file::object_of("film.rm", files).unwrap_err();
    assert!(refused(&[]).contains("no file"));
    assert!(refused(&[files[0].clone(), files[0].clone()]).contains("two encodings of 225000 bit/s"));
    let broken = ("broken.rm".to_owned(), b"RIFF".to_vec());
    assert!(refused(&[files[0].clone(), broken]).starts_with("broken.rm: "));
}

fn rates_of(rule: u16) -> u32 {
    [34_000, 100_000, 225_000][usize::from(rule) / 2]
}

#[test]
fn a_file_that_says_an_hour_and_has_seconds_is_as_long_as_its_media() {
    let media = rm::RealMedia::read(FILE).unwrap();
    let mut file = rm::write_head("", 3_600_000, &media.streams);
    for packet in &media.packets {
        let payload = packet.payload(FILE);
        file.extend(rm::write_packet(packet.stream, packet.timestamp_ms, packet.is_key(), payload).unwrap());
    }
    let object = file::object_of("x", &[("x.rm".into(), file)]).unwrap();
    let last_ms = media.packets.iter().map(|packet| packet.timestamp_ms).max().unwrap();
    assert_eq!(object.duration, Duration::from_millis(last_ms.into()));
}

/// Makes frames so far apart, with a key frame at a fixed interval, the first at `first_ms`. Each has one byte that
/// identifies it.
fn encoding(mark: u8, rate_bps: u32, first_ms: u64, apart_ms: u64, group: u64) -> Encoding {
    let mut coded = CodedFrames::default();
    let times = (0..).map(|frame| (frame, first_ms + frame * apart_ms));
    for (frame, at_ms) in times.take_while(|(_, at_ms)| *at_ms < SECONDS * 1000) {
        coded.push(Duration::from_millis(at_ms), frame % group == 0, &[mark]);
    }
    let said = StreamProperties { avg_bit_rate_bps: rate_bps, ..StreamProperties::default() };
    object::of_frames(coded, &said, Duration::from_secs(SECONDS))
}

/// Returns the sent frames: the encoding's mark and the time of each, where the higher is wanted from `from_ms` on.
fn sent(low: Encoding, high: Encoding, from_ms: u64) -> Vec<(u8, u64)> {
    let duration = Duration::from_secs(SECONDS);
    let object = Object { name: "x".into(), duration, streams: vec![Stream { encodings: vec![low, high] }] };
    let mut stream = server::stream_over_udp(&object);
    let (mut assembler, mut found, mut position) = (Assembler::default(), Vec::new(), Duration::ZERO);
    loop {
        if position >= Duration::from_millis(from_ms) {
            for rule in 0..4 {
                assert!(stream.subscribe(rule, rule > 1));
            }
        }
        stream.follow(position);
        // One frame a packet.
        let Some(packet) = stream.next(12, None) else { return found };
        position = position.max(packet.at);
        for frame in assembler.push(packet.payload).unwrap() {
            let at_ms = frame.timestamp_ms.map_or(packet.at.as_nanos() / 1_000_000, u64::from);
            found.push((frame.media.head()[0], at_ms));
        }
    }
}

/// Returns the times of pictures in each packet of UDP that has room for many, where it holds this much media at most.
fn pictures_by_packet(media: Option<Duration>) -> Vec<Vec<u64>> {
    let streams = vec![Stream { encodings: vec![encoding(1, 34_000, 0, 40, 25)] }];
    let duration = Duration::from_secs(SECONDS);
    let mut stream = server::stream_over_udp(&Object { name: "x".into(), duration, streams });
    let (mut assembler, mut found) = (Assembler::default(), Vec::new());
    while let Some(packet) = stream.next(1_200, media) {
        let frames = assembler.push(packet.payload).unwrap();
        let at = packet.at.as_nanos() / 1_000_000;
        found.push(frames.iter().map(|frame| frame.timestamp_ms.map_or(at, u64::from)).collect());
    }
    found
}

#[test]
fn a_packet_holds_pictures_of_so_much_media_at_most() {
    let all: Vec<u64> = (0..SECONDS * 25).map(|picture| picture * 40).collect();
    for (media_ms, most) in [(Some(20), 1), (Some(40), 1), (Some(100), 3), (None, 24)] {
        let packets = pictures_by_packet(media_ms.map(Duration::from_millis));
        assert_eq!(packets.concat(), all, "none is left out");
        assert_eq!(packets.iter().map(Vec::len).max(), Some(most), "{media_ms:?}");
    }
}

#[test]
fn key_frames_of_two_files_need_not_be_at_the_same_times() {
    for (first_ms, apart_ms, group) in [(0, 100, 10), (0, 40, 25), (30, 80, 12), (70, 100, 10), (0, 66, 30)] {
        let found =
            sent(encoding(1, 34_000, 0, 100, 10), encoding(2, 225_000, first_ms, apart_ms, group), 1_500);
        let change = found.iter().position(|(mark, _)| *mark == 2).expect("it changes");
        assert!(found[change..].iter().all(|(mark, _)| *mark == 2), "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0].1 < pair[1].1), "in order and none twice: {found:?}");
        let (before, at) = (found[change - 1].1, found[change].1);
        assert!((at - first_ms).is_multiple_of(apart_ms * group), "a key frame: {found:?}");
        assert!(at - before <= 100, "nothing is left out: {found:?}");
    }
}

#[test]
fn what_has_no_key_frame_any_more_does_not_take_the_place_of_what_is_sent() {
    let found = sent(encoding(1, 34_000, 0, 100, 10), encoding(2, 225_000, 0, 100, 20), 3_200);
    assert_eq!(found.len() as u64, SECONDS * 10);
    assert!(found.iter().all(|(mark, _)| *mark == 1));
}

#[test]
fn pictures_that_are_wanted_again_go_on_from_where_the_sound_is() {
    let low = encoding(1, 34_000, 0, 100, 10);
    let streams = vec![Stream { encodings: vec![low] }];
    let mut stream = server::stream_over_udp(&Object {
        name: "x".into(),
        duration: Duration::from_secs(SECONDS),
        streams,
    });
    let first = stream.next(12, None).unwrap();
    assert!(first.at < Duration::from_millis(100));
    for rule in 0..2 {
        assert!(stream.subscribe(rule, false));
    }
    for position in [Duration::from_millis(1_000), Duration::from_millis(2_500)] {
        stream.follow(position);
        while stream.next(12, None).is_some() {}
    }
    for rule in 0..2 {
        assert!(stream.subscribe(rule, true));
    }
    assert!(stream.follow(Duration::from_millis(2_500)));
    assert_eq!(stream.next(12, None).unwrap().at, Duration::from_secs(3), "the key frame after 2.5 s");
}

#[test]
fn a_rule_that_there_is_not_is_told() {
    let low = encoding(1, 34_000, 0, 100, 10);
    let object = Object {
        name: "x".into(),
        duration: Duration::from_secs(SECONDS),
        streams: vec![Stream { encodings: vec![low] }],
    };
    let mut stream = server::stream_over_udp(&object);
    assert!(stream.subscribe(1, true) && !stream.subscribe(2, true) && !stream.subscribe(u16::MAX, true));
}
