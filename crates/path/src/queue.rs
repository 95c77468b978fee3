//! The face of a queue discipline, and what it holds.

use streamgauge_base::{BitRate, Cause, Ecn, Instant, Item, QueueDepth, StageId};

use crate::stage::Arrival;

/// A packet in a bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// The packet; a queue manager sets CE here.
    pub item: Item,
    /// When it arrived.
    pub t_in: Instant,
    /// What the bottleneck held then, before it, the packet being sent included.
    pub queue: QueueDepth,
    /// Its bytes in the bottleneck's layer.
    pub bytes: u32,
    /// The queue manager set CE on it.
    pub marked: bool,
}

impl QueuedPacket {
    /// Sets CE and returns true, or returns false for a packet that is not ECN-capable (RFC 3168 section 5).
    /// One that says CE already says all there is to say: it counts as signalled, but not as marked here.
    #[inline]
    pub fn mark(&mut self) -> bool {
        match self.item.ecn {
            Ecn::NotEct => return false,
            Ecn::Ce => {}
            Ecn::Ect0 | Ecn::Ect1 => {
                self.item.ecn = Ecn::Ce;
                self.marked = true;
            }
        }
        true
    }

    pub(crate) fn arrival(&self, stage: StageId) -> Arrival {
        Arrival { item: self.item, stage, t_in: self.t_in, queue: self.queue, marked: self.marked }
    }
}

/// What a queue sees of the transmission that it feeds.
#[derive(Clone, Copy, Debug)]
pub struct TransmitState {
    /// The rate in force.
    pub rate: BitRate,
    /// Bytes of the packet being sent, whole until its transmission ends; 0 while idle.
    pub sending_bytes: u32,
    /// 1 while a packet is being sent, else 0.
    pub sending_packets: u32,
}

/// A queue discipline: decides which packets wait, which are dropped or marked, and which goes next. Every
/// packet pushed comes out exactly once: popped, dropped or, at the end, taken.
pub trait Queue {
    /// Takes `packet` at `now`. Whatever is given up for it, itself or others that wait, goes to `drop`.
    fn push(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    );
    /// The packet to send next, at `now`, when the link has become free. What is given up on the way goes to
    /// `drop`. `None` only if nothing waits any more.
    fn pop(
        &mut self,
        now: Instant,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket>;
    /// The transmission of `packet` has ended at `at`; `pop` at the same time comes next. A manager that
    /// measures how fast the link drains counts here.
    #[inline]
    fn sent(&mut self, _at: Instant, _packet: &QueuedPacket) {}
    /// Takes out any packet that waits, without a decision: the trial is over.
    fn take(&mut self) -> Option<QueuedPacket>;
    /// What waits, the packet being sent not included.
    fn depth(&self) -> QueueDepth;
}
