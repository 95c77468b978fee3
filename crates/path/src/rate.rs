//! Transmission at a rate, exact to the bit: no rounding adds up, whatever the rate does meanwhile.

use streamgauge_base::{BitRate, Duration, Instant};

use crate::error::Problem;
use crate::schedule::{Schedule, ascending};
use crate::spec::RateSpec;
use crate::stage::Change;

/// Bits times 10^9 in a byte: the unit in which a rate in bit/s counts work per nanosecond.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// A transmitter that sends one packet at a time.
///
/// A transmission ends on a whole nanosecond, rounded up. The work that fits into what rounding added is
/// credited to the next packet if that follows at once, so a busy period of N bytes lasts 8 N / rate, rounded
/// up once.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    /// Work left at `since`, in nanobits. IP packets have at most 64 KiB, so 64 bits are plenty.
    remaining: u64,
    since: Instant,
    ends: Instant,
    /// Work done ahead for the next packet when this one ends.
    credit: u64,
}

impl Transmitter {
    pub fn new(rate: BitRate) -> Self {
        Transmitter { rate, remaining: 0, since: Instant::ZERO, ends: Instant::FAR_FUTURE, credit: 0 }
    }

    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// When the current transmission ends: `FAR_FUTURE` while idle or at rate zero.
    pub fn ends(&self) -> Instant {
        self.ends
    }

    /// Starts on `bytes` at `now`. If the last transmission ended just now, what rounding left over counts.
    pub fn start(&mut self, now: Instant, bytes: u32) {
        let work = u64::from(bytes) * NANOBITS_PER_BYTE;
        self.remaining = work.saturating_sub(self.credit);
        self.credit = self.credit.saturating_sub(work);
        self.since = now;
        self.schedule_end();
    }

    /// Nothing to send after the transmission that ended: the link's idle time is lost.
    pub fn idle(&mut self) {
        self.credit = 0;
        self.ends = Instant::FAR_FUTURE;
    }

    /// From `now` on, `rate`; the bits not yet sent go at it.
    pub fn set_rate(&mut self, now: Instant, rate: BitRate, sending: bool) {
        if sending {
            let done = self.rate.nanobits_in(now.saturating_since(self.since));
            self.remaining = u64::try_from(done).map_or(0, |done| self.remaining.saturating_sub(done));
            self.since = now;
        }
        self.rate = rate;
        if sending {
            self.credit = 0;
            self.schedule_end();
        }
    }

    fn schedule_end(&mut self) {
        if self.remaining == 0 {
            self.ends = self.since;
            return;
        }
        let rate = self.rate.as_bps();
        let Some(whole) = self.remaining.checked_div(rate) else {
            self.ends = Instant::FAR_FUTURE;
            return;
        };
        let rest = self.remaining % rate;
        let up = rest != 0;
        self.ends = self.since + Duration::from_nanos(whole + u64::from(up));
        self.credit = if up { rate - rest } else { 0 };
    }
}

impl RateSpec {
    /// The rate at time zero.
    pub fn initial(&self) -> BitRate {
        match self {
            RateSpec::Constant(rate) => *rate,
            RateSpec::Steps(steps) => steps.first().map_or(BitRate::from_bps(0), |&(_, rate)| rate),
            RateSpec::Square { first, .. } => *first,
        }
    }

    /// Every rate it ever takes, in order of first use.
    pub fn rates(&self) -> Vec<BitRate> {
        match self {
            RateSpec::Constant(rate) => vec![*rate],
            RateSpec::Steps(steps) => steps.iter().map(|&(_, rate)| rate).collect(),
            RateSpec::Square { first, second, .. } => vec![*first, *second],
        }
    }

    /// The rate at time zero and every change after it.
    pub(crate) fn schedule(&self) -> Schedule {
        match self {
            RateSpec::Constant(rate) => Schedule::once(Change::Rate(*rate)),
            RateSpec::Steps(steps) => {
                Schedule::listed(steps.iter().map(|&(at, rate)| (at, Change::Rate(rate))))
            }
            RateSpec::Square { first, second, period } => {
                Schedule::alternating(Change::Rate(*first), Change::Rate(*second), *period)
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self {
            RateSpec::Constant(_) => {}
            RateSpec::Steps(steps) => {
                let &(first, _) = steps.first().ok_or(Problem::NoSteps)?;
                if first != Duration::ZERO {
                    return Err(Problem::FirstStepLate(first));
                }
                ascending("rate", steps)?;
            }
            RateSpec::Square { period, .. } if period.as_nanos() < 2 => return Err(Problem::Period(*period)),
            RateSpec::Square { .. } => {}
        }
        if self.rates().iter().all(|rate| rate.as_bps() == 0) {
            return Err(Problem::NoRate);
        }
        Ok(())
    }
}
