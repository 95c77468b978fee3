//! VLC's first DASH client, of 2011 to 2013.

use super::{Decision, Fetched, Rule, Situation, Tuning};

/// The reference of the buffer (`dash-buffersize`), and the share of it below which the player requests the lowest
/// level.
const BUFFER_S: f64 = 30.0;
const LOW_PERCENT: f64 = 30.0;

/// VLC 2.1.0, `stream_filter/dash`: all bits of the session over all time spent in reading, an average that forgets
/// nothing. The rule selects the highest level strictly below it, and the lowest while the buffer is below 30 % of 30
/// s. In the form of late 2011 (revision 2a6547a) the throughput is 0 until two chunks have arrived.
///
/// The rule leaves out the player's part: it decides when 80 % of a chunk has arrived, requests two at a time, and
/// stops reading when its buffer is full.
pub struct Vlc2 {
    bits: f64,
    reading_s: f64,
    chunks: usize,
    chunks_needed: usize,
    initial_bps: Option<f64>,
    share: f64,
}

impl Vlc2 {
    /// As of 2.1.0.
    pub fn of_2012(tuning: &Tuning) -> Self {
        Vlc2 {
            bits: 0.0,
            reading_s: 0.0,
            chunks: 0,
            chunks_needed: 0,
            initial_bps: tuning.initial.map(|rate| rate.as_bps() as f64),
            share: tuning.safety_factor.unwrap_or(1.0),
        }
    }

    /// As of late 2011.
    pub fn of_2011(tuning: &Tuning) -> Self {
        Vlc2 { chunks_needed: 2, ..Vlc2::of_2012(tuning) }
    }
}

impl Rule for Vlc2 {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        if let (None, Some(bps)) = (now.level, self.initial_bps) {
            let level = now.ladder.below(self.share * bps);
            return Decision::at_once(level, bps, "the first, of the throughput that was set");
        }
        let is_known = self.reading_s > 0.0 && self.chunks >= self.chunks_needed;
        let bps = if is_known { self.bits / self.reading_s } else { 0.0 };
        let percent = now.buffer.as_secs_f64() / BUFFER_S * 100.0;
        if percent < LOW_PERCENT {
            let why = format!("the buffer is {percent:.0} % of 30 s, below 30 %: the lowest");
            return Decision::at_once(0, bps, why);
        }
        let why = format!(
            "strictly below {:.0} kbit/s, {} chunks' bits over the time in reads",
            bps / 1e3,
            self.chunks
        );
        Decision::at_once(now.ladder.below(self.share * bps), bps, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        self.bits += fetched.bytes as f64 * 8.0;
        self.reading_s += fetched.reading.as_secs_f64();
        self.chunks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::telling::{came, ladder, made, playing, s, start};
    use super::*;

    /// 2000 kbit in 2 s and 1200 kbit in 2 s of reading: 800 kbit/s, at any age and with any other time between.
    #[test]
    fn time_in_reads_alone_counts_and_nothing_is_forgotten() {
        let ladder = ladder(&[200, 400, 800, 1600], 2);
        let mut rule = made("vlc-2012", Tuning::default());
        let now = playing(&ladder, 0, 20.0);
        rule.fetched(&came(0, 2000.0, 0.0, 0.1, 2.0), &now);
        rule.fetched(&Fetched { reading: s(2.0), ..came(0, 1200.0, 2.0, 0.1, 50.0) }, &now);
        let decision = rule.decide(&now);
        assert_eq!(decision.estimate.unwrap().as_bps(), 800_000);
        // Strictly below: not the level of 800.
        assert_eq!(decision.level, 1);
    }

    /// The paper's row (602, 600): 600 kbit/s is below 602.
    #[test]
    fn a_rate_just_below_is_taken() {
        let ladder = ladder(&[100, 600, 602], 2);
        let mut rule = made("vlc-2012", Tuning::default());
        let now = playing(&ladder, 0, 20.0);
        rule.fetched(&came(0, 602.0, 0.0, 0.0, 1.0), &now);
        assert_eq!(rule.decide(&now).level, 1);
    }

    #[test]
    fn a_low_buffer_asks_for_the_lowest() {
        let ladder = ladder(&[200, 400, 800, 1600], 2);
        let mut rule = made("vlc-2012", Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 0);
        rule.fetched(&came(0, 2000.0, 0.0, 0.0, 1.0), &playing(&ladder, 0, 9.0));
        assert_eq!(rule.decide(&playing(&ladder, 0, 8.99)).level, 0);
        assert_eq!(rule.decide(&playing(&ladder, 0, 9.0)).level, 3);
    }

    #[test]
    fn in_2011_two_chunks_must_have_come() {
        let ladder = ladder(&[200, 400, 800, 1600], 10);
        let mut rule = made("vlc-2011", Tuning::default());
        let now = playing(&ladder, 0, 10.0);
        rule.fetched(&came(0, 2000.0, 0.0, 0.0, 1.0), &now);
        assert_eq!(rule.decide(&now).level, 0);
        rule.fetched(&came(0, 2000.0, 1.0, 0.0, 1.0), &now);
        assert_eq!(rule.decide(&now).level, 3);
    }
}
