//! How long a page in a browser takes where no bytes move, drawn by the player's seed.

use streamgauge_base::{Duration, Instant, RandomStream};

use super::DashPlayer;
use super::exchange::What;

/// The page's delay in reading stays the same for this long, then it is drawn again, as its other work changes.
const BUSY: Duration = Duration::from_millis(100);

/// Draws a page's times.
pub struct Page {
    draws: RandomStream,
    /// How late it reads now, and until when.
    late: Option<(Duration, Instant)>,
}

impl Page {
    /// A page in a session with that seed.
    pub fn new(seed: u64) -> Self {
        Page { draws: RandomStream::named(seed, "page", "times"), late: None }
    }

    /// The delay of its current reading.
    fn lateness(&mut self, now: Instant, quantiles: &[Duration]) -> Duration {
        let known = self.late.filter(|(_, until)| now < *until);
        let (late, until) = known.unwrap_or_else(|| (self.draw(quantiles), now + BUSY));
        self.late = Some((late, until));
        late
    }

    /// A time of the distribution that has these quantiles at evenly spaced probabilities; between two of them all are equally
    /// likely. None at all is no time.
    pub fn draw(&mut self, quantiles: &[Duration]) -> Duration {
        let gaps = quantiles.len().saturating_sub(1) as u64;
        if gaps == 0 {
            return quantiles.first().copied().unwrap_or(Duration::ZERO);
        }
        let drawn = self.draws.below(gaps << 32);
        let (gap, share) = ((drawn >> 32) as usize, drawn & 0xffff_ffff);
        let (low, high) = (quantiles[gap], quantiles[gap + 1]);
        let more = (u128::from(high.saturating_sub(low).as_nanos()) * u128::from(share)) >> 32;
        low + Duration::from_nanos(more as u64)
    }
}

impl DashPlayer {
    /// Reads, if due, the received bytes of the segment at a line's front.
    pub(super) fn page_reads(&mut self, now: Instant, line: usize) {
        let Some(exchange) = self.lines[line].exchanges.front_mut() else { return };
        let What::Segment(track, ..) = exchange.what else { return };
        let is_first = !self.tracks[track].has_appended;
        let quantiles = if is_first { &self.settings.first_read } else { &self.settings.read };
        if quantiles.is_empty() || exchange.reads.is_some_and(|at| at <= now) {
            (exchange.read, exchange.reads) = (exchange.bytes, None);
        } else if exchange.read < exchange.bytes && exchange.reads.is_none() {
            exchange.reads = Some(now + self.page.lateness(now, quantiles));
        }
    }

    /// How much later than its last byte the page has read a segment.
    pub(super) fn late_at_end(&mut self, now: Instant, track: usize) -> Duration {
        let one = &self.tracks[track];
        let quantiles = if one.has_appended { &self.settings.read } else { &self.settings.first_read };
        self.page.lateness(now, quantiles).min(one.append_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: &[u64]) -> Vec<Duration> {
        ms.iter().map(|one| Duration::from_millis(*one)).collect()
    }

    #[test]
    fn one_time_is_always_drawn_and_none_is_no_time() {
        let mut page = Page::new(1);
        for _ in 0..100 {
            assert_eq!((page.draw(&[]), page.draw(&ms(&[7]))), (Duration::ZERO, Duration::from_millis(7)));
        }
    }

    /// A fifth of all lies between two neighbours of six quantiles; 5 standard deviations of 10,000 draws are 2 %.
    #[test]
    fn as_many_lie_between_two_quantiles_as_between_the_next_two() {
        let quantiles = ms(&[3, 4, 5, 9, 20, 100]);
        let mut page = Page::new(2);
        let drawn: Vec<Duration> = (0..10_000).map(|_| page.draw(&quantiles)).collect();
        for pair in quantiles.windows(2) {
            let within = drawn.iter().filter(|time| pair[0] <= **time && **time < pair[1]).count();
            assert!((1_800..=2_200).contains(&within), "{pair:?}: {within}");
        }
    }
}
