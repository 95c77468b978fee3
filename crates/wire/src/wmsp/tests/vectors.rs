//! Messages and packets that [MS-WMSP] prints.

use super::*;

/// Section 2.2.2.1.
#[test]
fn a_describe_request_and_its_response() {
    let request = pragmas(&[
        "version11-enabled=1",
        "no-cache,rate=1.000,stream-time=0,stream-offset=0:0,packet-num=4294967295,max-duration=0",
        "packet-pair-experiment=1",
        "pipeline-experiment=1",
        "xClientGUID={52CB2BDB-6925-4E19-8D1D-62D10E9E2705}",
    ]);
    let expected = Pragmas {
        version11: Some(true),
        no_cache: true,
        rate: Some(1.0),
        stream_time_ms: Some(0),
        stream_offset: Some(0),
        packet_num: Some(u32::MAX),
        max_duration: Some(0),
        packet_pair: Some(true),
        pipeline: Some(true),
        client_guid: Some("{52CB2BDB-6925-4E19-8D1D-62D10E9E2705}".into()),
        ..Pragmas::default()
    };
    assert_eq!(request, Ok(expected));
    let response =
        pragmas(&["packet-pair-experiment=1, no-cache, pipeline-experiment=1, client-id=2676631236, \
                              xResetStrm=1, features=\"seekable,stridable\", timeout=60000"]);
    let expected = Pragmas {
        packet_pair: Some(true),
        no_cache: true,
        pipeline: Some(true),
        client_id: Some(2_676_631_236),
        reset: true,
        features: Some(vec![ContentFeature::Seekable, ContentFeature::Stridable]),
        timeout_ms: Some(60_000),
        ..Pragmas::default()
    };
    assert_eq!(response, Ok(expected));
}

/// Section 2.2.2.6.
#[test]
fn a_play_request_and_its_response() {
    let request = pragmas(&[
        "version11-enabled=1",
        "no-cache,rate=1.000,stream-time=0,stream-offset=4294967295:4294967295,packet-num=4294967295,max-duration=0",
        "xPlayStrm=1",
        "client-id=2338761264",
        "LinkBW=2147483647, AccelBW=2147483647, AccelDuration=18000, Speed=91268.055",
        "playlist-seek-id=64",
        "xClientGUID={BFE16E37-55EC-4AE4-A5A9-0B0D307F4B72}",
        "stream-switch-count=2",
        "stream-switch-entry=ffff:1:0 ffff:2:0",
    ]);
    let expected = Pragmas {
        version11: Some(true),
        no_cache: true,
        rate: Some(1.0),
        stream_time_ms: Some(0),
        stream_offset: Some(u64::MAX),
        packet_num: Some(u32::MAX),
        max_duration: Some(0),
        play: Some(true),
        client_id: Some(2_338_761_264),
        link_bps: Some(i32::MAX as u32),
        accel_bps: Some(i32::MAX as u32),
        accel_duration_ms: Some(18_000),
        speed: Some(91_268.055),
        playlist_seek_id: Some(64),
        client_guid: Some("{BFE16E37-55EC-4AE4-A5A9-0B0D307F4B72}".into()),
        stream_switches: vec![StreamSwitch::on(1), StreamSwitch::on(2)],
        ..Pragmas::default()
    };
    assert_eq!(request, Ok(expected));
    let response =
        pragmas(&["no-cache, client-id=2338761264, features=\"\", timeout=60000, AccelBW=3500000, \
                              AccelDuration=18000, Speed=5.000"]);
    let response = response.unwrap();
    assert_eq!(response.features, Some(vec![]));
    assert_eq!((response.accel_bps, response.speed), (Some(3_500_000), Some(5.0)));
}

/// Section 2.2.1.4.27 (where its examples have the token's words in another order than its syntax).
#[test]
fn streams_are_switched() {
    let switches = |entry: &str| pragmas(&[&format!("stream-switch-entry={entry}")]).unwrap().stream_switches;
    let off = StreamSwitch { level: ThinningLevel::Nothing, ..StreamSwitch::on(2) };
    assert_eq!(switches("ffff:2:2"), [off]);
    let thin = StreamSwitch { from: Some(1), to: Some(1), level: ThinningLevel::KeyFrames };
    assert_eq!(switches("1:1:1"), [thin]);
    let mut headers = HttpHeaders::default();
    Pragmas { stream_switches: vec![off, thin], ..Pragmas::default() }.add_to(&mut headers);
    let written: Vec<_> = headers.all("Pragma").collect();
    assert_eq!(written, ["stream-switch-count=2", "stream-switch-entry=ffff:2:2 1:1:1"]);
}

/// Sections 2.2.3.1 to 2.2.3.8, field by field.
#[test]
fn packets() {
    let written = |content: PacketContent| WmspPacket::from(content).write();
    let header =
        DataPacket { flags: data_flags::WHOLE, payload: Body::from(&b"asf"[..]), ..DataPacket::default() };
    let bytes = *b"$H\x0b\0\0\0\0\0\0\x0c\x0b\0asf";
    assert_eq!(written(PacketContent::Header(header.write())), Chunk::bytes(bytes));
    let data = DataPacket { location: 7, flags: 254, payload: Body::filler(1_400), ..DataPacket::default() };
    let at_once = WmspPacket { is_back_to_back: true, content: PacketContent::data(&data) };
    assert_eq!(at_once.write(), Chunk::with_filler(*b"\xa4D\x80\x05\x07\0\0\0\0\xfe\x80\x05", 1_400));
    assert_eq!(written(PacketContent::End(reasons::MORE)), Chunk::bytes(*b"$E\x04\0\x01\0\0\0"));
    assert_eq!(written(PacketContent::Change(reasons::RECEDING)), Chunk::bytes(*b"$C\x04\0\xbe\x14\x0d\x40"));
    assert_eq!(written(PacketContent::Test), Chunk::bytes(*b"$T\0\0"));
}

/// Section 2.2.3.7: head and first packet are 512 B, and so is the second packet.
#[test]
fn a_packet_pair() {
    for head in [0, 300, 504] {
        let pair: Vec<_> = pair(head).iter().map(WmspPacket::write).collect();
        assert_eq!(pair[0].head()[..4], *b"$P\xf8\x01");
        assert_eq!(pair[2].head()[..4], *b"$P\x18\x04");
        assert_eq!(pair[1].head()[4..], head.to_le_bytes());
        assert_eq!(pair[0].len() + head as usize, 512);
        assert_eq!((pair[1].len(), pair[2].len()), (512, 1_056 + head as usize));
    }
}

/// Section 2.2.3.6.
#[test]
fn metadata() {
    let metadata = Metadata {
        playlist_gen_id: 2_587,
        broadcast_id: 0,
        features: vec![ContentFeature::Seekable, ContentFeature::Stridable],
        descriptions: b"7,language,31,0,\r\n".to_vec(),
    };
    let payload =
        b"playlist-gen-id=2587, broadcast-id=0, features=\"seekable,stridable\"\x007,language,31,0,\r\n";
    assert_eq!(metadata.write(), payload);
    assert_eq!(Metadata::parse(payload), Ok(metadata));
}

/// FFmpeg 5.1's request for media.
#[test]
fn a_line_without_an_end() {
    let read = pragmas(&["no-cache,rate=1.000000,stream-time=0Connection: Close"]).unwrap();
    assert_eq!((read.stream_time_ms, read.rate), (Some(0), Some(1.0)));
    assert_eq!(pragmas(&["stream-time=Connection: Close"]).unwrap_err().token, "stream-time");
}
