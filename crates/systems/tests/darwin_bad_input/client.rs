//! A server under a client's control: a host that sends and accepts as a test requires, and time that it lets
//! pass.

use std::collections::VecDeque;
use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::darwin::{DarwinServer, FIRST_RTP, Preset, RTSP, ServerSettings};
use streamgauge_systems::media::{Asset, ClipSpec, Library, OpenError};
use streamgauge_systems::{App, Carrier, ChannelId, Envelope, Input, Io};
use streamgauge_wire::rtsp::{Reader, RtspItem, names};

use crate::heap::held;

/// Far below the server's stated bound, without requests that wait for the probe: one request half read, the
/// connection's backlog, and the packets outstanding.
pub const MOST_KEPT: usize = 200_000;

pub const URL: &str = "rtsp://server/clip.mov";
pub const UDP: &str = "Transport: RTP/AVP;unicast;client_port=6970-6971\r\n";
pub const RELIABLE: &str = "x-Retransmit: our-retransmit\r\n";
pub const PROBED: &str = "x-Retransmit: our-retransmit\r\nx-Dynamic-Rate: 1\r\n";

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
pub struct Host {
    /// Bytes that the server has not read.
    pub to_server: VecDeque<Chunk>,
    from_server: Vec<Chunk>,
    /// Bytes that the connection still takes.
    pub room: usize,
    /// Packets on the first track's channel, and the last one's sequence number.
    pub media: usize,
    pub sequence: Option<u16>,
    /// The server has closed the connection.
    pub closed: bool,
    /// There are UDP ports.
    pub ports: bool,
}

impl Io for Host {
    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
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
    fn open(&mut self, _: &Carrier) -> ChannelId {
        FIRST_RTP
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        self.ports.then_some(6970)
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

/// A client's hand on a server.
pub struct Client {
    server: DarwinServer,
    pub host: Host,
    reader: Reader,
    now: Instant,
    cseq: u32,
    /// The Session header of the session at hand.
    pub session: String,
    /// Answers the server's request.
    pub answers_probe: bool,
    /// Heap before the server was made.
    before: usize,
    /// The most that was kept since.
    pub most: usize,
    /// The largest congestion window that the server reported, and its other events by name.
    pub largest_window: f64,
    pub names: Vec<String>,
}

impl Client {
    /// To a server like the public one.
    pub fn new() -> Self {
        Client::of(ServerSettings::of(Preset::Source))
    }

    /// A connection to a server with these constants.
    pub fn of(settings: ServerSettings) -> Self {
        let asset = Arc::new(Asset::of_clip(&ClipSpec {
            name: "clip".into(),
            duration: Duration::from_secs(60),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![1000; 25].into(),
            key_frames: vec![0].into(),
            ..ClipSpec::default()
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

    /// Returns the bytes that the server keeps on the heap, with its pending input and ours.
    pub fn kept(&self) -> usize {
        held().saturating_sub(self.before)
    }

    /// Gives the server an input.
    pub fn input(&mut self, input: Input<'_>) {
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
    pub fn run(&mut self, ms: u64) {
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
    pub fn write(&mut self, bytes: impl Into<Vec<u8>>) -> Vec<u16> {
        self.host.to_server.push_back(Chunk::bytes(bytes.into()));
        self.input(Input::Readable(RTSP));
        self.answers()
    }

    /// The statuses that have come, after the server's own request was answered.
    pub fn answers(&mut self) -> Vec<u16> {
        let mut statuses = Vec::new();
        loop {
            let chunks = std::mem::take(&mut self.host.from_server);
            chunks.into_iter().for_each(|chunk| self.reader.push(chunk));
            let mut asked = false;
            for item in self.reader.by_ref() {
                match item.expect("the server speaks RTSP") {
                    RtspItem::Response(response) => {
                        if let Some(session) = response.header(&names::SESSION) {
                            let id = session.as_str().split(';').next().expect("the first of some");
                            self.session = format!("Session: {id}\r\n");
                        }
                        statuses.push(u16::from(response.status()));
                    }
                    RtspItem::Request(_) => asked = true,
                    RtspItem::Interleaved { .. } => {}
                }
            }
            if !(asked && self.answers_probe) {
                return statuses;
            }
            self.host.to_server.push_back(Chunk::bytes(*b"RTSP/1.0 200 OK\r\n\r\n"));
            self.input(Input::Readable(RTSP));
        }
    }

    /// A request with the next CSeq.
    pub fn text(&mut self, method: &str, url: &str, headers: &str) -> String {
        self.cseq += 1;
        format!("{method} {url} RTSP/1.0\r\nCSeq: {}\r\n{headers}\r\n", self.cseq)
    }

    /// The status that a request is answered with.
    pub fn ask(&mut self, method: &str, url: &str, headers: &str) -> u16 {
        let text = self.text(method, url, headers);
        let statuses = self.write(text);
        assert_eq!(statuses.len(), 1, "{method} {url} {headers}: {statuses:?}");
        statuses[0]
    }

    /// SETUP of the clip's one track.
    pub fn setup(&mut self, headers: &str) -> u16 {
        self.ask("SETUP", &format!("{URL}/trackID=1"), headers)
    }

    /// PLAY, with the session's id.
    pub fn play(&mut self, headers: &str) -> u16 {
        let headers = format!("{}{headers}", self.session);
        self.ask("PLAY", URL, &headers)
    }

    /// A session that plays.
    pub fn playing(settings: ServerSettings, setup: &str) -> Self {
        let mut client = Client::of(settings);
        assert_eq!((client.setup(&format!("{UDP}{setup}")), client.play("")), (200, 200));
        client
    }

    /// A datagram on the channel of RTCP.
    pub fn rtcp(&mut self, datagram: &[u8]) {
        self.input(Input::datagram(ChannelId(FIRST_RTP.0 + 1), &Chunk::bytes(datagram), Instant::ZERO));
    }
}
