//! Drop-tail as NIST Net counts it (Carson and Santay, "NIST Net: A Linux-based Network Emulation Tool", ACM CCR
//! 33(3), 2003): one schedule holds queued and delayed packets alike, so a limit in packets counts both. The longer
//! the delay, the less is left of the limit for a queue.

use std::collections::VecDeque;

use streamgauge_base::{Cause, Duration, Instant, QueueDepth};

use crate::fifo::Fifo;
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::NistnetSpec;

/// A FIFO with a limit that counts packets that wait, that are being sent, and that are still in the delay behind it.
///
/// The record shows the waiting packets and the one being sent as the queue: the delay is a stage of its own.
#[derive(Clone, Debug)]
pub struct Nistnet {
    packets: u64,
    behind: Behind,
    fifo: Fifo,
}

impl Nistnet {
    /// Makes an empty queue.
    pub fn new(spec: &NistnetSpec) -> Self {
        Nistnet { packets: spec.packets.into(), behind: Behind::new(spec.delay), fifo: Fifo::default() }
    }
}

impl Queue for Nistnet {
    fn push(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        if self.behind.held(now, &self.fifo, transmit) < self.packets {
            self.fifo.push(packet);
        } else {
            drop(packet, Cause::QueueFull);
        }
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

/// The packets in a fixed delay: when each leaves it.
#[derive(Clone, Debug)]
pub(crate) struct Behind {
    delay: Duration,
    leave: VecDeque<Instant>,
}

impl Behind {
    pub fn new(delay: Duration) -> Self {
        Behind { delay, leave: VecDeque::new() }
    }

    /// Notes that a packet enters the delay at `at`.
    pub fn enter(&mut self, at: Instant) {
        if self.delay > Duration::ZERO {
            self.leave.push_back(at + self.delay);
        }
    }

    /// Returns how many wait in `fifo`, are being sent by `transmit` or are in the delay at `now`; one that leaves it
    /// just then has left.
    pub fn held(&mut self, now: Instant, fifo: &Fifo, transmit: &TransmitState) -> u64 {
        while self.leave.front().is_some_and(|&leaves| leaves <= now) {
            self.leave.pop_front();
        }
        fifo.packets() + u64::from(transmit.sending_packets) + self.leave.len() as u64
    }
}
