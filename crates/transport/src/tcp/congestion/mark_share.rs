//! The moving average of the share of segments that arrive marked: DCTCP.Alpha (RFC 8257 section 3.3).

/// Weight of the last round (RFC 8257 section 4.2).
const GAIN: f64 = 1.0 / 16.0;

/// Counts over a round, and their average.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkShare {
    alpha: f64,
    acked: u64,
    marked: u64,
}

impl MarkShare {
    /// Makes the average before any mark: all are assumed marked, so that the first answer is a halving.
    pub fn new() -> Self {
        MarkShare { alpha: 1.0, acked: 0, marked: 0 }
    }
    /// Counts an acknowledgement of `acked` segments, `marked` of them with marks.
    pub fn count(&mut self, acked: u32, marked: u32) {
        self.acked += u64::from(acked);
        self.marked += u64::from(marked);
    }
    /// Ends a round.
    pub fn end_round(&mut self) {
        if self.acked > 0 {
            let share = (self.marked as f64 / self.acked as f64).min(1.0);
            self.alpha += GAIN * (share - self.alpha);
        }
        (self.acked, self.marked) = (0, 0);
    }
    /// Returns the average, from 0 to 1.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_goes_to_the_share_by_a_sixteenth_a_round() {
        let mut share = MarkShare::new();
        share.count(10, 0);
        share.end_round();
        assert_eq!(share.alpha(), 15.0 / 16.0);
        for _ in 0..400 {
            share.count(6, 3);
            share.count(4, 0);
            share.end_round();
        }
        assert!((share.alpha() - 0.3).abs() < 1e-6, "{}", share.alpha());
        // A round without acknowledgements is no evidence.
        let before = share.alpha();
        share.end_round();
        assert_eq!(share.alpha(), before);
    }
}
