//! The end that sends.

mod buffer;
mod meter;

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_wire::rist::{CLOCK_RATE, Data, NackRange, RistApp, count_of, source_of};
use streamgauge_wire::rtcp::{self, Packet};

use super::control::Control;
use super::spec::{RepairControl, RistSpec};
use super::{CONTROL, MEDIA};
use crate::app::{App, Input, Io};
use crate::contribution::{Feed, Tally};
use crate::outbox::Outbox;
use buffer::{Asked, RepeatBuffer};
use meter::Meters;

/// Numbers that one datagram of requests may name: there are no more.
const MOST_ASKED: usize = 1 << 16;

/// Muxes the clip's pictures into MPEG-TS at their pace, sends them, and sends packets again that are asked for.
///
/// Events: `connected` (s, since the start: the receiver was heard); each second, if there were any, `repeated` (packets) and
/// `withheld` (packets that were asked for too soon, too often, or above the greatest rate); `rist_rtt` (s), and `send_buffer` (s, age of its
/// oldest packet); `connection_closed` (s, since the start).
pub struct RistSender {
    spec: RistSpec,
    control: Control,
    feed: Feed,
    buffer: RepeatBuffer,
    source: u32,
    /// The timestamp of time 0.
    offset: u32,
    sent: Meters,
    repeated: Meters,
    /// The next turn of the loop, if one left packets over.
    next_turn: Instant,
    packets: u32,
    octets: u32,
    began: Instant,
    tally: Tally<2>,
    events: Outbox,
}

const REPEATED: usize = 0;
const WITHHELD: usize = 1;

impl RistSender {
    pub(super) fn new(spec: &RistSpec, mut ids: RandomStream) -> Self {
        let source = source_of(ids.bits() as u32);
        let first = ids.bits() & 0xffff;
        RistSender {
            control: Control::new(spec, source),
            feed: Feed::new(&spec.clip),
            buffer: RepeatBuffer::new(first),
            source,
            offset: ids.bits() as u32,
            sent: Meters::new(),
            repeated: Meters::new(),
            next_turn: Instant::ZERO,
            packets: 0,
            octets: 0,
            began: Instant::ZERO,
            tally: Tally::new(["repeated", "withheld"]),
            events: Outbox::default(),
            spec: spec.clone(),
        }
    }

    /// Sets the number of the first packet, and the timestamp of time 0.
    #[cfg(test)]
    pub(super) fn begin_at(&mut self, first: u16, offset: u32) {
        (self.buffer, self.offset) = (RepeatBuffer::new(first.into()), offset);
    }

    fn ticks(&self, now: Instant) -> u32 {
        let ticks = u128::from(now.as_nanos()) * u128::from(CLOCK_RATE) / 1_000_000_000;
        self.offset.wrapping_add(ticks as u32)
    }

    fn datagram(&mut self, now: Instant, bytes: &Chunk, io: &mut dyn Io) {
        // A datagram that is no RTCP is not for us.
        if rtcp::parse(bytes.head()).next().is_none_or(|first| first.is_err()) {
            return;
        }
        if self.control.hear(now, self.source, io) {
            let since = now.saturating_since(self.began).as_secs_f64();
            self.events.say(now, "connected", since, "s", "the receiver was heard");
            if self.spec.waits_for_receiver {
                self.feed.start(now);
            }
        }
        let mut left = MOST_ASKED;
        for packet in self.control.take(now, bytes, io) {
            match packet {
                Packet::Nack(nack) if source_of(nack.media_ssrc) == self.source => {
                    self.asked(now, nack.sequences(), &mut left);
                }
                Packet::Rist(RistApp::Ranges { source, ranges }) if source_of(source) == self.source => {
                    self.asked(now, ranges.into_iter().flat_map(NackRange::sequences), &mut left);
                }
                Packet::Bye { .. } => self.closed(now, "the other end closed the connection"),
                _ => {}
            }
        }
    }

    fn asked(&mut self, now: Instant, sequences: impl Iterator<Item = u16>, left: &mut usize) {
        let spacing = self.spec.repeat_spacing(self.control.last());
        for sequence in sequences.take(*left) {
            *left -= 1;
            let count = count_of(sequence, self.buffer.end());
            if self.buffer.ask(now, count, spacing) == Asked::TooSoon {
                self.tally.add(WITHHELD, 1);
            }
        }
    }

    fn closed(&mut self, now: Instant, why: &'static str) {
        if !self.control.is_over() {
            self.control.end();
        }
        let since = now.saturating_since(self.began).as_secs_f64();
        self.events.say(now, "connection_closed", since, "s", why);
    }

    fn send(&mut self, now: Instant, io: &mut dyn Io) {
        let (ticks, stream) = (self.ticks(now), self.feed.picture(now));
        // A picture begins in a datagram of its own, as live encoders flush each.
        for payload in stream.chunks(self.spec.payload_bytes()) {
            let count = self.buffer.push(now, ticks, payload);
            self.sent.add(now, payload.len());
            self.packets = self.packets.wrapping_add(1);
            self.octets = self.octets.wrapping_add(payload.len() as u32);
            io.send(MEDIA, data(self.source, count, ticks, payload, false));
        }
    }

    /// Returns whether the greatest rate is exceeded: `aggressive` looks at the quick averages, `off` at the slow ones.
    fn is_above_the_rate(&mut self, now: Instant) -> bool {
        self.sent.add(now, 0);
        self.repeated.add(now, 0);
        let (sent, repeated) = match self.spec.congestion_control {
            RepairControl::Off => (&self.sent.slow, &self.repeated.slow),
            RepairControl::Normal => (&self.sent.slow, &self.repeated.fast),
            RepairControl::Aggressive => (&self.sent.fast, &self.repeated.fast),
        };
        sent.bps() + repeated.bps() > self.spec.maxbitrate_bps as f64
    }

    fn repeat(&mut self, now: Instant, io: &mut dyn Io) {
        if !self.buffer.is_waiting() || now < self.next_turn {
            return;
        }
        let is_above = self.is_above_the_rate(now);
        for _ in 0..self.spec.most_repeated() {
            let Some((count, kept)) = self.buffer.next() else { break };
            if is_above || kept.repeats >= self.spec.max_retries {
                self.tally.add(WITHHELD, 1);
                continue;
            }
            kept.repeats += 1;
            let (bytes, datagram) =
                (kept.payload.len(), data(self.source, count, kept.ticks, &kept.payload, true));
            self.repeated.add(now, bytes);
            self.tally.add(REPEATED, 1);
            io.send(MEDIA, datagram);
        }
        self.next_turn = now + self.spec.loop_interval;
    }

    /// Returns when nothing more can be asked for.
    fn closes_at(&self) -> Option<Instant> {
        let ended = self.feed.ended_at().filter(|_| self.control.is_known())?;
        let latency = self.spec.latency.max(self.spec.asked_until());
        Some(ended + latency + self.spec.clamped(self.control.smoothed()))
    }

    fn tell(&mut self, now: Instant) {
        if self.tally.tell(now, &mut self.events) && self.control.is_known() {
            self.events.say(now, "rist_rtt", self.control.smoothed().as_secs_f64(), "s", "");
            let age = self.buffer.oldest().map_or(Duration::ZERO, |origin| now.saturating_since(origin));
            self.events.say(now, "send_buffer", age.as_secs_f64(), "s", "");
        }
    }
}

fn data(source: u32, count: u64, ticks: u32, payload: &[u8], is_repeated: bool) -> Chunk {
    Data { sequence: count as u16, timestamp: ticks, source, is_repeated, payload: payload.into() }.write()
}

impl App for RistSender {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if self.control.is_over() {
            return;
        }
        match input {
            Input::Start => {
                self.began = now;
                self.control.start(now);
                self.tally.start(now);
                if !self.spec.waits_for_receiver {
                    self.feed.start(now);
                }
            }
            Input::Datagram { on: CONTROL, bytes, .. } => self.datagram(now, bytes, io),
            Input::Pause => self.feed.pause(now),
            Input::Resume => self.feed.resume(now),
            Input::Stop => return self.control.close(io),
            _ => {}
        }
        let (source, ticks, packets, octets) = (self.source, self.ticks(now), self.packets, self.octets);
        let report = || Packet::SenderReport {
            ssrc: source,
            ntp: rtcp::ntp(now),
            rtp_timestamp: ticks,
            packets,
            octets,
            blocks: Vec::new(),
        };
        if self.control.advance(now, source, report, io) {
            self.closed(now, "nothing came from the other end for too long");
        }
        if self.control.is_over() {
            return;
        }
        while self.feed.due().is_some_and(|due| due <= now) {
            self.send(now, io);
        }
        self.buffer.drop_older(now, self.spec.hold());
        self.repeat(now, io);
        if self.closes_at().is_some_and(|at| at <= now) {
            self.control.close(io);
        } else {
            self.tell(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.control.is_over() {
            return None;
        }
        let timers = [
            self.control.poll_timeout(),
            self.feed.due(),
            self.buffer.is_waiting().then_some(self.next_turn),
            self.closes_at(),
            self.tally.next(),
        ];
        timers.into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
