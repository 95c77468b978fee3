//! The Darwin server against clients that are broken or mean it ill: each fault gets its RTSP status, nothing
//! panics or spins, and what the server keeps stays within the bound that it states.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::darwin::{
    DarwinServer, FIRST_RTP, Library, OpenError, Preset, RTSP, ServerSettings,
};
use streamgauge_systems::media::Asset;
use streamgauge_systems::plan::ClipSpec;
use streamgauge_systems::{App, ChannelId, CloseReason, Input, Io};
use streamgauge_wire::reliable_udp::{Ack, ClientReport};
use streamgauge_wire::rtcp::{self, Packet};
use streamgauge_wire::rtsp::{Item, Reader, names};

/// Counts what this thread holds on the heap.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: usize, sign: isize) {
    // While a thread ends, its counter is gone before its last deallocations.
    let _ = HELD.try_with(|held| held.set(held.get() + sign * bytes as isize));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`, and `alloc` got the memory from there.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn held() -> usize {
    HELD.with(Cell::get).max(0).cast_unsigned()
}

/// Far below what the server states as its bound, without requests that wait for the probe: one request half read, the
/// connection's backlog, and the packets outstanding.
const MOST_KEPT: usize = 200_000;

/// Those requests: 8 of 80 kB, which a vector's growth may double.
const MOST_WAITING: usize = 2 * 8 * 80_000;

const URL: &str = "rtsp://server/clip.mov";
const UDP: &str = "Transport: RTP/AVP;unicast;client_port=6970-6971\r\n";
const RELIABLE: &str = "x-Retransmit: our-retransmit\r\n";
const PROBED: &str = "x-Retransmit: our-retransmit\r\nx-Dynamic-Rate: 1\r\n";

/// One clip at one path, 25 frames/s of 1,000 B.
struct OnePath(Arc<Asset>);

impl Library for OnePath {
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        match path {
            "/clip.mov" => Ok(self.0.clone()),
            "/text.txt" => Err(OpenError::Unsupported("text".into())),
            "/broken.mov" => Err(OpenError::Failed("input/output error".into())),
            _ => Err(OpenError::NotFound),
        }
    }
}

/// The host under the server: a connection that takes `room` bytes more, and datagrams that it only counts.
struct Host {
    to_server: VecDeque<Chunk>,
    from_server: Vec<Chunk>,
    room: usize,
    media: usize,
    /// The last sequence number on the first track's channel.
    sequence: Option<u16>,
    closed: bool,
    ports: bool,
}

impl Io for Host {
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        if channel == FIRST_RTP {
            self.media += 1;
            self.sequence = Some(u16::from_be_bytes([datagram.head()[2], datagram.head()[3]]));
        }
    }
    fn write(&mut self, _: ChannelId, mut chunk: Chunk) -> usize {
        chunk.split_off(self.room);
        self.room -= chunk.len();
        let taken = chunk.len();
        self.from_server.push(chunk);
        taken
    }
    fn read(&mut self, _: ChannelId, max: usize) -> Option<Chunk> {
        let mut chunk = self.to_server.pop_front()?;
        let rest = chunk.split_off(max);
        if !rest.is_empty() {
            self.to_server.push_front(rest);
        }
        Some(chunk)
    }
    fn close(&mut self, _: ChannelId) {
        self.closed = true;
    }
    fn bind_pair(&mut self, _: ChannelId) -> Option<u16> {
        self.ports.then_some(6970)
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

/// A client's hand on a server.
struct Client {
    server: DarwinServer,
    host: Host,
    reader: Reader,
    now: Instant,
    cseq: u32,
    session: String,
    answers_probe: bool,
    /// Heap before the server was made, and the most since.
    before: usize,
    most: usize,
    largest_window: f64,
    names: Vec<String>,
}

impl Client {
    fn new() -> Self {
        Client::of(ServerSettings::of(Preset::Source))
    }

    fn of(settings: ServerSettings) -> Self {
        let asset = Arc::new(Asset::of_clip(&ClipSpec {
            name: "clip".into(),
            duration: Duration::from_secs(60),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![1000; 25],
            key_frames: vec![0],
        }));
        let host = Host {
            to_server: VecDeque::new(),
            from_server: Vec::new(),
            room: usize::MAX,
            media: 0,
            sequence: None,
            closed: false,
            ports: true,
        };
        let before = held();
        let mut client = Client {
            server: DarwinServer::new(Arc::new(OnePath(asset)), settings, "client", 1),
            host,
            reader: Reader::default(),
            now: Instant::ZERO,
            cseq: 0,
            session: String::new(),
            answers_probe: true,
            before,
            most: 0,
            largest_window: 0.0,
            names: Vec::new(),
        };
        client.input(Input::Opened(RTSP));
        client
    }

    /// What the server keeps, with what waits for it or for us left out of the count.
    fn kept(&self) -> usize {
        held().saturating_sub(self.before)
    }

    fn input(&mut self, input: Input<'_>) {
        self.server.handle(self.now, input, &mut self.host);
        while let Some(event) = self.server.poll_event() {
            if event.name == "rudp_cwnd" {
                self.largest_window = self.largest_window.max(event.value.expect("a window"));
            }
            if !self.names.iter().any(|name| *name == event.name) {
                self.names.push(event.name.to_string());
            }
        }
        self.most = self.most.max(self.kept());
    }

    /// Lets time pass until `ms` after the start.
    fn run(&mut self, ms: u64) {
        let end = Instant::from_nanos(ms * 1_000_000);
        let mut steps = 0u64;
        while let Some(at) = self.server.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.input(Input::Timeout);
            steps += 1;
            assert!(steps < 200 * (ms + 1), "the server spins at {:?}", self.now);
        }
        self.now = self.now.max(end);
    }

    /// Writes bytes and returns the statuses that they are answered with.
    fn write(&mut self, bytes: impl Into<Vec<u8>>) -> Vec<u16> {
        self.host.to_server.push_back(Chunk::bytes(bytes.into()));
        self.input(Input::Readable(RTSP));
        self.answers()
    }

    fn answers(&mut self) -> Vec<u16> {
        let mut statuses = Vec::new();
        loop {
            let chunks = std::mem::take(&mut self.host.from_server);
            chunks.into_iter().for_each(|chunk| self.reader.push(chunk));
            let mut asked = false;
            for item in self.reader.by_ref() {
                match item.expect("the server speaks RTSP") {
                    Item::Response(response) => {
                        if let Some(session) = response.header(&names::SESSION) {
                            let id = session.as_str().split(';').next().expect("the first of some");
                            self.session = format!("Session: {id}\r\n");
                        }
                        statuses.push(u16::from(response.status()));
                    }
                    Item::Request(_) => asked = true,
                    Item::Interleaved { .. } => {}
                }
            }
            if !(asked && self.answers_probe) {
                return statuses;
            }
            self.host.to_server.push_back(Chunk::bytes(*b"RTSP/1.0 200 OK\r\n\r\n"));
            self.input(Input::Readable(RTSP));
        }
    }

    fn text(&mut self, method: &str, url: &str, headers: &str) -> String {
        self.cseq += 1;
        format!("{method} {url} RTSP/1.0\r\nCSeq: {}\r\n{headers}\r\n", self.cseq)
    }

    fn ask(&mut self, method: &str, url: &str, headers: &str) -> u16 {
        let text = self.text(method, url, headers);
        let statuses = self.write(text);
        assert_eq!(statuses.len(), 1, "{method} {url} {headers}: {statuses:?}");
        statuses[0]
    }

    fn setup(&mut self, headers: &str) -> u16 {
        self.ask("SETUP", &format!("{URL}/trackID=1"), headers)
    }

    /// With the session's id.
    fn play(&mut self, headers: &str) -> u16 {
        let headers = format!("{}{headers}", self.session);
        self.ask("PLAY", URL, &headers)
    }

    /// A session that plays.
    fn playing(settings: ServerSettings, setup: &str) -> Self {
        let mut client = Client::of(settings);
        assert_eq!((client.setup(&format!("{UDP}{setup}")), client.play("")), (200, 200));
        client
    }

    fn rtcp(&mut self, datagram: &[u8]) {
        self.input(Input::Datagram(ChannelId(FIRST_RTP.0 + 1), &Chunk::bytes(datagram)));
    }
}

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
    // What RFC 7826 adds, in quotes that do not end or hold what they should not, is passed over.
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

#[test]
fn a_flood_of_requests_waits_outside_and_is_answered() {
    let mut client = Client::new();
    client.host.room = 0;
    let flood: String = (0..20_000).map(|_| client.text("OPTIONS", "*", "")).collect();
    let bytes = flood.len();
    client.host.to_server.push_back(Chunk::bytes(flood.into_bytes()));
    client.input(Input::Readable(RTSP));
    let kept = client.kept().saturating_sub(bytes);
    assert!(kept < 200_000, "{kept} B beside {bytes} B that wait");
    let unread: usize = client.host.to_server.iter().map(Chunk::len).sum();
    assert!(unread > bytes / 2, "{unread} of {bytes} B still wait outside");
    let mut answered = 0;
    while answered < 20_000 {
        client.host.room = 50_000;
        client.input(Input::Writable(RTSP));
        let answers = client.answers();
        assert!(!answers.is_empty() && answers.iter().all(|status| *status == 200));
        answered += answers.len();
    }
    assert!(client.kept() < 100_000, "{} B after the flood", client.kept());
}

#[test]
fn a_client_that_never_answers_the_probe_may_not_ask_for_ever() {
    let mut client = Client::new();
    client.answers_probe = false;
    let setup = client.text("SETUP", &format!("{URL}/trackID=1"), &format!("{UDP}{PROBED}"));
    assert_eq!(client.write(setup), []);
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let request = client.text("SET_PARAMETER", URL, "Content-Length: 60000\r\n") + &"x".repeat(60_000);
        statuses.extend(client.write(request));
    }
    assert_eq!((statuses, client.host.closed), (vec![503], true));
    assert!(client.most < MOST_KEPT + MOST_WAITING, "{} B", client.most);
    client.host.to_server.clear();
    assert!(client.kept() < 20_000, "{} B are kept of it", client.kept());

    let mut client = Client::new();
    client.answers_probe = false;
    let setup = client.text("SETUP", &format!("{URL}/trackID=1"), &format!("{UDP}{PROBED}"));
    client.write(setup);
    client.run(200_000);
    assert!(client.host.closed, "or be silent");
}

#[test]
fn acknowledgements_of_what_was_never_sent_open_no_window_beyond_its_cap() {
    for preset in [Preset::Source, Preset::Paper] {
        let mut client = Client::playing(ServerSettings::of(preset), RELIABLE);
        for step in 1..400u64 {
            client.run(step * 25);
            let sent = client.host.sequence.expect("media has begun");
            let ahead: Vec<u16> = (1..500).map(|n| sent.wrapping_add(1000 + n)).collect();
            let acks = Ack::of(1, 2, &ahead).into_iter().map(Packet::Ack);
            client.rtcp(&rtcp::write(&acks.collect::<Vec<_>>()));
        }
        assert!(client.largest_window <= 65_536.0, "{} B", client.largest_window);
        assert!(client.most < MOST_KEPT, "{} B", client.most);
        assert!(client.names.iter().any(|name| name == "rudp_retransmit" || name == "rudp_expired"));
    }
}

#[test]
fn a_client_that_never_acknowledges_is_bounded_and_forgotten() {
    let mut client = Client::playing(ServerSettings::of(Preset::Source), RELIABLE);
    client.run(10_000);
    let early = client.host.media;
    assert!((10..300).contains(&early), "{early} packets");
    client.run(300_000);
    assert!(client.host.closed && client.names.iter().any(|name| name == "session_timeout"));
    assert!(client.most < MOST_KEPT, "{} B", client.most);
    assert!(client.kept() < 20_000, "{} B are kept of it", client.kept());
}

#[test]
fn who_vanishes_leaves_nothing_behind() {
    for settings in [ServerSettings::of(Preset::Source), ServerSettings::of(Preset::Paper)] {
        for setup in [PROBED, RELIABLE, ""] {
            let mut client = Client::playing(settings.clone(), setup);
            client.run(3_000);
            client.host.to_server.push_back(Chunk::bytes(*b"SET_PARAMETER * RTSP/1.0\r\nContent-Length: 9"));
            client.input(Input::Readable(RTSP));
            client.input(Input::Closed(RTSP, CloseReason::Failed));
            let sent = client.host.media;
            client.run(300_000);
            assert_eq!(client.host.media, sent);
            assert!(client.kept() < 20_000, "{} B are kept of it", client.kept());
        }
    }
}

#[test]
fn a_connection_that_takes_nothing_stops_its_media_and_ends() {
    let mut client = Client::new();
    assert_eq!(client.setup("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), 200);
    client.host.room = 3_000;
    assert_eq!(client.play(""), 200);
    client.run(300_000);
    assert!(client.host.closed);
    assert!(client.most < MOST_KEPT, "{} B", client.most);
}

/// A datagram of RTCP, well-formed, damaged or rubbish.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let ack = (any::<u16>(), prop::collection::vec(any::<u32>(), 0..40)).prop_map(|(base, mask)| {
        rtcp::write(&[Packet::Ack(Ack { receiver_ssrc: 1, stream_ssrc: 2, base, mask })])
    });
    let report = any::<(Option<u32>, Option<u16>)>().prop_map(|(overbuffer_window, loss_percent_256)| {
        let report = ClientReport { overbuffer_window, loss_percent_256, ..ClientReport::default() };
        rtcp::write(&[Packet::ReceiverReport { ssrc: 1, blocks: Vec::new() }, Packet::ClientReport(report)])
    });
    let bye = Just(rtcp::write(&[Packet::Bye { sources: vec![1] }]));
    let rubbish = prop::collection::vec(any::<u8>(), 0..80);
    let sound = prop_oneof![4 => ack, 2 => report, 1 => bye, 1 => rubbish];
    (sound, any::<prop::sample::Index>(), prop_oneof![3 => Just(0u8), 1 => any::<u8>()]).prop_map(
        |(mut bytes, at, flip)| {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            bytes
        },
    )
}

/// A piece of what a client writes; `SESSION` becomes the session's id.
fn piece() -> impl Strategy<Value = String> {
    let method = prop::sample::select(vec![
        "OPTIONS",
        "DESCRIBE",
        "SETUP",
        "PLAY",
        "PAUSE",
        "TEARDOWN",
        "GET_PARAMETER",
        "SET_PARAMETER",
        "FOO",
    ]);
    let url = prop::sample::select(vec![
        URL,
        "rtsp://server/clip.mov/trackID=1",
        "rtsp://server/clip.mov/trackID=2",
        "*",
    ]);
    let headers = prop::collection::vec(
        prop::sample::select(vec![
            UDP,
            RELIABLE,
            PROBED,
            "SESSION",
            "SESSION",
            "SESSION",
            "Transport: RTP/AVP/TCP;interleaved=0-1\r\n",
            "Range: npt=10-\r\n",
            "Range: npt=30-20\r\n",
            "Range: npt=59-\r\n",
            "Speed: 0.001\r\n",
            "Speed: 4\r\n",
            "x-Transport-Options: late-tolerance=0\r\n",
            "x-Prebuffer: maxtime=9\r\n",
            "Content-Length: 3\r\n\r\nabc",
        ]),
        0..4,
    );
    let request = (method, url, headers).prop_map(|(method, url, headers)| {
        format!("{method} {url} RTSP/1.0\r\nCSeq: 1\r\n{}\r\n", headers.concat())
    });
    let rest =
        prop::sample::select(vec!["RTSP/1.0 200 OK\r\n\r\n", "\r\n", "$\u{1}\0\u{4}abcd", "junk\r\n\r\n"]);
    prop_oneof![8 => request, 1 => rest.prop_map(str::to_owned)]
}

#[derive(Clone, Debug)]
enum Step {
    Write(String),
    Datagram(Vec<u8>),
    Wait(u64),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever comes in whatever order, the server answers in RTSP, keeps within its bound, and does not spin.
    #[test]
    fn takes_anything_in_any_order(
        paper: bool, answers_probe: bool,
        steps in prop::collection::vec(prop_oneof![
            4 => piece().prop_map(Step::Write), 3 => datagram().prop_map(Step::Datagram),
            3 => (1u64..4000).prop_map(Step::Wait),
        ], 1..60),
    ) {
        let preset = if paper { Preset::Paper } else { Preset::Source };
        let mut client = Client::of(ServerSettings::of(preset));
        client.answers_probe = answers_probe;
        let mut ms = 0;
        for step in steps {
            match step {
                Step::Write(text) if !client.host.closed => {
                    let text = text.replace("SESSION", &client.session);
                    client.write(text);
                }
                Step::Write(_) => {}
                Step::Datagram(bytes) => client.rtcp(&bytes),
                Step::Wait(more) => {
                    ms += more;
                    client.run(ms);
                    client.answers();
                }
            }
        }
        prop_assert!(client.most < MOST_KEPT, "{} B", client.most);
        prop_assert!(client.largest_window <= 65_536.0);
        client.input(Input::Stop);
        client.answers();
        prop_assert!(client.kept() < 40_000, "{} B are kept at the end", client.kept());
    }
}
