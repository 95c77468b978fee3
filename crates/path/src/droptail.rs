//! Drop-tail: first in, first out, and an arrival that does not fit is dropped.

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Cause, Instant, QueueDepth};

use crate::error::Problem;
use crate::queue::{LinkState, Queue, QueuedPacket};
use crate::spec::{Layer, Limit};

/// A FIFO with a limit in bytes, packets or time. The limit counts the packet being sent.
#[derive(Clone, Debug)]
pub struct Droptail {
    limit: Limit,
    waiting: VecDeque<QueuedPacket>,
    bytes: u64,
}

impl Droptail {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Droptail { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    fn fits(&self, bytes: u32, link: &LinkState) -> bool {
        let held = self.bytes + u64::from(link.sending_bytes) + u64::from(bytes);
        match self.limit {
            Limit::Bytes(limit) => held <= limit,
            Limit::Packets(limit) => {
                self.waiting.len() as u64 + u64::from(link.sending_packets) < u64::from(limit)
            }
            // Eight bits a byte and 10^9 ns a second, without dividing.
            Limit::Time(limit) => u128::from(held) * 8_000_000_000 <= link.rate.nanobits_in(limit),
        }
    }
}

impl Queue for Droptail {
    #[inline]
    fn push(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        link: &LinkState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        if self.fits(packet.bytes, link) {
            self.bytes += u64::from(packet.bytes);
            self.waiting.push_back(packet);
        } else {
            drop(packet, Cause::QueueFull);
        }
    }

    #[inline]
    fn pop(
        &mut self,
        _now: Instant,
        _link: &LinkState,
        _drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        self.take()
    }

    #[inline]
    fn take(&mut self) -> Option<QueuedPacket> {
        let packet = *self.waiting.front()?;
        self.waiting.pop_front();
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    #[inline]
    fn depth(&self) -> QueueDepth {
        QueueDepth {
            bytes: u32::try_from(self.bytes).unwrap_or(u32::MAX),
            packets: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
        }
    }
}

impl Limit {
    /// Checks that a packet can fit at all, at the highest rate there will be.
    pub(crate) fn check(self, layer: Layer, highest: BitRate) -> Result<(), Problem> {
        let bytes = match self {
            Limit::Packets(0) => return Err(Problem::LimitPackets),
            Limit::Packets(_) => return Ok(()),
            Limit::Bytes(bytes) => bytes,
            Limit::Time(time) => u64::try_from(highest.nanobits_in(time) / 8_000_000_000).unwrap_or(u64::MAX),
        };
        if bytes < layer.smallest_packet() { Err(Problem::LimitBytes { bytes }) } else { Ok(()) }
    }
}
