//! Our SRT against libsrt's program and FFmpeg, both ways, on loopback: the same bytes must come out, also where every
//! twentieth datagram is lost. In real time, some seconds each: `make test-long` runs them. Where a program is missing,
//! a test prints that and ends.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::media::ClipSpec;
use streamgauge_systems::media::segment::{Pictures, TransportStream};
use streamgauge_systems::srt::{Caller, MEDIA, SrtReceiver, SrtSpec};
use streamgauge_systems::{App, Carrier, ChannelId, Envelope, Input, Io, System};
use streamgauge_wire::srt::{Packet, PacketContent};

const LIBSRT: &str = "srt-live-transmit";

/// Every twentieth of these datagrams is lost: none of the handshake, and none of the last, which nothing reveals as lost.
const LOST: std::ops::Range<u64> = 10..250;

/// A machine's socket. It begins to lose datagrams after those of the handshake.
struct Wire {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    began: StdInstant,
    loses: bool,
    sent: u64,
    received: u64,
    /// Payloads in the order in which they were sent first.
    payloads: Vec<u8>,
    events: Vec<String>,
}

impl Io for Wire {
    fn open(&mut self, _: &Carrier) -> ChannelId {
        MEDIA
    }
    fn send_as(&mut self, _: ChannelId, datagram: Chunk, _: Envelope) {
        if let Ok(Packet { content: PacketContent::Data(data), .. }) = Packet::parse(&datagram)
            && !data.is_retransmitted
        {
            self.payloads.extend(data.payload.head());
        }
        self.sent += 1;
        let is_lost = self.loses && LOST.contains(&self.sent) && self.sent.is_multiple_of(20);
        if let Some(peer) = self.peer.filter(|_| !is_lost) {
            // The other end may not listen yet.
            let _ = self.socket.send_to(datagram.head(), peer);
        }
    }
    fn write(&mut self, _: ChannelId, _: Chunk) -> usize {
        0
    }
    fn read(&mut self, _: ChannelId, _: usize) -> Option<Chunk> {
        None
    }
    fn close(&mut self, _: ChannelId) {}
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

impl Wire {
    fn new(peer: Option<SocketAddr>, loses: bool) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (began, payloads, events) = (StdInstant::now(), Vec::new(), Vec::new());
        Wire { socket, peer, began, loses, sent: 0, received: 0, payloads, events }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn feed(&mut self, app: &mut dyn App, input: Input<'_>) {
        let now = self.now();
        app.handle(now, input, self);
        while let Some(event) = app.poll_event() {
            self.events.push(format!(
                "{} {} {:?} {}",
                event.at.as_secs_f64(),
                event.name,
                event.value,
                event.reason
            ));
        }
    }

    /// Drives the machine until it has nothing more to do, or `done`.
    fn drive<A: App>(&mut self, app: &mut A, mut done: impl FnMut(&mut A) -> bool) {
        let deadline = StdInstant::now() + StdDuration::from_secs(30);
        self.feed(app, Input::Start);
        let mut buffer = [0; 2048];
        while !done(app) {
            assert!(StdInstant::now() < deadline, "it never ended: {:#?}", self.events);
            // A listener waits without a time of its own.
            let next = match app.poll_timeout() {
                Some(next) => next,
                None if self.events.is_empty() => self.now() + Duration::from_millis(20),
                None => return,
            };
            let wait = next.saturating_since(self.now()).as_nanos().clamp(100_000, 20_000_000);
            self.socket.set_read_timeout(Some(StdDuration::from_nanos(wait))).unwrap();
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    self.peer = Some(from);
                    self.received += 1;
                    if self.loses && LOST.contains(&self.received) && self.received.is_multiple_of(20) {
                        continue;
                    }
                    let datagram = Chunk::bytes(&buffer[..length]);
                    let at = self.now();
                    self.feed(app, Input::datagram(MEDIA, &datagram, at));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // The other end did not listen yet.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("{error}"),
            }
            if app.poll_timeout().is_some_and(|next| next <= self.now()) {
                self.feed(app, Input::Timeout);
            }
        }
    }
}

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_there(program: &str) -> bool {
    let found =
        Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("left out: {program} is not installed (apt install srt-tools ffmpeg)");
    }
    found
}

fn spec(caller: Caller) -> SrtSpec {
    let ms = Duration::from_millis;
    SrtSpec {
        clip: ClipSpec {
            name: "test".into(),
            duration: ms(2_000),
            frame_interval: ms(40),
            frame_bytes: vec![80_000, 9_000, 9_000, 9_000, 9_000].into(),
            ..ClipSpec::default()
        },
        caller,
        latency: ms(800),
        ..SrtSpec::usual()
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn output(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("streamgauge-srt-{}-{name}.ts", std::process::id()))
}

fn size(file: &Path) -> u64 {
    file.metadata().map_or(0, |facts| facts.len())
}

/// Ours sends to libsrt, which listens or calls.
fn to_libsrt(caller: Caller, loses: bool) {
    if !is_there(LIBSRT) {
        return;
    }
    let file = output(&format!("{caller:?}-{loses}"));
    let port = free_port();
    let listens = caller == Caller::Sender;
    let peer = listens.then(|| SocketAddr::from(([127, 0, 0, 1], port)));
    let mut wire = Wire::new(peer, loses);
    let url = match listens {
        true => format!("srt://127.0.0.1:{port}?mode=listener&latency=800"),
        false => format!("srt://127.0.0.1:{}?mode=caller&latency=800", wire.port()),
    };
    let mut command = Command::new(LIBSRT);
    command
        .args(["-q", "-a:no", &url, "file://con"])
        .stdout(File::create(&file).unwrap())
        .stderr(Stdio::null());
    let _program = Program(command.spawn().unwrap());
    let (mut sender, _) = spec(caller).ends("video", 1).unwrap();
    wire.drive(&mut sender, |_| false);
    let deadline = StdInstant::now() + StdDuration::from_secs(10);
    while size(&file) < wire.payloads.len() as u64 && StdInstant::now() < deadline {
        std::thread::sleep(StdDuration::from_millis(20));
    }
    let came = std::fs::read(&file).unwrap();
    let _ = std::fs::remove_file(&file);
    assert!(wire.payloads.len() > 1_000_000);
    assert!(came == wire.payloads, "{} of {} B came: {:#?}", came.len(), wire.payloads.len(), wire.events);
}

#[test]
#[ignore = "some seconds in real time, and srt-tools"]
fn libsrt_receives_what_we_send() {
    to_libsrt(Caller::Sender, false);
}

#[test]
#[ignore = "some seconds in real time, and srt-tools"]
fn libsrt_receives_what_we_send_when_it_calls_and_datagrams_are_lost() {
    to_libsrt(Caller::Receiver, true);
}

/// Receives from a program until the connection ends; returns the bytes.
fn received(wire: &mut Wire, receiver: &mut SrtReceiver) -> Vec<u8> {
    receiver.keep_payloads();
    wire.drive(receiver, |_| false);
    let mut came = Vec::new();
    while let Some(payload) = receiver.take_payload() {
        came.extend(payload.head());
    }
    came
}

/// libsrt sends to ours, which listens or calls.
fn from_libsrt(caller: Caller, loses: bool) {
    if !is_there(LIBSRT) {
        return;
    }
    let port = free_port();
    let listens = caller == Caller::Sender;
    let peer = (!listens).then(|| SocketAddr::from(([127, 0, 0, 1], port)));
    let mut wire = Wire::new(peer, loses);
    let url = match listens {
        true => format!("srt://127.0.0.1:{}?mode=caller&latency=800", wire.port()),
        false => format!("srt://127.0.0.1:{port}?mode=listener&latency=800"),
    };
    let mut command = Command::new(LIBSRT);
    command
        .args(["-q", "-a:no", "-chunk:1316", "file://con", &url])
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let mut program = Program(command.spawn().unwrap());
    let mut input = program.0.stdin.take().unwrap();
    // 2 s of 5 Mbit/s in whole datagrams, each with its number.
    let datagrams: Vec<Vec<u8>> = (0..950u32).map(|number| number.to_be_bytes().repeat(329)).collect();
    let expected = datagrams.concat();
    let feeder = std::thread::spawn(move || {
        // After the handshake: live mode discards earlier data.
        std::thread::sleep(StdDuration::from_millis(1_500));
        for datagram in datagrams {
            input.write_all(&datagram).unwrap();
            std::thread::sleep(StdDuration::from_micros(2_100));
        }
        std::thread::sleep(StdDuration::from_millis(2_000));
        // It does not end with its input.
        drop(program);
    });
    let (_, mut receiver) = spec(caller).ends("video", 1).unwrap();
    let came = received(&mut wire, &mut receiver);
    feeder.join().unwrap();
    assert!(came == expected, "{} of {} B came: {:#?}", came.len(), expected.len(), wire.events);
}

#[test]
#[ignore = "some seconds in real time, and srt-tools"]
fn we_receive_what_libsrt_sends() {
    from_libsrt(Caller::Sender, false);
}

#[test]
#[ignore = "some seconds in real time, and srt-tools"]
fn we_receive_what_libsrt_sends_when_we_call_and_datagrams_are_lost() {
    from_libsrt(Caller::Receiver, true);
}

#[test]
#[ignore = "some seconds in real time, and FFmpeg with SRT"]
fn we_receive_the_pictures_that_ffmpeg_sends() {
    if !is_there("ffmpeg") {
        return;
    }
    let mut wire = Wire::new(None, true);
    let url = format!("srt://127.0.0.1:{}?mode=caller&latency=800000&pkt_size=1316", wire.port());
    let mut command = Command::new("ffmpeg");
    command.args([
        "-nostdin",
        "-loglevel",
        "error",
        "-re",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=320x180:rate=25",
    ]);
    command.args(["-t", "2", "-c:v", "libx264", "-preset", "ultrafast", "-b:v", "2M", "-f", "mpegts", &url]);
    let _program = Program(command.spawn().unwrap());
    let (_, mut receiver) = spec(Caller::Sender).ends("video", 1).unwrap();
    let came = received(&mut wire, &mut receiver);
    let mut stream = TransportStream::new(Default::default());
    stream.push(&came);
    let (counted, _) = stream.finish();
    // FFmpeg closes the connection at its end, and its last pictures with it.
    let count = if let Pictures::Counted { count, .. } = counted.pictures { count } else { 0 };
    assert!((40..=50).contains(&count), "{count} pictures: {:#?}", wire.events);
}
