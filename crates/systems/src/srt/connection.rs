//! The connection of either end: the handshake of version 5, and the connection's life (draft-sharabayko-srt-01
//! sections 4.3.1 and 3.2).

use streamgauge_base::{Chunk, Duration, Instant, RandomStream};
use streamgauge_wire::srt::{
    Extension, Handshake, HandshakeKind, Latencies, MAGIC, Packet, PacketContent, SequenceNumber,
    extension_fields, flags,
};

use super::MEDIA;
use super::spec::SrtSpec;
use crate::app::Io;

/// The version of the library that we claim to be like: 1.5.0.
const VERSION: u32 = 0x0001_0500;
/// Its flags: those that every peer in live mode needs.
const FLAGS: u32 = flags::TSBPD_SENDER | flags::TSBPD_RECEIVER | flags::CRYPT | flags::RETRANSMIT_FLAG;
/// The largest IP packet that we take.
const MTU: u32 = 1500;
/// A cookie is good for the minute in which it was made, and the next (section 4.3.1.1).
const COOKIE_LIFE: Duration = Duration::from_secs(60);

/// Reasons of a refusal (section 4.3), and their words.
const REFUSALS: [(u32, &str); 18] = [
    (1000, "unknown reason"),
    (1001, "system function error"),
    (1002, "rejected by peer"),
    (1003, "resource allocation problem"),
    (1004, "incorrect data in handshake"),
    (1005, "listener's backlog exceeded"),
    (1006, "internal program error"),
    (1007, "socket is closing"),
    (1008, "unsupported version"),
    (1009, "rendezvous cookie collision"),
    (1010, "wrong password"),
    (1011, "password required or unexpected"),
    (1012, "stream flag collision"),
    (1013, "incompatible congestion controller"),
    (1014, "incompatible packet filter"),
    (1015, "incompatible group"),
    (1016, "timeout expired"),
    (1017, "incompatible cryptographic mode"),
];
const ROGUE: u32 = 1004;
const OLD_VERSION: u32 = 1008;
const UNSECURE: u32 = 1011;
const MESSAGE_API: u32 = 1012;
const CONGESTION: u32 = 1013;
const FILTER: u32 = 1014;
const GROUP: u32 = 1015;

/// Types of extensions that are not read by the wire format (section 3.2.1).
const KEY_REQUEST: u16 = 3;
const CONGESTION_EXTENSION: u16 = 6;
const FILTER_EXTENSION: u16 = 7;
const GROUP_EXTENSION: u16 = 8;
/// The congestion control of live mode, in little-endian words.
const LIVE: &[u8] = b"evil";

/// Returns the words of a refusal.
pub(super) fn refusal(code: u32) -> &'static str {
    REFUSALS.iter().find(|(known, _)| *known == code).map_or(REFUSALS[0].1, |(_, words)| words)
}

/// The facts that both ends have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Agreed {
    /// The number of the peer's first data packet.
    pub peer_initial: SequenceNumber,
    /// Latency of received packets.
    pub receives: Duration,
    /// Latency of sent packets.
    pub sends: Duration,
    /// The peer drops late packets.
    pub too_late_drop: bool,
    /// The peer repeats its loss reports.
    pub periodic_nak: bool,
    /// Packets that the peer lets be in flight.
    pub flight: u32,
    /// The peer's time in microseconds as it sent the handshake that was received at `at`.
    pub peer_us: u32,
    /// See `peer_us`.
    pub at: Instant,
}

/// A change of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// It is open.
    Opened(Agreed),
    /// It could not be opened, or has ended, for this reason.
    Closed(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Before the start.
    Idle,
    /// A caller without an answer, or with a cookie. The next handshake is due then.
    Calling {
        cookie: Option<u32>,
        next: Instant,
        until: Instant,
    },
    Listening,
    Open,
    Over,
}

/// One end of a connection.
pub(super) struct Connection {
    spec: SrtSpec,
    is_caller: bool,
    /// Our proposals of the latency: for received packets, and for sent ones.
    proposed: (Duration, Duration),
    /// When the socket was made: timestamps count from there.
    began: Instant,
    state: State,
    socket: u32,
    peer: u32,
    secret: u64,
    initial: SequenceNumber,
    last_sent: Instant,
    last_heard: Instant,
}

fn ms(time: Duration) -> u16 {
    u16::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX)
}

impl Connection {
    /// Returns an end that calls or listens, with its proposals of the latency: for received and for sent packets.
    pub fn new(
        spec: &SrtSpec,
        is_caller: bool,
        proposed: (Duration, Duration),
        ids: &mut RandomStream,
    ) -> Self {
        // Sockets are not 0, which is a request for a connection.
        let socket = (ids.bits() as u32 >> 2) | 1;
        Connection {
            spec: spec.clone(),
            is_caller,
            proposed,
            began: Instant::ZERO,
            state: State::Idle,
            socket,
            peer: 0,
            secret: ids.bits(),
            initial: SequenceNumber::of(ids.bits()),
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
        }
    }

    /// Makes the socket; a caller begins to call.
    pub fn start(&mut self, now: Instant) {
        (self.began, self.last_sent, self.last_heard) = (now, now, now);
        self.state = match self.is_caller {
            true => State::Calling { cookie: None, next: now, until: now + self.spec.connect_timeout },
            false => State::Listening,
        };
    }

    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns whether it has ended, or never began.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Sets the number of this end's first data packet.
    #[cfg(test)]
    pub fn begin_at(&mut self, initial: SequenceNumber) {
        self.initial = initial;
    }

    /// Returns the number of this end's first data packet.
    pub fn initial(&self) -> SequenceNumber {
        self.initial
    }

    /// Returns microseconds since the socket was made, in 32 bits.
    pub fn micros(&self, now: Instant) -> u32 {
        (now.saturating_since(self.began).as_nanos() / 1_000) as u32
    }

    /// Sends a packet to the peer.
    pub fn send(&mut self, now: Instant, content: PacketContent<'_>, io: &mut dyn Io) {
        let stamp = self.micros(now);
        self.send_stamped(now, stamp, content, io);
    }

    /// Sends a packet to the peer with a timestamp of its own.
    pub fn send_stamped(
        &mut self,
        now: Instant,
        timestamp_us: u32,
        content: PacketContent<'_>,
        io: &mut dyn Io,
    ) {
        self.last_sent = now;
        io.send(MEDIA, Packet { timestamp_us, socket: self.peer, content }.write());
    }

    /// Ends it, and notifies the peer.
    pub fn shut(&mut self, now: Instant, io: &mut dyn Io) {
        if self.is_open() {
            self.send(now, PacketContent::Shutdown, io);
        }
        self.state = State::Over;
    }

    /// Takes a packet that is not data and not for the other parts.
    pub fn take(&mut self, now: Instant, packet: &Packet<'_>, io: &mut dyn Io) -> Option<Change> {
        match &packet.content {
            PacketContent::Handshake(handshake) => match self.state {
                State::Calling { .. } => self.answered(now, packet.timestamp_us, handshake),
                // A repeated conclusion means that the answer was lost.
                State::Listening | State::Open if !self.is_caller => {
                    self.called(now, packet.timestamp_us, handshake, io)
                }
                _ => None,
            },
            PacketContent::Shutdown if self.is_open() => {
                self.state = State::Over;
                Some(Change::Closed("the other end closed the connection"))
            }
            _ => None,
        }
    }

    /// Returns whether a packet is the peer's, and notes that it was heard.
    pub fn heard(&mut self, now: Instant, packet: &Packet<'_>) -> bool {
        let is_ours = self.is_open() && packet.socket == self.socket;
        if is_ours {
            self.last_heard = now;
        }
        is_ours
    }

    /// Returns when it needs `advance`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Calling { next, until, .. } => Some(next.min(until)),
            State::Open => {
                Some((self.last_sent + self.spec.keep_alive).min(self.last_heard + self.spec.idle_timeout))
            }
            State::Idle | State::Listening | State::Over => None,
        }
    }

    /// Performs the actions that are due.
    pub fn advance(&mut self, now: Instant, io: &mut dyn Io) -> Option<Change> {
        match self.state {
            State::Calling { until, .. } if until <= now => {
                self.state = State::Over;
                return Some(Change::Closed("no answer to the handshake"));
            }
            State::Calling { cookie, next, until } if next <= now => {
                let next = now + self.spec.handshake_interval;
                self.state = State::Calling { cookie, next, until };
                let handshake = self.request(cookie);
                io.send(MEDIA, self.unconnected(now, 0, handshake));
                self.last_sent = now;
            }
            State::Open if self.last_heard + self.spec.idle_timeout <= now => {
                self.state = State::Over;
                return Some(Change::Closed("nothing came from the other end for too long"));
            }
            State::Open if self.last_sent + self.spec.keep_alive <= now => {
                self.send(now, PacketContent::KeepAlive, io);
            }
            _ => {}
        }
        None
    }

    fn unconnected(&self, now: Instant, socket: u32, handshake: Handshake<'_>) -> Chunk {
        let content = PacketContent::Handshake(handshake);
        Packet { timestamp_us: self.micros(now), socket, content }.write()
    }

    fn handshake(&self, kind: HandshakeKind) -> Handshake<'static> {
        Handshake {
            version: 5,
            encryption: 0,
            extension: 0,
            initial: self.initial,
            mtu: MTU,
            flow_window: self.spec.buffer.min(self.spec.flight),
            kind,
            socket: self.socket,
            cookie: 0,
            address: [0; 16],
            extensions: Vec::new(),
        }
    }

    fn latencies(&self) -> Latencies {
        let drops = if self.spec.too_late_drop { flags::TOO_LATE_DROP } else { 0 };
        let repeats = if self.spec.periodic_nak { flags::PERIODIC_NAK } else { 0 };
        Latencies {
            version: VERSION,
            flags: FLAGS | drops | repeats,
            receiver_ms: ms(self.proposed.0),
            sender_ms: ms(self.proposed.1),
        }
    }

    /// Returns a caller's first handshake, or the second with its cookie.
    fn request(&self, cookie: Option<u32>) -> Handshake<'static> {
        match cookie {
            None => Handshake { version: 4, extension: 2, ..self.handshake(HandshakeKind::Induction) },
            Some(cookie) => Handshake {
                cookie,
                extension: extension_fields::HS,
                extensions: vec![Extension::Request(self.latencies())],
                ..self.handshake(HandshakeKind::Conclusion)
            },
        }
    }

    /// Takes a listener's answer.
    fn answered(&mut self, now: Instant, peer_us: u32, handshake: &Handshake<'_>) -> Option<Change> {
        let State::Calling { cookie, until, .. } = self.state else { return None };
        let fails = |this: &mut Self, code| {
            this.state = State::Over;
            Some(Change::Closed(refusal(code)))
        };
        match handshake.kind {
            HandshakeKind::Induction if cookie.is_none() => {
                if handshake.version != 5 {
                    return fails(self, OLD_VERSION);
                }
                if handshake.extension != MAGIC {
                    return fails(self, ROGUE);
                }
                self.state = State::Calling { cookie: Some(handshake.cookie), next: now, until };
                None
            }
            HandshakeKind::Conclusion if cookie.is_some() => {
                let Some(theirs) = handshake.latencies() else { return fails(self, ROGUE) };
                Some(self.open(now, peer_us, handshake, theirs))
            }
            HandshakeKind::Rejection(code) => fails(self, code),
            _ => None,
        }
    }

    /// Takes a caller's request.
    fn called(
        &mut self,
        now: Instant,
        peer_us: u32,
        handshake: &Handshake<'_>,
        io: &mut dyn Io,
    ) -> Option<Change> {
        if handshake.kind == HandshakeKind::Induction {
            // Nothing is kept of it: the cookie brings it back (section 4.3.1.1).
            let answer = Handshake {
                extension: MAGIC,
                cookie: self.cookie(now, handshake.socket),
                initial: handshake.initial,
                ..self.handshake(HandshakeKind::Induction)
            };
            io.send(MEDIA, self.unconnected(now, handshake.socket, answer));
            return None;
        }
        let is_known = [now, now - COOKIE_LIFE.min(now - Instant::ZERO)]
            .iter()
            .any(|at| self.cookie(*at, handshake.socket) == handshake.cookie);
        if handshake.kind != HandshakeKind::Conclusion || !is_known {
            return None;
        }
        if self.is_open() && handshake.socket != self.peer {
            // The channel has one peer.
            return None;
        }
        if let Err(code) = acceptable(handshake) {
            let answer = self.handshake(HandshakeKind::Rejection(code));
            io.send(MEDIA, self.unconnected(now, handshake.socket, answer));
            return None;
        }
        let theirs = handshake.latencies()?;
        // Both directions count from the caller's number.
        self.initial = handshake.initial;
        let change = (!self.is_open()).then(|| self.open(now, peer_us, handshake, theirs));
        let answer = Handshake {
            cookie: handshake.cookie,
            extension: extension_fields::HS,
            extensions: vec![Extension::Response(self.latencies())],
            ..self.handshake(HandshakeKind::Conclusion)
        };
        io.send(MEDIA, self.unconnected(now, handshake.socket, answer));
        self.last_sent = now;
        change
    }

    fn cookie(&self, now: Instant, socket: u32) -> u32 {
        let minute = now.as_nanos() / COOKIE_LIFE.as_nanos();
        // Splittable mixing of Steele, Lea and Flood's SplitMix64.
        let mut mixed = self.secret ^ u64::from(socket) << 32 ^ minute;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as u32
    }

    fn open(&mut self, now: Instant, peer_us: u32, handshake: &Handshake<'_>, theirs: Latencies) -> Change {
        self.peer = handshake.socket;
        self.state = State::Open;
        self.last_heard = now;
        let larger =
            |ours: Duration, theirs_ms: u16| Duration::from_millis(u64::from(ms(ours).max(theirs_ms)));
        // The receiver's proposal and the sender's, each way (section 4.3.1.2).
        let receives = larger(self.proposed.0, theirs.sender_ms);
        let sends = larger(self.proposed.1, theirs.receiver_ms);
        // A listener answers with the result, which libsrt's callers take as it is.
        self.proposed = (receives, sends);
        Change::Opened(Agreed {
            peer_initial: handshake.initial,
            receives,
            sends,
            too_late_drop: theirs.flags & flags::TOO_LATE_DROP != 0,
            periodic_nak: theirs.flags & flags::PERIODIC_NAK != 0,
            flight: handshake.flow_window.min(self.spec.flight),
            peer_us,
            at: now,
        })
    }
}

/// Returns the code of the refusal of a conclusion that cannot be accepted.
fn acceptable(handshake: &Handshake<'_>) -> Result<(), u32> {
    if handshake.version != 5 {
        return Err(OLD_VERSION);
    }
    if handshake.encryption != 0 && handshake.other(KEY_REQUEST).is_some() {
        return Err(UNSECURE);
    }
    let congestion = handshake.other(CONGESTION_EXTENSION);
    if congestion.is_some_and(|name| name != LIVE) {
        return Err(CONGESTION);
    }
    if handshake.other(FILTER_EXTENSION).is_some_and(|filter| !filter.is_empty()) {
        return Err(FILTER);
    }
    if handshake.other(GROUP_EXTENSION).is_some() {
        return Err(GROUP);
    }
    match handshake.latencies() {
        Some(latencies) if latencies.flags & flags::STREAM != 0 => Err(MESSAGE_API),
        Some(_) => Ok(()),
        None => Err(ROGUE),
    }
}
