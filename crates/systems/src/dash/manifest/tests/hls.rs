//! Playlists.

use super::*;

fn playlist(text: &str) -> Playlist {
    read_playlist(text.as_bytes(), URL, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
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
    let [video, audio] = &manifest.periods[0].sets[..] else { panic!("{manifest:?}") };
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
    assert!(matches!(manifest.periods[0].sets[0].representations[0].segments, Segments::Playlist(_)));
    let manifest = read(&format!("{text}#EXT-X-ENDLIST\n#EXTINF:9,\nbehind.ts\n"));
    assert_eq!((manifest.duration, manifest.live), (Some(ms(6500)), None));
    let one = &manifest.periods[0].sets[0].representations[0];
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
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:A=1\na\n#EXT-X-STREAM-INF:B=1\nb\n".into(),
            "no BANDWIDTH tells its place",
        ),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH\na\n".into(), "NAME=VALUE,... is wanted"),
        ("#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"\n".into(), "line 1: a playlist with neither"),
        (media("#EXT-X-ENDLIST"), "without a segment to play"),
        (media("#EXT-X-I-FRAMES-ONLY"), "line 3: a playlist of key frames alone"),
        (media("#EXT-X-MEDIA-SEQUENCE:4.5\n#EXTINF:1,\na.ts"), "a number from 0 to 2^64 is wanted"),
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
        (media("#EXT-X-MAP:X=1"), "URI is wanted"),
        (media("#EXT-X-SKIP:SKIPPED-SEGMENTS=3"), "line 3: a playlist that leaves segments out"),
        (media("#EXTINF:1,\nftp://a/b"), "no address of http or https"),
    ] {
        let told = refused(&text);
        assert!(told.contains(wanted), "{told}\n{wanted}\n{text}");
    }
    assert!(matches!(read_playlist(b"<MPD/>", URL, &[]), Err(ManifestError::Unknown { .. })));
}

#[test]
fn each_segment_has_the_initialization_before_it() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"v.mp4\"\n#EXTINF:2,\n1\n#EXT-X-DISCONTINUITY\n\
        #EXT-X-MAP:URI=\"ad.mp4\",BYTERANGE=\"9@0\"\n#EXTINF:2,\n2\n#EXTINF:2,\n3\n#EXT-X-DISCONTINUITY\n\
        #EXT-X-MAP:URI=\"v.mp4\"\n#EXTINF:2,\n4\n#EXT-X-ENDLIST\n";
    let read = playlist(text);
    let name = |one: &MediaSegment| {
        let init = one.init.as_ref().unwrap();
        (init.url.rsplit('/').next().unwrap().to_owned(), init.range)
    };
    let ad = ("ad.mp4".to_owned(), Some((0, 8)));
    let film = ("v.mp4".to_owned(), None);
    assert_eq!(read.segments.iter().map(name).collect::<Vec<_>>(), [film.clone(), ad.clone(), ad, film]);
    assert_eq!((read.duration(), read.flaws("v")), (ms(8000), Vec::new()));
}

#[test]
fn lists_as_people_write_them() {
    // A byte order mark, CRLF, blanks, comments, unknown tags, no target, a bad version.
    let text = "\u{feff}#EXTM3U\r\n# made by hand\r\n#EXT-X-VERSION:x\r\n#EXT-X-TARGETDURATION:none\r\n\
        #EXT-X-PLAYLIST-TYPE:VOD\r\n#EXT-X-NEW-TAG:A=1\r\n\r\n  #EXTINF: 2.5 , title, with commas \r\n\
         a.ts?token=1&x=2 \r\n#EXTINF:2\r\n/b.ts\r\n";
    let manifest = read(text);
    // Such a playlist never changes: it is whole without its end.
    assert_eq!((manifest.duration, manifest.live), (Some(ms(4500)), None));
    let one = &manifest.periods[0].sets[0].representations[0];
    assert_eq!(told(listed(one)), [(0, 2500, "/films/a/a.ts?token=1&x=2"), (2500, 2000, "/b.ts")]);
    assert_eq!(playlist(text).target, Duration::from_secs(3));
    let event = text.replace("VOD", "EVENT");
    assert_eq!(read(&event).live.and_then(|live| live.update), Some(Duration::from_secs(3)));
    // An ended playlist needs no numbers.
    let odd = "#EXTM3U\n#EXTINF:1,\na\n#EXT-X-MEDIA-SEQUENCE:x\n#EXT-X-ENDLIST\n";
    assert_eq!(read(odd).duration, Some(ms(1000)));
}

#[test]
fn variables_are_filled_in_and_imported() {
    let main = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"host\",VALUE=\"http://cdn.example\"\n#EXT-X-DEFINE:QUERYPARAM=\"x\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=1,NAME=\"{$x}\"\n{$host}/v.m3u8\n";
    let manifest = read(main);
    let one = &manifest.periods[0].sets[0].representations[0];
    let address = Address { url: "http://cdn.example/v.m3u8".into(), range: None };
    assert_eq!((one.id.as_str(), &one.segments), ("1", &Segments::Playlist(address)));
    let media = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"host\"\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{$host}/1.ts\n";
    let read = read_playlist(media.as_bytes(), URL, &manifest.variables).unwrap();
    assert_eq!(read.segments[0].address.url, "http://cdn.example/1.ts");
    assert!(
        refused(media).contains("line 2: #EXT-X-DEFINE has \"IMPORT=\\\"host\\\"\"; no playlist that names")
    );
}

#[test]
fn what_is_passed_over_is_named() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-START:TIME-OFFSET=4\n#EXTINF:1,\na\n\
        #EXT-X-DATERANGE:ID=\"1\",CLASS=\"com.apple.hls.interstitial\",X-ASSET-URI=\"ad\"\n#EXT-X-ENDLIST\n";
    assert_eq!(
        read(text).left_out,
        [
            "#EXT-X-START of line 3 (TIME-OFFSET=4): play begins at the first segment, or live behind the edge",
            "interstitial of line 6: #EXT-X-DATERANGE is not read",
        ]
    );
}
