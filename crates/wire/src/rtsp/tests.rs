use proptest::collection::vec;
use proptest::prelude::*;
use streamgauge_base::Duration;

use super::*;

fn all(bytes: &[u8]) -> Vec<Result<RtspItem, Problem>> {
    let mut reader = Reader::default();
    reader.push(Chunk::bytes(bytes));
    reader.collect()
}

fn fault(bytes: &[u8]) -> (Fault, Option<u32>) {
    match &all(bytes)[..] {
        [Err(problem)] => (problem.fault, problem.cseq),
        other => panic!("{other:?}"),
    }
}

fn request(header: HeaderName, value: &str) -> Request<Empty> {
    Request::builder(Method::Setup, Version::V1_0).header(header, value).empty()
}

/// The header `H` with this value, through a message.
fn read<H: TypedHeader>(header: HeaderName, value: &str) -> Result<H, HeaderParseError> {
    request(header, value).typed_header::<H>().map(|header| header.expect("it is there"))
}

fn written<H: TypedHeader>(header: &H, name: HeaderName) -> String {
    let mut request = Request::builder(Method::Setup, Version::V1_0).empty();
    request.insert_typed_header(header);
    request.header(&name).expect("it is there").as_str().into()
}

#[test]
fn requests_and_responses_are_read() {
    let items =
        all(b"\r\nOPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\nRTSP/1.0 200 OK\nCseq: 2\nContent-length: 3\n\nabc");
    let [Ok(RtspItem::Request(request)), Ok(RtspItem::Response(response))] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(request.method(), &Method::Options);
    assert_eq!(request.typed_header::<CSeq>().unwrap().as_deref(), Some(&1));
    assert_eq!((response.status(), &response.body()[..]), (StatusCode::Ok, &b"abc"[..]));
    assert_eq!(response.typed_header::<CSeq>().unwrap().as_deref(), Some(&2));
}

#[test]
fn a_header_may_go_on_in_the_next_line() {
    let items = all(b"PLAY rtsp://h/a RTSP/1.0\r\nCSeq: 1\r\nRange:\r\n npt=1-2\r\n\r\n");
    let [Ok(RtspItem::Request(request))] = &items[..] else { panic!("{items:?}") };
    let second = Duration::from_secs(1);
    assert_eq!(request.typed_header(), Ok(Some(Range { from: Some(second), to: Some(second * 2) })));
}

#[test]
fn names_that_begin_alike_are_different_headers() {
    let items = all(b"DESCRIBE rtsp://h/a RTSP/1.0\r\nCSeq: 1\r\nAccept-Language: en\r\n\tde\r\nC: x\r\n: y\r\nX: z\r\n\r\n");
    let [Ok(RtspItem::Request(request))] = &items[..] else { panic!("{items:?}") };
    assert_eq!(request.header(&names::ACCEPT), None);
    assert_eq!(request.header(&names::CSEQ).map(|cseq| cseq.as_str()), Some("1"));
    assert_eq!(request.headers().count(), 1);
}

#[test]
fn a_message_that_is_not_rtsp_is_told_and_what_is_behind_it_is_read() {
    let next = b"OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\n";
    for (message, fault) in [
        (&b"PLAY\r\nCSeq: 7\r\n\r\n"[..], Fault::Malformed),
        (b"PLAY /relative RTSP/1.0\r\nCSeq: 7\r\n\r\n", Fault::Malformed),
        (b"PLAY rtsp://h/a RTSP/1.0\r\nno header\r\nCSeq: 7\r\n\r\n", Fault::Malformed),
        (b"GET / HTTP/1.1\r\nCSeq: 7\r\nContent-Length: 2\r\n\r\nxx", Fault::Malformed),
        (b"RTSP/1.0 099 OK\r\nCSeq: 7\r\n\r\n", Fault::Malformed),
        (b"PLAY rtsp://h/a RTSP/2.0\r\nCSeq: 7\r\n\r\n", Fault::Version),
        (b"PLAY rtsp://h/a RTSP/3.0\r\nCSeq: 7\r\n\r\n", Fault::Version),
        (b"RTSP/2.0 200 OK\r\nCSeq: 7\r\n\r\n", Fault::Version),
    ] {
        let items = all(&[message, &next[..]].concat());
        let [Err(problem), Ok(RtspItem::Request(_))] = &items[..] else { panic!("{items:?}") };
        assert_eq!(*problem, Problem { fault, cseq: Some(7) });
        assert!(!problem.is_fatal());
    }
}

#[test]
fn what_has_no_end_ends_the_reading() {
    assert_eq!(fault(b"\x16\x03\x01 TLS"), (Fault::NotRtsp, None));
    assert_eq!(
        fault(b"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nContent-Length: -1\r\n\r\n"),
        (Fault::NotRtsp, Some(3))
    );
    let body = b"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nContent-Length: 99999999999999999999\r\n\r\n";
    assert_eq!(fault(body), (Fault::NotRtsp, Some(3)));
    let twice = b"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(fault(twice), (Fault::NotRtsp, Some(3)));
    assert_eq!(fault(&[0; 1]), (Fault::NotRtsp, None));

    let mut reader = Reader::default();
    reader.push(Chunk::filler(u32::MAX));
    assert_eq!(reader.next(), Some(Err(Problem { fault: Fault::NotRtsp, cseq: None })));
    reader.push(Chunk::bytes(*b"OPTIONS * RTSP/1.0\r\n\r\n"));
    assert_eq!(reader.next(), None);
}

#[test]
fn limits_hold() {
    let limits = Limits { head_bytes: 60, body_bytes: 4 };
    let first = |bytes: &[u8]| {
        let mut reader = Reader::new(limits);
        reader.push(Chunk::bytes(bytes));
        reader.next()
    };
    let with_body =
        |bytes| format!("OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nContent-Length: {bytes}\r\n\r\n{:bytes$}", "");
    assert!(matches!(first(with_body(4).as_bytes()), Some(Ok(_))));
    let too_long = Problem { fault: Fault::BodyTooLong, cseq: Some(3) };
    assert_eq!(first(with_body(5).as_bytes()), Some(Err(too_long)));
    assert_eq!(too_long.status(), StatusCode::RequestMessageBodyTooLarge);
    let endless = [&b"OPTIONS * RTSP/1.0\r\nCSeq: 3\r\nX: "[..], &[b'x'; 99]].concat();
    assert_eq!(first(&endless), Some(Err(Problem { fault: Fault::HeadTooLong, cseq: Some(3) })));
    assert!(too_long.is_fatal());
}

#[test]
fn a_packet_is_framed() {
    let framed = interleave(3, &Chunk::with_filler(*b"ab", 300));
    assert_eq!((framed.head(), framed.len()), (&b"$\x03\x01\x2eab"[..], 306));
    let mut reader = Reader::default();
    reader.push(framed);
    let packet = Chunk::with_filler(*b"ab", 300);
    assert_eq!(reader.next(), Some(Ok(RtspItem::Interleaved { channel: 3, packet })));
    assert_eq!(reader.next(), None);
}

#[test]
fn real_bytes_behind_filler_keep_their_place() {
    let mut reader = Reader::default();
    reader.push(Chunk::with_filler(*b"$\0\0\x04a", 2));
    reader.push(Chunk::bytes(*b"b$\0\0\0"));
    let packet = Chunk::bytes(*b"a\0\0b");
    assert_eq!(reader.next(), Some(Ok(RtspItem::Interleaved { channel: 0, packet })));
    assert_eq!(reader.next(), Some(Ok(RtspItem::Interleaved { channel: 0, packet: Chunk::default() })));
}

#[test]
fn transports_of_players_are_read() {
    let one = |value| read::<Transports>(names::TRANSPORT, value).map(|mut t| t.0.remove(0));
    // RFC 2326 section 12.39's form, as ffmpeg, GStreamer, QuickTime and Darwin write it.
    for value in [
        "RTP/AVP;unicast;client_port=4588-4589;mode=\"PLAY\"",
        "RTP/AVP/UDP;unicast;client_port=4588-4589;mode=PLAY",
        "rtp/avp ; unicast ; client_port = 4588-4589 ; mode=play",
        "RTP/AVP;unicast;client_port=4588;layers=1;mode=\"PLAY,RECORD\"",
    ] {
        let expected = Transport { mode: Some(Mode::Play), ..Transport::udp((4588, 4589)) };
        assert_eq!(one(value), Ok(expected), "{value}");
    }
    let answer = "RTP/AVP;unicast;source=10.0.0.1;client_port=4588-4589;server_port=6970-6971;ssrc=0A2B3C4D";
    let transport = one(answer).unwrap();
    assert_eq!((transport.server_port, transport.ssrc), (Some((6970, 6971)), Some(0x0a2b_3c4d)));
    assert_eq!(written(&Transports(vec![transport]), names::TRANSPORT), answer);
    let tcp = "RTP/AVP/TCP;unicast;interleaved=0-1";
    assert_eq!(one(tcp), Ok(Transport::tcp((0, 1))));
    assert_eq!(written(&Transports(vec![Transport::tcp((0, 1))]), names::TRANSPORT), tcp);
}

#[test]
fn a_client_may_offer_several_transports() {
    let offers = "MP2T/H2221/UDP;unicast;client_port=1-2,RTP/AVP/TCP;interleaved=4-5;mode=\"PLAY,RECORD\",\
                  RTP/SAVP;unicast;client_port=8-9, RTP/AVP;multicast";
    let Transports(read) = read(names::TRANSPORT, offers).unwrap();
    let tcp = Transport { mode: Some(Mode::Play), ..Transport::tcp((4, 5)) };
    assert_eq!(read[0], tcp);
    assert_eq!((read.len(), read[1].unicast), (2, false));
}

#[test]
fn bad_transports_are_refused() {
    for value in [
        "",
        ";",
        "RTP/AVP;client_port=x",
        "RTP/AVP;client_port=65535",
        "RTP/AVP;client_port=70000-70001",
        "RTP/AVP/TCP;interleaved=255",
        "RTP/AVP/TCP;interleaved=256-257",
        "RTP/AVP;ssrc=123456789",
        "RTP/AVP;mode=DANCE",
    ] {
        assert_eq!(read::<Transports>(names::TRANSPORT, value), Err(HeaderParseError), "{value}");
    }
    // Additions of RFC 7826 are not read here, in quotes or not.
    for value in ["RTP/AVP;src_addr=\"/a\"", "RTP/AVP;mode=\"", "RTP/AVP;unicast;dest_addr=\"\\\""] {
        let _ = read::<Transports>(names::TRANSPORT, value);
    }
}

#[test]
fn a_transport_that_a_server_chose_is_read_without_the_parameters_that_are_wrong() {
    let udp = Transport { ssrc: None, ..Transport::udp((6970, 6971)) };
    for odd in [
        "RTP/AVP;unicast;client_port=6970-6971",
        "rtp/avp/udp; Unicast; Client_Port = 6970 - 6971 ;",
        "RTP/AVP;client_port=6970;ssrc=3735928559",
        "RTP/AVP;unicast;server_port=;client_port=6970-6971;ssrc= 12 34",
        "RTP/AVP;unicast;mode=DANCE;client_port=6970-6971;interleaved=256-257",
    ] {
        assert_eq!(Transports::chosen(odd), Ok(Transports(vec![udp.clone()])), "{odd}");
    }
    let tcp = Transports::chosen("RTP/AVP/TCP;unicast;interleaved=;ssrc=1234ABCD;mode=\"play\"")
        .unwrap()
        .0
        .remove(0);
    assert_eq!((tcp.lower, tcp.interleaved, tcp.ssrc), (Lower::Tcp, None, Some(0x1234_abcd)));
    assert_eq!(Transports::chosen(""), Err(HeaderParseError));
}

#[test]
fn a_response_with_odd_lines_is_read_and_a_request_is_not() {
    let lines = "cseq : 3\r\nCache-Control:\r\nX-Odd\r\nServer: K\u{fc}che\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi";
    // Latin-1, as cameras write it.
    let bytes =
        |start: &str| format!("{start}\r\n{lines}").chars().map(|c| c as u32 as u8).collect::<Vec<u8>>();
    for start in ["RTSP/1.0 200 OK", "RTSP/1.0 200", "RTSP/1.0  200  OK"] {
        let read = all(&bytes(start));
        let [Ok(RtspItem::Response(response))] = &read[..] else { panic!("{start}: {read:?}") };
        assert_eq!(response.typed_header::<CSeq>().unwrap().map(|cseq| *cseq), Some(3), "{start}");
        assert_eq!((u16::from(response.status()), &response.body()[..]), (200, &b"hi"[..]), "{start}");
    }
    let read = all(&bytes("OPTIONS * RTSP/1.0"));
    assert!(read.iter().all(Result::is_err), "{read:?}");
}

#[test]
fn ranges_are_in_normal_play_time() {
    let ms = Duration::from_millis;
    for (value, from, to) in [
        ("npt=0-", Some(ms(0)), None),
        ("npt=0.000-", Some(ms(0)), None),
        ("npt=1.5-2.25", Some(ms(1_500)), Some(ms(2_250))),
        ("npt=1.500000000000-", Some(ms(1_500)), None),
        ("npt=now-", None, None),
        ("npt=-20", None, Some(ms(20_000))),
        ("npt=0:02:03.5-1:00:00", Some(ms(123_500)), Some(ms(3_600_000))),
        ("npt = 3- ;time=19970123T143720Z", Some(ms(3_000)), None),
    ] {
        assert_eq!(read(names::RANGE, value), Ok(Range { from, to }), "{value}");
    }
    for value in [
        "npt=-",
        "npt=",
        "npt",
        "0-",
        "npt=a-",
        "npt=1--2",
        "npt=0:60:00-",
        "npt=4294967295:00:00-",
        "npt=0:00:60-",
        "npt=+1-",
        "npt=99999999999999999999-",
        "npt=1e3-",
        "smpte=0:10:20-",
        "clock=19961108T142300Z-",
        "npt=1.-x",
    ] {
        assert_eq!(read::<Range>(names::RANGE, value), Err(HeaderParseError), "{value}");
    }
    let range = Range { from: Some(ms(1_500)), to: Some(ms(60_000)) };
    assert_eq!(written(&range, names::RANGE), "npt=1.50000-60.00000");
    assert_eq!(written(&Range { from: None, to: None }, names::RANGE), "npt=now-");
}

#[test]
fn rtp_info_is_read_with_any_url() {
    let value = "url=rtsp://h/a.mov/trackID=1;seq=65535;rtptime=4294967295,url=trackID=2;seq=5,url=\"a,b\"";
    let RtpInfo(streams) = read(names::RTP_INFO, value).unwrap();
    let stream = |url: &str, seq, rtptime| StreamInfo { url: url.into(), seq, rtptime };
    assert_eq!(streams[0], stream("rtsp://h/a.mov/trackID=1", Some(65_535), Some(u32::MAX)));
    assert_eq!(streams[1..], [stream("trackID=2", Some(5), None), stream("a,b", None, None)]);
    let odd = RtpInfo(vec![stream("rtsp://h/a,b;c.mov/trackID=1", Some(1), None), stream("d", None, None)]);
    assert_eq!(written(&odd, names::RTP_INFO), "url=\"rtsp://h/a,b;c.mov/trackID=1\";seq=1,url=d");
    assert_eq!(odd.to_string().parse(), Ok(odd));
    for value in ["", "seq=1", "url=a;seq=65536", "url=a;seq", "url="] {
        assert_eq!(read::<RtpInfo>(names::RTP_INFO, value), Err(HeaderParseError), "{value}");
    }
}

#[test]
fn sessions_have_a_timeout() {
    assert_eq!(read(names::SESSION, "12345678;timeout=60"), Ok(Session("12345678".into(), Some(60))));
    assert_eq!(read(names::SESSION, "12345678"), Ok(Session("12345678".into(), None)));
}

#[test]
fn speed_is_a_finite_number() {
    assert_eq!(read(names::SPEED, " 2.00000"), Ok(Speed(2.0)));
    assert_eq!(read(names::SPEED, "-1"), Ok(Speed(-1.0)));
    assert_eq!(written(&Speed(3.0), names::SPEED), "3.00000");
    for value in ["", "inf", "NaN", "fast", "1e999"] {
        assert_eq!(read::<Speed>(names::SPEED, value), Err(HeaderParseError), "{value}");
    }
}

#[test]
fn apples_headers_are_read() {
    let asked: Retransmit = read(name(X_RETRANSMIT), "their-own, Our-Retransmit;ver=2;window=128").unwrap();
    assert_eq!((asked.reliable_udp, asked.window_kbytes), (true, Some(128)));
    assert_eq!(asked.to_string(), "their-own, Our-Retransmit;ver=2;window=128", "the grant repeats it");
    let other: Retransmit = read(name(X_RETRANSMIT), "their-own;window=8").unwrap();
    assert_eq!((other.reliable_udp, other.window_kbytes), (false, None));
    assert_eq!(written(&Retransmit::ask(None), name(X_RETRANSMIT)), "our-retransmit");
    assert_eq!(written(&Retransmit::ask(Some(64)), name(X_RETRANSMIT)), "our-retransmit;window=64");

    let rate = |wanted, rtt_ms| DynamicRate { wanted, rtt_ms };
    assert_eq!(read(name(X_DYNAMIC_RATE), "1"), Ok(rate(true, None)));
    assert_eq!(read(name(X_DYNAMIC_RATE), "1;rtt=32"), Ok(rate(true, Some(32))));
    assert_eq!(written(&rate(false, Some(7)), name(X_DYNAMIC_RATE)), "0;rtt=7");
    assert_eq!(read::<DynamicRate>(name(X_DYNAMIC_RATE), "yes"), Err(HeaderParseError));

    // As QuickTime 6.5.1 and 7.4.5 send them.
    let tolerance = |ms| TransportOptions { late_tolerance: Some(Duration::from_millis(ms)) };
    assert_eq!(read(name(X_TRANSPORT_OPTIONS), "late-tolerance=2.384000"), Ok(tolerance(2_384)));
    assert_eq!(read(name(X_TRANSPORT_OPTIONS), "late-tolerance=10"), Ok(tolerance(10_000)));
    assert_eq!(read(name(X_TRANSPORT_OPTIONS), "x=1"), Ok(TransportOptions { late_tolerance: None }));
    assert_eq!(written(&tolerance(2_384), name(X_TRANSPORT_OPTIONS)), "late-tolerance=2.384000");
    let bad = read::<TransportOptions>(name(X_TRANSPORT_OPTIONS), "late-tolerance=-1");
    assert_eq!(bad, Err(HeaderParseError));
    let most = Prebuffer { most: Some(Duration::from_secs(2)), used: None };
    assert_eq!(read(name(X_PREBUFFER), "maxtime=2.000000"), Ok(most));
    let used = Prebuffer { most: None, used: Some(Duration::from_millis(1_250)) };
    assert_eq!(written(&used, name(X_PREBUFFER)), "time=1.25000");
}

#[test]
fn real_networks_headers_are_read() {
    let rule = |stream, rule| StreamRule { stream, rule };
    // As MPlayer sends it, and with blanks.
    let rules = vec![rule(0, 0), rule(0, 1), rule(1, 0)];
    let text = "stream=0;rule=0,stream=0;rule=1,stream=1;rule=0";
    assert_eq!(read(name(SUBSCRIBE), text), Ok(Subscribe(rules.clone())));
    assert_eq!(read(name(UNSUBSCRIBE), "rule=1; stream=0, "), Ok(Unsubscribe(vec![rule(0, 1)])));
    assert_eq!(written(&Subscribe(rules), name(SUBSCRIBE)), text);
    for value in ["stream=0", "stream=0;rule=x", "stream=0;rule=65536", "0;1"] {
        assert_eq!(read::<Subscribe>(name(SUBSCRIBE), value), Err(HeaderParseError), "{value}");
    }
    let delivery = |back_off| DeliveryBandwidth { bandwidth_bps: 99_999_999, back_off };
    let text = "Bandwidth=99999999;BackOff=0";
    assert_eq!(read(name(SET_DELIVERY_BANDWIDTH), text), Ok(delivery(Some(0))));
    assert_eq!(read(name(SET_DELIVERY_BANDWIDTH), "bandwidth = 99999999"), Ok(delivery(None)));
    assert_eq!(written(&delivery(Some(0)), name(SET_DELIVERY_BANDWIDTH)), text);
    for value in ["", "BackOff=0", "Bandwidth=-1", "Bandwidth=1;BackOff=x"] {
        assert_eq!(read::<DeliveryBandwidth>(name(SET_DELIVERY_BANDWIDTH), value), Err(HeaderParseError));
    }

    let challenge = RealChallenge1("9e26d33f2984236010ef6253fb1887f7".into());
    assert_eq!(read(name(REAL_CHALLENGE_1), "9e26d33f2984236010ef6253fb1887f7"), Ok(challenge));
    let text = "d52601bf779e648297fbc1a2d20b5f8a01d0a8e3, sd=d0769cd5";
    let answer = RealChallenge2 { answer: text[..40].into(), sd: Some("d0769cd5".into()) };
    assert_eq!(read(name(REAL_CHALLENGE_2), text), Ok(answer.clone()));
    assert_eq!(written(&answer, name(REAL_CHALLENGE_2)), text);
    let answer = RealChallenge3 { answer: "0123".into(), sdr: Some("45".into()) };
    assert_eq!(read(name(REAL_CHALLENGE_3), "0123,sdr=45"), Ok(answer));
}

#[test]
fn real_networks_transports_are_read() {
    let value = "x-real-rdt/mcast;client_port=6970;mode=play,x-real-rdt/udp;client_port=6970;mode=play,\
                 x-pn-tng/udp;client_port=6970-6971;mode=play,rtp/avp;unicast;client_port=6970-6971;mode=play,\
                 x-pn-tng/tcp;mode=play,rtp/avp/tcp;unicast;mode=play";
    let RealTransports(offered) = read(names::TRANSPORT, value).unwrap();
    let tng = |transport| RealTransport { protocol: RealProtocol::PnTng, ..transport };
    let udp = RealTransport::udp(6970);
    assert_eq!(offered, [udp.clone(), tng(udp.clone()), tng(RealTransport::tcp(None))]);
    // A reader of RTP gets the others.
    let Transports(others) = read(names::TRANSPORT, value).unwrap();
    assert_eq!(others.iter().map(|other| other.lower).collect::<Vec<_>>(), [Lower::Udp, Lower::Tcp]);

    let text = "x-real-rdt/udp;source=10.0.0.1;client_port=6970;server_port=7000;mode=play";
    let chosen = RealTransport { server_port: Some(7000), source: Some("10.0.0.1".into()), ..udp };
    assert_eq!(written(&RealTransports(vec![chosen]), names::TRANSPORT), text);
    let text = "x-pn-tng/tcp;interleaved=2;mode=play";
    assert_eq!(written(&RealTransports(vec![tng(RealTransport::tcp(Some(2)))]), names::TRANSPORT), text);
    for value in ["", "x-pn-tng/udp;client_port=x", "x-pn-tng/tcp;interleaved=256", "x-pn-tng/tcp;mode=DANCE"]
    {
        assert_eq!(read::<RealTransports>(names::TRANSPORT, value), Err(HeaderParseError), "{value}");
    }
}

/// A message or packet as it is sent, and the expected reading of it.
fn sent() -> impl Strategy<Value = (Chunk, RtspItem)> {
    let body = vec(any::<u8>(), 0..50);
    let message =
        (any::<bool>(), 1..u32::MAX, "[a-z0-9/]{0,20}", body).prop_map(|(asks, cseq, path, body)| {
            if asks {
                let url = Url::parse(&format!("rtsp://10.1.0.1/{path}")).unwrap();
                let request = Request::builder(Method::SetParameter, Version::V1_0)
                    .request_uri(url)
                    .typed_header(&CSeq::from(cseq))
                    .build(body);
                (Chunk::bytes(write_request(&request)), RtspItem::Request(request))
            } else {
                let response = Response::builder(Version::V1_0, StatusCode::Ok)
                    .typed_header(&CSeq::from(cseq))
                    .header(names::CONTENT_BASE, path)
                    .build(body);
                (Chunk::bytes(write_response(&response)), RtspItem::Response(response))
            }
        });
    let packet = (any::<u8>(), vec(any::<u8>(), 0..60), 0u32..1500).prop_map(|(channel, head, filler)| {
        let packet = Chunk::with_filler(head, filler);
        (interleave(channel, &packet), RtspItem::Interleaved { channel, packet })
    });
    prop_oneof![message, packet]
}

proptest! {
    /// However the stream is cut, the same items come out of it, in their order.
    #[test]
    fn items_survive_any_cut(sent in vec(sent(), 1..12), cuts in vec(1usize..400, 1..20)) {
        let mut reader = Reader::default();
        let mut cuts = cuts.iter().cycle();
        let mut read = Vec::new();
        for (mut rest, _) in sent.clone() {
            while !rest.is_empty() {
                let next = rest.split_off(*cuts.next().unwrap());
                reader.push(std::mem::replace(&mut rest, next));
                read.extend(reader.by_ref());
            }
        }
        prop_assert_eq!(read, sent.into_iter().map(|(_, item)| Ok(item)).collect::<Vec<_>>());
    }

    /// Any bytes are taken, cut or whole with the same result, and no more is kept than the limits allow.
    #[test]
    fn takes_anything(pieces in vec(prop_oneof![
        Just(b"\r\n".to_vec()), Just(b"$\0\0\x05".to_vec()), Just(b"RTSP/1.0 200 OK\r\n".to_vec()),
        Just(b"PLAY rtsp://h/a RTSP/1.0\r\n".to_vec()), Just(b"Content-Length: 7\r\n".to_vec()),
        vec(any::<u8>(), 0..20),
    ], 0..30)) {
        let mut reader = Reader::default();
        let mut read = Vec::new();
        for byte in pieces.concat() {
            reader.push(Chunk::bytes([byte]));
            read.extend(reader.by_ref());
        }
        prop_assert_eq!(read, all(&pieces.concat()));
    }

    #[test]
    fn headers_take_anything(value in "[ -~]{0,40}") {
        let _ = read::<Transports>(names::TRANSPORT, &value);
        let _ = read::<Range>(names::RANGE, &value);
        let _ = read::<RtpInfo>(names::RTP_INFO, &value);
        let _ = read::<Retransmit>(name(X_RETRANSMIT), &value);
        let _ = read::<TransportOptions>(name(X_TRANSPORT_OPTIONS), &value);
        let _ = read::<Subscribe>(name(SUBSCRIBE), &value);
        let _ = read::<DeliveryBandwidth>(name(SET_DELIVERY_BANDWIDTH), &value);
        let _ = read::<RealChallenge2>(name(REAL_CHALLENGE_2), &value);
        let _ = read::<RealTransports>(names::TRANSPORT, &format!("x-real-rdt/udp;{value}"));
    }

    #[test]
    fn headers_are_read_as_written(
        ports: (u16, u16), server: Option<(u16, u16)>, channels: Option<(u8, u8)>, ssrc: Option<u32>,
        play in prop::option::of(any::<bool>()), from in prop::option::of(0u64..1 << 40), seq: u16, rtptime: u32,
    ) {
        let transport = Transport {
            server_port: server,
            interleaved: channels,
            ssrc,
            mode: play.map(|play| if play { Mode::Play } else { Mode::Record }),
            ..Transport::udp(ports)
        };
        let transports = Transports(vec![transport.clone(), transport]);
        prop_assert_eq!(transports.to_string().parse(), Ok(transports));
        let range = Range { from: from.map(|us| Duration::from_nanos(us * 10_000)), to: None };
        prop_assert_eq!(range.to_string().parse(), Ok(range));
        let stream = StreamInfo { url: "rtsp://h/a/trackID=1".into(), seq: Some(seq), rtptime: Some(rtptime) };
        let info = RtpInfo(vec![stream.clone(), stream]);
        prop_assert_eq!(info.to_string().parse(), Ok(info));
        let (port, channel) = (server.map(|ports| ports.0), channels.map(|channels| channels.0));
        let rdt = RealTransport { server_port: port, interleaved: channel, ..RealTransport::udp(ports.0) };
        let rdt = RealTransports(vec![rdt.clone(), rdt]);
        prop_assert_eq!(rdt.to_string().parse(), Ok(rdt));
        let rules = Subscribe(vec![StreamRule { stream: ports.0, rule: seq }; 3]);
        prop_assert_eq!(rules.to_string().parse(), Ok(rules));
    }
}
