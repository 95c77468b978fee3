//! Transmission at a rate, exact to the bit: no rounding adds up, even if the rate changes meanwhile.

use streamgauge_base::{BitRate, Duration, Instant};

use super::NANOBITS_PER_BYTE;

/// A transmitter that sends one packet at a time.
///
/// A transmission ends on a whole nanosecond, rounded up. The work that fits into the time added by rounding is
/// credited to the next packet if that follows at once, so a busy period of N bytes lasts 8 N / rate, rounded up once.
#[derive(Clone, Debug, Default)]
pub struct Serial {
    /// Work left at `since`, in nanobits. IP packets have at most 64 KiB, so 64 bits are plenty.
    remaining: u64,
    since: Instant,
    /// Work done ahead for the next packet when this one ends.
    credit: u64,
}

impl Serial {
    /// Starts on `bytes` at `now`. If the last transmission ended just now, the rest from rounding counts.
    #[inline]
    pub fn start(&mut self, now: Instant, bytes: u32, rate: BitRate) -> Instant {
        let work = u64::from(bytes) * NANOBITS_PER_BYTE;
        self.remaining = work.saturating_sub(self.credit);
        self.credit = self.credit.saturating_sub(work);
        self.since = now;
        self.end(rate)
    }

    /// Notes that there is nothing to send after the transmission that ended: the link's idle time is lost.
    #[inline]
    pub fn idle(&mut self) {
        self.credit = 0;
    }

    /// Sets the rate to `new` from `now` on; the bits not yet sent leave at it. The new end, if something is being
    /// sent.
    pub fn set_rate(&mut self, now: Instant, old: BitRate, new: BitRate, sending: bool) -> Option<Instant> {
        if !sending {
            return None;
        }
        let done = old.nanobits_in(now.saturating_since(self.since));
        self.remaining = u64::try_from(done).map_or(0, |done| self.remaining.saturating_sub(done));
        self.since = now;
        self.credit = 0;
        Some(self.end(new))
    }

    #[inline]
    fn end(&mut self, rate: BitRate) -> Instant {
        if self.remaining == 0 {
            return self.since;
        }
        let rate = rate.as_bps();
        let Some(whole) = self.remaining.checked_div(rate) else {
            return Instant::FAR_FUTURE;
        };
        let rest = self.remaining % rate;
        let up = rest != 0;
        self.credit = if up { rate - rest } else { 0 };
        self.since + Duration::from_nanos(whole + u64::from(up))
    }
}
