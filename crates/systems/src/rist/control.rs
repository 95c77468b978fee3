//! RTCP of either end: its reports, and the echo by which it measures the round trip (TR-06-1 section 5.2).

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rist::{Echo, RistApp};
use streamgauge_wire::rtcp::{self, Packet};

use super::CONTROL;
use super::spec::RistSpec;
use crate::app::Io;

/// Requests of the echo when the other end is first heard: librist's.
const FIRST_ECHOES: u32 = 3;

/// One end's part of the control channel.
pub(super) struct Control {
    ssrc: u32,
    cname: String,
    interval: Duration,
    idle_timeout: Duration,
    /// The next report.
    next: Option<Instant>,
    /// When the other end was last heard.
    heard: Option<Instant>,
    smoothed: Duration,
    last: Duration,
    is_over: bool,
}

impl Control {
    /// Returns that of an end whose round trip is first taken for the shortest one.
    pub fn new(spec: &RistSpec, ssrc: u32) -> Self {
        Control {
            ssrc,
            cname: format!("{ssrc:08x}@streamgauge"),
            interval: spec.report_interval,
            idle_timeout: spec.idle_timeout,
            next: None,
            heard: None,
            smoothed: spec.rtt_min,
            last: spec.rtt_min,
            is_over: false,
        }
    }

    /// Reports from now on.
    pub fn start(&mut self, now: Instant) {
        self.next = self.next.or(Some(now));
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn is_known(&self) -> bool {
        self.heard.is_some()
    }

    /// Returns the smoothed round trip: 1/8 for a new one.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Returns the last round trip.
    pub fn last(&self) -> Duration {
        self.last
    }

    /// Notes that the other end was heard; true for the first time, at which the path is measured.
    pub fn hear(&mut self, now: Instant, source: u32, io: &mut dyn Io) -> bool {
        let is_first = self.heard.replace(now).is_none();
        if is_first {
            self.start(now);
            (0..FIRST_ECHOES).for_each(|_| {
                let request = Packet::Rist(RistApp::EchoRequest(self.request(now, source)));
                self.send(self.empty(), vec![request], io);
            });
        }
        is_first
    }

    /// Takes a datagram of the control channel: echoes are answered and measured, the rest is returned.
    pub fn take(&mut self, now: Instant, datagram: &Chunk, io: &mut dyn Io) -> Vec<Packet> {
        let mut others = Vec::new();
        for packet in rtcp::parse(datagram.head()).map_while(Result::ok) {
            match packet {
                Packet::Rist(RistApp::EchoRequest(echo)) => {
                    let response = Echo { delay_us: 0, ..echo };
                    self.send(self.empty(), vec![Packet::Rist(RistApp::EchoResponse(response))], io);
                }
                Packet::Rist(RistApp::EchoResponse(echo)) => self.measured(now, &echo),
                other => others.push(other),
            }
        }
        others
    }

    fn measured(&mut self, now: Instant, echo: &Echo) {
        // A response from the future is not ours.
        let Some(passed) = rtcp::ntp(now).checked_sub(echo.timestamp) else { return };
        let nanos = (u128::from(passed) * 1_000_000_000) >> 32;
        let Ok(nanos) = u64::try_from(nanos) else { return };
        self.last = Duration::from_nanos(nanos).saturating_sub(Duration::from_micros(echo.delay_us.into()));
        self.smoothed = (self.smoothed * 7 + self.last.min(Duration::from_secs(60))).div(8);
    }

    fn request(&self, now: Instant, source: u32) -> Echo {
        Echo { source, timestamp: rtcp::ntp(now), ..Echo::default() }
    }

    fn empty(&self) -> Packet {
        Packet::ReceiverReport { ssrc: self.ssrc, blocks: Vec::new() }
    }

    fn send(&self, first: Packet, more: Vec<Packet>, io: &mut dyn Io) {
        let name = Packet::Cname { ssrc: self.ssrc, cname: self.cname.clone() };
        let compound: Vec<Packet> = [first, name].into_iter().chain(more).collect();
        io.send(CONTROL, Chunk::bytes(rtcp::write(&compound)));
    }

    /// Sends a packet of RTCP behind an empty report.
    pub fn say(&self, packet: Packet, io: &mut dyn Io) {
        self.send(self.empty(), vec![packet], io);
    }

    /// Returns when it needs `advance`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let idle = self.heard.map(|heard| heard + self.idle_timeout);
        [self.next, idle].into_iter().flatten().min()
    }

    /// Sends the report that is due, with a request of the echo; true if the other end is given up.
    pub fn advance(
        &mut self,
        now: Instant,
        source: u32,
        report: impl FnOnce() -> Packet,
        io: &mut dyn Io,
    ) -> bool {
        if self.is_over {
            return false;
        }
        if self.heard.is_some_and(|heard| heard + self.idle_timeout <= now) {
            self.is_over = true;
            return true;
        }
        if self.next.is_some_and(|next| next <= now) {
            self.next = Some(now + self.interval);
            let request = Packet::Rist(RistApp::EchoRequest(self.request(now, source)));
            self.send(report(), vec![request], io);
        }
        false
    }

    /// Ends it, and notifies the other end.
    pub fn close(&mut self, io: &mut dyn Io) {
        if !self.is_over && self.next.is_some() {
            self.send(self.empty(), vec![Packet::Bye { sources: vec![self.ssrc] }], io);
        }
        self.is_over = true;
    }

    /// Ends it without a word.
    pub fn end(&mut self) {
        self.is_over = true;
    }
}
