//! Our RIST against librist's programs, both ways, on loopback: the same bytes must come out, also where every twentieth
//! packet of media is lost. In real time, some seconds each: `make test-long` runs them. Where a program is missing, a test
//! prints that and ends.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::media::ClipSpec;
use streamgauge_systems::rist::{CONTROL, MEDIA, RequestForm, RistReceiver, RistSpec};
use streamgauge_systems::{App, Carrier, ChannelId, Envelope, Input, Io, System};
use streamgauge_wire::rist::Data;

const RECEIVER: &str = "ristreceiver";
const SENDER: &str = "ristsender";

/// Every twentieth of these packets of media is lost: none of the last, which nothing reveals as lost.
const LOST: std::ops::Range<u64> = 10..800;

/// A machine's two sockets: RTP's, and RTCP's.
struct Wire {
    sockets: [UdpSocket; 2],
    peers: [Option<SocketAddr>; 2],
    began: StdInstant,
    loses: bool,
    /// Packets of media that were sent or received.
    media: u64,
    lost: u64,
    repeated: u64,
    /// Payloads in the order in which they were sent first.
    payloads: Vec<u8>,
    events: Vec<String>,
}

impl Io for Wire {
    fn open(&mut self, _: &Carrier) -> ChannelId {
        MEDIA
    }
    fn send_as(&mut self, on: ChannelId, datagram: Chunk, _: Envelope) {
        if on == MEDIA {
            let data = Data::parse(&datagram).unwrap();
            match data.is_repeated {
                true => self.repeated += 1,
                false => self.payloads.extend(data.payload.head()),
            }
            if self.is_lost() {
                return;
            }
        }
        if let Some(peer) = self.peers[on.0 as usize] {
            // The other end may not listen yet.
            let _ = self.sockets[on.0 as usize].send_to(datagram.head(), peer);
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
    fn new(sockets: [UdpSocket; 2], peers: [Option<SocketAddr>; 2], loses: bool) -> Self {
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let (began, payloads, events) = (StdInstant::now(), Vec::new(), Vec::new());
        Wire { sockets, peers, began, loses, media: 0, lost: 0, repeated: 0, payloads, events }
    }

    fn is_lost(&mut self) -> bool {
        self.media += 1;
        let is_lost = self.loses && LOST.contains(&self.media) && self.media.is_multiple_of(20);
        self.lost += u64::from(is_lost);
        is_lost
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn feed(&mut self, app: &mut dyn App, input: Input<'_>) {
        app.handle(self.now(), input, self);
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

    /// Returns the next datagram, and its channel.
    fn receive(&mut self) -> Option<(ChannelId, Chunk)> {
        let mut buffer = [0; 2048];
        for (place, on) in [MEDIA, CONTROL].into_iter().enumerate() {
            match self.sockets[place].recv_from(&mut buffer) {
                Ok((length, from)) => {
                    self.peers[place] = Some(from);
                    if on == MEDIA && self.is_lost() {
                        continue;
                    }
                    return Some((on, Chunk::bytes(&buffer[..length])));
                }
                // The other end may not listen yet.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
                Err(error) => panic!("{error}"),
            }
        }
        None
    }

    /// Drives the machine until it has nothing more to do, or `done`.
    fn drive<A: App>(&mut self, app: &mut A, mut done: impl FnMut(&mut A) -> bool) {
        let deadline = StdInstant::now() + StdDuration::from_secs(30);
        self.feed(app, Input::Start);
        while !done(app) && app.poll_timeout().is_some() {
            assert!(StdInstant::now() < deadline, "it never ended: {:#?}", self.events);
            match self.receive() {
                Some((on, datagram)) => {
                    let at = self.now();
                    self.feed(app, Input::datagram(on, &datagram, at));
                }
                None => std::thread::sleep(StdDuration::from_micros(300)),
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

/// Starts a program of librist in the simple profile, with its input and its output; `None` if it is not installed.
fn start(program: &str, input: &str, output: &str) -> Option<Program> {
    let mut command = Command::new(program);
    command.args(["-p", "0", "-b", "800", "-i", input, "-o", output]);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => Some(Program(child)),
        Err(_) => {
            eprintln!("left out: {program} is not installed (apt install rist-tools)");
            None
        }
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Binds an even port and the next.
fn pair() -> ([UdpSocket; 2], u16) {
    loop {
        let first = UdpSocket::bind(local(0)).unwrap();
        let port = first.local_addr().unwrap().port();
        if port.is_multiple_of(2)
            && let Ok(second) = UdpSocket::bind(local(port + 1))
        {
            return ([first, second], port);
        }
    }
}

fn spec() -> RistSpec {
    let ms = Duration::from_millis;
    RistSpec {
        clip: ClipSpec {
            name: "test".into(),
            duration: ms(2_000),
            frame_interval: ms(40),
            frame_bytes: vec![80_000, 9_000, 9_000, 9_000, 9_000].into(),
            ..ClipSpec::default()
        },
        latency: ms(800),
        ..RistSpec::usual()
    }
}

/// Ours sends to librist, which hands all on by UDP.
fn to_librist(loses: bool) {
    let (theirs, port) = pair();
    drop(theirs);
    let output = UdpSocket::bind(local(0)).unwrap();
    let to = format!("udp://127.0.0.1:{}", output.local_addr().unwrap().port());
    let Some(_program) = start(RECEIVER, &format!("rist://@127.0.0.1:{port}"), &to) else { return };
    output.set_read_timeout(Some(StdDuration::from_secs(6))).unwrap();
    let collector = std::thread::spawn(move || {
        let (mut came, mut buffer) = (Vec::<u8>::new(), [0; 2048]);
        while let Ok(length) = output.recv(&mut buffer) {
            came.extend(&buffer[..length]);
        }
        came
    });
    let sockets = [(); 2].map(|()| UdpSocket::bind(local(0)).unwrap());
    let mut wire = Wire::new(sockets, [Some(local(port)), Some(local(port + 1))], loses);
    let (mut sender, _) = spec().ends("video", 1).unwrap();
    wire.drive(&mut sender, |_| false);
    let came = collector.join().unwrap();
    assert!(wire.payloads.len() > 1_000_000 && (wire.lost > 30) == loses, "{} lost", wire.lost);
    assert!((wire.repeated >= wire.lost) && (wire.repeated > 0) == loses, "{} repeated", wire.repeated);
    // librist 0.2.7 does not hand on the first packet of a flow.
    let expected = &wire.payloads[7 * 188..];
    assert!(came == expected, "{} of {} B came: {:#?}", came.len(), expected.len(), wire.events);
}

#[test]
#[ignore = "some seconds in real time, and rist-tools"]
fn librist_receives_what_we_send() {
    to_librist(false);
}

#[test]
#[ignore = "some seconds in real time, and rist-tools"]
fn librist_receives_what_we_send_where_packets_are_lost() {
    to_librist(true);
}

/// librist sends to ours.
fn from_librist(request_form: RequestForm, loses: bool) {
    let (sockets, port) = pair();
    let input = UdpSocket::bind(local(0)).unwrap().local_addr().unwrap();
    let from = format!("udp://@127.0.0.1:{}", input.port());
    let Some(program) = start(SENDER, &from, &format!("rist://127.0.0.1:{port}")) else { return };
    // 2 s of 5 Mbit/s in whole datagrams, each with its number.
    let datagrams: Vec<Vec<u8>> = (0..950u32).map(|number| number.to_be_bytes().repeat(329)).collect();
    let expected = datagrams.concat();
    let feeder = std::thread::spawn(move || {
        // After the first reports: data before them is not sent.
        std::thread::sleep(StdDuration::from_millis(1_500));
        let socket = UdpSocket::bind(local(0)).unwrap();
        for datagram in datagrams {
            socket.send_to(&datagram, input).unwrap();
            std::thread::sleep(StdDuration::from_micros(2_100));
        }
        std::thread::sleep(StdDuration::from_millis(2_000));
        // It does not end with its input.
        drop(program);
    });
    let mut wire = Wire::new(sockets, [None; 2], loses);
    let (_, mut receiver): (_, RistReceiver) = RistSpec { request_form, ..spec() }.ends("video", 1).unwrap();
    receiver.keep_payloads();
    wire.drive(&mut receiver, |_| false);
    feeder.join().unwrap();
    let mut came: Vec<u8> = Vec::new();
    while let Some(payload) = receiver.take_payload() {
        came.extend(payload.head());
    }
    assert_eq!(wire.lost > 30, loses, "{} lost", wire.lost);
    assert!(came == expected, "{} of {} B came: {:#?}", came.len(), expected.len(), wire.events);
}

#[test]
#[ignore = "some seconds in real time, and rist-tools"]
fn we_receive_what_librist_sends() {
    from_librist(RequestForm::Ranges, false);
}

#[test]
#[ignore = "some seconds in real time, and rist-tools"]
fn we_receive_what_librist_sends_where_packets_are_lost() {
    from_librist(RequestForm::Ranges, true);
}

#[test]
#[ignore = "some seconds in real time, and rist-tools"]
fn librist_reads_requests_by_bits() {
    from_librist(RequestForm::Bits, true);
}
