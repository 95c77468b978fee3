//! PIE: drops arrivals at random, with a probability that a proportional integral controller sets (RFC 8033).
//!
//! The implemented optional parts of the RFC: ECN (section 5.1), both ways of finding the delay (4.3 and 5.2),
//! de-randomisation (5.4) and the cap on the adjustment (5.5). It is always on: the switch of section 5.3 saves a
//! router work that a model need not save.

use streamgauge_base::{Cause, Duration, Instant, QueueDepth, RandomStream};

use crate::fifo::Fifo;
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::{Limit, PieDelay, PieSpec};
use crate::ticks::Ticks;

/// DQ_THRESHOLD, bytes of a measurement of the departure rate (RFC 8033 section 5.2).
const DQ_THRESHOLD: u64 = 1 << 14;

/// A FIFO with PIE, which drops or marks arrivals.
#[derive(Clone, Debug)]
pub struct Pie {
    limit: Limit,
    fifo: Fifo,
    control: Control,
    random: RandomStream,
    ticks: Ticks,
}

/// The controller and its state, in the RFC's names. Delays in seconds.
#[derive(Clone, Debug)]
struct Control {
    spec: PieSpec,
    target: f64,
    drop_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: Duration,
    accu_prob: f64,
    departures: Departures,
}

/// Cycles of measuring the departure rate.
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    /// Time when the cycle began and the bytes that have left since; `None` between two.
    cycle: Option<(Instant, u64)>,
    /// Mean time, s, in which DQ_THRESHOLD bytes leave.
    avg_dq_time: Option<f64>,
}

/// How the adjustment is scaled down at a low probability: below the first, multiply by the second (section
/// 4.2). Powers of two, so that scaling is exact.
const TUNING: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];

impl Control {
    fn new(spec: &PieSpec) -> Self {
        Control {
            spec: spec.clone(),
            target: spec.target.as_secs_f64(),
            drop_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: spec.max_burst,
            accu_prob: 0.0,
            departures: Departures::default(),
        }
    }

    /// Performs one update (RFC 8033 section 4.2, with the cap of section 5.5) of a queue of `bytes`.
    fn update(&mut self, bytes: u64) {
        if self.spec.delay == PieDelay::DepartureRate {
            // Little's law; no measurement yet means that no queue has been long enough for one.
            let avg = self.departures.avg_dq_time.unwrap_or(0.0);
            self.current_qdelay = bytes as f64 * avg / DQ_THRESHOLD as f64;
        }
        let mut p = self.spec.alpha * (self.current_qdelay - self.target)
            + self.spec.beta * (self.current_qdelay - self.qdelay_old);
        if let Some(&(_, scale)) = TUNING.iter().find(|&&(below, _)| self.drop_prob < below) {
            p *= scale;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        // Beyond 250 ms it rises by 2 % more, as in RFC 8034's PIE and Linux's: the delay is out of control.
        if self.current_qdelay > 0.25 {
            p += 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.spec.update);
    }

    /// Returns whether further updates, while `bytes` wait, would change nothing.
    fn rests(&self, bytes: u64) -> bool {
        (bytes == 0 || self.spec.delay == PieDelay::Timestamps)
            && self.drop_prob == 0.0
            && self.current_qdelay == 0.0
            && self.qdelay_old == 0.0
            && self.burst_allowance == Duration::ZERO
    }

    /// Returns whether an arrival at a queue of `bytes` is to be dropped or marked (section 4.1, with section 5.4).
    fn drops(&mut self, bytes: u64, random: &mut RandomStream) -> bool {
        if self.drop_prob == 0.0 && self.is_low(self.current_qdelay) && self.is_low(self.qdelay_old) {
            self.burst_allowance = self.spec.max_burst;
        }
        if self.burst_allowance > Duration::ZERO {
            return false;
        }
        // This keeps PIE work-conserving.
        if self.is_low(self.qdelay_old) && self.drop_prob < 0.2 {
            return false;
        }
        if bytes <= 2 * u64::from(self.spec.mean_packet) {
            return false;
        }
        if self.spec.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        random.chance(RandomStream::threshold(self.drop_prob))
    }

    fn is_low(&self, delay: f64) -> bool {
        delay < self.target / 2.0
    }
}

impl Departures {
    /// Notes that `packet` leaves a queue, in which `left` bytes remain (RFC 8033 section 5.2).
    fn departed(&mut self, now: Instant, packet: u32, left: u64) {
        if self.cycle.is_none() && left >= DQ_THRESHOLD {
            self.cycle = Some((now, 0));
        }
        let Some((start, count)) = &mut self.cycle else { return };
        *count += u64::from(packet);
        if *count < DQ_THRESHOLD {
            return;
        }
        let dq_time = (now - *start).as_secs_f64();
        // The weight that the RFC suggests: DQ_THRESHOLD / 2^16.
        let weight = DQ_THRESHOLD as f64 / 65_536.0;
        self.avg_dq_time = Some(match self.avg_dq_time {
            None => dq_time,
            Some(avg) => dq_time * weight + avg * (1.0 - weight),
        });
        self.cycle = None;
    }
}

impl Pie {
    /// Makes an empty queue, with drops that draw from `random`.
    pub fn new(spec: &PieSpec, random: RandomStream) -> Self {
        Pie {
            limit: spec.limit,
            fifo: Fifo::default(),
            control: Control::new(spec),
            random,
            ticks: Ticks::new(spec.update),
        }
    }

    /// Returns the drop probability as of the last event.
    pub fn drop_probability(&self) -> f64 {
        self.control.drop_prob
    }

    #[inline]
    fn catch_up(&mut self, now: Instant) {
        while self.ticks.due(now).is_some() {
            if self.control.rests(self.fifo.bytes()) {
                return self.ticks.skip(now);
            }
            self.control.update(self.fifo.bytes());
        }
    }
}

impl Queue for Pie {
    fn push(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        self.catch_up(now);
        if !self.fifo.has_room(self.limit, packet.bytes, transmit) {
            self.control.accu_prob = 0.0;
            return drop(packet, Cause::QueueFull);
        }
        if self.control.drops(self.fifo.bytes(), &mut self.random) {
            self.control.accu_prob = 0.0;
            let Control { spec, drop_prob, .. } = &self.control;
            if !(spec.ecn && *drop_prob <= spec.mark_below && packet.mark()) {
                return drop(packet, Cause::Aqm);
            }
        }
        self.fifo.push(packet);
    }

    fn pop(
        &mut self,
        now: Instant,
        _transmit: &TransmitState,
        _drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        match self.control.spec.delay {
            // Nothing behind it: no queue, as Linux.
            PieDelay::Timestamps if self.fifo.is_empty() => self.control.current_qdelay = 0.0,
            PieDelay::Timestamps => self.control.current_qdelay = (now - packet.t_in).as_secs_f64(),
            PieDelay::DepartureRate => {
                self.control.departures.departed(now, packet.bytes, self.fifo.bytes());
            }
        }
        Some(packet)
    }

    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }

    fn set_ecn(&mut self, ecn: bool) -> bool {
        self.control.spec.ecn = ecn;
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
