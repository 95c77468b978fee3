//! Files that are written here, and one object of several rates out of them.

use std::sync::Arc;

use proptest::prelude::*;
use streamgauge_base::Instant;
use streamgauge_wire::asf::{
    self, DataPacket, FileProperties, MultiplexInput, MultiplexSettings, MutualExclusion, PacketSize,
    StreamBitRate,
};

use super::super::object::{AUDIO, OneObject, Shelf, VIDEO, encoding_at, place_of, places};
use super::super::{PlayerKind, PlayerSettings, Preset, ServerSettings, WmPlayer, WmServer, WmTransport};
use super::*;
use crate::outbox::MEDIA_END;
use crate::testing::{Pair, Pipe};

const SECONDS: u32 = 4;
const PACKET_BYTES: u32 = 1_444;
const PREROLL_MS: u32 = 3_100;

/// Returns a media object's bytes, which identify their object.
fn media(stream: u8, number: u32, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at ^ number.wrapping_mul(31)) as u8 ^ stream).collect()
}

/// Makes ten frames a second of `frame_bytes` as video, a key frame each second, and as many blocks of sound.
fn objects(stream: u8, frame_bytes: u32) -> Vec<MediaObject<'static>> {
    (0..10 * SECONDS)
        .map(|number| MediaObject {
            stream,
            number,
            presentation_ms: PREROLL_MS + 100 * number,
            is_key: number % 10 == 0,
            data: media(stream, number, frame_bytes).into(),
        })
        .collect()
}

/// Makes a file of these streams, with a header as short as ffmpeg's, changed by `change`.
fn file_of(streams: &[(u8, Guid, u32)], change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut packets: Vec<DataPacket<'_>> = Vec::new();
    let all: Vec<_> =
        streams.iter().map(|(number, _, frame_bytes)| (*number, objects(*number, *frame_bytes))).collect();
    for (number, objects) in &all {
        let packed = asf::pack(objects, 0, *number, PACKET_BYTES as usize);
        packets.extend(packed.into_iter().map(|packet| {
            let at = packet.payloads[0].of.unwrap().presentation_ms - PREROLL_MS;
            DataPacket { send_ms: at, ..packet }
        }));
    }
    packets.sort_by_key(|packet| packet.send_ms);
    let properties = |(number, kind, _): &(u8, Guid, u32)| StreamProperties {
        number: *number,
        kind: *kind,
        type_specific: vec![*number; 11],
        ..StreamProperties::default()
    };
    let mut header = Header {
        file: FileProperties {
            packets: packets.len() as u64,
            play_100ns: u64::from(SECONDS * 1000 + PREROLL_MS) * UNITS_PER_MS,
            preroll_ms: PREROLL_MS.into(),
            min_packet_bytes: PACKET_BYTES,
            max_packet_bytes: PACKET_BYTES,
            ..FileProperties::default()
        },
        streams: streams.iter().map(properties).collect(),
        ..Header::default()
    };
    change(&mut header);
    let mut file = asf::write_head(&header).unwrap();
    for packet in &packets {
        file.extend(asf::write_packet(packet, PacketSize::Fixed(PACKET_BYTES)).unwrap());
    }
    file
}

/// Pictures and sound as ffmpeg numbers them.
fn film(frame_bytes: u32) -> Vec<u8> {
    file_of(&[(1, Guid::VIDEO, frame_bytes), (2, Guid::AUDIO, 100)], |_| ())
}

fn object_in(file: Vec<u8>) -> Result<Object, String> {
    object_of("film.wmv", &[("film.wmv".into(), file)])
}

fn numbers(object: &Object) -> Vec<(u8, usize)> {
    places(object).map(|(number, place)| (number, place.stream)).collect()
}

fn rates(object: &Object, stream: usize) -> Vec<u64> {
    object.streams[stream].encodings.iter().map(|encoding| encoding.bit_rate_bps).collect()
}

#[test]
fn streams_keep_their_numbers_and_their_media() {
    let object = object_in(film(500)).unwrap();
    assert_eq!(numbers(&object), [(2, AUDIO), (1, VIDEO)]);
    assert_eq!((rates(&object, VIDEO), rates(&object, AUDIO)), (vec![40_000], vec![8_000]));
    assert_eq!(object.duration, Duration::from_secs(SECONDS.into()));
    for (number, frame_bytes) in [(1, 500), (2, 100)] {
        let encoding = encoding_at(&object, place_of(&object, number).unwrap());
        assert_eq!(encoding.count(), u64::from(10 * SECONDS));
        for (place, expected) in (0..).zip(objects(number, frame_bytes)) {
            let frame = encoding.frame(place).unwrap();
            assert_eq!(frame.at, Duration::from_millis(100 * place));
            assert_eq!(frame.is_key, number == 2 || place % 10 == 0);
            assert_eq!(encoding.media(place, frame).head(), &*expected.data);
        }
    }
}

#[test]
fn one_file_of_several_rates_is_one_object_by_what_it_says_of_them() {
    let files = [film(2_000), film(500), film(1_000)];
    let inputs: Vec<_> = files
        .iter()
        .enumerate()
        .map(|(place, file)| {
            let streams = Some(if place == 0 { vec![2, 1] } else { vec![1] });
            MultiplexInput { file, streams }
        })
        .collect();
    let file = asf::multiplex(&inputs, &MultiplexSettings::default()).unwrap();
    let said = Asf::read(&file).unwrap().header;
    let object = object_in(file).unwrap();
    assert_eq!(numbers(&object), [(1, AUDIO), (3, VIDEO), (4, VIDEO), (2, VIDEO)]);
    let told: Vec<_> = [3, 4, 2].map(|number| u64::from(said.bit_rate_bps(number).unwrap())).into();
    assert_eq!(rates(&object, VIDEO), told);
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn of_streams_that_exclude_each_other_no_other_is_a_rate() {
    let streams = [(1, Guid::VIDEO, 500), (2, Guid::VIDEO, 900), (5, Guid::VIDEO, 700), (9, Guid::AUDIO, 50)];
    let exclude = |kind, streams: &[u8]| {
        let streams = streams.to_vec();
        move |header: &mut Header| {
            header.exclusions.push(MutualExclusion { kind, is_advanced: false, streams });
        }
    };
    let of = |file| numbers(&object_in(file).unwrap());
    let all = [(9, AUDIO), (1, VIDEO), (5, VIDEO), (2, VIDEO)];
    assert_eq!(of(file_of(&streams, |_| ())), all);
    assert_eq!(of(file_of(&streams, exclude(Guid::EXCLUSIVE_BY_BIT_RATE, &[5, 1]))), all[..3]);
    assert_eq!(of(file_of(&streams, exclude(Guid::AUDIO, &[5, 1]))), all, "by another kind");
    assert_eq!(of(file_of(&streams, exclude(Guid::EXCLUSIVE_BY_BIT_RATE, &[77]))), all, "of none");
}

#[test]
fn rates_are_those_that_the_file_says_and_else_those_of_the_media() {
    let streams = [(1, Guid::VIDEO, 500), (2, Guid::VIDEO, 900)];
    let said = file_of(&streams, |header| {
        header.bit_rates = vec![
            StreamBitRate { stream: 1, average_bps: 300_000 },
            StreamBitRate { stream: 2, average_bps: 0 },
        ];
    });
    let object = object_in(said).unwrap();
    assert_eq!(rates(&object, VIDEO), [72_000, 300_000]);
}

#[test]
fn files_of_a_folder_are_encodings_of_one_object_counted_from_1() {
    let files: Vec<_> = [2_000, 500].map(|bytes| (format!("{bytes}.wmv"), film(bytes))).into();
    let object = object_of("film.wmv", &files).unwrap();
    assert_eq!(numbers(&object), [(1, AUDIO), (2, VIDEO), (3, VIDEO)]);
    assert_eq!(rates(&object, VIDEO), [40_000, 160_000]);
    let broken = ("broken.wmv".to_owned(), b"RIFF".to_vec());
    assert!(object_of("film.wmv", &[files[0].clone(), broken]).unwrap_err().starts_with("broken.wmv: "));
    assert!(object_of("film.wmv", &[]).unwrap_err().contains("no file"));
}

#[test]
fn what_cannot_be_served_is_refused_and_what_is_cut_short_plays_to_there() {
    assert!(object_in(b"RIFF....".to_vec()).is_err());
    let whole = film(500);
    assert!(object_in(whole[..100].to_vec()).is_err());
    let cut = object_in(whole[..whole.len() * 2 / 3].to_vec()).unwrap();
    assert!((1..40).contains(&cut.streams[VIDEO].encodings[0].count()));
    let many: Vec<_> = (1..=11).map(|number| (number, Guid::VIDEO, 100)).collect();
    assert!(object_in(file_of(&many, |_| ())).unwrap_err().contains("11 streams of video; 10"));
    assert!(object_in(file_of(&[(1, Guid::DATA, 100)], |_| ())).unwrap_err().contains("no media object"));
}

#[test]
fn a_file_that_says_an_hour_and_has_seconds_is_as_long_as_its_media() {
    for flags in [0, FLAG_BROADCAST] {
        let file = file_of(&[(1, Guid::VIDEO, 500)], |header| {
            header.file.play_100ns = 3_600_000 * UNITS_PER_MS;
            header.file.flags = flags;
        });
        assert_eq!(object_in(file).unwrap().duration, Duration::from_secs(SECONDS.into()));
    }
}

fn shown(object: Object, transport: WmTransport) -> f64 {
    ended(object, transport).0
}

/// Pictures that were shown, and why it ended.
fn ended(object: Object, transport: WmTransport) -> (f64, String) {
    let shelf: Arc<dyn Shelf<_>> = Arc::new(OneObject(Arc::new(object)));
    let server = WmServer::new(shelf, ServerSettings::of(Preset::Wms9), "video", 1);
    let settings = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::Wmp9) };
    let player = WmPlayer::new(settings, "rtsp://server/film.wmv");
    let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() };
    let mut pair = Pair::new(Box::new(server), Box::new(player), pipe);
    pair.run(Instant::from_nanos(60_000_000_000));
    let end = pair.events.iter().find(|event| event.name == MEDIA_END);
    end.map_or((0.0, String::new()), |end| (end.value.unwrap_or(0.0), end.reason.to_string()))
}

#[test]
fn a_file_is_played_whole_over_both() {
    for transport in [WmTransport::Udp, WmTransport::Tcp] {
        assert_eq!(shown(object_in(film(3_000)).unwrap(), transport), f64::from(10 * SECONDS));
        // Sound is played to its end, and is no picture.
        let sound = file_of(&[(7, Guid::AUDIO, 200)], |_| ());
        let (pictures, why) = ended(object_in(sound).unwrap(), transport);
        let ends = ["all frames were shown or given up", "the server said that all was sent"];
        assert!(pictures == 0.0 && ends.contains(&why.as_str()), "{pictures}: {why}");
    }
}

proptest! {
    #[test]
    fn whatever_a_file_says_it_is_refused_or_played(
        at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 1..9), cut in 0usize..20_000,
    ) {
        let mut file = film(300);
        let at = at.index(file.len());
        let end = (at + bytes.len()).min(file.len());
        file[at..end].copy_from_slice(&bytes[..end - at]);
        file.truncate(file.len() - cut.min(file.len()));
        if let Ok(object) = object_in(file) {
            prop_assert!(object.duration > Duration::ZERO);
            for (number, place) in places(&object) {
                prop_assert_eq!(place_of(&object, number), Some(place));
                let encoding = encoding_at(&object, place);
                prop_assert!(encoding.frame(0).is_some_and(|frame| frame.is_key) && encoding.bit_rate_bps > 0);
            }
        }
    }
}
