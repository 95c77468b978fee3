//! DualPI2: two coupled queues, one for L4S traffic and one for the rest (RFC 9332 appendix A).

use streamgauge_base::{Cause, Duration, Ecn, Instant, QueueDepth};

use crate::fifo::{Fifo, depth};
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::{DualScheduler, Dualpi2Spec, L4sMarking, Limit};
use crate::ticks::Ticks;

/// An L4S queue for ECT(1) and CE, a classic queue for the rest, and the controller that couples them.
#[derive(Clone, Debug)]
pub struct Dualpi2 {
    spec: Dualpi2Spec,
    l4s: Half,
    classic: Half,
    /// p', the base probability.
    base: f64,
    /// The delay, s, at the last update.
    prevq: f64,
    /// Bytes that the L4S queue has sent beyond its share, in hundredths. Positive: it is the classic queue's turn.
    owed: i64,
    ticks: Ticks,
}

/// One of the two queues.
#[derive(Clone, Debug, Default)]
struct Half {
    fifo: Fifo,
    /// The probability that has added up since the last signal.
    count: f64,
}

impl Half {
    /// Returns true for a share `likelihood` of calls, evenly spaced (RFC 9332 appendix A.1: `recur`).
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let due = self.count > 1.0;
        if due {
            self.count -= 1.0;
        }
        due
    }

    /// Returns how long its head has waited at `now`, s; 0 if it is empty.
    fn delay(&self, now: Instant) -> f64 {
        self.fifo.head().map_or(0.0, |head| (now - head.t_in).as_secs_f64())
    }
}

impl Dualpi2 {
    /// Makes two empty queues.
    pub fn new(spec: &Dualpi2Spec) -> Self {
        Dualpi2 {
            l4s: Half::default(),
            classic: Half::default(),
            base: 0.0,
            prevq: 0.0,
            owed: 0,
            ticks: Ticks::new(spec.update),
            spec: spec.clone(),
        }
    }

    /// Returns p', the base probability, as of the last event.
    pub fn base_probability(&self) -> f64 {
        self.base
    }

    /// Returns p_C, the probability that a classic packet is dropped or marked: the square of the base probability.
    pub fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// Returns p_CL, the least probability that an L4S packet is marked: the base probability times the coupling
    /// factor.
    pub fn coupled_probability(&self) -> f64 {
        self.spec.coupling * self.base
    }

    /// Performs the updates due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        while let Some(at) = self.ticks.due(now) {
            // The longer of the two delays, as in appendix A.2 and in Linux: an L4S queue that does not answer
            // to marks must drive the probability up to the overload too.
            let curq = self.classic.delay(at).max(self.l4s.delay(at));
            let idle = curq == 0.0 && self.prevq == 0.0 && self.base == 0.0;
            if idle && self.packets() == 0 {
                return self.ticks.skip(now);
            }
            let target = self.spec.target.as_secs_f64();
            let change = self.spec.alpha * (curq - target) + self.spec.beta * (curq - self.prevq);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }

    fn packets(&self) -> u64 {
        self.l4s.fifo.packets() + self.classic.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.l4s.fifo.bytes() + self.classic.fifo.bytes()
    }

    /// Returns whether the L4S queue is to be served; one of the two is not empty.
    fn serves_l4s(&self) -> bool {
        let (Some(l4s), Some(classic)) = (self.l4s.fifo.head(), self.classic.fifo.head()) else {
            return !self.l4s.fifo.is_empty();
        };
        match self.spec.scheduler {
            DualScheduler::Weighted { .. } => self.owed <= 0,
            DualScheduler::TimeShifted { shift } => l4s.t_in <= classic.t_in + shift,
        }
    }

    /// Keeps the account of the round robin after `bytes` of the L4S or the classic queue have been served.
    fn charge(&mut self, l4s: bool, bytes: u32) {
        let DualScheduler::Weighted { classic_percent } = self.spec.scheduler else { return };
        // Without competition no queue owes anything.
        if self.l4s.fifo.is_empty() || self.classic.fifo.is_empty() {
            self.owed = 0;
            return;
        }
        let classic = i64::from(classic_percent);
        self.owed += if l4s { classic } else { classic - 100 } * i64::from(bytes);
    }

    /// Returns the L4S queue's own probability for a packet that has waited for `delay`.
    fn native(&self, delay: Duration) -> f64 {
        // The packet has been removed already.
        if self.l4s.fifo.packets() < u64::from(self.spec.l4s_packets) {
            return 0.0;
        }
        match self.spec.l4s {
            L4sMarking::Step(step) => f64::from(u8::from(delay >= step)),
            L4sMarking::Ramp { min, range } => {
                let above = delay.saturating_sub(min).as_nanos() as f64;
                (above / range.as_nanos() as f64).min(1.0)
            }
        }
    }

    /// Returns whether an L4S packet passes, marked or not (RFC 9332 appendix A.2).
    fn passes_l4s(&mut self, now: Instant, packet: &mut QueuedPacket) -> bool {
        let (classic, coupled) = (self.classic_probability(), self.coupled_probability());
        if coupled < 1.0 {
            let likelihood = self.native(now - packet.t_in).max(coupled);
            if self.l4s.recur(likelihood) {
                packet.mark();
            }
            return true;
        }
        // Overload: marks alone no longer suffice, so the classic drop returns, and all the others are marked.
        if self.l4s.recur(classic) {
            return false;
        }
        if self.l4s.recur(coupled.min(1.0)) {
            packet.mark();
        }
        true
    }

    /// Returns whether a classic packet passes, marked or not.
    fn passes_classic(&mut self, packet: &mut QueuedPacket) -> bool {
        let classic = self.classic_probability();
        // p_Cmax, where the coupled probability reaches 1: beyond it ECN no longer spares a packet.
        let highest = (1.0 / (self.spec.coupling * self.spec.coupling)).min(1.0);
        !self.classic.recur(classic) || (self.spec.ecn && classic < highest && packet.mark())
    }
}

impl Queue for Dualpi2 {
    fn push(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        self.catch_up(now);
        if !self.spec.limit.holds(self.packets() + 1, self.bytes() + u64::from(packet.bytes), transmit) {
            return drop(packet, Cause::QueueFull);
        }
        match packet.item.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.fifo.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.fifo.push(packet),
        }
    }

    fn pop(
        &mut self,
        now: Instant,
        _transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        self.catch_up(now);
        loop {
            let l4s = self.serves_l4s();
            let half = if l4s { &mut self.l4s } else { &mut self.classic };
            let mut packet = half.fifo.pop()?;
            let passes =
                if l4s { self.passes_l4s(now, &mut packet) } else { self.passes_classic(&mut packet) };
            if passes {
                self.charge(l4s, packet.bytes);
                return Some(packet);
            }
            drop(packet, Cause::Aqm);
        }
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
        self.l4s.fifo.pop().or_else(|| self.classic.fifo.pop())
    }

    fn depth(&self) -> QueueDepth {
        depth(self.packets(), self.bytes())
    }
}
