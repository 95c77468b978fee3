//! The interface of a queue discipline, and the packets that it holds.

use streamgauge_base::{BitRate, Cause, Ecn, Instant, Item, QueueDepth, StageId};

use crate::spec::Limit;
use crate::stage::Arrival;

/// A packet in a bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// The packet; a queue manager sets CE here.
    pub item: Item,
    /// Time when it arrived.
    pub t_in: Instant,
    /// The bottleneck's content then, before it, the packet being sent included.
    pub queue: QueueDepth,
    /// Its bytes in the bottleneck's layer.
    pub bytes: u32,
    /// The queue manager set CE on it.
    pub marked: bool,
}

impl QueuedPacket {
    /// Sets CE and returns true, or returns false for a packet that is not ECN-capable (RFC 3168 section 5). A packet
    /// that already has CE cannot be marked further: it counts as signalled, but not as marked here.
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

/// The queue's view of the transmission that it feeds.
#[derive(Clone, Copy, Debug)]
pub struct TransmitState {
    /// The rate in force.
    pub rate: BitRate,
    /// Bytes of the packet being sent, whole until its transmission ends; 0 while idle.
    pub sending_bytes: u32,
    /// 1 while a packet is being sent, else 0.
    pub sending_packets: u32,
}

/// A queue discipline: decides which packets wait, which are dropped or marked, and which is next. Every packet pushed
/// leaves exactly once: popped, dropped or, at the end, removed.
pub trait Queue {
    /// Accepts `packet` at `now`. Each packet given up for it, itself or others that wait, is passed to `drop`.
    fn push(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    );
    /// Returns the packet to send next, at `now`, when the link has become free. Packets given up on the way are passed
    /// to `drop`. `None` only if nothing waits any more.
    fn pop(
        &mut self,
        now: Instant,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket>;
    /// Notes that the transmission of `packet` has ended at `at`; `pop` at the same time follows. A manager that
    /// measures how fast the link drains counts here.
    #[inline]
    fn sent(&mut self, _at: Instant, _packet: &QueuedPacket) {}
    /// Sets the limit from now on; false if it cannot be changed to that. Packets that wait stay.
    fn set_limit(&mut self, _limit: Limit) -> bool {
        false
    }
    /// Marks from now on, or does not; false if it never marks.
    fn set_ecn(&mut self, _ecn: bool) -> bool {
        false
    }
    /// Removes any packet that waits, without a decision: the trial is over.
    fn take(&mut self) -> Option<QueuedPacket>;
    /// Returns the waiting packets, the packet being sent not included.
    fn depth(&self) -> QueueDepth;
}
