//! Requests that cannot be carried out, or are none.

use crate::client::{Client, MOST_KEPT, RELIABLE, UDP, URL};

#[test]
fn what_is_not_there_is_not_found() {
    let mut client = Client::new();
    for (url, status) in [
        ("rtsp://server/absent.mov", 404),
        ("rtsp://server/", 404),
        ("rtsp://server", 404),
        ("rtsp://server/../../etc/passwd", 404),
        ("rtsp://server/%2e%2e/%2e%2e/etc/passwd", 404),
        ("rtsp://server/clip.mov%00", 404),
        ("rtsp://server/text.txt", 415),
        ("rtsp://server/broken.mov", 500),
        ("*", 400),
    ] {
        assert_eq!(client.ask("DESCRIBE", url, ""), status, "DESCRIBE {url}");
        assert_eq!(client.ask("SETUP", url, UDP), status, "SETUP {url}");
    }
    for track in ["2", "99999", "18446744073709551616"] {
        assert_eq!(client.ask("SETUP", &format!("{URL}/trackID={track}"), UDP), 404, "{track}");
    }
    for track in ["0", "-1", "x", ""] {
        // None of them names a track, so the whole is a path.
        assert_eq!(client.ask("SETUP", &format!("{URL}/trackID={track}"), UDP), 404, "{track}");
    }
    assert_eq!(client.ask("DESCRIBE", URL, ""), 200, "and it goes on");
}

#[test]
fn methods_out_of_place_are_refused() {
    let mut client = Client::new();
    for (method, status) in [
        ("PLAY", 454),
        ("PAUSE", 454),
        ("TEARDOWN", 454),
        ("RECORD", 405),
        ("ANNOUNCE", 405),
        ("REDIRECT", 501),
        ("BREW", 501),
        ("options", 501),
        ("GET_PARAMETER", 200),
    ] {
        assert_eq!(client.ask(method, URL, ""), status, "{method} before SETUP");
    }
    assert_eq!(client.setup(UDP), 200);
    for session in ["", "Session: \r\n", "Session: 1\r\n", "Session: ;timeout=x\r\n", "Session: 1, 2\r\n"] {
        assert_eq!(client.ask("PLAY", URL, session), 454, "{session}");
        assert_eq!(client.ask("TEARDOWN", URL, session), 454, "{session}");
    }
    assert_eq!(client.play(""), 200);
    let session = client.session.clone();
    assert_eq!(client.setup(&format!("{UDP}{session}")), 455, "SETUP while it plays");
    assert_eq!(client.setup(UDP), 455, "a second session");
    assert_eq!(client.play(""), 200, "PLAY while it plays");
    assert_eq!(client.ask("TEARDOWN", URL, &session), 200);
    assert_eq!(client.play(""), 454);
    assert_eq!(client.setup(UDP), 200, "and anew");
}

#[test]
fn transports_that_cannot_be_granted_are_refused() {
    let mut client = Client::new();
    for transport in [
        "",
        "\u{e9}",
        ";;;,,,",
        "RTP/AVP",
        "RTP/AVP;unicast",
        "RTP/AVP;multicast;client_port=1-2",
        "RTP/SAVP;unicast",
        "RTP/AVP;unicast;client_port=0-1",
        "RTP/AVP;unicast;client_port=65535",
        "RTP/AVP;unicast;client_port=x-y",
        "RTP/AVP;unicast;client_port=70000-70001",
        "RTP/AVP;unicast;client_port=6970-6971;mode=RECORD",
        "RTP/AVP/TCP;interleaved=256-257",
        "RTP/AVP/TCP;interleaved=255",
        "RTP/AVP/TCP;interleaved=-1-0",
        "RTP/AVP/TCP;interleaved=7-7",
        "RTP/AVP;unicast;client_port=6970-6971;ssrc=xyz",
        "RAW/RAW/UDP;unicast",
    ] {
        assert_eq!(client.setup(&format!("Transport: {transport}\r\n")), 461, "{transport}");
    }
    // Additions of RFC 7826, in quotes that do not end or contain illegal text, are passed over.
    for addresses in ["src_addr=\"/a\"", "dest_addr=\"a/\"", "src_addr=\"", "destination=10.0.0.9"] {
        let mut client = Client::new();
        let transport = format!("Transport: RTP/AVP;unicast;client_port=6970-6971;{addresses}\r\n");
        assert_eq!(client.setup(&transport), 200, "{addresses}");
    }
    client.host.ports = false;
    assert_eq!(client.setup(UDP), 503, "no ports are left");
    client.host.ports = true;
    assert_eq!(client.setup("Transport: RTP/AVP/TCP;interleaved=254-255\r\n"), 200);
}

#[test]
fn ranges_and_rates_that_make_no_sense_do_no_harm() {
    for range in [
        "npt=",
        "npt=-",
        "npt=x-",
        "npt=5-4",
        "npt=61-",
        "npt=18446744073709551615-",
        "npt=1e9-",
        "npt=--1",
        "clock=1-",
        "smpte=0:00-",
        "bytes=0-",
        "",
    ] {
        let mut client = Client::new();
        assert_eq!(client.setup(UDP), 200);
        assert_eq!(client.play(&format!("Range: {range}\r\n")), 457, "{range}");
        assert_eq!(client.play("Range: npt=0-\r\n"), 200, "{range}");
    }
    for headers in [
        "Speed: 0.0000000000000000000000000000000000000001\r\n",
        "Speed: 1e-300\r\n",
        "Speed: 1e300\r\n",
        "Speed: -1e300\r\n",
        "Speed: NaN\r\n",
        "Speed: inf\r\n",
        "Speed: 0\r\n",
        "Scale: -1\r\n",
        "x-Transport-Options: late-tolerance=18446744073\r\n",
        "x-Transport-Options: late-tolerance=0\r\n",
        "x-Transport-Options: late-tolerance=-1\r\n",
        "x-Prebuffer: maxtime=18446744073\r\n",
        "Range: npt=now-0\r\n",
        "Range: npt=-0\r\n",
        "Range: npt=59.99-\r\n",
        "Range: npt=0-18446744073\r\n",
        "Bandwidth: 99999999999999999999\r\n",
    ] {
        let mut client = Client::new();
        assert_eq!(client.setup(&format!("{UDP}{RELIABLE}")), 200);
        client.run(1_000);
        assert_eq!(client.play(headers), 200, "{headers}");
        client.run(5_000);
        assert_eq!(client.ask("OPTIONS", "*", ""), 200, "{headers}");
        assert!(client.most < MOST_KEPT, "{headers}: {} B", client.most);
    }
}

#[test]
fn sequence_numbers_of_requests_are_repeated_or_missed() {
    let mut client = Client::new();
    assert_eq!(client.write("OPTIONS * RTSP/1.0\r\n\r\n"), [400], "missing");
    for cseq in ["0", "4294967295", "4294967296", "99999999999999999999999999"] {
        assert_eq!(client.write(format!("OPTIONS * RTSP/1.0\r\nCSeq: {cseq}\r\n\r\n")), [200], "{cseq}");
    }
    assert!(!client.host.closed);
}

#[test]
fn text_that_is_not_rtsp_is_a_bad_request() {
    for (text, status, closes) in [
        ("OPTIONS\r\n\r\n", 400, false),
        ("OPTIONS * HTTP/1.1\r\nCSeq: 1\r\n\r\n", 400, false),
        ("OPTIONS * RTSP/2.0\r\nCSeq: 1\r\n\r\n", 505, false),
        ("OPTIONS * RTSP/1.0\r\nCSeq 1\r\n\r\n", 400, false),
        ("PLAY http:// RTSP/1.0\r\nCSeq: 1\r\n\r\n", 400, false),
        ("RTSP/1.0 abc OK\r\n\r\n", 400, false),
        ("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: x\r\n\r\n", 400, true),
        ("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: -1\r\n\r\n", 400, true),
        ("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 999999999\r\n\r\n", 413, true),
        ("\0\0\0", 400, true),
        ("(hello)", 400, true),
    ] {
        let mut client = Client::new();
        assert_eq!(client.write(text), [status], "{text:?}");
        assert_eq!(client.host.closed, closes, "{text:?}");
        if !closes {
            assert_eq!(client.ask("OPTIONS", "*", ""), 200, "after {text:?}");
        }
    }
    let mut client = Client::new();
    assert_eq!(client.write(vec![b'A'; 1 << 20]), [400], "a line without an end");
    client.host.to_server.clear();
    assert!(client.host.closed && client.kept() < 20_000, "{} B are kept of it", client.kept());
}
