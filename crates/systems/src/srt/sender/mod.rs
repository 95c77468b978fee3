//! The end that sends.

mod buffer;
mod pacing;

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_wire::srt::{AckReport, Data, LossRange, Packet, PacketContent, SequenceNumber};

use super::MEDIA;
use super::connection::{Agreed, Change, Connection};
use super::rtt::RoundTrip;
use super::spec::{Caller, Retransmission, SrtSpec};
use crate::app::{App, Input, Io};
use crate::contribution::{Feed, Tally};
use crate::outbox::Outbox;
use buffer::SendBuffer;
use pacing::LiveCc;

/// Muxes the clip's pictures into MPEG-TS at their pace, sends them, and sends lost packets again.
///
/// Events: `connected` (s, since the start) with the latency as reason; each second, if there were any, `repeated` (packets)
/// and `sender_dropped` (packets, too old or without room); `srt_rtt` (s), and `send_buffer` (s, age of its oldest packet);
/// `connection_closed` (s, since the start).
pub struct SrtSender {
    spec: SrtSpec,
    connection: Connection,
    agreed: Option<Agreed>,
    feed: Feed,
    buffer: SendBuffer,
    pacing: LiveCc,
    rtt: RoundTrip,
    /// The room that the receiver last reported.
    free: u32,
    /// The count of the first packet.
    first: u64,
    /// Nothing waits to be sent.
    is_idle: bool,
    began: Instant,
    tally: Tally<2>,
    events: Outbox,
}

const REPEATED: usize = 0;
const DROPPED: usize = 1;

/// Message numbers are 26 bits, without 0.
const MESSAGES: u64 = (1 << 26) - 1;

impl SrtSender {
    pub(super) fn new(spec: &SrtSpec, mut ids: RandomStream) -> Self {
        let is_caller = spec.caller == Caller::Sender;
        let connection = Connection::new(spec, is_caller, (Duration::ZERO, spec.peer_latency), &mut ids);
        SrtSender {
            connection,
            agreed: None,
            feed: Feed::new(&spec.clip),
            buffer: SendBuffer::new(0, spec.buffer as usize),
            pacing: LiveCc::new(spec),
            rtt: RoundTrip::new(spec.first_rtt, spec.first_rtt_variance),
            free: spec.flight,
            first: 0,
            is_idle: true,
            began: Instant::ZERO,
            tally: Tally::new(["repeated", "sender_dropped"]),
            events: Outbox::default(),
            spec: spec.clone(),
        }
    }

    #[cfg(test)]
    pub(super) fn begin_at(&mut self, initial: SequenceNumber) {
        self.connection.begin_at(initial);
    }

    fn changed(&mut self, now: Instant, change: Option<Change>) {
        let since = now.saturating_since(self.began).as_secs_f64();
        match change {
            None => {}
            Some(Change::Opened(agreed)) => {
                let reason = format!("latency {:.3} s", agreed.sends.as_secs_f64());
                self.events.say(now, "connected", since, "s", reason);
                self.agreed = Some(agreed);
                self.first = self.connection.initial().get().into();
                self.buffer = SendBuffer::new(self.first, self.spec.buffer as usize);
                self.feed.start(now);
                self.free = agreed.flight;
            }
            Some(Change::Closed(why)) => self.events.say(now, "connection_closed", since, "s", why),
        }
    }

    fn datagram(&mut self, now: Instant, bytes: &Chunk, io: &mut dyn Io) {
        // A datagram that is none of SRT's is not for us.
        let Ok(packet) = Packet::parse(bytes) else { return };
        let is_ours = self.connection.heard(now, &packet);
        match &packet.content {
            PacketContent::Ack { number, ack } if is_ours => self.acknowledged(now, *number, ack, io),
            PacketContent::Nak(losses) if is_ours => self.lost(now, losses),
            PacketContent::Shutdown if !is_ours => {}
            _ => {
                let change = self.connection.take(now, &packet, io);
                self.changed(now, change);
            }
        }
    }

    fn acknowledged(&mut self, now: Instant, number: u32, ack: &AckReport, io: &mut dyn Io) {
        if number > 0 {
            self.connection.send(now, PacketContent::AckAck { number }, io);
        }
        if !self.buffer.acknowledge(self.buffer.count(ack.next)) {
            return;
        }
        if let Some((rtt_us, _)) = ack.round_trip_us {
            self.rtt.measured(Duration::from_micros(rtt_us.into()));
            self.free = ack.free_packets;
        }
        self.pacing.update();
    }

    fn lost(&mut self, now: Instant, losses: &[LossRange]) {
        let on_its_way = self.rtt.lower().min(now - Instant::ZERO);
        match self.spec.retransmission {
            Retransmission::Off => {}
            Retransmission::Aggressive => self.buffer.lose(losses, None),
            // Without periodic reports a repeated packet that is lost again would never be reported.
            Retransmission::Efficient if !self.agreed.is_some_and(|agreed| agreed.periodic_nak) => {
                self.buffer.lose(losses, None);
            }
            Retransmission::Efficient => self.buffer.lose(losses, Some(now - on_its_way)),
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.feed.due().filter(|_| self.connection.is_open())
    }

    fn mux(&mut self, now: Instant) {
        let stream = self.feed.picture(now);
        // A picture begins in a datagram of its own, as live encoders flush each.
        let stamp = self.connection.micros(now);
        for payload in stream.chunks(self.spec.payload_bytes()) {
            self.pacing.input(now, payload.len());
            if !self.buffer.push(now, stamp, payload) {
                self.tally.add(DROPPED, 1);
            }
        }
    }

    fn window(&self) -> u64 {
        u64::from(self.agreed.map_or(0, |agreed| agreed.flight).min(self.free))
    }

    fn send(&mut self, now: Instant, io: &mut dyn Io) {
        let window = self.window();
        if !self.connection.is_open() {
            return;
        }
        if self.is_idle && self.buffer.has_next(window) {
            self.pacing.wake(now);
        }
        while self.pacing.next() <= now {
            let Some((count, held, is_retransmitted)) = self.buffer.next(now, window) else { break };
            let data = Data {
                sequence: SequenceNumber::of(count),
                is_retransmitted,
                // Each packet is a message of its own; they count from 1.
                message: ((count - self.first) % MESSAGES + 1) as u32,
                payload: (&held.payload[..]).into(),
                ..Data::default()
            };
            self.pacing.sent(held.payload.len());
            self.tally.add(REPEATED, u64::from(is_retransmitted));
            self.connection.send_stamped(now, held.origin_us, PacketContent::Data(data), io);
        }
        self.is_idle = !self.buffer.has_next(window);
    }

    /// Returns when the oldest packet is too old, if the receiver drops late packets too.
    fn drops_at(&self) -> Option<Instant> {
        let agreed = self.agreed.filter(|agreed| agreed.too_late_drop && self.spec.too_late_drop)?;
        Some(self.buffer.oldest()? + self.spec.hold(agreed.sends))
    }

    fn drop_late(&mut self, now: Instant) {
        if let Some(agreed) = self.agreed
            && self.drops_at().is_some_and(|at| at <= now)
        {
            let dropped = self.buffer.drop_older(now, self.spec.hold(agreed.sends));
            self.tally.add(DROPPED, dropped);
        }
    }

    /// Returns when the connection closes after the last picture: when the receiver has delivered it.
    fn closes_at(&self) -> Option<Instant> {
        let agreed = self.agreed.filter(|_| self.connection.is_open() && self.buffer.is_empty())?;
        Some(self.feed.ended_at()? + agreed.sends + self.rtt.upper())
    }

    fn tell(&mut self, now: Instant) {
        if self.tally.tell(now, &mut self.events) && self.connection.is_open() {
            self.events.say(now, "srt_rtt", self.rtt.smoothed.as_secs_f64(), "s", "");
            let age = self.buffer.oldest().map_or(Duration::ZERO, |origin| now.saturating_since(origin));
            self.events.say(now, "send_buffer", age.as_secs_f64(), "s", "");
        }
    }
}

impl App for SrtSender {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => {
                self.began = now;
                self.connection.start(now);
                self.tally.start(now);
            }
            Input::Datagram { on: MEDIA, bytes, .. } => self.datagram(now, bytes, io),
            Input::Pause => self.feed.pause(now),
            Input::Resume => self.feed.resume(now),
            Input::Stop => self.connection.shut(now, io),
            _ => {}
        }
        let change = self.connection.advance(now, io);
        self.changed(now, change);
        while self.next_due().is_some_and(|due| due <= now) {
            self.mux(now);
        }
        self.drop_late(now);
        self.send(now, io);
        if self.closes_at().is_some_and(|at| at <= now) {
            self.connection.shut(now, io);
        }
        if !self.connection.is_over() {
            self.tell(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.connection.is_over() {
            return None;
        }
        let sends =
            (self.connection.is_open() && self.buffer.has_next(self.window())).then(|| self.pacing.next());
        let timers = [
            self.connection.poll_timeout(),
            self.next_due(),
            sends,
            self.drops_at(),
            self.closes_at(),
            self.tally.next().filter(|_| self.connection.is_open()),
        ];
        timers.into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
