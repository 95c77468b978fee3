//! The end that receives and shows.

mod acks;
mod losses;

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_wire::srt::{AckReport, Data, HEADER_BYTES, Packet, PacketContent, SequenceNumber};

use super::MEDIA;
use super::connection::{Agreed, Change, Connection};
use super::rtt::RoundTrip;
use super::spec::{Caller, SrtSpec};
use crate::app::{App, Input, Io};
use crate::contribution::{Delivery, Held, ReceivedPictures, Tally};
use crate::outbox::Outbox;
use acks::Acks;
use losses::Losses;

/// A receiver that never hears of a sender gives up so long after the clip should have ended.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// Received packets are counted for this long for the rates of an acknowledgement; ours.
const RATE_WINDOW: Duration = Duration::from_millis(1000);

/// Delivers packets when they are due (TSBPD), skips those that are missing then (TLPKTDROP), acknowledges, reports losses, and
/// follows the delivered pictures.
///
/// Events: `connected` (s, since the start) with the latency as reason; `playout_start` (s); `frame_shown` (value: the frame's
/// number), `frame_late` (s), `frame_incomplete`, `picture_wait` (s: the least latency that shows it); each second, if there were any,
/// `nack` (packets, each as often as it was reported), `unrepaired` (packets that were skipped), `discarded` (packets that arrived
/// too late) and `overflow` (packets without room); `srt_rtt` and `nak_interval` (s); at last `media_end` (frames shown).
pub struct SrtReceiver {
    spec: SrtSpec,
    connection: Connection,
    agreed: Option<Agreed>,
    delivery: Delivery,
    /// The count of the first packet that has never come.
    beyond: u64,
    /// The last timestamp without its wraps, in microseconds.
    newest_us: u64,
    losses: Losses,
    acks: Acks,
    rtt: RoundTrip,
    rates: Rates,
    /// Why nothing more will come.
    closing: Option<&'static str>,
    began: Instant,
    paused: Option<Instant>,
    tally: Tally<4>,
    events: Outbox,
}

const NACKED: usize = 0;
const SKIPPED: usize = 1;
const LATE: usize = 2;
const OVERFLOW: usize = 3;

impl SrtReceiver {
    pub(super) fn new(spec: &SrtSpec, mut ids: RandomStream) -> Self {
        let is_caller = spec.caller == Caller::Receiver;
        let connection = Connection::new(spec, is_caller, (spec.latency, Duration::ZERO), &mut ids);
        SrtReceiver {
            connection,
            agreed: None,
            delivery: Delivery::new(
                ReceivedPictures::new(spec.clip.frame_interval, spec.clip.frames()),
                spec.buffer.into(),
            ),
            beyond: 0,
            newest_us: 0,
            losses: Losses::default(),
            acks: Acks::new(spec.ack_interval, spec.light_ack),
            rtt: RoundTrip::new(spec.first_rtt, spec.first_rtt_variance),
            rates: Rates::default(),
            closing: None,
            began: Instant::ZERO,
            paused: None,
            tally: Tally::new(["nack", "unrepaired", "discarded", "overflow"]),
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

    fn changed(&mut self, now: Instant, change: Option<Change>) {
        match change {
            None => {}
            Some(Change::Opened(agreed)) => {
                let since = now.saturating_since(self.began).as_secs_f64();
                let reason = format!("latency {:.3} s", agreed.receives.as_secs_f64());
                self.events.say(now, "connected", since, "s", reason);
                self.agreed = Some(agreed);
                self.delivery.pictures.judge_by(agreed.receives);
                let first = u64::from(agreed.peer_initial.get());
                self.delivery.begin_at(first);
                (self.beyond, self.newest_us) = (first, agreed.peer_us.into());
                self.acks.start(now, first);
                self.rates = Rates { since: now, ..Rates::default() };
            }
            Some(Change::Closed(why)) => {
                self.closing = self.closing.or(Some(why));
                // Missing packets will not arrive.
                self.losses.skip_to(u64::MAX);
            }
        }
    }

    fn datagram(&mut self, now: Instant, arrived: Instant, bytes: &Chunk, io: &mut dyn Io) {
        let Ok(packet) = Packet::parse(bytes) else { return };
        let is_ours = self.connection.heard(now, &packet);
        match &packet.content {
            // Nothing here has a key.
            PacketContent::Data(data) if is_ours && data.key == 0 => {
                self.data(now, arrived, packet.timestamp_us, data, io);
            }
            PacketContent::AckAck { number } if is_ours => {
                if let Some(rtt) = self.acks.answered(now, *number) {
                    self.rtt.measured(rtt);
                }
            }
            PacketContent::DropRequest(request) if is_ours => {
                let next = self.delivery.next();
                let (first, last) = (request.packets.first.near(next), request.packets.last.near(next));
                for count in first.max(next)..last.saturating_add(1).min(self.beyond) {
                    self.losses.came(count);
                }
            }
            PacketContent::Shutdown if !is_ours => {}
            _ => {
                let change = self.connection.take(now, &packet, io);
                self.changed(now, change);
            }
        }
    }

    fn data(&mut self, now: Instant, arrived: Instant, stamp: u32, data: &Data<'_>, io: &mut dyn Io) {
        let Some(agreed) = self.agreed else { return };
        let next = self.delivery.next();
        let count = data.sequence.near(next);
        let stamp_us = self.stamp_us(stamp);
        self.rates.packets += 1;
        self.rates.bytes += (data.payload.len() + HEADER_BYTES) as u64;
        if count < next {
            // A repeated packet that had arrived before is not late.
            return self.tally.add(LATE, u64::from(self.delivery.came_late(count)));
        }
        if count >= next + u64::from(self.spec.buffer) {
            return self.tally.add(OVERFLOW, 1);
        }
        if count >= self.beyond {
            self.gap(now, count, io);
            self.beyond = count + 1;
            self.newest_us = self.newest_us.max(stamp_us);
        } else if !self.losses.came(count) && self.delivery.has(count) {
            return;
        }
        let since_us = stamp_us.saturating_sub(u64::from(agreed.peer_us));
        let expected = agreed.at + Duration::from_micros(since_us);
        self.delivery.hold(count, Held { payload: data.payload.to_chunk(), expected, arrived });
        if self.acks.packet() && self.acks.light(self.position()) {
            let ack = AckReport { next: SequenceNumber::of(self.position()), ..AckReport::default() };
            self.connection.send(now, PacketContent::Ack { number: 0, ack }, io);
        }
    }

    /// Returns a timestamp without its wraps: the one nearest to the newest (section 4.5.1.1).
    fn stamp_us(&self, stamp: u32) -> u64 {
        let ahead = i64::from(stamp.wrapping_sub(self.newest_us as u32).cast_signed());
        self.newest_us.checked_add_signed(ahead).unwrap_or(stamp.into())
    }

    /// Reports packets between the newest one and `count` as lost.
    fn gap(&mut self, now: Instant, count: u64, io: &mut dyn Io) {
        if count == self.beyond {
            return;
        }
        let next = self.spec.periodic_nak.then(|| now + self.nak_interval());
        self.losses.lose(self.beyond..count, next);
        self.tally.add(NACKED, count - self.beyond);
        let range = losses::range(self.beyond, count - 1);
        self.connection.send(now, PacketContent::Nak(vec![range]), io);
    }

    /// Returns the time between periodic reports (section 5.1.2).
    fn nak_interval(&self) -> Duration {
        self.rtt.upper().div(2).max(self.spec.nak_interval)
    }

    fn report_losses(&mut self, now: Instant, io: &mut dyn Io) {
        if self.losses.next_report().is_some_and(|at| at <= now) {
            self.losses.report_at(now + self.nak_interval());
            self.tally.add(NACKED, self.losses.len());
            self.connection.send(now, PacketContent::Nak(self.losses.ranges()), io);
        }
    }

    /// Returns the count up to which everything has come or is skipped.
    fn position(&self) -> u64 {
        self.losses.first().unwrap_or(self.beyond)
    }

    fn acknowledge(&mut self, now: Instant, io: &mut dyn Io) {
        let position = self.position();
        let Some(number) = self.acks.full(now, position, self.rtt.upper()) else { return };
        let free = u64::from(self.spec.buffer).saturating_sub(self.beyond - self.delivery.next());
        let [packets, bytes] = self.rates.per_second(now);
        let ack = AckReport {
            next: SequenceNumber::of(position),
            round_trip_us: Some(self.rtt.micros()),
            free_packets: free as u32,
            // The capacity is for file mode's control of congestion; live mode measures none.
            rates: Some([packets, 0, bytes]),
        };
        self.connection.send(now, PacketContent::Ack { number, ack }, io);
    }

    /// Returns when the next packet is delivered (section 4.5.1).
    fn next_delivery(&self) -> Option<Instant> {
        let agreed = self.agreed?;
        let (count, expected) = self.delivery.first()?;
        // Without drops a missing packet is waited for, until the sender gives it up.
        let may = self.spec.too_late_drop || self.losses.first().is_none_or(|lost| lost > count);
        may.then(|| expected + agreed.receives)
    }

    fn deliver(&mut self, now: Instant) {
        while self.next_delivery().is_some_and(|due| due <= now) {
            let skipped = self.delivery.deliver(now, &mut self.events);
            self.tally.add(SKIPPED, skipped);
            self.losses.skip_to(self.delivery.next());
        }
    }

    fn end(&mut self, now: Instant, why: &'static str) {
        self.tally.flush(now, &mut self.events);
        self.delivery.end(now, why, &mut self.events);
    }

    /// Nothing is waited for longer.
    fn gives_up_at(&self) -> Option<Instant> {
        let lasts = self.spec.clip.frame_interval * self.spec.clip.frames();
        (self.agreed.is_none() && self.paused.is_none())
            .then(|| self.began + lasts + self.spec.latency + GIVE_UP_AFTER)
    }

    fn tell(&mut self, now: Instant) {
        if self.tally.tell(now, &mut self.events) && self.connection.is_open() {
            self.events.say(now, "srt_rtt", self.rtt.smoothed.as_secs_f64(), "s", "");
            self.events.say(now, "nak_interval", self.nak_interval().as_secs_f64(), "s", "");
        }
    }
}

/// Recently received packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    since: Instant,
    packets: u64,
    bytes: u64,
    /// Packets and bytes a second of the window before.
    before: [u32; 2],
}

impl Rates {
    fn per_second(&mut self, now: Instant) -> [u32; 2] {
        let took = now.saturating_since(self.since);
        if took >= RATE_WINDOW {
            let rate = |count: u64| {
                u32::try_from(u128::from(count) * 1_000_000_000 / u128::from(took.as_nanos()))
                    .unwrap_or(u32::MAX)
            };
            *self =
                Rates { since: now, packets: 0, bytes: 0, before: [rate(self.packets), rate(self.bytes)] };
        }
        self.before
    }
}

impl App for SrtReceiver {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if self.delivery.pictures.has_ended() {
            return;
        }
        match input {
            Input::Start => {
                self.began = now;
                self.connection.start(now);
                self.delivery.pictures.start(now);
                self.tally.start(now);
            }
            Input::Datagram { on: MEDIA, bytes, at, .. } => self.datagram(now, at, bytes, io),
            Input::Pause => self.paused = self.paused.or(Some(now)),
            Input::Resume => {
                if let Some(since) = self.paused.take() {
                    let pause = now.saturating_since(since);
                    self.delivery.pictures.shift(pause);
                    self.began += pause;
                }
            }
            Input::Stop => {
                self.connection.shut(now, io);
                return self.end(now, "stopped");
            }
            _ => {}
        }
        let change = self.connection.advance(now, io);
        self.changed(now, change);
        self.deliver(now);
        if self.connection.is_open() {
            self.report_losses(now, io);
            self.acknowledge(now, io);
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
        let is_open = self.connection.is_open();
        let timers = [
            self.connection.poll_timeout(),
            self.next_delivery(),
            self.losses.next_report().filter(|_| is_open),
            self.acks.next().filter(|_| is_open),
            self.gives_up_at(),
            self.tally.next(),
        ];
        timers.into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
