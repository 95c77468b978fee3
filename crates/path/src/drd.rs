//! Derivative random drop, NIST Net's default queue manager (Carson and Santay 2003; WPI's notes on its drop-tail
//! patch): nothing is dropped up to drdmin packets, the probability rises with the queue's present length, not an
//! average of it, to 0.95 at drdmax, and stays there: above drdmax still one packet in twenty is accepted.
//!
//! Two points that the public descriptions leave open, and the readings chosen. The ramp is linear from 0 at drdmin to
//! 0.95 at drdmax. drdcongest is a threshold of its own: an ECN-capable packet that finds at least this many and is not
//! dropped leaves with CE set; marking does not replace a drop.

use streamgauge_base::{Cause, Instant, QueueDepth, RandomStream};

use crate::fifo::Fifo;
use crate::nistnet::Behind;
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::DrdSpec;

/// Probability at and above drdmax.
const HIGHEST: f64 = 0.95;

/// A FIFO that drops arrivals the more likely the more packets it holds, the one being sent included.
#[derive(Clone, Debug)]
pub struct Drd {
    spec: DrdSpec,
    behind: Behind,
    fifo: Fifo,
    random: RandomStream,
}

impl Drd {
    /// Makes an empty queue; its draws use `random` alone, one for each packet that finds more than drdmin.
    pub fn new(spec: &DrdSpec, random: RandomStream) -> Self {
        Drd { spec: spec.clone(), behind: Behind::new(spec.delay), fifo: Fifo::default(), random }
    }

    /// Returns the probability that an arrival which finds `packets` is dropped.
    pub fn probability(&self, packets: u64) -> f64 {
        let (min, max) = (f64::from(self.spec.min_packets), f64::from(self.spec.max_packets));
        HIGHEST * ((packets as f64 - min) / (max - min)).clamp(0.0, 1.0)
    }
}

impl Queue for Drd {
    fn push(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        let held = self.behind.held(now, &self.fifo, transmit);
        if held > self.spec.min_packets.into()
            && self.random.chance(RandomStream::threshold(self.probability(held)))
        {
            return drop(packet, Cause::Aqm);
        }
        if self.spec.limit.is_some_and(|limit| !self.fifo.has_room(limit, packet.bytes, transmit)) {
            return drop(packet, Cause::QueueFull);
        }
        if self.spec.congested_packets.is_some_and(|congested| held >= congested.into()) {
            packet.mark();
        }
        self.fifo.push(packet);
    }

    fn pop(
        &mut self,
        _now: Instant,
        _transmit: &TransmitState,
        _drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        self.take()
    }

    fn sent(&mut self, at: Instant, _packet: &QueuedPacket) {
        self.behind.enter(at);
    }

    fn take(&mut self) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    fn depth(&self) -> QueueDepth {
        self.fifo.depth()
    }
}
