//! The end that sends.

mod breaker;
mod history;
mod pacer;

use streamgauge_base::{BitRate, Chunk, Duration, Event, Instant};
use streamgauge_transport::media_rate::{PacketResult, RateController};
use streamgauge_wire::rtcp::{self, Packet};

use super::packet::{CallPacket, HEADERS, Place};
use super::{MEDIA, Ssrcs};
use crate::app::{App, Envelope, Input, Io};
use crate::media::live::LiveEncoder;
use crate::outbox::{MEDIA_END, Outbox};
use breaker::Breaker;
use history::{History, SentPacket};
use pacer::{Pacer, Waiting};

/// Least interval of key frames made on request.
const KEY_EVERY: Duration = Duration::from_millis(300);
/// Interval of reports of the rates.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// The share of the rate that repeated packets may take in a second. libwebrtc lets them take all of it, so that it may be
/// exceeded twofold; ours.
const MOST_REPEATED: f64 = 0.5;
/// The weight of the last second in the overhead of headers and repetitions.
const OVERHEAD_S: f64 = 1.0;

/// Encodes frames at the rate that its controller allows, and paces their packets out.
///
/// Events: each 200 ms at the most `estimate` (bit/s, the controller's target), `encoder_rate` (bit/s), `pacer_delay` (s) and
/// `rtcp_rtt` (s); `probe` (bit/s); `frame_skipped` (1); `key_frame` (bytes); `repeated` (packets); `circuit_breaker` (bit/s,
/// the rate that it leaves).
pub struct CallSender {
    encoder: LiveEncoder,
    controller: Box<dyn RateController>,
    breaker: Option<Breaker>,
    ssrcs: Ssrcs,
    max_payload: u32,
    skip_beyond: Duration,
    floor: BitRate,
    history: History,
    pacer: Pacer,
    /// When frame 0 was due, and how many were since.
    base: Option<Instant>,
    ticks: u64,
    frames: u32,
    paused: bool,
    over: bool,
    /// Bit/s of headers and of repetitions.
    overhead: (f64, f64),
    counted: Instant,
    rtt: Duration,
    keyed: Option<Instant>,
    told: Option<Instant>,
    events: Outbox,
}

/// Parts of a sender.
pub(super) struct Parts {
    pub encoder: LiveEncoder,
    pub controller: Box<dyn RateController>,
    pub breaks: Option<Duration>,
    pub ssrcs: Ssrcs,
    pub max_payload: u32,
    pub skip_beyond: Duration,
    pub floor: BitRate,
}

impl CallSender {
    pub(super) fn new(parts: Parts) -> Self {
        CallSender {
            encoder: parts.encoder,
            controller: parts.controller,
            breaker: parts.breaks.map(Breaker::new),
            ssrcs: parts.ssrcs,
            max_payload: parts.max_payload,
            skip_beyond: parts.skip_beyond,
            floor: parts.floor,
            history: History::default(),
            pacer: Pacer::default(),
            base: None,
            ticks: 0,
            frames: 0,
            paused: false,
            over: false,
            overhead: (0.0, 0.0),
            counted: Instant::ZERO,
            rtt: Duration::from_millis(100),
            keyed: None,
            told: None,
            events: Outbox::default(),
        }
    }

    fn next_frame(&self) -> Option<Instant> {
        let base = self.base.filter(|_| !self.paused && !self.over)?;
        Some(base + self.encoder.interval() * self.ticks)
    }

    /// Returns the rate that may be sent: the controller's, as far as the circuit breaker lets it.
    fn allowed(&self) -> f64 {
        let target = self.controller.target().as_bps() as f64;
        self.breaker.as_ref().and_then(Breaker::cap).map_or(target, |cap| target.min(cap))
    }

    fn pacing(&self) -> BitRate {
        let target = self.controller.target().as_bps().max(1) as f64;
        BitRate::from_bps((self.controller.pacing().as_bps() as f64 * self.allowed() / target) as u64)
    }

    /// Returns the encoder's share of the rate.
    fn media_rate(&self) -> BitRate {
        let allowed = self.allowed();
        let first = allowed * f64::from(HEADERS) / f64::from(HEADERS + self.max_payload);
        let headers = self.overhead.0.max(first.min(allowed / 2.0));
        BitRate::from_bps((allowed - headers - self.overhead.1).max(self.floor.as_bps() as f64) as u64)
    }

    fn frame(&mut self, now: Instant, due: Instant) {
        self.ticks += 1;
        self.controller.on_backlog(now, self.pacer.bytes());
        self.tell(now);
        if self.pacer.age(now) > self.skip_beyond {
            return self.events.say(now, "frame_skipped", 1.0, "1", "the pacer holds too much");
        }
        self.encoder.set_target(self.media_rate());
        let frame = self.encoder.next_frame();
        if frame.is_key {
            self.events.say(now, "key_frame", f64::from(frame.bytes), "B", "");
        }
        let packets = frame.bytes.div_ceil(self.max_payload).max(1);
        let each = frame.bytes.div_ceil(packets);
        for packet in 0..packets {
            let place = Place {
                frame: self.frames,
                packet: packet as u16,
                packets: packets as u16,
                is_key: frame.is_key,
                captured: due,
            };
            let payload = each.min(frame.bytes - each * packet);
            self.pacer.push(Waiting { place, payload, repeats: None });
        }
        self.frames = self.frames.wrapping_add(1);
        self.count(now, f64::from(packets * HEADERS) * 8.0, 0.0);
    }

    /// Counts bits of headers and of repetitions among those of the last second or so.
    fn count(&mut self, now: Instant, headers: f64, repeated: f64) {
        let since = now.saturating_since(self.counted).as_secs_f64();
        let kept = libm::exp(-since / OVERHEAD_S);
        self.counted = now;
        let (had, again) = self.overhead;
        self.overhead = (had * kept + headers / OVERHEAD_S, again * kept + repeated / OVERHEAD_S);
    }

    fn tell(&mut self, now: Instant) {
        if self.told.is_some_and(|told| now.saturating_since(told) < TELL_EVERY) {
            return;
        }
        self.told = Some(now);
        self.events.say(now, "estimate", self.controller.target().as_bps() as f64, "bit/s", "");
        self.events.say(now, "encoder_rate", self.encoder.rate().as_bps() as f64, "bit/s", "");
        self.events.say(now, "pacer_delay", self.pacer.age(now).as_secs_f64(), "s", "");
    }

    /// Sends packets that may leave now.
    fn send(&mut self, now: Instant, io: &mut dyn Io) {
        self.begin_probe(now);
        while let Some(due) = self.pacer.due(now).filter(|due| *due <= now) {
            let window = self.controller.window();
            if window.is_some_and(|window| self.history.flying() > window) && !self.pacer.is_probing() {
                return;
            }
            let Some(packet) = self.pacer.pop().or_else(|| self.padding()) else { return };
            self.send_packet(now, due, packet, io);
        }
    }

    fn begin_probe(&mut self, now: Instant) {
        if self.pacer.is_probing() || (self.pacer.is_empty() && self.history.next() == 0) {
            return;
        }
        if let Some(probe) = self.controller.probe(now) {
            self.events.say(now, "probe", probe.rate.as_bps() as f64, "bit/s", "");
            self.pacer.begin(now, probe);
        }
    }

    /// Returns a packet that is sent again where a probe has nothing else to send.
    fn padding(&mut self) -> Option<Waiting> {
        let last = self.history.last_media()?;
        Some(Waiting { place: last.place, payload: last.payload, repeats: Some(last.sequence as u16) })
    }

    fn send_packet(&mut self, now: Instant, due: Instant, packet: Waiting, io: &mut dyn Io) {
        let bytes = packet.ip_bytes();
        let probe = self.pacer.left(now, due, bytes, self.pacing());
        let number = self.history.next();
        let is_repeated = packet.repeats.is_some();
        let sequence = self.history.next_sequence(is_repeated);
        let ecn = self.controller.ecn();
        let head = CallPacket {
            ssrc: if is_repeated { self.ssrcs.repeated } else { self.ssrcs.media },
            sequence: sequence as u16,
            transport: number as u16,
            repeats: packet.repeats,
            place: packet.place,
        };
        io.send_as(MEDIA, head.write(packet.payload), Envelope { ecn: Some(ecn), departs: None });
        let result = PacketResult { number, bytes, sent: now, arrived: None, ecn, probe };
        let (payload, place) = (packet.payload, packet.place);
        let (repeated, is_reported) = (None, false);
        self.history.sent(SentPacket {
            is_repeated,
            sequence,
            payload,
            place,
            result,
            repeated,
            is_reported,
        });
        self.controller.on_sent(now, number, bytes);
        if let Some(breaker) = &mut self.breaker {
            breaker.sent(now);
        }
    }

    fn control(&mut self, now: Instant, bytes: &[u8]) {
        for packet in rtcp::parse(bytes).map_while(Result::ok) {
            match packet {
                Packet::TransportWide(wide) => {
                    let results = self.history.wide(&wide);
                    self.reported(now, &results);
                }
                Packet::CongestionFeedback(feedback) => {
                    let results = self.history.congestion(&feedback, [self.ssrcs.media, self.ssrcs.repeated]);
                    self.reported(now, &results);
                }
                Packet::Nack(nack) => self.repeat(now, nack.sequences()),
                Packet::PictureLoss(_) => self.key_asked(now),
                _ => {}
            }
        }
    }

    fn reported(&mut self, now: Instant, results: &[PacketResult]) {
        if let Some(breaker) = &mut self.breaker
            && let Some(cap) = breaker.heard(now)
        {
            self.events.say(now, "circuit_breaker", cap, "bit/s", "reports come again");
        }
        if results.is_empty() {
            return;
        }
        let last = results.iter().filter_map(|result| result.arrived).max();
        let trips = results.iter().filter_map(|result| {
            let waited = last?.saturating_since(result.arrived?);
            Some(now.saturating_since(result.sent).saturating_sub(waited))
        });
        if let Some(rtt) = trips.min() {
            self.rtt = rtt;
            self.events.say(now, "rtcp_rtt", rtt.as_secs_f64(), "s", "");
        }
        self.controller.on_feedback(now, results);
    }

    fn repeat(&mut self, now: Instant, sequences: impl Iterator<Item = u16>) {
        let mut packets = 0.0;
        for sequence in sequences {
            let Some(sent) = self.history.media(sequence).filter(|_| !self.pacer.repeats(sequence)) else {
                continue;
            };
            // One that is on its way again is not sent a third time, nor more than the rate's share of repetitions.
            let is_on_its_way = sent.repeated.is_some_and(|at| now.saturating_since(at) < self.rtt);
            if is_on_its_way || self.overhead.1 > MOST_REPEATED * self.allowed() {
                continue;
            }
            self.history.repeats(sequence, now);
            let packet = Waiting { place: sent.place, payload: sent.payload, repeats: Some(sequence) };
            self.count(now, 0.0, f64::from(packet.ip_bytes()) * 8.0);
            self.pacer.push(packet);
            packets += 1.0;
        }
        if packets > 0.0 {
            self.events.say(now, "repeated", packets, "packets", "");
        }
    }

    fn key_asked(&mut self, now: Instant) {
        let wait = if self.rtt.as_nanos() > KEY_EVERY.as_nanos() { self.rtt } else { KEY_EVERY };
        if self.keyed.is_none_or(|keyed| now.saturating_since(keyed) >= wait) {
            self.keyed = Some(now);
            self.encoder.ask_for_key();
        }
    }

    fn watch(&mut self, now: Instant) {
        if self.controller.poll_timeout().is_some_and(|at| at <= now) {
            self.controller.on_timeout(now);
        }
        let target = self.allowed();
        let (Some(breaker), floor) = (&mut self.breaker, self.floor.as_bps() as f64) else { return };
        if let Some(cap) = breaker.check(now, target, floor) {
            self.events.say(now, "circuit_breaker", cap, "bit/s", "no report came");
        }
    }

    fn resume(&mut self, now: Instant) {
        if std::mem::replace(&mut self.paused, false) {
            self.base = self.base.map(|_| now);
            self.ticks = 0;
            self.encoder.ask_for_key();
            if let Some(breaker) = &mut self.breaker {
                breaker.rest();
            }
        }
    }
}

impl App for CallSender {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.base = Some(now),
            Input::Datagram { on: MEDIA, bytes, .. } => self.control(now, bytes.head()),
            Input::Pause => {
                self.paused = true;
                self.pacer.clear();
            }
            Input::Resume => self.resume(now),
            Input::Stop => {
                if !std::mem::replace(&mut self.over, true) {
                    let bye = Packet::Bye { sources: vec![self.ssrcs.media, self.ssrcs.repeated] };
                    io.send(MEDIA, Chunk::bytes(rtcp::write(&[bye])));
                    self.events.say(now, MEDIA_END, f64::from(self.frames), "1", "stopped");
                }
                self.pacer.clear();
            }
            _ => {}
        }
        if self.over {
            return;
        }
        self.watch(now);
        while let Some(due) = self.next_frame().filter(|due| *due <= now) {
            self.frame(now, due);
        }
        if !self.paused {
            self.send(now, io);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.over || self.base.is_none() {
            return None;
        }
        let is_blocked = self.controller.window().is_some_and(|window| self.history.flying() > window);
        let sends = self
            .pacer
            .due(Instant::ZERO)
            .filter(|_| !self.paused && (!is_blocked || self.pacer.is_probing()));
        let breaks = self.breaker.as_ref().filter(|_| !self.paused).and_then(Breaker::next);
        [self.next_frame(), sends, breaks, self.controller.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
