//! Random early detection: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM
//! Transactions on Networking 1(4), 1993; gentle: Floyd, "Recommendation on using the gentle variant of RED", 2000;
//! ECN: RFC 3168 section 7.

use streamgauge_base::{Cause, Instant, QueueDepth, RandomStream};

use crate::fifo::Fifo;
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::{Limit, RedSpec};

/// A FIFO that drops or marks arrivals by an average of its length, the packet being sent included.
///
/// The average is updated at each arrival: avg <- (1 - w) avg + w q. If the link was at rest, it is instead as if the m
/// mean packets that could have left since had found an empty queue: avg <- (1 - w)^m avg (figure 2 of the paper).
///
/// Drops are spaced out evenly (section 7, method 2): with `count` packets accepted since the last drop or mark, the
/// probability is p / (1 - count p), so that the gap to the next is uniform on 1 to 1/p packets. In byte mode p and
/// `count` are in units of the mean packet, so that a long packet is as likely to be hit as its bytes in short ones
/// (section 5; as in ns).
#[derive(Clone, Debug)]
pub struct Red {
    spec: RedSpec,
    min: f64,
    max: f64,
    counts_bytes: bool,
    fifo: Fifo,
    random: RandomStream,
    average: f64,
    /// Packets, or mean packets' worth of bytes, accepted since the last drop or mark.
    count: f64,
    /// Since when the link rests.
    resting: Option<Instant>,
}

impl Red {
    /// Makes an empty queue at rest; its draws use `random` alone, one for each arrival that may be hit.
    pub fn new(spec: &RedSpec, random: RandomStream) -> Self {
        let (min, max, counts_bytes) = spec.thresholds().unwrap_or((1, 2, false));
        Red {
            spec: spec.clone(),
            min: min as f64,
            max: max as f64,
            counts_bytes,
            fifo: Fifo::default(),
            random,
            average: 0.0,
            count: 0.0,
            resting: Some(Instant::ZERO),
        }
    }

    /// Returns the average, as at the last arrival: bytes or packets.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Returns p_b of the paper, before drops are spaced out: of a packet (of mean length) at the average of the last
    /// arrival.
    pub fn probability(&self) -> f64 {
        let most = self.spec.max_probability;
        if self.average < self.min {
            0.0
        } else if self.average < self.max {
            most * (self.average - self.min) / (self.max - self.min)
        } else if self.spec.gentle && self.average < 2.0 * self.max {
            most + (1.0 - most) * (self.average - self.max) / self.max
        } else {
            1.0
        }
    }

    fn update(&mut self, now: Instant, transmit: &TransmitState) {
        let weight = self.spec.weight;
        if let Some(since) = self.resting.take() {
            let done = transmit.rate.nanobits_in(now.saturating_since(since));
            let packets = done / (u128::from(self.spec.mean_packet) * 8_000_000_000);
            self.average *= power(1.0 - weight, u64::try_from(packets).unwrap_or(u64::MAX));
        } else {
            let held = if self.counts_bytes {
                self.fifo.bytes() + u64::from(transmit.sending_bytes)
            } else {
                self.fifo.packets() + u64::from(transmit.sending_packets)
            };
            self.average = (1.0 - weight) * self.average + weight * held as f64;
        }
    }

    /// Returns whether an arrival of `bytes` is hit, and at once how the gap to the next one counts.
    fn hits(&mut self, bytes: u32) -> bool {
        let p = self.probability();
        if p <= 0.0 {
            self.count = 0.0;
            return false;
        }
        let size = if self.counts_bytes { f64::from(bytes) / f64::from(self.spec.mean_packet) } else { 1.0 };
        let spaced = p * size / (1.0 - self.count * p);
        // Once 1/p have been accepted, the next is due.
        let hit = p >= 1.0
            || self.count * p >= 1.0
            || spaced >= 1.0
            || self.random.chance(RandomStream::threshold(spaced));
        self.count = if hit { 0.0 } else { self.count + size };
        hit
    }
}

impl Queue for Red {
    fn push(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        self.update(now, transmit);
        if self.hits(packet.bytes) {
            let certain = self.probability() >= 1.0;
            if !(self.spec.ecn && !certain && packet.mark()) {
                return drop(packet, Cause::Aqm);
            }
        }
        if !self.fifo.has_room(self.spec.limit, packet.bytes, transmit) {
            self.count = 0.0;
            return drop(packet, Cause::QueueFull);
        }
        self.fifo.push(packet);
    }

    fn pop(
        &mut self,
        now: Instant,
        _transmit: &TransmitState,
        _drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        let next = self.fifo.pop();
        if next.is_none() {
            self.resting = Some(now);
        }
        next
    }

    fn set_limit(&mut self, limit: Limit) -> bool {
        self.spec.limit = limit;
        true
    }

    fn set_ecn(&mut self, ecn: bool) -> bool {
        self.spec.ecn = ecn;
        true
    }

    fn take(&mut self) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    fn depth(&self) -> QueueDepth {
        self.fifo.depth()
    }
}

/// Returns `base`^`exponent` by squaring: multiplications alone, so the same bits on every machine.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut base, mut exponent) = (1.0, base, exponent);
    while exponent > 0 && result > 0.0 {
        if exponent % 2 == 1 {
            result *= base;
        }
        base *= base;
        exponent /= 2;
    }
    result
}
