use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::bodies::*;
use super::sdp::*;
use super::*;
use crate::mms::ThinningLevel;
use crate::rtsp::{Reader, RtspItem, names};

fn stream(number: u32, url: &str) -> Option<StreamUrl> {
    Some(StreamUrl { number, url: url.into() })
}

/// Returns a message as read from a connection.
fn item(text: &str) -> RtspItem {
    let mut reader = Reader::default();
    reader.push(streamgauge_base::Chunk::bytes(text.as_bytes()));
    reader.next().expect("whole").expect("a message")
}

/// [MS-RTSP] section 2.2.7.9, without its X-RTP-Info.
#[test]
fn a_play_request() {
    let RtspItem::Request(request) = item(
        "PLAY rtsp://myserver.com/ServerSidePlaylist.wsx RTSP/1.0\r\nX-Playlist-Seek-Id: 5353\r\n\
         User-Agent: WMPlayer/9.0.0.2868 guid/832BF8C6-D8E4-40D4-A058-C31F3D4A3B65\r\n\
         Accept-Charset: UTF-8, *;q=0.1\r\nX-Accept-Authentication: Negotiate, NTLM, Digest\r\n\
         Accept-Language: en-us, *;q=0.1\r\nSession: 13856065358275910855\r\nCSeq: 8\r\nRange: npt=0.000-\r\n\
         Bandwidth: 2147483647\r\n\
         X-Accelerate-Streaming: AccelDuration=8000;AccelBandwidth=1024128\r\n\r\n",
    ) else {
        panic!("a request")
    };
    let accelerate = AccelerateStreaming { duration_ms: 8_000, bandwidth_bps: 1_024_128 };
    assert_eq!(request.typed_header(), Ok(Some(accelerate)));
    assert_eq!(request.typed_header(), Ok(Some(Bandwidth(i32::MAX as u32))));
    assert_eq!(request.typed_header::<PlaylistGenId>(), Ok(None), "another header begins alike");
    assert_eq!(accelerate.to_string(), "AccelDuration=8000;AccelBandwidth=1024128");
}

/// [MS-RTSP] sections 4.4.2 and 2.2.6.10.
#[test]
fn what_a_server_can_do() {
    use WindowsMediaFeature as F;
    let RtspItem::Response(response) = item(
        "RTSP/1.0 200 OK\r\nContent-Type: application/sdp\r\nCSeq: 5\r\nServer: WMServer/9.5.5732.6324\r\n\
         Supported: com.microsoft.wm.srvppair, com.microsoft.wm.sswitch,\r\n \
         com.microsoft.wm.eosmsg, com.microsoft.wm.fastcache,\r\n \
         com.microsoft.wm.packetpairssrc, com.microsoft.wm.startupprofile\r\nX-Playlist-Gen-Id: 5353\r\n\r\n",
    ) else {
        panic!("a response")
    };
    let features = [
        F::PacketPair,
        F::StreamSwitch,
        F::EndOfStreamNotice,
        F::FastCache,
        F::PacketPairSsrc,
        F::StartupProfile,
    ];
    let supported = SupportedFeatures(features.into());
    assert_eq!(response.typed_header().as_ref(), Ok(&Some(supported.clone())));
    assert_eq!(response.typed_header(), Ok(Some(PlaylistGenId(5353))));
    assert!(supported.has(F::FastCache) && !supported.has(F::PredictiveStreams));
    assert_eq!("x, com.microsoft.wm.locid".parse(), Ok(SupportedFeatures(vec![F::LocationId])));
}

/// [MS-RTSP] section 2.2.7.3; its Content-Length counts the session's line.
#[test]
fn a_notice_of_the_end() {
    let RtspItem::Request(request) = item(
        "SET_PARAMETER rtsp://myserver.com/ServerSidePlaylist.wsx RTSP/1.0\r\n\
         Content-Type: application/x-wms-extension-cmd\r\nX-Notice: 2101 \"End-of-Stream Reached\"\r\n\
         RTP-Info: url=rtsp://myserver.com/ServerSidePlaylist.wsx/audio;Seq=26968, \
         url=rtsp://myserver.com/ServerSidePlaylist.wsx/video;Seq=46497\r\nX-Playlist-Gen-Id: 5351\r\n\
         Content-Length: 71\r\nCSeq: 5\r\nUser-Agent: WMServer/9.0.0.3191\r\n\r\n\
         Session: 13856065358275910855\r\nEOF: true\r\nEnd-Of-Playlist-Entry: true\r\n",
    ) else {
        panic!("a request")
    };
    assert_eq!(request.typed_header(), Ok(Some(Notice::end_of_stream())));
    assert_eq!(Notice::end_of_stream().to_string(), "2101 \"End-of-Stream Reached\"");
    let info = request.typed_header::<crate::rtsp::RtpInfo>().unwrap().unwrap();
    assert_eq!((info.0[0].seq, info.0[1].seq), (Some(26_968), Some(46_497)));
    let content_type = request.header(&names::CONTENT_TYPE).unwrap().as_str();
    assert!(media_types::is(content_type, media_types::EXTENSION_COMMAND));
    assert!(media_types::is("application/x-wms-Logconnectstats;charset=UTF-8", media_types::LOG_CONNECT));
    assert!(!media_types::is("application/x-wms-Logconnectstats", media_types::LOG_PLAY));
    let body = std::str::from_utf8(request.body()).unwrap();
    let notice = EndOfStreamNotice {
        session: Some("13856065358275910855".into()),
        cause: Some(EndCause::PlaylistEntry),
    };
    assert_eq!(body.parse(), Ok(notice.clone()));
    assert_eq!(notice.to_string(), body);
    assert_eq!("EOF: false\r\n".parse::<EndOfStreamNotice>(), Err(BodyFault::EndOfStream));
}

/// [MS-RTSP] sections 2.2.7.14 and 4.4.2.
#[test]
fn a_request_for_a_packet_pair() {
    let text = "type: high-entropy-packetpair variable-size";
    assert_eq!(text.len(), 43, "its Content-Length");
    assert_eq!(text.parse(), Ok(PacketPairRequest { variable_size: true }));
    assert_eq!("type: high-entropy-packetpair\r\n".parse(), Ok(PacketPairRequest::default()));
    for wrong in ["", "type: low", "high-entropy-packetpair"] {
        assert_eq!(wrong.parse::<PacketPairRequest>(), Err(BodyFault::PacketPair));
    }
}

/// [MS-RTSP] sections 4.4.4.1 and 4.4.4.2.
#[test]
fn streams_are_switched() {
    let (seven, six) =
        ("rtsp://myserver.com/myMBRcontent.wmv/stream=7", "rtsp://myserver.com/myMBRcontent.wmv/stream=6");
    let switch = SelectStream { old: stream(7, seven), new: stream(6, six), level: ThinningLevel::All };
    let text = format!("SSEntry: 7 6 0 {seven} {six}\r\n");
    assert_eq!(text.parse(), Ok(SelectStreams(vec![switch.clone()])));
    assert_eq!(SelectStreams(vec![switch]).to_string(), text);
    let audio = "rtsp://host/abc/audio=5";
    let off = SelectStream { old: stream(5, audio), new: stream(5, audio), level: ThinningLevel::Nothing };
    assert_eq!(format!("5 5 2 {audio} {audio}").parse(), Ok(SelectStreams(vec![off])));
    let thin = SelectStream { old: None, new: stream(1, audio), level: ThinningLevel::KeyFrames };
    let text = format!("SSEntry: 4294967295 1 1 {audio}\r\n");
    assert_eq!(SelectStreams(vec![thin]).to_string(), text);
    for wrong in [
        "SSEntry: 1 2",
        "SSEntry: 1 2 3 rtsp://a rtsp://b",
        "SSEntry: 1 2 65536 rtsp://a rtsp://b",
        "SSEntry: 1 2 0 rtsp://a",
        "SSEntry: 4294967295 2 0 rtsp://a rtsp://b",
        "SSEntry: -1 2 0 rtsp://a rtsp://b",
    ] {
        let text = format!("\r\n{wrong}\r\n");
        assert_eq!(text.parse::<SelectStreams>(), Err(BodyFault::StreamSwitch { line: 2 }), "{wrong}");
    }
}

/// [MS-RTSP] sections 2.2.5.2, 2.2.5.5 and 4.3.1.
#[test]
fn attributes_of_a_description() {
    use WindowsMediaAttribute as A;
    let read = |name, value| A::read(name, Some(value));
    assert_eq!(read("maxps", "1444"), Some(Ok(A::MaxPacketBytes(1_444))));
    assert!(read("maxps", "0").unwrap().is_err());
    assert_eq!(read("stream", "65536"), Some(Ok(A::Stream(StreamNumber::RTX))));
    assert_eq!(A::Stream(StreamNumber::RTX).line(), "a=stream:65536\r\n");
    for wrong in ["0", "65535", "131071", "x"] {
        assert!(read("stream", wrong).unwrap().is_err(), "{wrong}");
    }
    let properties = vec![ContentProperty::NotSeekable, ContentProperty::NotStridable];
    assert_eq!(read("type", "notseekable,notstridable"), Some(Ok(A::Type(properties))));
    assert_eq!(
        (A::read("reliable", None), A::Reliable.line()),
        (Some(Ok(A::Reliable)), "a=reliable\r\n".into())
    );
    let header = A::AsfHeader(vec![0x30, 0x26, 0xb2, 0x75]);
    let line = "a=pgmpu:data:application/vnd.ms.wms-hdr.asfv1;base64,MCaydQ==\r\n";
    assert_eq!(header.line(), line);
    assert_eq!(read("pgmpu", line[8..].trim_end_matches("==\r\n")), Some(Ok(header)));
    assert!(read("pgmpu", "data:application/vnd.ms.wms-hdr.asfv1;base64,!").unwrap().is_err());
    assert_eq!(read("pgmpu", "data:application/x-wms-contentdesc,8,language"), None);
    assert_eq!(read("control", "rtx"), None);
    assert_eq!(PayloadFormat::read("96 x-wms-rtx/1000"), Some((96, PayloadFormat::Retransmissions)));
    assert_eq!(PayloadFormat::Asf.rtpmap(96), "96 x-asf-pf/1000");
    assert_eq!(PayloadFormat::read("96 H264/90000"), None);
    assert_eq!(PayloadFormat::read("128 x-asf-pf/1000"), None);
}

#[test]
fn headers_have_values() {
    for wrong in
        ["AccelDuration=1", "AccelDuration=x;AccelBandwidth=1", "AccelDuration=4294967296;AccelBandwidth=1"]
    {
        assert_eq!(wrong.parse::<AccelerateStreaming>(), Err(HeaderParseError));
    }
    assert_eq!("-1".parse::<Bandwidth>(), Err(HeaderParseError));
    assert_eq!("0".parse::<PlaylistGenId>(), Err(HeaderParseError));
    assert_eq!("end".parse::<Notice>(), Err(HeaderParseError));
    // The number alone is enough.
    assert_eq!("2101".parse(), Ok(Notice { code: 2101, text: String::new() }));
    // Blanks as one player has them.
    let blanks = "AccelDuration = 18000;AccelBandwidth=1";
    assert_eq!(blanks.parse(), Ok(AccelerateStreaming { duration_ms: 18_000, bandwidth_bps: 1 }));
}

fn any_stream() -> impl Strategy<Value = Option<StreamUrl>> {
    let one = (0..u32::MAX, "rtsp://[a-z0-9./=]{1,20}").prop_map(|(number, url)| StreamUrl { number, url });
    option::of(one)
}

proptest! {
    #[test]
    fn headers_are_read_as_written(
        features in vec(0..WindowsMediaFeature::ALL.len(), 0..6),
        (duration_ms, bandwidth_bps, id, code) in (any::<u32>(), any::<u32>(), 1u32.., any::<u16>()),
        text in "[A-Za-z0-9 .-]{0,20}",
    ) {
        let features = features.into_iter().map(|index| WindowsMediaFeature::ALL[index]).collect();
        let features = SupportedFeatures(features);
        prop_assert_eq!(features.to_string().parse(), Ok(features));
        let accelerate = AccelerateStreaming { duration_ms, bandwidth_bps };
        prop_assert_eq!(accelerate.to_string().parse(), Ok(accelerate));
        prop_assert_eq!(Bandwidth(bandwidth_bps).to_string().parse(), Ok(Bandwidth(bandwidth_bps)));
        prop_assert_eq!(PlaylistGenId(id).to_string().parse(), Ok(PlaylistGenId(id)));
        let notice = Notice { code, text: text.trim().into() };
        prop_assert_eq!(notice.to_string().parse(), Ok(notice));
    }

    #[test]
    fn bodies_are_read_as_written(
        switches in vec((any_stream(), any_stream(), 0u16..3), 0..4),
        session in option::of("[0-9]{1,20}"),
        cause in option::of(0usize..3),
        variable_size: bool,
    ) {
        let level = |level| ThinningLevel::new(level).expect("below 3");
        let switches = switches.into_iter().map(|(old, new, thinning)| SelectStream { old, new, level: level(thinning) });
        let switches = SelectStreams(switches.collect());
        prop_assert_eq!(switches.to_string().parse(), Ok(switches));
        let causes = [EndCause::Administrative, EndCause::PlaylistEntry, EndCause::Receding];
        let notice = EndOfStreamNotice { session, cause: cause.map(|index| causes[index]) };
        prop_assert_eq!(notice.to_string().parse(), Ok(notice));
        let request = PacketPairRequest { variable_size };
        prop_assert_eq!(request.to_string().parse(), Ok(request));
    }

    #[test]
    fn attributes_are_read_as_written(
        bytes in 1u32..,
        header in vec(any::<u8>(), 0..80),
        properties in vec(0..ContentProperty::ALL.len(), 0..4),
        number in prop_oneof![1u32..=65_534, 65_536u32..=131_070],
        payload_type in 0u8..128,
    ) {
        let properties = properties.into_iter().map(|index| ContentProperty::ALL[index]).collect();
        for attribute in [
            WindowsMediaAttribute::MaxPacketBytes(bytes),
            WindowsMediaAttribute::AsfHeader(header),
            WindowsMediaAttribute::Type(properties),
            WindowsMediaAttribute::Stream(StreamNumber::new(number).expect("in range")),
            WindowsMediaAttribute::Reliable,
        ] {
            let value = attribute.value();
            prop_assert_eq!(WindowsMediaAttribute::read(attribute.name(), value.as_deref()), Some(Ok(attribute)));
        }
        for format in PayloadFormat::ALL {
            prop_assert_eq!(PayloadFormat::read(&format.rtpmap(payload_type)), Some((payload_type, *format)));
        }
    }

    /// Any text is read or refused; a parsed text is written and read again as the same.
    #[test]
    fn takes_anything(text in "[ -~\r\n]{0,60}", name in "maxps|pgmpu|stream|type|reliable") {
        if let Ok(switches) = text.parse::<SelectStreams>() {
            prop_assert_eq!(switches.to_string().parse(), Ok(switches));
        }
        if let Ok(notice) = text.parse::<EndOfStreamNotice>() {
            prop_assert_eq!(notice.to_string().parse(), Ok(notice));
        }
        if let Some(Ok(attribute)) = WindowsMediaAttribute::read(&name, Some(&text)) {
            let value = attribute.value();
            prop_assert_eq!(WindowsMediaAttribute::read(&name, value.as_deref()), Some(Ok(attribute)));
        }
    }
}
