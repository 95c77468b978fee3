//! The adaptive jitter buffer: how long after its capture a frame is shown.
//!
//! Frames are shown after the least recent transit time, plus the 95th percentile of the excess over it. It
//! grows at once and shrinks by 100 ms in a second, as libwebrtc's does (branch 7204, its timing). The basis
//! of the buffer is ours: libwebrtc estimates the jitter by a Kalman filter.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

/// Frames that are remembered: 10 s at 30 frames/s.
const WINDOW: usize = 300;
/// The share of frames that are to be in time, of a hundred.
const SHARE: usize = 95;
/// The most that the delay shrinks by, of the time that passes.
const SHRINKS: f64 = 0.1;

#[derive(Clone, Debug, Default)]
pub(super) struct PlayoutDelay {
    least: Duration,
    most: Duration,
    /// How long the last frames took from their capture until they were whole, ns.
    took: VecDeque<i64>,
    base: i64,
    delay: f64,
    changed: Option<Instant>,
}

impl PlayoutDelay {
    pub fn new(least: Duration, most: Duration) -> Self {
        PlayoutDelay { least, most, ..PlayoutDelay::default() }
    }

    /// Returns the delay beyond the least transit time.
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay as u64)
    }

    /// Returns when a frame is due.
    pub fn due(&self, captured: Instant) -> Instant {
        let ns = i64::try_from(captured.as_nanos()).unwrap_or(i64::MAX);
        let at = ns.saturating_add(self.base).saturating_add(self.delay as i64);
        Instant::from_nanos(u64::try_from(at).unwrap_or(0))
    }

    /// Notes that a frame is whole.
    pub fn whole(&mut self, now: Instant, captured: Instant) {
        // The difference of two clocks: it may be below zero.
        let took = now.as_nanos().wrapping_sub(captured.as_nanos()).cast_signed();
        self.took.push_back(took);
        if self.took.len() > WINDOW {
            self.took.pop_front();
        }
        let mut sorted: Vec<i64> = self.took.iter().copied().collect();
        let place = (sorted.len() - 1) * SHARE / 100;
        let (_, late, _) = sorted.select_nth_unstable(place);
        let late = *late;
        self.base = self.took.iter().copied().min().unwrap_or(took);
        let wanted = (late.saturating_sub(self.base) as f64 + self.least.as_nanos() as f64)
            .min(self.most.as_nanos() as f64);
        let since = self.changed.replace(now).map_or(0.0, |at| now.saturating_since(at).as_nanos() as f64);
        self.delay = wanted.max(self.delay - SHRINKS * since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn it_grows_at_once_and_shrinks_by_a_tenth_of_the_time() {
        let ms = Duration::from_millis;
        let mut delay = PlayoutDelay::new(ms(10), ms(10_000));
        for frame in 0..20 {
            delay.whole(at(33 * frame + 50), at(33 * frame));
        }
        assert_eq!((delay.delay(), delay.due(at(1_000))), (ms(10), at(1_060)));
        for frame in 20..23 {
            delay.whole(at(33 * frame + 150), at(33 * frame));
        }
        assert_eq!(delay.delay(), ms(110));
        // 300 frames later these are forgotten; the delay shrinks as soon as they are few.
        let before = delay.delay();
        for frame in 23..80 {
            delay.whole(at(33 * frame + 50), at(33 * frame));
        }
        assert!(delay.delay() < before && delay.delay() >= ms(10));
    }

    #[test]
    fn it_has_bounds() {
        let ms = Duration::from_millis;
        let mut delay = PlayoutDelay::new(ms(20), ms(100));
        delay.whole(at(50), at(0));
        for frame in 1..10 {
            delay.whole(at(5_000), at(33 * frame));
        }
        assert_eq!(delay.delay(), ms(100));
    }
}
