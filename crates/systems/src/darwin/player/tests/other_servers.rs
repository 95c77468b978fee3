//! The player against servers that follow a script: other forms of the same answers, and refusals.

use rtp_types::RtpPacketBuilder;
use streamgauge_wire::rtsp::{Method, Request};

use super::*;
use crate::carrier::Carrier;
use crate::darwin::FIRST_RTP;

type Answers = Box<dyn FnMut(&Request<Vec<u8>>) -> String + Send>;

/// Answers by a script, and after PLAY sends frames of one packet, 40 ms apart, as payload type 96.
struct Scripted {
    answers: Answers,
    reader: Reader,
    left: u16,
    next: Option<Instant>,
    said: Outbox,
}

impl Scripted {
    fn pair(frames: u16, kind: PlayerKind, url: &str, answers: Answers) -> Pair {
        let server = Scripted {
            answers,
            reader: Reader::default(),
            left: frames,
            next: None,
            said: Outbox::default(),
        };
        let player = DarwinPlayer::new(PlayerSettings::of(kind), url, "video", 1);
        let mut pair = Pair::new(Box::new(server), Box::new(player), pipe());
        pair.run(Instant::from_nanos(90_000_000_000));
        pair
    }
}

impl App for Scripted {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if let Input::Readable(RTSP) = input {
            while let Some(chunk) = io.read(RTSP, usize::MAX) {
                self.reader.push(chunk);
            }
            for item in self.reader.by_ref() {
                let Ok(RtspItem::Request(request)) = item else {
                    self.said.say(now, "answered", None, "", format!("{item:?}"));
                    continue;
                };
                let method: &str = request.method().into();
                let headers: Vec<String> = request.headers().map(|(n, v)| format!("{n}: {v}")).collect();
                let url = request.request_uri().map_or(String::new(), ToString::to_string);
                self.said.say(now, "asked", None, "", format!("{method} {url}\n{}", headers.join("\n")));
                let cseq = request.header(&streamgauge_wire::rtsp::names::CSEQ).unwrap().as_str().to_owned();
                let answer = (self.answers)(&request).replace("CSEQ", &format!("CSeq: {cseq}\r\n"));
                io.write(RTSP, Chunk::bytes(answer.into_bytes()));
                if *request.method() == Method::Play {
                    self.next = Some(now);
                }
            }
        }
        while let Some(at) = self.next.filter(|at| *at <= now && self.left > 0) {
            let n = 1000 - self.left;
            let packet = RtpPacketBuilder::<&[u8], &[u8]>::new()
                .payload_type(96)
                .marker_bit(true)
                .sequence_number(n)
                .timestamp(u32::from(n) * 3600)
                .ssrc(9)
                .payload(&[0, 0, 1, 0xb6]);
            io.send(ChannelId(1), Chunk::with_filler(packet.write_vec().unwrap(), 500));
            self.left -= 1;
            self.next = (self.left > 0).then(|| at + Duration::from_millis(40));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.said.next()
    }
}

const SDP: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n\
                   a=rtpmap:96 MP4V-ES/90000\r\na=control:rtsp://elsewhere/live/streamid=7\r\n";

fn ok(headers: &str, body: &str) -> String {
    format!("RTSP/1.0 200 OK\r\nCSEQ{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Answers tersely: no frame rate, no duration, no RTP-Info, no ssrc, an absolute control URL; a session of four
/// seconds.
fn terse(request: &Request<Vec<u8>>) -> String {
    match request.method() {
        Method::Options => ok("Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n", ""),
        Method::Describe => ok("Content-Type: application/sdp\r\n", SDP),
        Method::Setup => {
            let transport = "Transport: RTP/AVP;unicast;client_port=6970-6971;server_port=6970-6971\r\n";
            ok(&format!("Session: abc;timeout=4\r\n{transport}"), "")
        }
        _ => ok("Session: abc\r\n", ""),
    }
}

fn asked(pair: &Pair) -> Vec<String> {
    named(pair, "asked").iter().map(|e| e.reason.to_string()).collect()
}

#[test]
fn a_terse_server_is_played_and_its_session_kept() {
    let pair = Scripted::pair(200, PlayerKind::Vlc, "rtsp://server/live", Box::new(terse));
    let asked = asked(&pair);
    let first: Vec<&str> = asked.iter().filter_map(|a| a.lines().next()).collect();
    let expected = [
        "OPTIONS rtsp://server/live",
        "DESCRIBE rtsp://server/live",
        "SETUP rtsp://elsewhere/live/streamid=7",
        "PLAY rtsp://server/live",
        "GET_PARAMETER rtsp://server/live",
    ];
    assert_eq!(first[..5], expected);
    // Eight seconds of media and thirty of silence, with a sign of life each two.
    assert!(first.len() > 15 && first.last() == Some(&"TEARDOWN rtsp://server/live"), "{first:?}");
    assert!(asked[4..].iter().all(|a| a.contains("Session: abc")));
    assert!(!asked.iter().any(|a| a.to_ascii_lowercase().contains("\nx-")), "{asked:?}");
    let shown: Vec<_> = named(&pair, "frame_shown").iter().map(|e| e.value.unwrap()).collect();
    assert_eq!(shown, (0..200).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn a_frame_rate_that_no_pictures_have_is_not_believed() {
    let hasty = |request: &Request<Vec<u8>>| match request.method() {
        Method::Describe => {
            let sdp = SDP.replace("a=control", "a=framerate:1000000000\r\na=control");
            ok("Content-Type: application/sdp\r\n", &sdp)
        }
        _ => terse(request),
    };
    let pair = Scripted::pair(50, PlayerKind::Vlc, "rtsp://server/live", Box::new(hasty));
    assert_eq!(named(&pair, "frame_shown").len(), 50);
}

#[test]
fn a_range_at_the_end_of_all_time_is_no_overflow() {
    // The end of the numbers of times, and of ticks.
    for (clock, from) in [("90000", "18446744073.709"), ("4294967295", "2147483648.49999")] {
        let late = move |request: &Request<Vec<u8>>| match request.method() {
            Method::Describe => ok("Content-Type: application/sdp\r\n", &SDP.replace("90000", clock)),
            Method::Play => {
                let info = "RTP-Info: url=rtsp://elsewhere/live/streamid=7;seq=950;rtptime=0\r\n";
                ok(&format!("Session: abc\r\nRange: npt={from}-\r\n{info}"), "")
            }
            _ => terse(request),
        };
        let pair = Scripted::pair(50, PlayerKind::Vlc, "rtsp://server/live", Box::new(late));
        assert_eq!(named(&pair, MEDIA_END).len(), 1);
    }
}

#[test]
fn a_session_that_bears_silence_for_ever_is_kept_all_the_same() {
    // The second is 2^55: in nanoseconds a multiple of 2^64.
    for timeout in ["18446744073709551615", "36028797018963968"] {
        let patient = move |request: &Request<Vec<u8>>| {
            terse(request).replace(";timeout=4", &format!(";timeout={timeout}"))
        };
        let pair = Scripted::pair(50, PlayerKind::Vlc, "rtsp://server/live", Box::new(patient));
        assert_eq!(named(&pair, "frame_shown").len(), 50);
        assert!(!asked(&pair).iter().any(|a| a.starts_with("GET_PARAMETER")), "{:?}", asked(&pair));
    }
}

#[test]
fn quicktime_says_what_quicktime_says() {
    let pair = Scripted::pair(10, PlayerKind::Quicktime, "rtsp://server/a.mov", Box::new(terse));
    let asked = asked(&pair);
    let has = |n: usize, header: &str| assert!(asked[n].contains(header), "{header} in {}", asked[n]);
    assert!(asked[0].starts_with("DESCRIBE"));
    has(1, "x-Retransmit: our-retransmit");
    has(1, "x-Dynamic-Rate: 1");
    has(1, "x-Transport-Options: late-tolerance=2.384");
    has(1, "Transport: RTP/AVP;unicast;client_port=6970-6971");
    has(2, "x-Prebuffer: maxtime=2.0");
    has(2, "x-Transport-Options: late-tolerance=10");
    has(2, "Range: npt=0.0");
    // Not granted.
    assert!(!control(&pair.sent_by_player).iter().any(|(_, p)| matches!(p, Packet::Ack(_))));
}

#[test]
fn refusals_end_the_session_with_one_event_that_says_why() {
    for (answer, expected) in [
        ("RTSP/1.0 404 Not Found\r\nCSEQ\r\n", "the server refused DESCRIBE: 404 Not Found"),
        (
            "RTSP/1.0 401 Unauthorized\r\nCSEQ\r\n",
            "the server refused DESCRIBE: 401 Unauthorized; it wants a user name and password, which are not supported",
        ),
        (
            "RTSP/1.0 302 Moved\r\nCSEQLocation: rtsp://b/\r\n\r\n",
            "the server refused DESCRIBE: 302 Moved; it is at rtsp://b/: play that",
        ),
        ("RTSP/1.0 200 OK\r\nCSEQContent-Length: 2\r\n\r\nhm", "the session description is not SDP"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "the server's answer cannot be read"),
    ] {
        let answer = answer.to_owned();
        let pair =
            Scripted::pair(1, PlayerKind::Quicktime, "rtsp://server/x", Box::new(move |_| answer.clone()));
        let (shown, why) = end(&pair);
        assert!(shown == Some(0.0) && why.starts_with(expected), "{why}");
        assert!(pair.sent_by_player.is_empty());
    }
    let unsupported = |request: &Request<Vec<u8>>| match request.method() {
        Method::Setup => "RTSP/1.0 461 Unsupported Transport\r\nCSEQ\r\n".into(),
        _ => terse(request),
    };
    let pair = Scripted::pair(1, PlayerKind::Quicktime, "rtsp://server/x", Box::new(unsupported));
    assert_eq!(
        end(&pair).1,
        "the server refused SETUP: 461 Unsupported Transport; try the other of udp and tcp"
    );
    let multicast = |request: &Request<Vec<u8>>| terse(request).replace("unicast", "multicast");
    let pair = Scripted::pair(1, PlayerKind::Quicktime, "rtsp://server/x", Box::new(multicast));
    assert_eq!(end(&pair).1, "the server chose another transport than was asked for");
    let pair = Scripted::pair(1, PlayerKind::Quicktime, "http://server/x", Box::new(terse));
    assert_eq!(end(&pair).1, "http://server/x is not an rtsp:// URL");
}

#[test]
fn a_request_of_the_servers_is_answered_at_once_and_does_not_disturb() {
    let probing = |request: &Request<Vec<u8>>| match request.method() {
        Method::Setup => {
            let probe = "OPTIONS * RTSP/1.0\r\nContent-Type: application/x-random-data\r\n\
                         Content-Length: 5\r\n\r\n\0\r\n\r\n";
            format!("{probe}{}", terse(request))
        }
        _ => terse(request),
    };
    let pair = Scripted::pair(10, PlayerKind::Quicktime, "rtsp://server/x", Box::new(probing));
    let answered = named(&pair, "answered");
    assert_eq!(answered.len(), 1);
    assert!(answered[0].reason.contains("Response") && answered[0].reason.contains("Ok"), "{answered:?}");
    assert_eq!(named(&pair, "frame_shown").len(), 10);
}

/// A connection that brings bytes and accepts none.
struct Stuck(Option<Chunk>);

impl Io for Stuck {
    fn send_as(&mut self, _: ChannelId, _: Chunk, _: crate::Envelope) {}
    fn write(&mut self, _: ChannelId, _: Chunk) -> usize {
        0
    }
    fn read(&mut self, _: ChannelId, _: usize) -> Option<Chunk> {
        self.0.take()
    }
    fn close(&mut self, _: ChannelId) {}
    fn open(&mut self, _: &Carrier) -> ChannelId {
        FIRST_RTP
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

#[test]
fn a_server_that_asks_and_takes_no_answer_gets_none() {
    let settings = PlayerSettings::of(PlayerKind::Quicktime);
    let mut player = DarwinPlayer::new(settings, "rtsp://server/x", "video", 1);
    let mut io = Stuck(None);
    player.handle(Instant::ZERO, Input::Opened(RTSP), &mut io);
    let mut answered = 0;
    while !player.connection.is_full() {
        io.0 = Some(Chunk::bytes(*b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n"));
        player.handle(Instant::ZERO, Input::Readable(RTSP), &mut io);
        answered += 1;
    }
    assert!((1_000..2_000).contains(&answered), "64 kB of answers: {answered}");
    let waiting = player.connection.waiting();
    io.0 = Some(Chunk::bytes(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n".repeat(100)));
    player.handle(Instant::ZERO, Input::Readable(RTSP), &mut io);
    assert_eq!(player.connection.waiting(), waiting);
}
