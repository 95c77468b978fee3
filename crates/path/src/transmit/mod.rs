//! The part of a bottleneck that removes packets from its queue and sends them: at a rate (serial), as tokens allow, as
//! a class of CBQ, when a program wakes, or at the times of a trace.

mod cbq;
mod opportunities;
mod serial;
mod sleeping;
mod token_bucket;

use streamgauge_base::{BitRate, Instant};

use crate::spec::{RateSpec, ShaperSpec};
use cbq::Cbq;
use opportunities::Opportunities;
use serial::Serial;
use sleeping::Sleeping;
use token_bucket::TokenBucket;

/// Bits times 10^9 in a byte: the unit in which a rate in bit/s counts work per nanosecond.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// Holds at most one packet, the next one, from `start` until it has left at `ends`.
///
/// The fields that every packet reads are outside the kinds.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    ends: Instant,
    longest: u32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Serial(Serial),
    TokenBucket(TokenBucket),
    Cbq(Box<Cbq>),
    Sleeping(Sleeping),
    Opportunities(Box<Opportunities>),
}

impl Transmitter {
    /// Sends one packet at a time at `rate`.
    pub fn serial(rate: BitRate) -> Self {
        Transmitter::of(rate, Kind::Serial(Serial::default()))
    }

    /// Makes the transmitter of the specification; a trace is its own transmitter.
    pub fn new(rate: &RateSpec, shaper: &ShaperSpec) -> Self {
        let initial = rate.initial();
        let kind = match (rate, shaper) {
            (RateSpec::Opportunities(trace), _) => Kind::Opportunities(Box::new(Opportunities::new(trace))),
            (_, ShaperSpec::Serial) => Kind::Serial(Serial::default()),
            (_, ShaperSpec::TokenBucket(spec)) => Kind::TokenBucket(TokenBucket::new(spec)),
            (_, ShaperSpec::Cbq(spec)) => Kind::Cbq(Box::new(Cbq::new(spec, initial))),
            (_, ShaperSpec::Sleeping(spec)) => Kind::Sleeping(Sleeping::new(spec)),
        };
        Transmitter::of(initial, kind)
    }

    fn of(rate: BitRate, kind: Kind) -> Self {
        let longest = match &kind {
            Kind::TokenBucket(bucket) => bucket.longest(),
            Kind::Serial(_) | Kind::Cbq(_) | Kind::Sleeping(_) | Kind::Opportunities(_) => u32::MAX,
        };
        Transmitter { rate, ends: Instant::FAR_FUTURE, longest, kind }
    }

    /// Returns the rate in force; of a trace its mean over the period.
    #[inline]
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// Returns when the current transmission ends: `FAR_FUTURE` while idle or while nothing may leave.
    #[inline]
    pub fn ends(&self) -> Instant {
        self.ends
    }

    /// Returns the longest packet that can ever leave.
    #[inline]
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Starts on `bytes` at `now`: when the link was idle, or when the last transmission ended.
    #[inline]
    pub fn start(&mut self, now: Instant, bytes: u32) {
        self.ends = match &mut self.kind {
            Kind::Serial(serial) => serial.start(now, bytes, self.rate),
            Kind::TokenBucket(bucket) => bucket.start(now, bytes, self.rate),
            Kind::Cbq(class) => class.start(now, bytes, self.rate),
            Kind::Sleeping(program) => program.start(now, bytes, self.rate),
            Kind::Opportunities(trace) => trace.start(now, bytes),
        };
    }

    /// Notes that there is nothing to send after the transmission that ended.
    #[inline]
    pub fn idle(&mut self) {
        match &mut self.kind {
            Kind::Serial(serial) => serial.idle(),
            Kind::TokenBucket(bucket) => bucket.idle(self.ends, self.rate),
            Kind::Cbq(class) => class.idle(self.rate),
            Kind::Sleeping(_) => {}
            Kind::Opportunities(trace) => trace.idle(),
        }
        self.ends = Instant::FAR_FUTURE;
    }

    /// Sets the rate from `now` on. `sending`: a packet has been started and has not left.
    pub fn set_rate(&mut self, now: Instant, rate: BitRate, sending: bool) {
        let ends = match &mut self.kind {
            Kind::Serial(serial) => serial.set_rate(now, self.rate, rate, sending),
            Kind::TokenBucket(bucket) => bucket.set_rate(now, self.rate, rate),
            Kind::Cbq(class) => {
                class.set_rate(rate);
                None
            }
            Kind::Sleeping(_) | Kind::Opportunities(_) => None,
        };
        self.rate = rate;
        self.ends = ends.unwrap_or(self.ends);
    }
}
