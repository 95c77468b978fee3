//! Drop-tail: first in, first out, and an arrival that does not fit is dropped.

use streamgauge_base::{BitRate, Cause, Instant, QueueDepth};

use crate::error::StageProblem;
use crate::fifo::Fifo;
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::{Layer, Limit};

/// A FIFO with a limit in bytes, packets or time. The limit counts the packet being sent.
#[derive(Clone, Debug)]
pub struct Droptail {
    limit: Limit,
    fifo: Fifo,
}

impl Droptail {
    /// Makes an empty queue.
    pub fn new(limit: Limit) -> Self {
        Droptail { limit, fifo: Fifo::default() }
    }
}

impl Queue for Droptail {
    #[inline]
    fn push(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        self.fifo.push_within(self.limit, packet, transmit, drop);
    }

    #[inline]
    fn pop(
        &mut self,
        _now: Instant,
        _transmit: &TransmitState,
        _drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        self.take()
    }

    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }

    #[inline]
    fn take(&mut self) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    #[inline]
    fn depth(&self) -> QueueDepth {
        self.fifo.depth()
    }
}

impl Limit {
    /// Checks that a packet can fit at all, at the highest rate there will be.
    pub(crate) fn check(self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        let bytes = match self {
            Limit::Packets(0) => return Err(StageProblem::LimitPackets),
            Limit::Packets(_) => return Ok(()),
            Limit::Bytes(bytes) => bytes,
            Limit::Time(time) => u64::try_from(highest.nanobits_in(time) / 8_000_000_000).unwrap_or(u64::MAX),
        };
        if bytes < layer.smallest_packet() { Err(StageProblem::LimitBytes { bytes }) } else { Ok(()) }
    }
}
