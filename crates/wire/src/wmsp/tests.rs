use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::*;
use crate::body::Body;
use crate::http::{HttpHeaders, Request};
use crate::mms::{DataPacket, StreamSwitch, ThinningLevel, data_flags};

mod vectors;

fn all(bytes: &[u8]) -> Vec<Result<WmspPacket, Problem>> {
    let mut reader = Reader::default();
    reader.push(Chunk::bytes(bytes));
    reader.collect()
}

fn any_data() -> impl Strategy<Value = Chunk> {
    let payload =
        prop_oneof![(0u32..3000).prop_map(Chunk::filler), vec(any::<u8>(), 0..60).prop_map(Chunk::bytes)];
    (any::<(u32, u8, u8)>(), payload).prop_map(|((location, incarnation, flags), payload)| {
        DataPacket { location, incarnation, flags, payload: Body::from(&payload) }.write()
    })
}

fn any_packet() -> impl Strategy<Value = WmspPacket> {
    let content = prop_oneof![
        any_data().prop_map(PacketContent::Header),
        any_data().prop_map(PacketContent::Data),
        any_data().prop_map(PacketContent::Metadata),
        any::<u32>().prop_map(PacketContent::Change),
        any::<u32>().prop_map(PacketContent::End),
        Just(PacketContent::Test),
        vec(any::<u8>(), 0..30).prop_map(|body| PacketContent::Other { id: b'X', body: Chunk::bytes(body) }),
    ];
    (any::<bool>(), content).prop_map(|(is_back_to_back, content)| WmspPacket { is_back_to_back, content })
}

/// Returns the three packets of a pair behind a head of this many bytes.
fn pair(head_bytes: u32) -> Vec<WmspPacket> {
    let one = |place| {
        let random = Chunk::filler(PacketContent::random_bytes(place, head_bytes) as u32);
        PacketContent::PacketPair { place, head_bytes, random }.into()
    };
    (0..3).map(one).collect()
}

fn any_pragmas() -> impl Strategy<Value = Pragmas> {
    let bits = (any::<[bool; 7]>(), any::<[Option<bool>; 6]>());
    let numbers = any::<([Option<u32>; 12], Option<u64>)>();
    let milli = (option::of(1000i32..=5000), any::<bool>(), option::of(1000u32..10_000_000));
    let feature = (0..ContentFeature::ALL.len()).prop_map(|index| ContentFeature::ALL[index]);
    let features = option::of(vec(feature, 0..4));
    let switch =
        (option::of(0u16..0xffff), option::of(0u16..0xffff), 0u16..3).prop_map(|(from, to, level)| {
            StreamSwitch { from, to, level: ThinningLevel::new(level).expect("below 3") }
        });
    let texts =
        (option::of(Just("{3300AD50-2C39-46c0-AE0A-4F6B136D663C}".to_owned())), option::of("[ -~]{0,9}x"));
    (bits, numbers, milli, features, vec(switch, 0..4), texts).prop_map(
        |((flags, bits), (numbers, stream_offset), (rate, back, speed), features, stream_switches, texts)| {
            Pragmas {
                no_cache: flags[0],
                play: bits[0],
                play_next_entry: flags[1],
                stop: flags[2],
                keep_alive: flags[3],
                reset: flags[4],
                client_id: numbers[0],
                client_guid: texts.0,
                request_context: numbers[1],
                rate: rate.map(|rate| f64::from(if back { -rate } else { rate }) / 1000.0),
                stream_time_ms: numbers[2],
                stream_offset,
                packet_num: numbers[3],
                max_duration: numbers[4],
                link_bps: numbers[5],
                accel_bps: numbers[6],
                accel_duration_ms: numbers[7],
                speed: speed.map(|speed| f64::from(speed) / 1000.0),
                packet_pair: bits[1],
                pipeline: bits[2],
                pipeline_request: flags[5],
                pipeline_result: bits[3],
                version11: bits[4],
                features,
                timeout_ms: numbers[8],
                playlist_gen_id: numbers[9],
                playlist_seek_id: numbers[10],
                client_lag_ms: numbers[11],
                expect_new_header: bits[5],
                stream_switches,
                log_line: texts.1.map(|log| log.trim().to_owned()),
            }
        },
    )
}

fn pragmas(lines: &[&str]) -> Result<Pragmas, PragmaFault> {
    let mut headers = HttpHeaders::default();
    lines.iter().for_each(|line| headers.add("Pragma", line));
    Pragmas::read(&headers)
}

#[test]
fn what_is_wrong_is_said() {
    let first = |bytes: &[u8]| all(bytes)[0].clone().expect_err("a problem").fault;
    assert_eq!(first(b"HTTP"), Fault::NotFramed);
    let length = |id, length| Fault::Length { id, length };
    assert_eq!(first(b"$D\x07\0"), length(b'D', 7));
    assert_eq!(first(b"$E\x08\0"), length(b'E', 8));
    assert_eq!(first(b"$C\0\0"), length(b'C', 0));
    assert_eq!(first(b"$T\x01\0"), length(b'T', 1));
    assert_eq!(first(b"$P\x18\x04"), length(b'P', 1_048), "the third comes first");
    assert_eq!(first(b"$P\xf8\x01\xf9\x01\0\0"), Fault::Head(505));
    let inner = first(b"$D\x08\0\0\0\0\0\0\0\x09\0");
    assert!(matches!(inner, Fault::Media(problem) if problem.at == 8), "{inner}");
    let mut four = pair(504);
    four.push(four[0].clone());
    let bytes: Vec<u8> = four
        .iter()
        .flat_map(|packet| {
            let written = packet.write();
            [written.head(), &vec![0; written.len() - written.head().len()]].concat()
        })
        .collect();
    let read = all(&bytes);
    assert_eq!(read.len(), 4);
    assert_eq!(read[3], Err(Problem { packet: 3, fault: Fault::PacketPair }));
    // No more bytes arrive, and none are kept.
    let mut reader = Reader::default();
    reader.push(Chunk::filler(u32::MAX));
    assert_eq!(reader.next(), Some(Err(Problem { packet: 0, fault: Fault::NotFramed })));
    reader.push(Chunk::bytes(*b"$T\0\0"));
    assert_eq!(reader.next(), None);
    for (payload, missing) in [
        (&b"playlist-gen-id=1, broadcast-id=0"[..], "its end"),
        (b"broadcast-id=0\0", "playlist-gen-id"),
        (b"playlist-gen-id=1, broadcast-id=x\0", "broadcast-id"),
        (b"\xff\0", "text"),
    ] {
        assert_eq!(Metadata::parse(payload), Err(Fault::Metadata(missing)));
    }
}

#[test]
fn tokens_have_values() {
    for (line, token) in [
        ("xPlayStrm=2", "xplaystrm"),
        ("xPlayStrm", "xplaystrm"),
        ("client-id=-1", "client-id"),
        ("client-id=4294967296", "client-id"),
        ("rate=0", "rate"),
        ("rate=NaN", "rate"),
        ("rate=6.000", "rate"),
        ("Speed=0.5", "speed"),
        ("Speed=inf", "speed"),
        ("stream-offset=1", "stream-offset"),
        ("stream-offset=1:4294967296", "stream-offset"),
        ("xClientGUID={x}", "xclientguid"),
        ("stream-switch-entry=ffff:1", "stream-switch-entry"),
        ("stream-switch-entry=ffff:1:3", "stream-switch-entry"),
        ("stream-switch-entry=ffff:1:0:0", "stream-switch-entry"),
        ("stream-switch-entry=10000:1:0", "stream-switch-entry"),
        ("stream-switch-count=1", "stream-switch-count"),
    ] {
        assert_eq!(pragmas(&[line]).expect_err(line).token, token);
    }
    // Unknown ones are left out, and the last of several holds.
    let read = pragmas(&["what=\"a,b\", client-id=1", "CLIENT-ID=2", "version-info=4.0.1.3850"]);
    assert_eq!(read, Ok(Pragmas { client_id: Some(2), ..Pragmas::default() }));
    let log = pragmas(&["log-line=a, b xPlayStrm=1"]).unwrap();
    assert_eq!((log.log_line.as_deref(), log.play), (Some("a, b xPlayStrm=1"), None));
}

#[test]
fn a_request_is_of_one_kind() {
    let kind = |method: &str, media_type: Option<&str>, lines: &[&str]| {
        let mut request = Request::new(method, "/film", "host").unwrap();
        media_type.iter().for_each(|media_type| request.headers.add("Content-Type", media_type));
        RequestKind::of(&request, &pragmas(lines).unwrap())
    };
    assert_eq!(kind("GET", None, &[]), Some(RequestKind::Describe));
    assert_eq!(kind("GET", None, &["xPlayStrm=0"]), Some(RequestKind::Describe));
    assert_eq!(kind("GET", None, &["xPlayStrm=1", "stream-switch-entry=ffff:1:0"]), Some(RequestKind::Play));
    assert_eq!(kind("GET", None, &["xPlayNextEntry=1"]), Some(RequestKind::PlayNextEntry));
    assert_eq!(kind("GET", None, &["stream-switch-entry=1:1:1"]), Some(RequestKind::SelectStream));
    assert_eq!(kind("POST", None, &["stream-switch-entry=1:1:1"]), Some(RequestKind::SelectStream));
    assert_eq!(kind("POST", None, &["pipeline-request=1"]), Some(RequestKind::Pipeline));
    assert_eq!(kind("POST", None, &["xStopStrm=1"]), Some(RequestKind::Stop));
    assert_eq!(kind("POST", None, &["xKeepAliveInPause=1"]), Some(RequestKind::KeepAlive));
    assert_eq!(kind("POST", Some("text/plain"), &["log-line=-"]), Some(RequestKind::Log));
    let log = Some("application/x-wms-LogStats;charset=UTF-8");
    assert_eq!(kind("POST", log, &["client-id=1"]), Some(RequestKind::Log));
    assert_eq!(kind("POST", Some(media_types::CONTENT_INFO), &[]), Some(RequestKind::GetContentInfo));
    assert_eq!(kind("POST", Some(media_types::EVENT), &[]), Some(RequestKind::SendEvent));
    assert_eq!(kind("POST", None, &[]), None);
    assert_eq!(kind("PUT", None, &["xPlayStrm=1"]), None);
}

proptest! {
    /// Packets come out of a body in their order, wherever it is cut.
    #[test]
    fn packets_are_read_as_written(
        head_bytes in option::of(0u32..=504),
        packets in vec(any_packet(), 0..6),
        cuts in vec(1usize..60, 0..30),
    ) {
        let packets: Vec<_> = head_bytes.map(pair).unwrap_or_default().into_iter().chain(packets).collect();
        let mut reader = Reader::default();
        let mut read = Vec::new();
        let mut cuts = cuts.into_iter().cycle();
        for packet in &packets {
            let mut chunk = packet.write();
            while !chunk.is_empty() {
                let rest = chunk.split_off(cuts.next().unwrap_or(usize::MAX));
                reader.push(chunk);
                read.extend(reader.by_ref());
                chunk = rest;
            }
        }
        prop_assert_eq!(read, packets.into_iter().map(Ok).collect::<Vec<_>>());
        prop_assert!(reader.is_between_packets());
    }

    #[test]
    fn pragmas_are_read_as_written(pragmas in any_pragmas()) {
        let mut headers = HttpHeaders::default();
        pragmas.add_to(&mut headers);
        prop_assert_eq!(Pragmas::read(&headers), Ok(pragmas));
    }

    #[test]
    fn metadata_is_read_as_written(
        (playlist_gen_id, broadcast_id) in any::<(u32, u32)>(),
        features in vec((0..ContentFeature::ALL.len()).prop_map(|index| ContentFeature::ALL[index]), 0..4),
        descriptions in vec(any::<u8>(), 0..20),
    ) {
        let metadata = Metadata { playlist_gen_id, broadcast_id, features, descriptions };
        prop_assert_eq!(Metadata::parse(&metadata.write()), Ok(metadata));
    }

    /// Any bytes are packets, and perhaps a problem at the end; a parsed packet is written as it was.
    #[test]
    fn takes_anything(pieces in vec(prop_oneof![
        vec(any::<u8>(), 0..12),
        any_packet().prop_map(|packet| packet.write().head().to_vec()),
    ], 0..5)) {
        let bytes = pieces.concat();
        let read = all(&bytes);
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
        let written: Vec<u8> = read.iter().flatten().flat_map(|packet| packet.write().head().to_vec()).collect();
        prop_assert!(bytes.starts_with(&written));
    }
}
