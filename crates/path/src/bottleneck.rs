//! The stage with the rate and the queue.

use streamgauge_base::{BitRate, Cause, ETHERNET_HEADER_BYTES, FateSink, Instant, Item, QueueDepth, StageId};

use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::Change;
use crate::spec::{Layer, Limit, RateSpec, ShaperSpec};
use crate::stage::{Departure, Stage};
use crate::transmit::Transmitter;

/// A transmitter of some rate behind a queue of some discipline. Only the packet being sent has a time; those
/// behind it wait in the queue.
#[derive(Clone, Debug)]
pub struct Bottleneck<Q> {
    id: StageId,
    layer: Layer,
    queue: Q,
    transmitter: Transmitter,
    sending: Option<QueuedPacket>,
}

impl<Q: Queue> Bottleneck<Q> {
    /// Makes an idle bottleneck that sends one packet after the other.
    pub fn new(id: StageId, layer: Layer, rate: BitRate, queue: Q) -> Self {
        Bottleneck { id, layer, queue, transmitter: Transmitter::serial(rate), sending: None }
    }

    /// Makes an idle bottleneck with this shaper, at `rate`'s value at time zero.
    pub fn shaped(id: StageId, layer: Layer, rate: &RateSpec, shaper: &ShaperSpec, queue: Q) -> Self {
        Bottleneck { id, layer, queue, transmitter: Transmitter::new(rate, shaper), sending: None }
    }

    /// Returns its content, the packet being sent included.
    pub fn depth(&self) -> QueueDepth {
        let transmit = self.transmit();
        let waiting = self.queue.depth();
        QueueDepth {
            bytes: waiting.bytes.saturating_add(transmit.sending_bytes),
            packets: waiting.packets.saturating_add(transmit.sending_packets),
        }
    }

    fn transmit(&self) -> TransmitState {
        TransmitState {
            rate: self.transmitter.rate(),
            sending_bytes: self.sending.map_or(0, |packet| packet.bytes),
            sending_packets: u32::from(self.sending.is_some()),
        }
    }

    /// Handles a free link at `now`: the queue's next packet starts on it.
    fn send_next(&mut self, now: Instant, fates: &mut impl FateSink) {
        let (id, transmit) = (self.id, self.transmit());
        let next = self.queue.pop(now, &transmit, &mut |packet, cause| {
            fates.fate(&packet.arrival(id).dropped(now, cause));
        });
        match &next {
            Some(packet) => self.transmitter.start(now, packet.bytes),
            None => self.transmitter.idle(),
        }
        self.sending = next;
    }
}

impl<Q: Queue> Stage for Bottleneck<Q> {
    fn enqueue(&mut self, now: Instant, item: Item, fates: &mut impl FateSink) {
        debug_assert!(self.transmitter.ends() >= now, "an arrival before the departures of its time");
        let (id, transmit) = (self.id, self.transmit());
        let packet = QueuedPacket {
            item,
            t_in: now,
            queue: self.depth(),
            bytes: self.layer.bytes(&item),
            marked: false,
        };
        if packet.bytes > self.transmitter.longest() {
            fates.fate(&packet.arrival(id).dropped(now, Cause::TooBig));
            return;
        }
        self.queue.push(now, packet, &transmit, &mut |packet, cause| {
            fates.fate(&packet.arrival(id).dropped(now, cause));
        });
        if self.sending.is_none() {
            self.send_next(now, fates);
        }
    }

    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        let at = self.transmitter.ends();
        if at > now {
            return None;
        }
        let packet = self.sending.take()?;
        fates.fate(&packet.arrival(self.id).delivered(at));
        self.queue.sent(at, &packet);
        self.send_next(at, fates);
        Some(Departure { item: packet.item, at })
    }

    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        match change {
            Change::Rate(rate) => {
                self.transmitter.set_rate(now, rate, self.sending.is_some());
                fates.changed(self.id, now, "rate", rate.as_bps() as f64, "bit/s");
            }
            Change::Limit(limit) if self.queue.set_limit(limit) => {
                let (value, unit) = match limit {
                    Limit::Bytes(bytes) => (bytes as f64, "bytes"),
                    Limit::Packets(packets) => (f64::from(packets), "packets"),
                    Limit::Time(time) => (time.as_secs_f64(), "s"),
                };
                fates.changed(self.id, now, "queue_limit", value, unit);
            }
            Change::Ecn(ecn) if self.queue.set_ecn(ecn) => {
                fates.changed(self.id, now, "ecn", f64::from(u8::from(ecn)), "1");
            }
            _ => {}
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        let ends = self.transmitter.ends();
        (ends < Instant::FAR_FUTURE).then_some(ends)
    }

    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        let mut next = self.sending.take();
        while let Some(packet) = next {
            fates.fate(&packet.arrival(self.id).held(now));
            next = self.queue.take();
        }
        self.transmitter.idle();
    }
}

impl Layer {
    /// Returns the bytes of `item` that this layer counts.
    #[inline]
    pub fn bytes(self, item: &Item) -> u32 {
        match self {
            Layer::Ethernet => item.bytes,
            Layer::Ip => item.ip_bytes,
        }
    }

    /// Returns a packet of 1500 IP bytes, Ethernet's MTU.
    pub(crate) fn full_packet(self) -> u32 {
        match self {
            Layer::Ethernet => 1500 + ETHERNET_HEADER_BYTES,
            Layer::Ip => 1500,
        }
    }

    /// Returns an IPv4 header and nothing else (RFC 791 section 3.1).
    pub(crate) fn smallest_packet(self) -> u64 {
        match self {
            Layer::Ethernet => 20 + u64::from(ETHERNET_HEADER_BYTES),
            Layer::Ip => 20,
        }
    }
}
