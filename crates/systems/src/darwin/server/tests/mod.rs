//! The server against a client that follows a script.

mod running;

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::reliable_udp::{AckPacket, ClientReport};
use streamgauge_wire::rtcp::{self, Packet};
use streamgauge_wire::rtsp::{Reader, RtspItem, names, write_response};

use super::*;
use crate::app::{ChannelId, CloseReason};
use crate::carrier::Carrier;
use crate::darwin::FIRST_RTP;
use crate::media::{Asset, ClipSpec, OneAsset};
use crate::testing::{Pair, Pipe, Sent};

const URL: &str = "rtsp://server/clip.mov";
const RELIABLE: &str = "x-Retransmit: our-retransmit\r\nx-Dynamic-Rate: 1\r\n";

/// Sends requests at given times, acknowledges packets, and reports the answers: an event for each response, with its
/// status and its text.
struct Client {
    script: VecDeque<(u64, String)>,
    acknowledges: bool,
    /// Sends this report on the channel of RTCP each second.
    report: Option<ClientReport>,
    next_report: Instant,
    cseq: u32,
    session: String,
    reader: Reader,
    said: Outbox,
}

impl Client {
    fn new(script: Vec<(u64, String)>) -> Self {
        Client {
            script: script.into(),
            acknowledges: true,
            report: None,
            next_report: Instant::ZERO,
            cseq: 0,
            session: String::new(),
            reader: Reader::default(),
            said: Outbox::default(),
        }
    }

    fn speak(&mut self, now: Instant, io: &mut dyn Io) {
        while let Some((_, request)) = self.script.pop_front_if(|(at, _)| instant(*at as i64) <= now) {
            self.cseq += 1;
            let session = &self.session;
            let text = request.replace("CSEQ", &format!("CSeq: {}", self.cseq)).replace("SESSION", session);
            assert_eq!(io.write(RTSP, Chunk::bytes(text.clone().into_bytes())), text.len());
        }
        if let Some(report) = self.report.clone().filter(|_| self.next_report <= now) {
            self.next_report = now + Duration::from_secs(1);
            io.send(ChannelId(2), Chunk::bytes(rtcp::write(&[Packet::ClientReport(report)])));
        }
    }
}

impl App for Client {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Readable(RTSP) => {
                while let Some(chunk) = io.read(RTSP, usize::MAX) {
                    self.reader.push(chunk);
                }
                for item in self.reader.by_ref() {
                    match item.unwrap() {
                        RtspItem::Response(response) => {
                            if let Some(session) = response.header(&names::SESSION) {
                                let id = session.as_str().split(';').next().unwrap();
                                self.session = format!("Session: {id}");
                            }
                            let status = f64::from(u16::from(response.status()));
                            let text = String::from_utf8(write_response(&response)).unwrap();
                            self.said.say(now, "response", status, "1", text);
                        }
                        RtspItem::Request(request) => {
                            self.said.say(now, "asked", request.body().len() as f64, "B", "");
                            io.write(RTSP, Chunk::bytes(*b"RTSP/1.0 200 OK\r\n\r\n"));
                        }
                        RtspItem::Interleaved { channel, packet } => {
                            self.said.say(now, "interleaved", packet.len() as f64, "B", channel.to_string());
                        }
                    }
                }
            }
            Input::Datagram { on: ChannelId(1), bytes: packet, .. } if self.acknowledges => {
                let acks = AckPacket::of(1, 2, &[sequence(packet)]).into_iter().map(Packet::Ack);
                io.send(ChannelId(2), Chunk::bytes(rtcp::write(&acks.collect::<Vec<_>>())));
            }
            Input::Closed(..) => self.said.say(now, "closed", None, "", ""),
            _ => {}
        }
        self.speak(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let report = self.report.as_ref().map(|_| self.next_report);
        self.script.front().map(|(at, _)| instant(*at as i64)).into_iter().chain(report).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.said.next()
    }
}

fn sequence(packet: &Chunk) -> u16 {
    u16::from_be_bytes([packet.head()[2], packet.head()[3]])
}

/// Makes an asset of 25 frames/s, a key frame of 5,000 B and 24 of 1,000 B each second: 232 kbit/s.
fn asset(seconds: u64) -> Arc<Asset> {
    let mut frame_bytes = vec![1000; 25];
    frame_bytes[0] = 5000;
    Arc::new(Asset::of_clip(&ClipSpec {
        name: "test".into(),
        duration: Duration::from_secs(seconds),
        frame_interval: Duration::from_millis(40),
        frame_bytes: frame_bytes.into(),
        key_frames: vec![0].into(),
        ..ClipSpec::default()
    }))
}

fn server(seconds: u64, settings: ServerSettings) -> Box<DarwinServer> {
    seeded(seconds, settings, 1)
}

fn seeded(seconds: u64, settings: ServerSettings, seed: u64) -> Box<DarwinServer> {
    Box::new(DarwinServer::new(Arc::new(OneAsset(asset(seconds))), settings, "test", seed))
}

fn source() -> ServerSettings {
    ServerSettings::of(Preset::Source)
}

/// Returns settings of a server that reads every acknowledgement.
fn attentive() -> ServerSettings {
    ServerSettings { busy_ack_loss: 0.0, ..source() }
}

fn paper() -> ServerSettings {
    ServerSettings::of(Preset::Paper)
}

fn request(at: u64, method: &str, track: bool, headers: &str) -> (u64, String) {
    let track = if track { "/trackID=1" } else { "" };
    (at, format!("{method} {URL}{track} RTSP/1.0\r\nCSEQ\r\n{headers}\r\n"))
}

fn udp(headers: &str) -> String {
    format!("Transport: RTP/AVP;unicast;client_port=6970-6971\r\n{headers}")
}

/// Returns DESCRIBE, SETUP with these headers, PLAY with those.
fn dialogue(setup: &str, play: &str) -> Vec<(u64, String)> {
    vec![
        request(0, "DESCRIBE", false, "Accept: application/sdp\r\n"),
        request(50, "SETUP", true, &udp(setup)),
        request(200, "PLAY", false, &format!("SESSION\r\n{play}")),
    ]
}

fn pipe(drop: fn(u64) -> bool) -> Pipe {
    Pipe { drop, stream_bytes_per_s: Some(10_000_000), ..Pipe::default() }
}

fn run(settings: ServerSettings, client: Client, pipe: Pipe, clip_s: u64, run_s: u64) -> Pair {
    let mut pair = Pair::new(server(clip_s, settings), Box::new(client), pipe);
    pair.run(instant(run_s as i64 * 1000));
    pair
}

fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
    pair.events.iter().filter(|event| event.name == name).collect()
}

fn statuses(pair: &Pair) -> Vec<u16> {
    named(pair, "response").iter().map(|event| event.value.unwrap() as u16).collect()
}

fn media(pair: &Pair) -> Vec<&Sent> {
    pair.sent.iter().filter(|sent| sent.channel == ChannelId(1)).collect()
}

/// Returns the bytes of media sent between two times in seconds.
fn bytes_between(pair: &Pair, from: u64, to: u64) -> usize {
    let within = |sent: &&&Sent| (from..to).contains(&(sent.at.as_nanos() / 1_000_000_000));
    media(pair).iter().filter(within).map(|sent| sent.datagram.len()).sum()
}

#[test]
fn the_answer_to_setup_waits_for_the_round_trip_and_grants_what_was_asked() {
    let asks = format!("{RELIABLE}x-Transport-Options: late-tolerance=2.384000\r\n");
    let client = Client::new(dialogue(&asks, "Range: npt=0.000000-\r\nx-Prebuffer: maxtime=2.0\r\n"));
    let pair = run(source(), client, pipe(|_| false), 10, 3);
    assert_eq!(statuses(&pair), [200; 3]);
    assert_eq!(named(&pair, "asked")[0].value, Some(1400.0));
    let texts: Vec<_> = named(&pair, "response").iter().map(|event| event.reason.to_string()).collect();
    for (text, headers) in texts.iter().zip([
        &["x-Accept-Retransmit: our-retransmit", "x-Accept-Dynamic-Rate: 1", "CSeq: 1", "m=video"][..],
        &[
            "x-Retransmit: our-retransmit",
            "late-tolerance=2.384",
            "x-Dynamic-Rate: 1;rtt=",
            "server_port=6970-6971",
        ],
        &["Range: npt=0.00000-10.00000", "RTP-Info: url=rtsp://server/clip.mov/trackID=1;seq=", "CSeq: 3"],
    ]) {
        assert!(headers.iter().all(|header| text.contains(header)), "{headers:?} in {text}");
    }
    let setup = &named(&pair, "response")[1];
    assert!(setup.at >= named(&pair, "asked")[0].at, "answered after the client has been heard");
    let first = sequence(&media(&pair)[0].datagram);
    assert!(texts[2].contains(&format!(";seq={first};")), "{first} in {}", texts[2]);
}

#[test]
fn every_frame_is_sent_once_on_a_network_that_loses_nothing_ahead_of_its_time() {
    let pair = run(attentive(), Client::new(dialogue(RELIABLE, "")), pipe(|_| false), 60, 90);
    let sequences: Vec<_> = media(&pair).iter().map(|sent| sequence(&sent.datagram)).collect();
    // A key frame of 5,000 B is 4 packets.
    assert_eq!(sequences.len(), 60 * 28);
    assert!(sequences.windows(2).all(|two| two[1] == two[0].wrapping_add(1)));
    let rate = |from, to| bytes_between(&pair, from, to) as f64 / (to - from) as f64 / 29_400.0;
    assert!(
        (1.9..2.5).contains(&rate(2, 20)),
        "twice the media's rate while the lead grows: {}",
        rate(2, 20)
    );
    assert!((0.9..1.1).contains(&rate(30, 34)), "25 s ahead: {}", rate(30, 34));
    assert!(named(&pair, "rudp_cut").is_empty() && named(&pair, "rudp_retransmit").is_empty());
    let last = pair.sent.last().unwrap();
    let goodbye = rtcp::parse(last.datagram.head()).any(|packet| matches!(packet, Ok(Packet::Bye { .. })));
    assert!(goodbye && last.channel == ChannelId(2), "{last:?}");
    // All has been sent long before, and the player has it still to show.
    let since = |at: Instant| at.saturating_since(media(&pair)[0].at).as_secs_f64();
    assert!(since(media(&pair).last().unwrap().at) < 40.0);
    assert!((59.9..60.1).contains(&since(last.at)), "{} s", since(last.at));
}

#[test]
fn lost_packets_come_again_and_cut_the_window() {
    for (settings, first_s, why) in [(source(), 0.6, "timeout of"), (paper(), 0.01, "3 duplicate acks of")] {
        let client = Client::new(dialogue(RELIABLE, "x-Transport-Options: late-tolerance=10\r\n"));
        let pair = run(settings, client, pipe(|n| n % 50 == 30), 30, 60);
        let mut arrived: Vec<_> = media(&pair).iter().map(|sent| sequence(&sent.datagram)).collect();
        let again = named(&pair, "rudp_retransmit").len();
        assert_eq!(arrived.len(), 30 * 28 + again);
        arrived.sort_unstable();
        arrived.dedup();
        assert_eq!(arrived.len(), 30 * 28);
        assert!(again >= 16, "{again} of the 16 or more that were lost");
        let cuts = named(&pair, "rudp_cut");
        assert!(!cuts.is_empty() && cuts.len() <= again);
        assert!(cuts.iter().any(|cut| cut.reason.starts_with(why)), "{cuts:?}");
        assert!(cuts.windows(2).all(|two| two[1].at - two[0].at > Duration::from_millis(250)));
        let again = named(&pair, "rudp_retransmit")[0];
        let lost = again.value.unwrap() as u16;
        let sent = media(&pair).into_iter().find(|sent| sequence(&sent.datagram) == lost).unwrap();
        let waited_s = (again.at - sent.at).as_secs_f64();
        assert!((first_s..first_s + 0.3).contains(&waited_s), "{waited_s} s until the first came again");
    }
}

#[test]
fn a_client_that_never_acknowledges_gets_a_window_and_is_forgotten() {
    let tolerance = "x-Transport-Options: late-tolerance=10\r\n";
    let silent = || Client { acknowledges: false, ..Client::new(dialogue(RELIABLE, tolerance)) };
    let pair = run(source(), silent(), pipe(|_| false), 200, 10);
    let before_timeout = media(&pair).into_iter().filter(|sent| sent.at < instant(750));
    let bytes: usize = before_timeout.map(|sent| sent.datagram.len()).sum();
    assert!((24_576..24_576 + 1500).contains(&bytes), "half of 48 kB: {bytes}");
    assert!(named(&pair, "rudp_cwnd").iter().any(|event| event.value == Some(1466.0)));

    let pair = run(source(), silent(), pipe(|_| false), 200, 200);
    let end = named(&pair, "session_timeout")[0];
    assert!((120.0..121.0).contains(&(end.at.as_secs_f64() - 0.2)), "{end:?}");
    assert_eq!(named(&pair, "closed").len(), 1);
    assert!(pair.sent.iter().all(|sent| sent.at <= end.at));
}

#[test]
fn plain_udp_is_sent_at_the_medias_pace_whatever_arrives() {
    let mut alike = Vec::new();
    for drop in [(|_| false) as fn(u64) -> bool, |n| n % 2 == 0] {
        let pair = run(source(), Client::new(dialogue("x-Dynamic-Rate: 1\r\n", "")), pipe(drop), 30, 40);
        assert!(!named(&pair, "response")[1].reason.contains("x-Retransmit"));
        assert!(named(&pair, "response")[1].reason.contains("x-Dynamic-Rate: 0"));
        let sent = media(&pair);
        assert_eq!(sent.len(), 30 * 28);
        for second in 1..29 {
            let rate = bytes_between(&pair, second, second + 1) as f64 / 29_400.0;
            assert!((0.75..1.3).contains(&rate), "{rate} in second {second}");
        }
        assert!(pair.events.iter().all(|event| !event.name.starts_with("rudp")));
        alike.push(sent.iter().map(|sent| sent.at).collect::<Vec<_>>());
    }
    assert_eq!(alike[0], alike[1]);
}

#[test]
fn plain_udp_thins_when_the_player_reports_much_loss() {
    let report = ClientReport { loss_percent_256: Some(40 << 8), ..ClientReport::default() };
    let client = Client { report: Some(report), ..Client::new(dialogue("", "")) };
    let pair = run(source(), client, pipe(|_| false), 30, 40);
    let levels: Vec<_> = named(&pair, "thinning").iter().map(|event| event.value.unwrap()).collect();
    assert_eq!(levels, [1.0, 6.0]);
    assert!(bytes_between(&pair, 20, 29) < 9 * 8000, "key frames and one more each second");
}

#[test]
fn a_client_buffer_bounds_what_is_sent_ahead() {
    let report = ClientReport { overbuffer_window: Some(20_000), ..ClientReport::default() };
    let client = Client { report: Some(report), ..Client::new(dialogue(RELIABLE, "")) };
    let pair = run(source(), client, pipe(|_| false), 60, 30);
    let rate = bytes_between(&pair, 5, 25) as f64 / 20.0;
    assert!((14_000.0..40_000.0).contains(&rate), "20 kB a second and what is due: {rate}");
}

#[test]
fn media_pauses_and_goes_on_and_is_sought_to_key_frames() {
    let mut script = dialogue(RELIABLE, "");
    script.push(request(5000, "PAUSE", false, "SESSION\r\n"));
    script.push(request(8000, "PLAY", false, "SESSION\r\n"));
    script.push(request(9000, "PLAY", false, "SESSION\r\nRange: npt=30.5-\r\nx-Prebuffer: maxtime=2\r\n"));
    script.push(request(10_000, "PLAY", false, "SESSION\r\nRange: npt=40.5-41.5\r\n"));
    let pair = run(attentive(), Client::new(script), pipe(|_| false), 60, 20);
    assert_eq!(statuses(&pair), [200; 7]);
    assert_eq!(bytes_between(&pair, 6, 8), 0);
    let sequences: Vec<_> = media(&pair).iter().map(|sent| sequence(&sent.datagram)).collect();
    assert!(sequences.windows(2).all(|two| two[1] == two[0].wrapping_add(1)), "one numbering for all");
    let texts: Vec<_> = named(&pair, "response").iter().map(|event| event.reason.to_string()).collect();
    assert!(texts[5].contains("Range: npt=30.50000-60.00000"), "{}", texts[5]);
    assert!(texts[5].contains("x-Prebuffer: time=0.50000"), "the key frame at 30 s: {}", texts[5]);
    assert!(!texts[6].contains("x-Prebuffer") && texts[6].contains("Range: npt=40.50000-41.50000"));
    // 40.52 to 41.48 s are 25 frames, one of them a key frame.
    let first = texts[6].split(";seq=").nth(1).and_then(|rest| rest.split(';').next()?.parse().ok());
    let last = sequences.iter().skip_while(|sequence| Some(**sequence) != first);
    assert_eq!(last.count(), 24 + 4);
}

#[test]
fn speed_is_for_reliable_transports_and_has_a_limit() {
    for (setup, speed, granted) in [
        (RELIABLE, "3", Some("3.00000")),
        (RELIABLE, "9", Some("4.00000")),
        ("", "3", None),
        (RELIABLE, "-1", None),
    ] {
        let client = Client::new(dialogue(setup, &format!("Speed: {speed}\r\n")));
        let pair = run(source(), client, pipe(|_| false), 60, 2);
        let play = named(&pair, "response")[2].reason.to_string();
        let said = play.lines().find_map(|line| line.strip_prefix("Speed: ")).map(str::trim);
        assert_eq!(said, granted, "{play}");
    }
}

#[test]
fn on_the_connection_media_waits_for_it_and_what_is_too_late_is_dropped() {
    let script = vec![
        request(0, "SETUP", true, "Transport: RTP/AVP/TCP;unicast;interleaved=4-5\r\n"),
        request(50, "PLAY", false, "SESSION\r\n"),
    ];
    let pipe = |stream_bytes_per_s| Pipe { stream_bytes_per_s: Some(stream_bytes_per_s), ..Pipe::default() };
    let fast = run(source(), Client::new(script.clone()), pipe(1_000_000), 60, 60);
    assert!(fast.sent.is_empty() && named(&fast, "stale_drop").is_empty());
    let of = |pair: &Pair, channel: &str| -> Vec<f64> {
        let on = named(pair, "interleaved").into_iter().filter(|event| event.reason == channel);
        on.filter_map(|event| event.value).collect()
    };
    assert_eq!(of(&fast, "4").len(), 60 * 28);
    assert!(of(&fast, "5").len() > 4, "reports each 7 s and the goodbye");
    // Half of the media's 29.4 kB/s.
    let slow = run(source(), Client::new(script), pipe(15_000), 60, 60);
    let bytes: f64 = of(&slow, "4").iter().sum();
    assert!((0.85..1.0).contains(&(bytes / (15_000.0 * 60.0))), "{bytes} B fill the connection");
    assert!(named(&slow, "stale_drop").len() > 100);
    assert!(named(&slow, "thinning").iter().any(|event| event.value == Some(6.0)));
}

#[test]
fn each_fault_has_its_status_and_the_next_request_is_served() {
    let transport = udp("");
    let setup = |headers: &str| format!("SETUP {URL}/trackID=1 RTSP/1.0\r\nCSEQ\r\n{headers}\r\n");
    let plain = |method: &str, headers: &str| format!("{method} {URL} RTSP/1.0\r\nCSEQ\r\n{headers}\r\n");
    let script = [
        (plain("OPTIONS", ""), 200),
        (format!("OPTIONS {URL} RTSP/1.0\r\n\r\n"), 400),
        (format!("OPTIONS {URL} RTSP/7.0\r\nCSEQ\r\n\r\n"), 505),
        (plain("BREW", ""), 501),
        (plain("RECORD", ""), 405),
        (plain("OPTIONS", "Require: com.example.tea\r\n"), 551),
        (plain("DESCRIBE", "Accept: text/html\r\n"), 406),
        (plain("PLAY", ""), 454),
        (plain("PLAY", "Session: 5\r\n"), 454),
        (plain("TEARDOWN", "Session: 5\r\n"), 454),
        (plain("GET_PARAMETER", ""), 200),
        (plain("GET_PARAMETER", "Content-Length: 3\r\n") + "tea", 451),
        (plain("SET_PARAMETER", "Content-Length: 5\r\n") + "tea: ", 451),
        (setup(""), 461),
        (setup("Transport: RTP/AVP;multicast\r\n"), 461),
        (setup("Transport: RAW/RAW;unicast\r\n"), 461),
        (format!("SETUP {URL}/trackID=2 RTSP/1.0\r\nCSEQ\r\n{transport}\r\n"), 404),
        (setup(&transport), 200),
        (setup(&transport), 455),
        (setup(&format!("SESSION\r\n{transport}")), 455),
        (format!("SETUP rtsp://server/other/trackID=1 RTSP/1.0\r\nCSEQ\r\nSESSION\r\n{transport}\r\n"), 459),
        (plain("PLAY", "SESSION\r\nRange: npt=99-\r\n"), 457),
        (plain("PLAY", "SESSION\r\nRange: npt=5-4\r\n"), 457),
        (plain("PLAY", "SESSION\r\nRange: smpte=0:10:20-\r\n"), 457),
        (plain("PLAY", "SESSION\r\nRange: npt=1-\r\n"), 200),
        (plain("SET_PARAMETER", "SESSION\r\nx-Transport-Options: late-tolerance=3\r\n"), 200),
        (plain("PAUSE", "SESSION\r\n"), 200),
        (plain("PAUSE", "SESSION\r\n"), 200),
        (plain("TEARDOWN", "SESSION\r\n"), 200),
        (plain("PLAY", "SESSION\r\n"), 454),
    ];
    let expected: Vec<_> = script.iter().map(|(_, status)| *status).collect();
    let timed = (0..).map(|n| n * 100).zip(script.into_iter().map(|(request, _)| request));
    let pair = run(source(), Client::new(timed.collect()), pipe(|_| false), 10, 5);
    assert_eq!(statuses(&pair), expected);
    assert!(named(&pair, "closed").is_empty());
}

#[test]
fn what_is_no_rtsp_ends_the_connection() {
    let client = Client::new(vec![(0, "\u{1}\u{2} tea".into()), (500, "more".into())]);
    let pair = run(source(), client, pipe(|_| false), 10, 2);
    assert_eq!(statuses(&pair), [400]);
    assert_eq!(named(&pair, "closed").len(), 1);
}

#[test]
fn a_client_that_leaves_stops_its_media() {
    let mut pair = Pair::new(server(60, source()), Box::new(Client::new(dialogue("", ""))), pipe(|_| false));
    pair.at(Duration::from_secs(2), Input::Closed(RTSP, CloseReason::Reset));
    pair.run(instant(9000));
    assert!(media(&pair).iter().all(|sent| sent.at <= instant(2000)));
}

#[test]
fn acknowledgements_of_nothing_do_no_harm() {
    let mut server = server(60, source());
    let mut script = dialogue(RELIABLE, "");
    script.truncate(2);
    let garbage = [&b"\x80\xcc\x00\x01"[..], b"", b"\x80", &[0xff; 64], b"\x80\xcc\xff\xff\0\0\0\0qtak"];
    for (number, bytes) in garbage.into_iter().enumerate() {
        let mut sink = Sink;
        server.handle(
            instant(number as i64),
            Input::datagram(ChannelId(2), &Chunk::bytes(bytes), instant(number as i64)),
            &mut sink,
        );
    }
    let mut pair = Pair::new(server, Box::new(Client::new(script)), pipe(|_| false));
    pair.run(instant(1000));
    assert_eq!(statuses(&pair), [200, 200]);
}

#[test]
fn of_a_file_of_many_tracks_those_are_served_that_have_a_payload_type() {
    let mut many = (*asset(5)).clone();
    many.tracks = vec![many.tracks[0].clone(); 300];
    let server = DarwinServer::new(Arc::new(OneAsset(Arc::new(many))), source(), "test", 1);
    let setup = |at, track| (at, format!("SETUP {URL}/trackID={track} RTSP/1.0\r\nCSEQ\r\n{}\r\n", udp("")));
    let script = vec![
        request(0, "DESCRIBE", false, ""),
        setup(50, 33),
        setup(100, 32),
        request(200, "PLAY", false, "SESSION\r\n"),
    ];
    let mut pair = Pair::new(Box::new(server), Box::new(Client::new(script)), pipe(|_| false));
    pair.run(instant(1000));
    assert_eq!(statuses(&pair), [200, 404, 200, 200]);
    let sent = pair.sent.iter().find(|sent| sent.channel == FIRST_RTP).expect("media of the last");
    assert_eq!(sent.datagram.head()[1] & 0x7f, 127);
}

/// No peer at the other end.
struct Sink;

impl Io for Sink {
    fn send_as(&mut self, _: ChannelId, _: Chunk, _: crate::Envelope) {}
    fn write(&mut self, _: ChannelId, _: Chunk) -> usize {
        0
    }
    fn read(&mut self, _: ChannelId, _: usize) -> Option<Chunk> {
        None
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
fn what_mutants_remove_is_gone() {
    let asks = "x-Transport-Options: late-tolerance=10\r\n";
    let lossy = |settings| {
        let client = Client::new(dialogue(RELIABLE, asks));
        run(settings, client, pipe(|n| n % 50 == 30), 30, 60)
    };
    let refused = lossy(ServerSettings { reliable_udp: false, ..source() });
    assert!(!named(&refused, "response")[1].reason.contains("x-Retransmit"));
    let forgetful = lossy(ServerSettings { retransmission: false, ..source() });
    assert!(named(&forgetful, "rudp_retransmit").is_empty() && !named(&forgetful, "rudp_cut").is_empty());
    let on_time = lossy(ServerSettings { overbuffering: false, ..source() });
    assert!((0.8..1.2).contains(&(bytes_between(&on_time, 3, 13) as f64 / 294_000.0)));
    let client = Client { acknowledges: false, ..Client::new(dialogue(RELIABLE, asks)) };
    let unbound =
        run(ServerSettings { congestion_control: false, ..source() }, client, pipe(|_| false), 30, 60);
    let mut sequences: Vec<_> = media(&unbound).iter().map(|sent| sequence(&sent.datagram)).collect();
    sequences.sort_unstable();
    sequences.dedup();
    assert_eq!(sequences.len(), 30 * 28, "all was sent, and much of it again");
}
