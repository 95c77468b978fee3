//! The rules of Spiteri, Sitaraman and Sparacio, "From Theory to Practice: Improving Bitrate Adaptation in the DASH
//! Reference Player" (MMSys 2018), as in their simulator Sabre (UMass-LIDS/sabre, 09b03bb). This module has their
//! common part.
//!
//! One thing differs. Sabre forgets the level for which it gave up a segment, and asks the rule again. Here the player
//! fetches the level that [`super::Rule::abandon`] returned. `tests/abr_sabre.rs` compares the rest with Sabre, segment
//! by segment.

mod bola;
mod bola_e;
mod dynamic;
mod throughput;

pub use bola::Bola;
pub use bola_e::BolaE;
pub use dynamic::{Dynamic, DynamicDash};
pub use throughput::Throughput;

use super::estimate::EwmaPair;
use super::{Decision, Fetched, Ladder, Progress, Situation, Tuning};

/// Throughput by half-lives of 3 and 8 s of reading, the lower; latency by the same of media, the higher.
struct Measured {
    throughput: EwmaPair,
    latency: EwmaPair,
}

impl Measured {
    fn new() -> Self {
        Measured { throughput: EwmaPair::new(3.0, 8.0), latency: EwmaPair::new(3.0, 8.0) }
    }

    /// Takes in a complete segment. The weight of its latency is its playing time.
    fn push(&mut self, fetched: &Fetched, ladder: &Ladder) {
        if !fetched.abandoned {
            let time_s = fetched.done.saturating_sub(fetched.first_byte).as_secs_f64();
            self.throughput.push(fetched.throughput_bps(), time_s);
            let latency_s = fetched.first_byte.saturating_sub(fetched.asked).as_secs_f64();
            self.latency.push(latency_s, ladder.segment.as_secs_f64());
        }
    }

    /// In bit/s.
    fn throughput(&self) -> Option<f64> {
        self.throughput.lower()
    }

    /// In s.
    fn latency(&self) -> f64 {
        self.latency.higher().unwrap_or(0.0)
    }

    /// Returns the highest level with a segment that arrives within its playing time, latency included. The search
    /// starts at the lowest and ends at the first failure.
    fn fit(&self, ladder: &Ladder, bps: f64) -> usize {
        let (segment_s, latency_s) = (ladder.segment.as_secs_f64(), self.latency());
        let fits = |&level: &usize| latency_s + segment_s * ladder.bps(level) / bps <= segment_s;
        (1..=ladder.top()).take_while(fits).last().unwrap_or(0)
    }
}

/// The bound on a request while little is buffered. A segment has to arrive within a share of the buffer, which falls
/// from 0.9 by a tenth at each decision, to 0.5.
struct Reserve {
    share: f64,
}

impl Reserve {
    const FIRST: f64 = 0.9;
    const LEAST: f64 = 0.5;

    fn new() -> Self {
        Reserve { share: Self::FIRST }
    }

    /// `level`, or the highest below it up to which all come in time.
    fn bound(&mut self, level: usize, now: &Situation<'_>, measured: &Measured, bps: f64) -> usize {
        let time_s = self.share * (now.buffer.as_secs_f64() - measured.latency());
        self.share = (self.share * Self::FIRST).max(Self::LEAST);
        let segment_s = now.ladder.segment.as_secs_f64();
        let comes = |&one: &usize| now.ladder.bps(one) * segment_s <= time_s * bps;
        (1..=level).take_while(comes).last().unwrap_or(0)
    }
}

/// Returns the decision before the first measurement: the lowest level, or the tuning's.
fn first(now: &Situation<'_>, tuning: &Tuning) -> Decision {
    match tuning.initial {
        None => Decision::at_once(0, None, "the lowest: nothing is measured yet"),
        Some(rate) => {
            let bps = rate.as_bps() as f64;
            let why = format!("the highest within {:.0} kbit/s, which is set for the start", bps / 1e3);
            Decision::at_once(now.ladder.at_most(bps), None, why)
        }
    }
}

/// Bytes of the segment in flight.
fn size(progress: &Progress, ladder: &Ladder) -> f64 {
    progress.of.map_or_else(|| ladder.bytes(progress.level, progress.segment), |of| of as f64)
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{BitRate, Duration};

    use super::*;

    fn ladder() -> Ladder {
        Ladder {
            rates: [500, 1000, 2000].map(|kbps| BitRate::from_bps(kbps * 1000)).to_vec(),
            segment: Duration::from_secs(4),
            segments: None,
            sizes: Vec::new(),
        }
    }

    /// With 100 ms of latency, 4 s at 1000 kbit/s need 4000/3.9 = 1025.6 kbit/s.
    #[test]
    fn the_latency_counts_in_what_fits() {
        let (ladder, mut measured) = (ladder(), Measured::new());
        assert_eq!(measured.fit(&ladder, 1e6), 1);
        measured.latency.push(0.1, 4.0);
        assert_eq!((measured.fit(&ladder, 1.025e6), measured.fit(&ladder, 1.026e6)), (0, 1));
        assert_eq!(measured.fit(&ladder, 0.0), 0);
    }

    /// 5 s of buffer at 2000 kbit/s: 0.9 of it carries 9 Mbit, enough for 8 Mbit of the top level; 0.729 does not.
    #[test]
    fn the_reserve_shrinks_with_each_decision() {
        let (ladder, measured, mut reserve) = (ladder(), Measured::new(), Reserve::new());
        let now = Situation {
            now: Duration::ZERO,
            ladder: &ladder,
            segment: 1,
            level: Some(0),
            buffer: Duration::from_secs(5),
            target: Duration::from_secs(25),
            playing: true,
            live: None,
        };
        let levels: Vec<_> = (0..9).map(|_| reserve.bound(2, &now, &measured, 2e6)).collect();
        assert_eq!(levels, [2, 2, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(reserve.share, 0.5);
    }
}
