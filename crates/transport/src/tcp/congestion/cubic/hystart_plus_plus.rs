//! HyStart++ (RFC 9406): a rise of delay leads from slow start into conservative slow start, which either reverts to
//! slow start or ends.

use streamgauge_base::Duration;

/// RttThresh is an eighth of the last round's least, within these bounds (section 4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
/// Round trips measured before their least counts.
const N_RTT_SAMPLE: u32 = 8;
/// Slow start's growth over that of conservative slow start.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// Rounds of conservative slow start after which it was no false alarm.
const CSS_ROUNDS: u32 = 5;
/// L: most segments by which one acknowledgement opens the window of a sender that does not pace.
const L: u32 = 8;

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Least delay of the round that led here.
    baseline: Duration,
    /// Rounds completed.
    rounds: u32,
    /// Segments acknowledged that have not yet opened the window.
    counted: u32,
}

/// The state of section 4.2.
#[derive(Clone, Debug)]
pub(super) struct HystartPlusPlus {
    /// windowEnd.
    end: u64,
    /// lastRoundMinRTT and currentRoundMinRTT; `MAX` for infinity.
    last: Duration,
    current: Duration,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HystartPlusPlus {
    pub fn new() -> Self {
        HystartPlusPlus {
            end: 0,
            last: Duration::MAX,
            current: Duration::MAX,
            samples: 0,
            conservative: None,
        }
    }

    /// Handles an acknowledgement up to `una` that measured `rtt`, where `next` is the first byte not sent. True if
    /// slow start ends.
    pub fn ends(&mut self, una: u64, next: u64, rtt: Option<Duration>) -> bool {
        if let Some(rtt) = rtt {
            self.current = self.current.min(rtt);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        if una < self.end {
            return false;
        }
        self.end = next;
        (self.last, self.current, self.samples) = (self.current, Duration::MAX, 0);
        match &mut self.conservative {
            Some(conservative) => {
                conservative.rounds += 1;
                conservative.rounds >= CSS_ROUNDS
            }
            None => false,
        }
    }

    fn judge(&mut self) {
        match &self.conservative {
            Some(conservative) if self.current < conservative.baseline => self.conservative = None,
            None if self.last < Duration::MAX => {
                let rise = self.last.div(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current >= self.last + rise {
                    let baseline = self.current;
                    self.conservative = Some(Conservative { baseline, rounds: 0, counted: 0 });
                }
            }
            _ => {}
        }
    }

    /// Returns the segments by which `acked` ones open the window.
    pub fn growth(&mut self, acked: u32) -> u32 {
        let acked = acked.min(L);
        match &mut self.conservative {
            None => acked,
            Some(conservative) => {
                conservative.counted += acked;
                let grown = conservative.counted / CSS_GROWTH_DIVISOR;
                conservative.counted %= CSS_GROWTH_DIVISOR;
                grown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 10 acknowledgements each; `delays` in ms. Returns after which round it ended.
    fn run(hystart: &mut HystartPlusPlus, delays: &[u64]) -> Option<usize> {
        let mut una = 0;
        for (n, &delay) in delays.iter().enumerate() {
            for i in 1..=10 {
                if hystart.ends(una + i, una + 10 + i, Some(Duration::from_millis(delay))) {
                    return Some(n);
                }
            }
            una += 10;
        }
        None
    }

    #[test]
    fn a_rise_of_an_eighth_slows_growth_to_a_quarter() {
        for (delays, growth) in [(&[80, 80, 89], 8), (&[80, 80, 90], 2)] {
            let mut hystart = HystartPlusPlus::new();
            assert_eq!(run(&mut hystart, delays), None);
            assert_eq!(hystart.growth(8), growth);
        }
    }

    #[test]
    fn the_rise_is_at_least_4_ms_and_at_most_16() {
        for (before, after, conservative) in
            [(8, 11, false), (8, 12, true), (400, 415, false), (400, 416, true)]
        {
            let mut hystart = HystartPlusPlus::new();
            run(&mut hystart, &[before, before, after]);
            assert_eq!(hystart.conservative.is_some(), conservative, "{before} {after}");
        }
    }

    #[test]
    fn five_rounds_of_it_end_slow_start() {
        let mut hystart = HystartPlusPlus::new();
        // The alarm occurs within the third round, which counts: the fifth end of a round from there is the start of
        // the eighth.
        assert_eq!(run(&mut hystart, &[80, 80, 95, 95, 95, 95, 95, 95, 95]), Some(7));
    }

    #[test]
    fn a_delay_below_the_baseline_resumes_slow_start() {
        let mut hystart = HystartPlusPlus::new();
        assert_eq!(run(&mut hystart, &[80, 80, 95, 95, 94]), None);
        assert_eq!(hystart.growth(8), 8);
    }

    #[test]
    fn an_acknowledgement_opens_the_window_by_eight_segments_at_most() {
        assert_eq!(HystartPlusPlus::new().growth(40), 8);
    }
}
