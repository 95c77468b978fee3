//! Rates over time, as specifications: their start, their changes and their validity.

use streamgauge_base::{BitRate, Duration};

use crate::error::StageProblem;
use crate::schedule::{Schedule, ascending};
use crate::spec::Change;
use crate::spec::{CbqSpec, Layer, OpportunitiesSpec, RateSpec, ShaperSpec, SleepingSpec, TokenBucketSpec};

impl RateSpec {
    /// Returns the rate at time zero; of a trace its mean over the period.
    pub fn initial(&self) -> BitRate {
        match self {
            RateSpec::Constant(rate) => *rate,
            RateSpec::Steps(steps) => steps.first().map_or(BitRate::from_bps(0), |&(_, rate)| rate),
            RateSpec::Square { first, .. } => *first,
            RateSpec::Opportunities(trace) => trace.mean(),
        }
    }

    /// Returns every rate it ever has, in order of first use.
    pub fn rates(&self) -> Vec<BitRate> {
        match self {
            RateSpec::Constant(rate) => vec![*rate],
            RateSpec::Steps(steps) => steps.iter().map(|&(_, rate)| rate).collect(),
            RateSpec::Square { first, second, .. } => vec![*first, *second],
            RateSpec::Opportunities(trace) => vec![trace.mean()],
        }
    }

    /// Returns the rate at time zero and every change after it. A trace has its mean and no changes: an event for each
    /// opportunity would only repeat the trace.
    pub(crate) fn schedule(&self) -> Schedule {
        match self {
            RateSpec::Constant(rate) => Schedule::once(Change::Rate(*rate)),
            RateSpec::Steps(steps) => {
                Schedule::listed(steps.iter().map(|&(at, rate)| (at, Change::Rate(rate))))
            }
            RateSpec::Square { first, second, period } => {
                Schedule::alternating(Change::Rate(*first), Change::Rate(*second), *period)
            }
            RateSpec::Opportunities(trace) => Schedule::once(Change::Rate(trace.mean())),
        }
    }

    pub(crate) fn check(&self) -> Result<(), StageProblem> {
        match self {
            RateSpec::Constant(_) => {}
            RateSpec::Steps(steps) => {
                let &(first, _) = steps.first().ok_or(StageProblem::NoSteps)?;
                if first != Duration::ZERO {
                    return Err(StageProblem::FirstStepLate(first));
                }
                ascending("rate", steps)?;
            }
            RateSpec::Square { period, .. } if period.as_nanos() < 2 => {
                return Err(StageProblem::Period(*period));
            }
            RateSpec::Square { .. } => {}
            RateSpec::Opportunities(trace) => return trace.check(),
        }
        if self.rates().iter().all(|rate| rate.as_bps() == 0) {
            return Err(StageProblem::NoRate);
        }
        Ok(())
    }
}

impl OpportunitiesSpec {
    /// Returns the bytes that it can carry in a period, by the period: rounded down to a bit/s, but never none.
    pub fn mean(&self) -> BitRate {
        let bits = self.times.len() as u128 * u128::from(self.bytes) * 8_000_000_000;
        let mean = bits / u128::from(self.period.as_nanos().max(1));
        BitRate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX).max(1))
    }

    fn check(&self) -> Result<(), StageProblem> {
        let value = |key, expected: &str, given: String| Err(StageProblem::value(key, expected, given));
        if self.times.is_empty() {
            return value("rate.opportunities.times", "at least one time", "none".into());
        }
        if self.bytes == 0 {
            return value("rate.opportunities.bytes", "at least 1 byte (mahimahi's is 1504)", "0".into());
        }
        if let Some(index) = self.times.windows(2).position(|pair| pair[1] < pair[0]) {
            let (index, at) = (index + 1, self.times[index + 1]);
            return value(
                "rate.opportunities.times",
                "times that never go back",
                format!("entry {index}: {at:?}"),
            );
        }
        let last = self.times[self.times.len() - 1];
        if self.period.as_nanos() == 0 || self.period < last {
            let given = format!("{:?} where the last time is {last:?}", self.period);
            return value("rate.opportunities.period", "more than 0 and not before the last time", given);
        }
        Ok(())
    }
}

impl ShaperSpec {
    /// Returns whether it can shape `rate`, with packets of this layer.
    pub(crate) fn check(&self, rate: &RateSpec, layer: Layer) -> Result<(), StageProblem> {
        if matches!(rate, RateSpec::Opportunities(_)) && *self != ShaperSpec::Serial {
            let expected = "no other shaper beside a trace of opportunities, which is one itself";
            return Err(StageProblem::value("shaper", expected, self.name().into()));
        }
        match self {
            ShaperSpec::Serial => Ok(()),
            ShaperSpec::TokenBucket(spec) => spec.check(layer),
            ShaperSpec::Cbq(spec) => spec.check(rate),
            ShaperSpec::Sleeping(spec) => spec.check(rate),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            ShaperSpec::Serial => "serial",
            ShaperSpec::TokenBucket(_) => "token_bucket",
            ShaperSpec::Cbq(_) => "cbq",
            ShaperSpec::Sleeping(_) => "sleeping",
        }
    }
}

impl TokenBucketSpec {
    /// The largest burst, 1 GB: tokens are counted in 64 bits.
    const LARGEST: u32 = 1_000_000_000;

    fn check(&self, layer: Layer) -> Result<(), StageProblem> {
        let packet = layer.full_packet();
        if let Some(initial) = self.initial.filter(|initial| *initial > self.burst) {
            let expected = format!("at most the burst, {} bytes", self.burst);
            return Err(StageProblem::value("shaper.token_bucket.initial", &expected, initial.to_string()));
        }
        if (packet..=Self::LARGEST).contains(&self.burst) {
            return Ok(());
        }
        let expected =
            format!("{packet} (a full packet, which else could never leave) to {} bytes", Self::LARGEST);
        Err(StageProblem::value("shaper.token_bucket.burst", &expected, self.burst.to_string()))
    }
}

impl SleepingSpec {
    fn check(&self, rate: &RateSpec) -> Result<(), StageProblem> {
        let value = |key, expected: &str, given: String| Err(StageProblem::value(key, expected, given));
        if rate.rates().iter().any(|rate| rate.as_bps() == 0) {
            return value("rate", "a rate above 0", "0 bit/s (shaper sleeping)".into());
        }
        if !(1..=1_000_000_000).contains(&self.tick.as_nanos()) {
            return value("shaper.sleeping.tick", "more than 0 and at most 1 s", format!("{:?}", self.tick));
        }
        if self.late > 1000 {
            return value("shaper.sleeping.late", "at most 1000", self.late.to_string());
        }
        Ok(())
    }
}

impl CbqSpec {
    fn check(&self, rate: &RateSpec) -> Result<(), StageProblem> {
        let value = |key, expected: &str, given: String| Err(StageProblem::value(key, expected, given));
        for class in rate.rates() {
            if class.as_bps() == 0 || class >= self.device_rate {
                let expected =
                    format!("a rate above 0 and below the device's, {} bit/s", self.device_rate.as_bps());
                return value("rate", &expected, format!("{} bit/s (shaper cbq)", class.as_bps()));
            }
        }
        if !(1..=65_535).contains(&self.average_packet) {
            return value("shaper.cbq.average_packet", "1 to 65535 bytes", self.average_packet.to_string());
        }
        if !(1..=10_000).contains(&self.max_burst_packets) {
            return value("shaper.cbq.max_burst_packets", "1 to 10000", self.max_burst_packets.to_string());
        }
        if self.min_burst_packets > self.max_burst_packets {
            let expected = format!("at most max_burst_packets ({})", self.max_burst_packets);
            return value("shaper.cbq.min_burst_packets", &expected, self.min_burst_packets.to_string());
        }
        if !(1..=31).contains(&self.ewma_log) {
            return value("shaper.cbq.ewma_log", "1 to 31", self.ewma_log.to_string());
        }
        Ok(())
    }
}
