//! CoDel: drops at the head when the queue has lasted for an interval (RFC 8289).

use streamgauge_base::{Cause, Duration, Instant, QueueDepth};

use crate::fifo::Fifo;
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::{CodelSpec, Limit};

/// A FIFO with CoDel, which drops or marks at its head.
#[derive(Clone, Debug)]
pub struct Codel {
    limit: Limit,
    fifo: Fifo,
    control: Control,
    law: Law,
}

/// The parameters that all queues of a bottleneck share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub target: Duration,
    pub interval: Duration,
    pub ecn: bool,
    pub mtu: u64,
}

/// The state of one queue's CoDel, in the RFC's names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    /// When a delay above the target will have lasted an interval; `None` while it is below.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Law {
    /// Returns the time of the next drop after one at `from`: interval / sqrt(count) later (RFC 8289 section 5.6).
    fn next(&self, from: Instant, count: u32) -> Instant {
        // Multiplication, division and square root are exact to the last bit on every machine (IEEE 754).
        let gap = self.interval.as_nanos() as f64 / f64::from(count).sqrt();
        from + Duration::from_nanos(gap as u64)
    }
}

impl Control {
    /// Removes the head and returns whether it may be dropped (RFC 8289 section 5.6).
    fn take(&mut self, now: Instant, fifo: &mut Fifo, law: &Law) -> Option<(QueuedPacket, bool)> {
        let Some(packet) = fifo.pop() else {
            self.first_above_time = None;
            return None;
        };
        // The rest behind it is not a standing queue if it is one packet or less.
        if now - packet.t_in < law.target || fifo.bytes() <= law.mtu {
            self.first_above_time = None;
            return Some((packet, false));
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + law.interval);
                Some((packet, false))
            }
            Some(since) => Some((packet, now >= since)),
        }
    }

    /// Returns the packet to send next, or `None` if all that waited has been dropped (RFC 8289 section 5.5).
    ///
    /// Where the RFC leaves open how to mark, it follows Linux: a mark replaces a drop, the marked packet is sent, and
    /// there is one mark a dequeue at most.
    #[inline]
    pub fn pop(
        &mut self,
        now: Instant,
        fifo: &mut Fifo,
        law: &Law,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        let Some((mut packet, mut may_drop)) = self.take(now, fifo, law) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = may_drop;
            // A long queue may be due several drops by now.
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if law.ecn && packet.mark() {
                    self.drop_next = law.next(self.drop_next, self.count);
                    return Some(packet);
                }
                drop(packet, Cause::Aqm);
                let Some(next) = self.take(now, fifo, law) else {
                    self.dropping = false;
                    return None;
                };
                (packet, may_drop) = next;
                if may_drop {
                    self.drop_next = law.next(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
            return Some(packet);
        }
        if !may_drop {
            return Some(packet);
        }
        let next = if law.ecn && packet.mark() {
            Some(packet)
        } else {
            drop(packet, Cause::Aqm);
            self.take(now, fifo, law).map(|(next, _)| next)
        };
        self.dropping = true;
        // The rate that controlled the queue the last time is where to start, if that was not long ago. `drop_next` may
        // still be ahead: then it was not.
        let delta = self.count.saturating_sub(self.lastcount);
        let recent = now.saturating_since(self.drop_next) < law.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.lastcount = self.count;
        self.drop_next = law.next(now, self.count);
        next
    }

    /// Counts `dropped` packets given up for lack of room: the signal is strengthened as if CoDel had dropped them (as
    /// Linux; RFC 8290 leaves this open).
    pub fn overflowed(&mut self, dropped: u32) {
        self.count = self.count.saturating_add(dropped);
    }
}

impl Codel {
    /// Makes an empty queue.
    pub fn new(spec: &CodelSpec) -> Self {
        let law =
            Law { target: spec.target, interval: spec.interval, ecn: spec.ecn, mtu: u64::from(spec.mtu) };
        Codel { limit: spec.limit, fifo: Fifo::default(), control: Control::default(), law }
    }
}

impl Queue for Codel {
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
        now: Instant,
        _transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        self.control.pop(now, &mut self.fifo, &self.law, drop)
    }

    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }

    fn set_ecn(&mut self, ecn: bool) -> bool {
        self.law.ecn = ecn;
        true
    }

    fn take(&mut self) -> Option<QueuedPacket> {
        self.fifo.pop()
    }

    #[inline]
    fn depth(&self) -> QueueDepth {
        self.fifo.depth()
    }
}
