//! Playlists.

use super::*;

fn playlist(text: &str) -> Playlist {
    read_playlist(text.as_bytes(), URL).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn variants_and_their_sound() {
    let text = "#EXTM3U\n#EXT-X-VERSION:7\r\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"sound\",DEFAULT=YES,URI=\"a0.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2000000,CODECS=\"avc1.4d401f,mp4a.40.2\",RESOLUTION=1280x720,AUDIO=\"a\"\nv1.m3u8\n\n\
        #EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO=\"a\"\n/v0.m3u8?k=1\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2500000,AUDIO=\"b\"\nv1.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\na0.m3u8\n";
    let manifest = read(text);
    assert_eq!((manifest.duration, manifest.live), (None, None));
    let [video, audio] = &manifest.sets[..] else { panic!("{manifest:?}") };
    assert_eq!((video.kind, audio.kind), (MediaKind::Video, MediaKind::Audio));
    let address =
        |path: &str| Segments::Playlist(Address { url: format!("http://origin.example{path}"), range: None });
    let [low, high] = &video.representations[..] else { panic!("{video:?}") };
    assert_eq!((low.rate.as_bps(), &low.segments), (500_000, &address("/v0.m3u8?k=1")));
    assert_eq!(
        (high.rate.as_bps(), high.size, &high.segments),
        (2_000_000, Some((1280, 720)), &address("/films/a/v1.m3u8"))
    );
    assert_eq!(high.codecs.as_deref(), Some("avc1.4d401f,mp4a.40.2"));
    let [sound] = &audio.representations[..] else { panic!("{audio:?}") };
    assert_eq!(
        (sound.id.as_str(), sound.rate.as_bps(), &sound.segments),
        ("sound", 0, &address("/films/a/a0.m3u8"))
    );
}

#[test]
fn a_playlist_alone_is_a_manifest_of_one_representation() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXTINF:2.5,title\nb.ts\n";
    let manifest = read(text);
    assert_eq!(manifest.duration, None);
    assert_eq!(manifest.live.and_then(|live| live.update), Some(ms(4000)));
    assert!(matches!(manifest.sets[0].representations[0].segments, Segments::Playlist(_)));
    let manifest = read(&format!("{text}#EXT-X-ENDLIST\n#EXTINF:9,\nbehind.ts\n"));
    assert_eq!((manifest.duration, manifest.live), (Some(ms(6500)), None));
    let one = &manifest.sets[0].representations[0];
    assert_eq!(told(listed(one)), [(0, 4000, "/films/a/a.ts"), (4000, 2500, "/films/a/b.ts")]);
}

#[test]
fn numbers_ranges_and_gaps() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:17\n\
        #EXT-X-SERVER-CONTROL:HOLD-BACK=12.5,CAN-BLOCK-RELOAD=YES\n\
        #EXT-X-MAP:URI=\"v.mp4\",BYTERANGE=\"700@0\"\n\
        #EXT-X-BYTERANGE:100@800\n#EXTINF:4.004,\nv.mp4\n\
        #EXTINF:4.004,\n#EXT-X-BYTERANGE:50\nv.mp4\n\
        #EXT-X-GAP\n#EXTINF:4.004,\nnone.mp4\n#EXT-X-DISCONTINUITY\n\
        #EXTINF:1,\n#EXT-X-BYTERANGE:1@5\nw.mp4\n";
    let read = playlist(text);
    assert_eq!((read.target, read.sequence, read.is_ended), (ms(4000), 17, false));
    assert_eq!(read.hold_back, Some(ms(12_500)));
    assert_eq!(read.live().and_then(|live| live.delay), Some(ms(12_500)));
    assert_eq!(read.init.as_ref().and_then(|init| init.range), Some((0, 699)));
    let found: Vec<_> =
        read.segments.iter().map(|one| (one.number, one.start.as_nanos(), one.address.range)).collect();
    let wanted = [
        (17, 0, Some((800, 899))),
        (18, 4_004_000_000, Some((900, 949))),
        (20, 12_012_000_000, Some((5, 5))),
    ];
    assert_eq!(found, wanted);
    let flaws: Vec<String> = read.flaws("v").iter().map(Flaw::to_string).collect();
    assert_eq!(flaws, ["v: segments missing between 8.008 s and 12.012 s"]);
    assert_eq!(read.duration(), ms(13_012));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let media = |rest: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{rest}\n");
    for (text, wanted) in [
        ("#EXTM3U\n".into(), "line 1: a playlist with neither"),
        ("#EXTM3U\na.m3u8\n".into(), "line 2: a URI without #EXT-X-STREAM-INF"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n".into(), "line 2: #EXT-X-STREAM-INF without a URI"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:A=1\na\n".into(), "line 2: #EXT-X-STREAM-INF without BANDWIDTH"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH\na\n".into(), "NAME=VALUE,... is wanted"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=4\na\n".into(), "RESOLUTION is not of the form"),
        (
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"\n".into(),
            "variables (#EXT-X-DEFINE), which is not supported",
        ),
        ("#EXTM3U\n#EXTINF:1,\na.ts\n".into(), "without #EXT-X-TARGETDURATION"),
        (media("a.ts"), "line 3: a segment without #EXTINF"),
        (media("#EXTINF:x,\na.ts"), "line 3: #EXTINF has \"x,\"; seconds as 4.004 are wanted"),
        (media("#EXTINF:-1,\na.ts"), "seconds as 4.004 are wanted"),
        (media("#EXTINF:1,\n#EXT-X-BYTERANGE:5\na.ts"), "line 5: #EXT-X-BYTERANGE without a first byte"),
        (media("#EXTINF:1,\n#EXT-X-BYTERANGE:0@1\na.ts"), "LENGTH or LENGTH@FIRST"),
        (media("#EXTINF:1,\n#EXT-X-BYTERANGE:9@18446744073709551610\na.ts"), "leads beyond all bytes"),
        (
            media("#EXTINF:1,\na.ts\n#EXT-X-MEDIA-SEQUENCE:4"),
            "line 5: #EXT-X-MEDIA-SEQUENCE has \"4\"; it stands behind",
        ),
        (media("#EXT-X-MEDIA-SEQUENCE:18446744073709551615\n#EXTINF:1,\na.ts"), "numbers beyond all bounds"),
        (media("#EXT-X-MAP:URI=\"a\"\n#EXT-X-MAP:URI=\"b\""), "line 4: a second initialization"),
        (media("#EXT-X-MAP:X=1"), "URI is wanted"),
        (media("#EXT-X-SKIP:SKIPPED-SEGMENTS=3"), "line 3: a playlist that leaves segments out"),
        (media("#EXTINF:1,\nftp://a/b"), "no address of http or https"),
    ] {
        let told = refused(&text);
        assert!(told.contains(wanted), "{told}\n{wanted}\n{text}");
    }
    assert!(matches!(read_playlist(b"<MPD/>", URL), Err(ManifestError::Unknown { .. })));
}
