//! One end of a flow: its machine, its transports, and what the machine may do to the world.

use std::sync::Arc;

use streamgauge_base::{Chunk, Direction, Duration, Ecn, Event, Instant, Stream};
use streamgauge_record::flow_hash;
use streamgauge_systems::plan::TcpSpec;
use streamgauge_systems::{App, Carrier, Channel, ChannelId, CloseReason, Input, Io};
use streamgauge_transport::tcp::{
    self, Config, CongestionControl, Connection, ConnectionEvent, Hystart, Mechanisms,
};

use crate::error::SimError;
use crate::network::{Line, Network};
use crate::prefetch::prefetch;
use crate::recorder::Recorder;
use crate::store::Body;

/// Largest TCP payload that an Ethernet frame carries beside the timestamps option (1500 - 20 - 32).
const MAX_MSS: u32 = 1448;
/// Segments below this are mostly header.
const MIN_MSS: u32 = 64;

/// Segments beyond this are a line's rate of bursts, not a start.
const MAX_INITIAL_WINDOW: u32 = 1000;
/// RFC 9293, section 3.8.6.3: an acknowledgement must not wait longer.
const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);

const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;
/// The player's port of its first stream; Linux takes any of 32768 to 60999.
const FIRST_EPHEMERAL_PORT: u16 = 40_000;

/// A channel at one end.
struct Port {
    /// Our port of UDP or TCP.
    number: u16,
    /// Of packets that leave here.
    hash: u32,
    carrier: PortCarrier,
}

enum PortCarrier {
    /// With what it sets in the ECN field.
    Udp(Ecn),
    Echo,
    Tcp(Box<Connection>),
}

/// What a channel becomes when its flow starts.
pub enum Opening {
    /// Its port, and what it sets in the ECN field.
    Udp(u16, Ecn),
    Echo,
    /// The server's port.
    Tcp(u16, Arc<Config>),
}

impl Opening {
    /// Of `channel`. Settings that are those of `last` are shared with it.
    pub fn new(channel: &Channel, last: &mut Option<Arc<Config>>) -> Result<Self, SimError> {
        Ok(match &channel.carrier {
            Carrier::Udp { port, ecn } => Opening::Udp(*port, *ecn),
            Carrier::IcmpEcho => Opening::Echo,
            Carrier::Tcp { port, settings } => {
                let config = config(settings)?;
                let shared = last.take().filter(|last| **last == config).unwrap_or_else(|| Arc::new(config));
                *last = Some(shared.clone());
                Opening::Tcp(*port, shared)
            }
        })
    }
}

/// What the machine's bytes came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Bytes that the machine sent and the network or the send buffer took.
    pub sent_bytes: u64,
    /// Bytes that the machine received.
    pub received_bytes: u64,
}

/// One end of a flow.
pub struct Endpoint {
    app: Box<dyn App + Send>,
    line: Line,
    ports: Vec<Port>,
    pub counts: Counts,
    /// What the host adds to the next timer.
    pub timer_jitter: Duration,
}

struct HostIo<'a, R> {
    now: Instant,
    line: Line,
    ports: &'a mut [Port],
    counts: &'a mut Counts,
    network: &'a mut Network<R>,
}

impl<R: Recorder> Io for HostIo<'_, R> {
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        let Some(port) = self.ports.get(usize::from(channel.0)) else { return };
        self.counts.sent_bytes += datagram.len() as u64;
        let (body, ecn) = match port.carrier {
            PortCarrier::Udp(ecn) => (Body::Datagram(channel, datagram), ecn),
            PortCarrier::Echo => (Body::Echo(channel, datagram), Ecn::NotEct),
            PortCarrier::Tcp(_) => return,
        };
        self.network.send(self.now, Line { ecn, ..self.line }, port.hash, body);
    }

    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        let taken = connection(self.ports, channel).map_or(0, |c| c.write(chunk));
        self.counts.sent_bytes += taken as u64;
        taken
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        let chunk = connection(self.ports, channel)?.read(max)?;
        self.counts.received_bytes += chunk.len() as u64;
        Some(chunk)
    }

    fn close(&mut self, channel: ChannelId) {
        if let Some(connection) = connection(self.ports, channel) {
            connection.close();
        }
    }

    fn abort(&mut self, channel: ChannelId) {
        if let Some(connection) = connection(self.ports, channel) {
            connection.abort();
        }
    }

    fn bind_pair(&mut self, rtp: ChannelId) -> Option<u16> {
        Some(self.ports.get(usize::from(rtp.0))?.number)
    }

    fn direct(&mut self, _: ChannelId, _: u16) {}
}

fn connection(ports: &mut [Port], channel: ChannelId) -> Option<&mut Connection> {
    match ports.get_mut(usize::from(channel.0)) {
        Some(Port { carrier: PortCarrier::Tcp(connection), .. }) => Some(connection),
        _ => None,
    }
}

impl Endpoint {
    /// The end that sends in the direction of `line`. `flow` is the flow's index, which its addresses follow.
    pub fn new(app: Box<dyn App + Send>, line: Line) -> Self {
        Endpoint { app, line, ports: Vec::new(), counts: Counts::default(), timer_jitter: Duration::ZERO }
    }

    /// The flow starts: its channels are opened.
    pub fn open(&mut self, now: Instant, openings: &[Opening], sequences: &mut Stream, control_seed: u64) {
        let serves = self.line.direction == Direction::Down;
        self.ports.reserve_exact(openings.len());
        for (opening, index) in openings.iter().zip(0u16..) {
            let (protocol, ports, carrier) = match opening {
                Opening::Udp(port, ecn) => (UDP, (*port, *port), PortCarrier::Udp(*ecn)),
                Opening::Echo => (ICMP, if serves { (8, 0) } else { (0, 0) }, PortCarrier::Echo),
                Opening::Tcp(port, config) => {
                    let ephemeral = FIRST_EPHEMERAL_PORT + index;
                    let config = config.clone();
                    let (connection, ports) = if serves {
                        (Connection::listen(config), (*port, ephemeral))
                    } else {
                        (Connection::connect(config, now), (ephemeral, *port))
                    };
                    // Each end of each channel draws its own.
                    let initial_sequence = sequences.bits() as u32;
                    let seed = control_seed.wrapping_add(2 * u64::from(index) + u64::from(serves));
                    let connection = Box::new(connection.numbered(initial_sequence, seed));
                    (TCP, ports, PortCarrier::Tcp(connection))
                }
            };
            let packed = u32::from(ports.0) << 16 | u32::from(ports.1);
            // The addresses that emu gives this flow, as far as emu's go.
            let [high, low] = self.line.flow.0.to_be_bytes();
            let (server, player) = ([10, 1, low, 1 + high], [10, 2, low, 1 + high]);
            let (from, to) = if serves { (server, player) } else { (player, server) };
            self.ports.push(Port { number: ports.0, hash: flow_hash(from, to, protocol, packed), carrier });
        }
    }

    /// Gives the machine `input`.
    fn input<R: Recorder>(&mut self, now: Instant, input: Input<'_>, network: &mut Network<R>) {
        let Endpoint { app, line, ports, counts, .. } = self;
        app.handle(now, input, &mut HostIo { now, line: *line, ports, counts, network });
    }

    /// Gives the machine `input` and does what follows from it.
    pub fn handle<R: Recorder>(&mut self, now: Instant, input: Input<'_>, network: &mut Network<R>) {
        self.input(now, input, network);
        self.settle(now, network);
    }

    /// A packet is soon to arrive: with thousands of flows, what it will touch is in no near cache.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&*self.app);
        for port in &self.ports {
            if let PortCarrier::Tcp(connection) = &port.carrier {
                prefetch(&**connection);
            }
        }
    }

    /// A packet arrives, with these ECN bits.
    pub fn receive<R: Recorder>(&mut self, now: Instant, mut body: Body, ecn: Ecn, network: &mut Network<R>) {
        if let Body::Segment(channel, segment) = &mut body {
            segment.ecn = ecn;
            let Some(connection) = connection(&mut self.ports, *channel) else { return };
            connection.handle(now, segment);
            return self.settle(now, network);
        }
        match body {
            Body::Segment(..) => {}
            Body::Datagram(channel, datagram) => {
                self.counts.received_bytes += datagram.len() as u64;
                self.handle(now, Input::Datagram(channel, &datagram), network);
            }
            Body::Echo(channel, message) if self.line.direction == Direction::Up => {
                // The player's host answers by itself.
                let Some(port) = self.ports.get(usize::from(channel.0)) else { return };
                network.send(now, self.line, port.hash, Body::Echo(channel, message));
            }
            Body::Echo(channel, message) => {
                self.counts.received_bytes += message.len() as u64;
                self.handle(now, Input::Datagram(channel, &message), network);
            }
        }
    }

    /// A timer has expired.
    pub fn timeout<R: Recorder>(&mut self, now: Instant, network: &mut Network<R>) {
        for port in &mut self.ports {
            if let PortCarrier::Tcp(connection) = &mut port.carrier
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.handle_timeout(now);
            }
        }
        if self.app.poll_timeout().is_some_and(|at| at <= now) {
            self.input(now, Input::Timeout, network);
        }
        self.settle(now, network);
    }

    /// Lets connections speak until nobody has anything left to say.
    fn settle<R: Recorder>(&mut self, now: Instant, network: &mut Network<R>) {
        let mut index = 0;
        while let Some(port) = self.ports.get_mut(index) {
            let hash = port.hash;
            let channel = ChannelId(index as u8);
            if let PortCarrier::Tcp(connection) = &mut port.carrier {
                while let Some(segment) = connection.poll_transmit(now) {
                    network.send(now, self.line, hash, Body::Segment(channel, segment));
                }
                if let Some(event) = connection.poll_event() {
                    if let Some(input) = translate(channel, event) {
                        self.input(now, input, network);
                    }
                    // The machine may have written to any of its streams.
                    index = 0;
                    continue;
                }
            }
            index += 1;
        }
    }

    /// The machine's next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.app.poll_event().map(|event| Event { flow: Some(self.line.flow), ..event })
    }

    /// When the machine or one of its connections wants to be called.
    pub fn poll_timeout(&self) -> Instant {
        let connections = self.ports.iter().filter_map(|port| match &port.carrier {
            PortCarrier::Tcp(connection) => connection.poll_timeout(),
            _ => None,
        });
        connections.chain(self.app.poll_timeout()).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The figures of its first stream while that is open.
    pub fn open_tcp(&self) -> Option<tcp::Stats> {
        self.first_stream().filter(|connection| connection.is_open()).map(Connection::stats)
    }

    /// The figures of its first stream.
    pub fn tcp_stats(&self) -> Option<tcp::Stats> {
        self.first_stream().map(Connection::stats)
    }

    fn first_stream(&self) -> Option<&Connection> {
        self.ports.iter().find_map(|port| match &port.carrier {
            PortCarrier::Tcp(connection) => Some(&**connection),
            _ => None,
        })
    }
}

/// What the machine is told; nothing of a stream that it ended itself.
fn translate(channel: ChannelId, event: ConnectionEvent) -> Option<Input<'static>> {
    Some(match event {
        ConnectionEvent::Opened => Input::Opened(channel),
        ConnectionEvent::Readable => Input::Readable(channel),
        ConnectionEvent::Writable => Input::Writable(channel),
        ConnectionEvent::Closed(tcp::CloseReason::Finished) => Input::Closed(channel, CloseReason::Finished),
        ConnectionEvent::Closed(tcp::CloseReason::Aborted) => return None,
        ConnectionEvent::Closed(_) => Input::Closed(channel, CloseReason::Failed),
    })
}

/// The settings of a connection; refuses what no connection can work with.
fn config(spec: &TcpSpec) -> Result<Config, SimError> {
    let refused = |key: &str, what: String| Err(SimError::plan(format!("tcp.{key}"), what));
    let name = spec.congestion_control.as_str();
    let Some(congestion) = CongestionControl::named(name) else {
        let known = names(CongestionControl::NAMED);
        let what = format!("{name:?} is not simulated; give one of {known}, or run with --mode emu");
        return refused("congestion_control", what);
    };
    let Some(hystart) = Hystart::named(&spec.hystart) else {
        return refused("hystart", format!("{:?}; give one of {}", spec.hystart, names(Hystart::NAMED)));
    };
    let mut mechanisms = Mechanisms::default();
    for name in &spec.without {
        if !mechanisms.switch_off(name) {
            let known = names(Mechanisms::NAMED);
            return refused("without", format!("{name:?} is no mechanism; give some of {known}"));
        }
    }
    let fixed = spec.fixed_window.filter(|_| congestion == CongestionControl::Fixed);
    let mss = u64::from(spec.mss);
    if !(MIN_MSS..=MAX_MSS).contains(&spec.mss) {
        return refused("mss", format!("{mss} B; give {MIN_MSS} to {MAX_MSS} B"));
    }
    for (key, bytes) in [
        ("receive_window", Some(spec.receive_window)),
        ("send_buffer", Some(spec.send_buffer)),
        ("fixed_window", fixed),
    ] {
        if let Some(bytes) = bytes.filter(|bytes| !(mss..=1 << 30).contains(bytes)) {
            return refused(key, format!("{bytes} B; give one segment ({mss} B) to 1 GiB"));
        }
    }
    if !(1..=MAX_INITIAL_WINDOW).contains(&spec.initial_window) {
        let what = format!("{} segments; give 1 to {MAX_INITIAL_WINDOW}", spec.initial_window);
        return refused("initial_window", what);
    }
    if spec.delayed_ack > MAX_DELAYED_ACK {
        let ms = spec.delayed_ack.as_nanos() as f64 / 1e6;
        return refused("delayed_ack", format!("{ms} ms; give 0 to 500 ms (RFC 9293)"));
    }
    Ok(Config {
        mss: spec.mss,
        receive_window: spec.receive_window,
        send_buffer: spec.send_buffer,
        congestion,
        hystart,
        fixed_window: fixed,
        initial_window: spec.initial_window,
        delayed_ack: spec.delayed_ack,
        ecn: spec.ecn,
        mechanisms,
        ..Config::default()
    })
}

fn names<T>(named: &[(&str, T)]) -> String {
    named.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
