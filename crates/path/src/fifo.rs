//! First in, first out: the base of the queue disciplines.

use std::collections::VecDeque;

use streamgauge_base::{Cause, QueueDepth};

use crate::queue::{QueuedPacket, TransmitState};
use crate::spec::Limit;

/// Packets in order of arrival, and their bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<QueuedPacket>,
    bytes: u64,
}

impl Fifo {
    #[inline]
    pub fn push(&mut self, packet: QueuedPacket) {
        self.bytes += u64::from(packet.bytes);
        self.waiting.push_back(packet);
    }
    #[inline]
    pub fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }
    #[inline]
    pub fn head(&self) -> Option<&QueuedPacket> {
        self.waiting.front()
    }
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    #[inline]
    pub fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// Returns whether a packet of `bytes` more is within `limit`, which counts the packet that `transmit` is sending
    /// too.
    #[inline]
    pub fn has_room(&self, limit: Limit, bytes: u32, transmit: &TransmitState) -> bool {
        limit.holds(self.packets() + 1, self.bytes + u64::from(bytes), transmit)
    }
    /// Accepts `packet` if it is within `limit`, else gives it to `drop`.
    #[inline]
    pub fn push_within(
        &mut self,
        limit: Limit,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        if self.has_room(limit, packet.bytes, transmit) {
            self.push(packet);
        } else {
            drop(packet, Cause::QueueFull);
        }
    }
    #[inline]
    pub fn depth(&self) -> QueueDepth {
        depth(self.packets(), self.bytes)
    }
}

/// Makes a depth of `packets` and `bytes`, as in a record.
#[inline]
pub(crate) fn depth(packets: u64, bytes: u64) -> QueueDepth {
    QueueDepth {
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        packets: u32::try_from(packets).unwrap_or(u32::MAX),
    }
}

impl Limit {
    /// Returns whether a queue of `packets` and `bytes`, with the packet that `transmit` is sending, is within the
    /// limit.
    #[inline]
    pub(crate) fn holds(self, packets: u64, bytes: u64, transmit: &TransmitState) -> bool {
        let bytes = bytes + u64::from(transmit.sending_bytes);
        match self {
            Limit::Bytes(limit) => bytes <= limit,
            Limit::Packets(limit) => packets + u64::from(transmit.sending_packets) <= u64::from(limit),
            // Eight bits a byte and 10^9 ns a second, without dividing.
            Limit::Time(limit) => u128::from(bytes) * 8_000_000_000 <= transmit.rate.nanobits_in(limit),
        }
    }
}
