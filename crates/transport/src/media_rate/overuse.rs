//! Detects whether a path's queue grows, against a threshold that adapts; both variants of GCC share it.
//!
//! Source: Carlucci, De Cicco, Holmer, Mascolo: "Analysis and Design of the Google Congestion Control for Web Real-time
//! Communication" (MMSys 2016), section 4.2; draft-ietf-rmcat-gcc-02 section 5.4.

/// The threshold's start and its bounds.
const FIRST: f64 = 12.5;
const LEAST: f64 = 6.0;
const MOST: f64 = 600.0;
/// A signal further beyond the threshold than this does not move it.
const SPIKE: f64 = 15.0;
/// No step of the threshold counts more time than this, ms.
const LONGEST_STEP_MS: f64 = 100.0;
/// An overuse lasts longer than this, ms.
const LASTS_MS: f64 = 10.0;

/// State of the path's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Usage {
    /// It keeps its length.
    #[default]
    Normal,
    /// It grows.
    Over,
    /// It empties.
    Under,
}

/// How fast the threshold rises and falls, per ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gains {
    pub up: f64,
    pub down: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Overuse {
    gains: Gains,
    threshold: f64,
    updated: Option<f64>,
    /// How long the signal has been above the threshold, ms; `None` while it is not.
    over: Option<f64>,
    samples: u32,
    before: f64,
    usage: Usage,
}

impl Overuse {
    pub fn new(gains: Gains) -> Self {
        Overuse {
            gains,
            threshold: FIRST,
            updated: None,
            over: None,
            samples: 0,
            before: 0.0,
            usage: Usage::Normal,
        }
    }

    /// Returns the last result.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    #[cfg(test)]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Adds a sample of the signal, ms, for a group that left `sent_ms` after the one before, at `now` ms.
    pub fn sample(&mut self, signal: f64, sent_ms: f64, now: f64) -> Usage {
        if signal > self.threshold {
            // Half of the first step is assumed to lie above.
            let over = self.over.map_or(sent_ms / 2.0, |over| over + sent_ms);
            self.over = Some(over);
            self.samples += 1;
            if over > LASTS_MS && self.samples > 1 && signal >= self.before {
                (self.over, self.samples, self.usage) = (Some(0.0), 0, Usage::Over);
            }
        } else {
            (self.over, self.samples) = (None, 0);
            self.usage = if signal < -self.threshold { Usage::Under } else { Usage::Normal };
        }
        self.before = signal;
        self.adapt(signal, now);
        self.usage
    }

    fn adapt(&mut self, signal: f64, now: f64) {
        let since = now - self.updated.replace(now).unwrap_or(now);
        let size = signal.abs();
        if size > self.threshold + SPIKE {
            return;
        }
        let gain = if size < self.threshold { self.gains.down } else { self.gains.up };
        let step = gain * (size - self.threshold) * since.min(LONGEST_STEP_MS);
        self.threshold = (self.threshold + step).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAINS: Gains = Gains { up: 0.0087, down: 0.039 };

    #[test]
    fn an_overuse_needs_two_samples_and_ten_milliseconds_and_a_signal_that_does_not_fall() {
        let mut detector = Overuse::new(GAINS);
        assert_eq!(detector.sample(20.0, 8.0, 0.0), Usage::Normal);
        assert_eq!(detector.sample(19.0, 8.0, 8.0), Usage::Normal, "12 ms above, but it falls");
        assert_eq!(detector.sample(20.0, 8.0, 16.0), Usage::Over);
        assert_eq!(detector.sample(0.0, 8.0, 24.0), Usage::Normal);
        assert_eq!(detector.sample(-20.0, 8.0, 32.0), Usage::Under);
    }

    #[test]
    fn the_threshold_follows_the_published_equation() {
        let mut detector = Overuse::new(GAINS);
        detector.sample(0.0, 10.0, 0.0);
        detector.sample(2.5, 10.0, 10.0);
        // 12.5 + 0.039 (2.5 - 12.5) 10
        assert!((detector.threshold() - 8.6).abs() < 1e-9);
        detector.sample(18.6, 10.0, 20.0);
        // 8.6 + 0.0087 (18.6 - 8.6) 10
        assert!((detector.threshold() - 9.47).abs() < 1e-9);
        detector.sample(100.0, 10.0, 30.0);
        assert!((detector.threshold() - 9.47).abs() < 1e-9, "a spike does not move it");
        for step in 0..1000 {
            detector.sample(0.0, 10.0, 40.0 + 10.0 * f64::from(step));
        }
        assert_eq!(detector.threshold(), LEAST);
    }
}
