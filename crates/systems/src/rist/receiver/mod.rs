//! The end that receives and shows.

mod missing;

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_wire::rist::{CLOCK_RATE, Data, NackRange, RistApp, count_of, source_of};
use streamgauge_wire::rtcp::nack::{NackEntry, NackPacket};
use streamgauge_wire::rtcp::{self, Packet, RtcpBlock};

use super::control::Control;
use super::spec::{RequestForm, RistSpec};
use super::{CONTROL, MEDIA};
use crate::app::{App, Input, Io};
use crate::contribution::{Delivery, Held, ReceivedPictures, Tally};
use crate::outbox::Outbox;
use missing::{Bounds, Missing};

/// A receiver that never hears of a sender gives up so long after the clip should have ended.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// Numbers are 16 bits.
const NUMBERS: u64 = 1 << 16;

/// The sender's clock by this end's.
#[derive(Clone, Copy, Debug)]
struct SourceClock {
    /// When the first packet arrived, and its timestamp.
    base: Instant,
    first: u64,
    /// The greatest timestamp, without its wraps.
    newest: u64,
}

impl SourceClock {
    fn new(now: Instant, ticks: u32) -> Self {
        // Earlier stamps are above 0 too.
        let first = (1 << 32) + u64::from(ticks);
        SourceClock { base: now, first, newest: first }
    }

    /// Returns when a packet with this timestamp is expected: the nearest one to the newest.
    fn expected(&self, ticks: u32) -> (Instant, u64) {
        let ahead = i64::from(ticks.wrapping_sub(self.newest as u32).cast_signed());
        let stamp = self.newest.saturating_add_signed(ahead);
        let nanos = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(CLOCK_RATE)) as u64;
        let at = match stamp.checked_sub(self.first) {
            Some(since) => self.base + Duration::from_nanos(nanos(since)),
            None => {
                let before = Duration::from_nanos(nanos(self.first - stamp));
                self.base - before.min(self.base - Instant::ZERO)
            }
        };
        (at, stamp)
    }
}

/// Delivers packets a latency after they are expected, skips those that are missing then, asks for missing ones, and follows the
/// delivered pictures.
///
/// Events: `connected` (s, since the start: the first packet) with the latency as reason; `playout_start` (s); `frame_shown` (value: the
/// frame's number), `frame_late` (s), `frame_incomplete`, `picture_wait` (s: the least latency that shows it); each second, if there were
/// any, `nack` (packets, each as often as it was asked for), `unrepaired` (packets that were skipped) and `discarded` (packets that arrived
/// too late); `rist_rtt` and `nak_interval` (s); at last `media_end` (frames shown).
pub struct RistReceiver {
    spec: RistSpec,
    control: Control,
    ssrc: u32,
    source: Option<u32>,
    clock: Option<SourceClock>,
    delivery: Delivery,
    /// The count of the first packet that has never come, and when the one before it was expected.
    beyond: u64,
    newest: Instant,
    missing: Missing,
    /// The middle of the last sender report's time, and its arrival.
    last_report: Option<(u32, Instant)>,
    /// Why nothing more will come.
    closing: Option<&'static str>,
    began: Instant,
    paused: Option<Instant>,
    tally: Tally<3>,
    events: Outbox,
}

const NACKED: usize = 0;
const SKIPPED: usize = 1;
const LATE: usize = 2;

impl RistReceiver {
    pub(super) fn new(spec: &RistSpec, mut ids: RandomStream) -> Self {
        let ssrc = source_of(ids.bits() as u32);
        let mut pictures = ReceivedPictures::new(spec.clip.frame_interval, spec.clip.frames());
        pictures.judge_by(spec.latency);
        RistReceiver {
            control: Control::new(spec, ssrc),
            ssrc,
            source: None,
            clock: None,
            delivery: Delivery::new(pictures, NUMBERS / 2),
            beyond: 0,
            newest: Instant::ZERO,
            missing: Missing::default(),
            last_report: None,
            closing: None,
            began: Instant::ZERO,
            paused: None,
            tally: Tally::new(["nack", "unrepaired", "discarded"]),
            events: Outbox::default(),
            spec: spec.clone(),
        }
    }

    /// Keeps delivered payloads from now on for `take_payload`.
    pub fn keep_payloads(&mut self) {
        self.delivery.keep_payloads();
    }

    /// Returns the next delivered payload.
    pub fn take_payload(&mut self) -> Option<Chunk> {
        self.delivery.take_payload()
    }

    fn control(&mut self, now: Instant, bytes: &Chunk, io: &mut dyn Io) {
        if rtcp::parse(bytes.head()).next().is_none_or(|first| first.is_err()) {
            return;
        }
        self.control.hear(now, self.source.unwrap_or(0), io);
        for packet in self.control.take(now, bytes, io) {
            match packet {
                Packet::SenderReport { ntp, .. } => self.last_report = Some(((ntp >> 16) as u32, now)),
                Packet::Bye { .. } => self.closes("the other end closed the connection"),
                _ => {}
            }
        }
    }

    fn closes(&mut self, why: &'static str) {
        self.closing = self.closing.or(Some(why));
        self.control.end();
        // Missing packets will not arrive.
        self.missing.clear();
    }

    fn data(&mut self, now: Instant, arrived: Instant, data: &Data<'_>, io: &mut dyn Io) {
        if self.source.is_some_and(|source| source != data.source) {
            return;
        }
        self.control.hear(now, data.source, io);
        let Some(clock) = &mut self.clock else {
            if !data.is_repeated {
                self.begin(now, arrived, data);
            }
            return;
        };
        let (expected, stamp) = clock.expected(data.timestamp);
        let count = count_of(data.sequence, self.beyond);
        if count < self.delivery.next() {
            self.missing.came(count);
            // A repeated packet that had arrived before is not late.
            return self.tally.add(LATE, u64::from(self.delivery.came_late(count)));
        }
        if count >= self.beyond {
            // A repeated packet shows no gap: those before it are on their way.
            if data.is_repeated {
                return;
            }
            clock.newest = clock.newest.max(stamp);
            self.gap(now, count, expected);
            (self.beyond, self.newest) = (count + 1, expected);
        } else if self.delivery.has(count) {
            return;
        }
        self.missing.came(count);
        self.delivery.hold(count, Held { payload: data.payload.to_chunk(), expected, arrived });
    }

    fn begin(&mut self, now: Instant, arrived: Instant, data: &Data<'_>) {
        self.source = Some(data.source);
        self.clock = Some(SourceClock::new(arrived, data.timestamp));
        let count = NUMBERS + u64::from(data.sequence);
        self.delivery.begin_at(count);
        (self.beyond, self.newest) = (count + 1, arrived);
        let held = Held { payload: data.payload.to_chunk(), expected: arrived, arrived };
        self.delivery.hold(count, held);
        let since = now.saturating_since(self.began).as_secs_f64();
        let reason = format!("latency {:.3} s", self.spec.latency.as_secs_f64());
        self.events.say(now, "connected", since, "s", reason);
    }

    /// Notes that packets before `count` are missing, each since it should have come between its neighbours.
    fn gap(&mut self, now: Instant, count: u64, expected: Instant) {
        let gap = count - self.beyond;
        let step = expected.saturating_since(self.newest).div(gap + 1);
        let next = now + self.spec.first_wait(self.control.smoothed());
        let oldest = now - self.spec.latency.min(now - Instant::ZERO);
        let most = self.spec.most_missing();
        for (place, lost) in (1..).zip(self.beyond..count) {
            if self.missing.len() > most {
                break;
            }
            let since = (self.newest + step * place).min(now);
            let since = if since < oldest { now } else { since };
            self.missing.lose(lost, since, next);
        }
    }

    fn ask(&mut self, now: Instant, io: &mut dyn Io) {
        if self.missing.due().is_none_or(|due| due > now) {
            return;
        }
        let bounds = Bounds {
            spacing: self.spec.spacing(self.control.smoothed()),
            most: self.spec.max_retries,
            until: self.spec.asked_until(),
        };
        let asked = self.missing.turn(now, bounds);
        self.tally.add(NACKED, asked.len() as u64);
        let sequences: Vec<u16> = asked.into_iter().map(|count| count as u16).collect();
        let source = self.source.unwrap_or(0);
        for sequences in sequences.chunks(self.spec.request_packets as usize) {
            let request = match self.spec.request_form {
                RequestForm::Ranges => {
                    Packet::Rist(RistApp::Ranges { source, ranges: NackRange::of(sequences) })
                }
                RequestForm::Bits => Packet::Nack(NackPacket {
                    receiver_ssrc: self.ssrc,
                    media_ssrc: source,
                    e_bit: false,
                    entries: NackEntry::of(sequences),
                }),
            };
            self.control.say(request, io);
        }
    }

    /// Returns the turn of the loop at or after a time.
    fn turn_at(&self, at: Instant) -> Instant {
        let turn = self.spec.loop_interval.as_nanos().max(1);
        let since = at.saturating_since(self.began).as_nanos();
        self.began + Duration::from_nanos(since.div_ceil(turn) * turn)
    }

    fn report(&self, now: Instant) -> Packet {
        let block = self.source.map(|source| RtcpBlock {
            source,
            extended_highest: self.beyond.saturating_sub(1) as u32,
            lsr: self.last_report.map_or(0, |(lsr, _)| lsr),
            dlsr: self.last_report.map_or(0, |(_, at)| rtcp::short(now.saturating_since(at))),
            ..RtcpBlock::default()
        });
        Packet::ReceiverReport { ssrc: self.ssrc, blocks: block.into_iter().collect() }
    }

    fn next_delivery(&self) -> Option<Instant> {
        self.delivery.first().map(|(_, expected)| expected + self.spec.latency)
    }

    fn deliver(&mut self, now: Instant) {
        while self.next_delivery().is_some_and(|due| due <= now) {
            let skipped = self.delivery.deliver(now, &mut self.events);
            self.tally.add(SKIPPED, skipped);
        }
    }

    fn end(&mut self, now: Instant, why: &'static str) {
        self.tally.flush(now, &mut self.events);
        self.delivery.end(now, why, &mut self.events);
    }

    /// Nothing is waited for longer.
    fn gives_up_at(&self) -> Option<Instant> {
        let lasts = self.spec.clip.frame_interval * self.spec.clip.frames();
        (self.source.is_none() && self.paused.is_none())
            .then(|| self.began + lasts + self.spec.latency + GIVE_UP_AFTER)
    }

    fn tell(&mut self, now: Instant) {
        if self.tally.tell(now, &mut self.events) && self.control.is_known() {
            let rtt = self.control.smoothed();
            self.events.say(now, "rist_rtt", rtt.as_secs_f64(), "s", "");
            self.events.say(now, "nak_interval", self.spec.spacing(rtt).as_secs_f64(), "s", "");
        }
    }
}

impl App for RistReceiver {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if self.delivery.pictures.has_ended() {
            return;
        }
        match input {
            Input::Start => {
                self.began = now;
                self.delivery.pictures.start(now);
                self.tally.start(now);
            }
            Input::Datagram { on: MEDIA, bytes, at, .. } if !self.control.is_over() => {
                // A datagram that is no media of ours is left.
                if let Ok(data) = Data::parse(bytes) {
                    self.data(now, at, &data, io);
                }
            }
            Input::Datagram { on: CONTROL, bytes, .. } if !self.control.is_over() => {
                self.control(now, bytes, io);
            }
            Input::Pause => self.paused = self.paused.or(Some(now)),
            Input::Resume => {
                if let Some(since) = self.paused.take() {
                    let pause = now.saturating_since(since);
                    self.delivery.pictures.shift(pause);
                    self.began += pause;
                }
            }
            Input::Stop => {
                self.control.close(io);
                return self.end(now, "stopped");
            }
            _ => {}
        }
        let (source, report) = (self.source.unwrap_or(0), self.report(now));
        if self.control.advance(now, source, || report, io) {
            self.closes("nothing came from the other end for too long");
        }
        self.deliver(now);
        if !self.control.is_over() {
            self.ask(now, io);
        }
        if let Some(why) = self.closing.filter(|_| self.delivery.is_empty()) {
            self.end(now, why);
        } else if self.gives_up_at().is_some_and(|at| at <= now) {
            self.end(now, "no connection");
        }
        if !self.delivery.pictures.has_ended() {
            self.tell(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.delivery.pictures.has_ended() {
            return None;
        }
        let timers = [
            self.control.poll_timeout(),
            self.next_delivery(),
            self.missing.due().filter(|_| !self.control.is_over()).map(|due| self.turn_at(due)),
            self.gives_up_at(),
            self.tally.next(),
        ];
        timers.into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
