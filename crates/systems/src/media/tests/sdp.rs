use std::net::IpAddr;

use proptest::prelude::*;
use streamgauge_base::Duration;

use super::super::sdp::{Presentation, control, describe, read, track_of};
use super::super::{Asset, Codec};
use super::{aac, track};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn asset(codecs: &[Codec]) -> Asset {
    let tracks = codecs.iter().map(|codec| track(codec.clone(), &vec![vec![1; 100]; 50])).collect();
    Asset { name: "a\r\nb".into(), duration: Duration::from_millis(1000), tracks, left_out: Vec::new() }
}

fn sets() -> Codec {
    Codec::H264 {
        sps: vec![vec![0x67, 0x42, 0xc0, 0x1e, 9]],
        pps: vec![vec![0x68, 1], vec![0x68, 2]],
        length_bytes: 4,
    }
}

fn visual() -> Codec {
    Codec::Mpeg4Visual { config: vec![0, 0, 1, 0xb0, 3, 0, 0, 1, 0xb5] }
}

#[test]
fn what_is_described_is_read_back() {
    let mut asset = asset(&[sets(), visual(), aac()]);
    asset.tracks[2].clock_rate = 44_100;
    // Pictures that end before the sound.
    for unit in &mut asset.tracks[0].units {
        unit.shown = unit.shown.saturating_sub(Duration::from_millis(10));
    }
    let text = describe(&asset, HERE, 7);
    let Presentation { control: whole, duration, tracks } = read(&text).unwrap();
    assert_eq!((whole, duration), (None, Some(Duration::from_secs(1))));
    for (number, (described, track)) in tracks.iter().zip(&asset.tracks).enumerate() {
        assert_eq!(described.codec.as_ref(), Some(&track.codec));
        assert_eq!(described.clock_rate, track.clock_rate);
        assert_eq!(described.payload_type, Some(96 + number as u8));
        assert_eq!(described.control, Some(control(number)));
        assert_eq!(track_of(&format!("rtsp://host/path/{}", control(number))), Some(number));
    }
    assert_eq!(tracks.len(), 3);
    let ends: Vec<_> = tracks.iter().map(|track| track.end).collect();
    assert_eq!(ends, [990, 1000, 1000].map(|ms| Some(Duration::from_millis(ms))), "each track's own");
    assert_eq!(tracks[0].frames_per_1000_s, Some(50_000));
    assert_eq!(tracks[2].frames_per_1000_s, None);
    assert!(text.contains("profile-level-id=42C01E;"), "{text}");
    assert!(
        text.contains("m=audio 0 RTP/AVP 98\r\n") && text.contains("mpeg4-generic/44100/2\r\n"),
        "{text}"
    );
    // 40 kbit/s of media in packets of one unit of 100 B, each with 40 B of headers.
    assert!(text.contains("b=AS:56\r\n"), "{text}");
    assert!(text.lines().all(|line| line.as_bytes()[1] == b'='), "{text}");
}

#[test]
fn more_tracks_than_payload_types_are_not_described() {
    let tracks = read(&describe(&asset(&vec![Codec::Sizes; 300]), HERE, 1)).unwrap().tracks;
    let types: Vec<u8> = tracks.iter().filter_map(|track| track.payload_type).collect();
    assert_eq!(types, (96..=127).collect::<Vec<u8>>());
}

#[test]
fn frames_of_known_size_are_described_as_h264_without_parameter_sets() {
    let tracks = read(&describe(&asset(&[Codec::Sizes]), HERE, 1)).unwrap().tracks;
    assert_eq!(tracks[0].codec, Some(Codec::H264 { sps: vec![], pps: vec![], length_bytes: 4 }));
    assert_eq!(tracks[0].end, None, "a track alone ends with the presentation");
}

#[test]
fn control_urls_that_are_none_of_ours_name_no_track() {
    for url in ["rtsp://host/a", "trackID=0", "trackID=x", "streamid=1", ""] {
        assert_eq!(track_of(url), None, "{url}");
    }
    assert_eq!(track_of("rtsp://host/a/trackID=2/"), Some(1));
}

/// As ffmpeg writes it: no range, a space before `config`, capitals in the encoding's name.
#[test]
fn ffmpegs_description_is_read() {
    let text = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=No Name\r\nt=0 0\r\na=tool:libavformat\r\n\
                m=video 15004 RTP/AVP 96\r\nc=IN IP4 127.0.0.1\r\nb=AS:200\r\na=rtpmap:96 MP4V-ES/90000\r\n\
                a=fmtp:96 profile-level-id=1; config=000001B003000001B5\r\n\
                m=audio 15006 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/44100/2\r\n\
                a=fmtp:97 profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3; config=1210\r\n";
    let tracks = read(text).unwrap().tracks;
    assert_eq!(tracks[0].codec, Some(visual()));
    assert_eq!(tracks[1].codec, Some(aac()));
    assert!(tracks.iter().all(|track| track.control.is_none()));
}

/// As gst-rtsp-server writes it: an attribute of each codec parameter, absolute control URLs, bare line feeds.
#[test]
fn gstreamers_description_is_read() {
    let text = "v=0\no=- 1188340656180883 1 IN IP4 10.0.0.1\ns=Session streamed with GStreamer\ni=rtsp-server\nt=0 0\n\
                a=tool:GStreamer\na=type:broadcast\na=control:*\na=range:npt=0-10.04\nm=video 0 RTP/AVP 96\n\
                c=IN IP4 0.0.0.0\nb=AS:800\na=rtpmap:96 H264/90000\na=framerate:25\n\
                a=fmtp:96 packetization-mode=1;profile-level-id=42c01e;sprop-parameter-sets=Z0LAHgk=,aAE=,aAI\n\
                a=control:rtsp://10.0.0.1/v/stream=0\na=ts-refclk:local\n";
    let presentation = read(text).unwrap();
    assert_eq!(presentation.duration, Some(Duration::from_millis(10_040)));
    let track = &presentation.tracks[0];
    assert_eq!(track.codec, Some(sets()));
    assert_eq!(track.control.as_deref(), Some("rtsp://10.0.0.1/v/stream=0"));
    assert_eq!(track.frames_per_1000_s, Some(25_000));
}

/// A description as Darwin writes it for a hinted QuickTime file: an absolute session control, a track's own
/// range, time in h:m:s, tracks of other codecs among supported ones.
#[test]
fn darwins_description_is_read() {
    let text = "v=0\r\no=StreamingServer 3371234 1040000000 IN IP4 10.0.0.1\r\ns=\\sample.mov\r\nu=http:///\r\n\
                e=admin@\r\nc=IN IP4 0.0.0.0\r\nb=AS:316\r\nt=0 0\r\na=control:rtsp://10.0.0.1/sample.mov/\r\n\
                a=range:npt=0-0:01:10.02\r\na=isma-compliance:2,2.0,2\r\n\
                m=video 0 RTP/AVP 96\r\nb=AS:300\r\na=rtpmap:96 X-SV3V-ES/90000\r\na=control:trackID=3\r\n\
                m=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/44100/2\r\na=control:trackID=4\r\n\
                a=fmtp:97 profile-level-id=15;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1210\r\n\
                a=mpeg4-esid:101\r\nm=audio 0 RTP/AVP 0\r\na=control:trackID=5\r\n";
    let presentation = read(text).unwrap();
    assert_eq!(presentation.control.as_deref(), Some("rtsp://10.0.0.1/sample.mov/"));
    assert_eq!(presentation.duration, Some(Duration::from_millis(70_020)));
    let codecs: Vec<Option<Codec>> = presentation.tracks.iter().map(|track| track.codec.clone()).collect();
    assert_eq!(codecs, [None, Some(aac()), None]);
    assert_eq!(presentation.tracks[0].encoding, "X-SV3V-ES");
    assert_eq!((&*presentation.tracks[2].encoding, presentation.tracks[2].clock_rate), ("PCMU", 8_000));
    assert!(presentation.tracks.iter().all(|track| track.obstacle().is_none()));
}

#[test]
fn modes_that_we_do_not_read_leave_the_track_without_a_codec() {
    let with = |map: &str, parameters: &str| {
        let text = format!("v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 {map}\r\na=fmtp:96 {parameters}\r\n");
        read(&text).unwrap().tracks[0].codec.clone()
    };
    assert_eq!(with("H264/90000", "packetization-mode=2"), None);
    assert_eq!(with("MP4V-ES/90000", "config=xyz"), None);
    assert_eq!(with("mpeg4-generic/8000", "mode=CELP-cbr;config=1210"), None);
    assert_eq!(with("mpeg4-generic/44100", "mode=AAC-lbr;sizelength=6;config=1210"), None);
    assert_eq!(with("H264/0", "packetization-mode=1"), None);
    assert!(read("RTSP/1.0 200 OK\r\n").unwrap_err().to_string().contains("not SDP"));
}

/// The media lines of an odd description, each with its name, its clock rate, and why it cannot be played.
fn tracks(lines: &str) -> Vec<(String, u32, Option<&'static str>)> {
    let tracks = read(&format!("v=0\r\n{lines}\r\n")).unwrap().tracks;
    tracks.iter().map(|track| (track.name(), track.clock_rate, track.obstacle())).collect()
}

#[test]
fn payload_types_that_need_no_rtpmap_are_known() {
    for (line, name, rate) in [
        ("m=audio 0 RTP/AVP 0", "audio PCMU", 8_000),
        ("m=audio 0 RTP/AVP 8", "audio PCMA", 8_000),
        ("m=audio 0 RTP/AVP 8 0\t ", "audio PCMA", 8_000),
        ("m=audio 0 RTP/AVP 9", "audio G722", 8_000),
        ("m=audio 0 RTP/AVP 10", "audio L16", 44_100),
        ("m=audio 0 RTP/AVP 14", "audio MPA", 90_000),
        ("m=video 0 RTP/AVP 26", "video JPEG", 90_000),
        ("m=video 0 RTP/AVP 31", "video H261", 90_000),
        ("m=video 0 RTP/AVP 32", "video MPV", 90_000),
        ("m=video 0 RTP/AVP 34", "video H263", 90_000),
        // The server's values replace the table's.
        ("m=audio 0 RTP/AVP 8\r\na=rtpmap:8 PCMA/16000/1", "audio PCMA", 16_000),
        // An unassigned payload type does not hide the one behind it.
        ("m=audio 0 RTP/AVP 77 0", "audio PCMU", 8_000),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap: 96  H264", "video H264", 90_000),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap:96; h264 / 90000 ", "video h264", 90_000),
    ] {
        assert_eq!(tracks(line), [(name.to_owned(), rate, None)], "{line}");
    }
}

#[test]
fn what_cannot_be_played_has_its_name_and_the_reason() {
    for (line, name, why) in [
        ("m=video 0 RTP/AVP 33", "video MP2T", "a multiplex"),
        (
            "m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000",
            "application vnd.onvif.metadata",
            "neither",
        ),
        (
            "m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 TP-LINK/90000",
            "application/tp-link",
            "neither",
        ),
        ("m=audio 0 RTP/AVP (null)\r\na=rtpmap", "audio", "no payload type"),
        ("m=audio", "audio", "no payload type"),
        ("m=audio 0 RTP/AVP 97", "audio of payload type 97", "no a=rtpmap"),
        ("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus", "audio opus", "clock rate"),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap:96 rtx/90000", "video rtx", "repairs"),
        (
            "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=2",
            "video H264",
            "interleaved",
        ),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap:96 x-asf-pf/1000", "video x-asf-pf", "--player wmp9"),
    ] {
        let found = tracks(&format!("m=video 0 RTP/AVP 26\r\n{line}"));
        assert_eq!((&*found[1].0, found[0].2), (name, None), "{line}");
        assert!(found[1].2.is_some_and(|found| found.contains(why)), "{line}: {found:?}");
    }
}

#[test]
fn parameters_are_read_however_they_are_spaced() {
    let of = |parameters: &str| {
        let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:{parameters}\n");
        read(&text).unwrap().tracks.remove(0).codec.unwrap()
    };
    let plain = of("96 packetization-mode=1;sprop-parameter-sets=Z0LAHgk=,aAE=,aAI");
    assert_eq!(plain, sets());
    for odd in [
        "96 packetization-mode=1;;sprop-parameter-sets=Z0LAHgk=,aAE=,aAI;",
        " 96   Packetization-Mode = 1 ; Sprop-Parameter-Sets = Z0LAHgk= , aAE=, aAI",
        "96; packetization-mode=;sprop-parameter-sets=Z0LAHgk=,aAE=,aAI,",
    ] {
        assert_eq!(of(odd), plain, "{odd}");
    }
    // Parameter sets come in band then.
    for lacking in
        ["96 packetization-mode=1", "96", "96 sprop-parameter-sets=", "96 sprop-parameter-sets=%,!"]
    {
        assert_eq!(of(lacking), Codec::H264 { sps: vec![], pps: vec![], length_bytes: 4 }, "{lacking}");
    }
}

#[test]
fn the_end_is_read_however_the_range_is_spaced() {
    for (range, ms) in [
        ("npt= 0 - 4.0", Some(4_000)),
        ("NPT = 0-4", Some(4_000)),
        ("npt=0:00:00-0:00:04.00", Some(4_000)),
        ("npt=now-", None),
        ("clock=20260101T000000Z-20260101T000004Z", None),
        ("npt=0-4s", None),
    ] {
        let read = read(&format!("a=range:{range}\nm=audio 0 RTP/AVP 0\n")).unwrap();
        assert_eq!(read.duration, ms.map(Duration::from_millis), "{range}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(
        lines in prop::collection::vec(
            prop_oneof![
                "[a-z]=[ -~]{0,40}",
                "a=(rtpmap|fmtp|control|range|framerate):[ -~]{0,30}",
                "a=range:npt=[0-9:.-]{0,30}",
                Just("m=video 0 RTP/AVP 96".to_string()),
                Just("a=rtpmap:96 mpeg4-generic/44100/2".to_string()),
            ],
            0..20,
        ),
    ) {
        let _ = read(&format!("v=0\r\n{}", lines.join("\r\n")));
    }
}
