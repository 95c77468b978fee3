//! A program that sleeps for the time of a packet's bits, and wakes when its machine's clock ticks.
//!
//! Shapers in user space did that: they hand on a packet, sleep for its time at the rate, and look at the next. Before
//! Linux 2.6.21, and on machines without high-resolution timers after it, no sleep ends between two ticks of the
//! kernel's clock (time(7), "High-resolution timers"): 10 ms apart up to 2.4, 4 ms by default since 2.6.13. A sleep is
//! a number of whole ticks from the tick before it, and never shorter than requested. Linux's nanosleep counted one
//! tick more until 2.6.15 (`sys_nanosleep`, kernel/timer.c): there `late` is 1.
//!
//! The effect on a rate: each packet costs up to `1 + late` ticks more than its bits, so that the rate is missed by the
//! more the shorter packets are, and the higher the rate is.

use streamgauge_base::{BitRate, Duration, Instant};

use super::NANOBITS_PER_BYTE;
use crate::spec::SleepingSpec;

/// The program. A wait that has begun is not changed by a new rate: it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Sleeping {
    tick: u64,
    late: u64,
}

impl Sleeping {
    pub fn new(spec: &SleepingSpec) -> Self {
        Sleeping { tick: spec.tick.as_nanos(), late: u64::from(spec.late) }
    }

    /// Returns when it wakes after it falls asleep at `now` for the time that `bytes` need at `rate`, which is not 0.
    pub fn start(&self, now: Instant, bytes: u32, rate: BitRate) -> Instant {
        let asked = (u64::from(bytes) * NANOBITS_PER_BYTE).div_ceil(rate.as_bps().max(1));
        let now = now.as_nanos();
        let counted = now / self.tick + asked.div_ceil(self.tick) + self.late;
        let least = now.saturating_add(asked).div_ceil(self.tick);
        Instant::ZERO + Duration::from_nanos(counted.max(least).saturating_mul(self.tick))
    }
}
