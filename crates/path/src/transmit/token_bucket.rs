//! A token bucket, as Linux's `tc tbf` without a peak rate (tc-tbf(8)).

use streamgauge_base::{BitRate, Duration, Instant};

use super::NANOBITS_PER_BYTE;
use crate::spec::TokenBucketSpec;

/// Tokens arrive at the rate and up to the burst; a packet uses as many as it has bytes and leaves, whole, at the
/// instant there are enough. The bucket starts full by default.
///
/// Tokens are counted in nanobits, so none is lost to rounding: over any window of length t at a constant rate,
/// no more than burst + rate t leaves.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    burst: u64,
    /// At `since`, the packet in hand not yet subtracted.
    tokens: u64,
    since: Instant,
    /// Tokens for the packet in hand; 0 for none.
    need: u64,
}

impl TokenBucket {
    pub fn new(spec: &TokenBucketSpec) -> Self {
        let burst = u64::from(spec.burst) * NANOBITS_PER_BYTE;
        let tokens = u64::from(spec.initial.unwrap_or(spec.burst)) * NANOBITS_PER_BYTE;
        TokenBucket { burst, tokens: tokens.min(burst), since: Instant::ZERO, need: 0 }
    }

    /// Returns the longest packet that fits into the bucket.
    pub fn longest(&self) -> u32 {
        u32::try_from(self.burst / NANOBITS_PER_BYTE).unwrap_or(u32::MAX)
    }

    pub fn start(&mut self, now: Instant, bytes: u32, rate: BitRate) -> Instant {
        self.leave(now, rate);
        self.need = u64::from(bytes) * NANOBITS_PER_BYTE;
        self.end(rate)
    }

    /// Notes that the packet in hand left at `at`, and nothing follows.
    pub fn idle(&mut self, at: Instant, rate: BitRate) {
        if self.need > 0 {
            self.leave(at, rate);
        }
    }

    /// Sets the rate of tokens to `new` from `now` on. The new end, if a packet waits for them.
    pub fn set_rate(&mut self, now: Instant, old: BitRate, new: BitRate) -> Option<Instant> {
        self.fill(now, old);
        (self.need > 0).then(|| self.end(new))
    }

    fn leave(&mut self, at: Instant, rate: BitRate) {
        self.fill(at, rate);
        self.tokens = self.tokens.saturating_sub(self.need);
        self.need = 0;
    }

    fn fill(&mut self, to: Instant, rate: BitRate) {
        let come = rate.nanobits_in(to.saturating_since(self.since));
        let come = u64::try_from(come).unwrap_or(u64::MAX);
        self.tokens = self.tokens.saturating_add(come).min(self.burst);
        self.since = to.max(self.since);
    }

    fn end(&self, rate: BitRate) -> Instant {
        match (self.need.saturating_sub(self.tokens), rate.as_bps()) {
            (0, _) => self.since,
            (_, 0) => Instant::FAR_FUTURE,
            (missing, rate) => self.since + Duration::from_nanos(missing.div_ceil(rate)),
        }
    }
}
