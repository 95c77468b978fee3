//! GStreamer's DASH client.

use streamgauge_base::Duration;

use super::recent::Recent;
use super::{Decision, Fetched, Rule, Situation, Tuning};

/// Segments that the mean is over.
const SEGMENTS: usize = 3;
/// The property `bandwidth-target-ratio`.
const SHARE: f64 = 0.8;

/// GStreamer's dashdemux2 (defaults of 1.22): 0.8 of the lower of the last segment's rate and the mean of three, before each segment;
/// the lowest level first. A segment is timed from its first byte to its last; where that is less than twice the time to
/// the first byte, this is added (recalled, not read again).
pub struct GStreamer {
    throughput: Recent,
    initial_bps: Option<f64>,
    share: f64,
}

impl GStreamer {
    /// Without history.
    pub fn new(tuning: &Tuning) -> Self {
        GStreamer {
            throughput: Recent::new(SEGMENTS),
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(SHARE),
        }
    }
}

impl Rule for GStreamer {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let history = self.throughput.mean().zip(self.throughput.last());
        let Some((mean, last)) = history.or(self.initial_bps.map(|bps| (bps, bps))) else {
            return Decision::at_once(0, None, "nothing came yet: the lowest");
        };
        let bps = mean.min(last);
        let why = format!(
            "{:.0} % of the lower of {:.0} kbit/s, the last segment's, and {:.0} kbit/s, the mean of {}",
            self.share * 100.0,
            last / 1e3,
            mean / 1e3,
            self.throughput.len(),
        );
        Decision::at_once(now.ladder.at_most(self.share * bps), bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        let latency = fetched.first_byte.saturating_sub(fetched.asked);
        let took = fetched.done.saturating_sub(fetched.first_byte);
        let counted = if took < latency * 2 { took + latency } else { took };
        self.throughput.push(fetched.bytes as f64 * 8.0 / counted.max(Duration::from_nanos(1)).as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, start};
    use super::*;

    /// 2000 kbit in 1, 2 and 4 s: mean (2000 + 1000 + 500) / 3 = 1167, last 500; then in 1 s: mean 1167, last 2000.
    #[test]
    fn the_lower_of_mean_and_last_counts() {
        let ladder = ladder(&[200, 400, 900, 1800], 4);
        let mut rule = made("gstreamer", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 0);
        let now = playing(&ladder, 0, 10.0);
        for took_s in [1.0, 2.0, 4.0] {
            rule.fetched(&came(0, 2000.0, 0.0, 0.0, took_s), &now);
        }
        assert_eq!(rule.decide(&now).estimate.unwrap().as_bps(), 500_000);
        assert_eq!(rule.decide(&now).level, 1);
        rule.fetched(&came(0, 2000.0, 0.0, 0.0, 1.0), &now);
        let decision = rule.decide(&now);
        assert_eq!((decision.level, decision.estimate.unwrap().as_bps()), (2, 1_166_666));
    }

    /// 0.1 s to the first byte and 0.15 s more: less than twice as much, so all 0.25 s count.
    #[test]
    fn waiting_counts_where_a_segment_came_almost_at_once() {
        let ladder = ladder(&[200, 400], 4);
        let mut rule = made("gstreamer", Tuning::default());
        rule.fetched(&came(0, 500.0, 0.0, 0.1, 0.25), &playing(&ladder, 0, 10.0));
        assert_eq!(rule.decide(&playing(&ladder, 0, 10.0)).estimate.unwrap().as_bps(), 2_000_000);
    }
}
