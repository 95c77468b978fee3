//! A rate that never changes, independent of feedback: the yardstick for those that adapt.

use streamgauge_base::{BitRate, Instant};

use super::{PacketResult, RateController, RateStart};

/// Packets leave no faster than this multiple of the target, in tenths: libwebrtc's pacing factor of 2.5.
const PACING_TENTHS: u64 = 25;

/// The start rate, for good.
#[derive(Clone, Debug)]
pub struct Fixed {
    target: BitRate,
}

impl Fixed {
    /// Makes a control at the start rate, within the encoder's bounds.
    pub fn new(start: &RateStart) -> Self {
        let bps =
            start.start.as_bps().clamp(start.least.as_bps(), start.most.as_bps().max(start.least.as_bps()));
        Fixed { target: BitRate::from_bps(bps) }
    }
}

impl RateController for Fixed {
    fn on_feedback(&mut self, _now: Instant, _results: &[PacketResult]) {}
    fn target(&self) -> BitRate {
        self.target
    }
    fn pacing(&self) -> BitRate {
        BitRate::from_bps(self.target.as_bps() * PACING_TENTHS / 10)
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Ecn;

    use super::super::rate_control;
    use super::super::tests::start;
    use super::*;

    #[test]
    fn nothing_moves_it() {
        let mut fixed = rate_control("fixed").unwrap().make(&start());
        let lost = PacketResult {
            number: 1,
            bytes: 1200,
            sent: Instant::ZERO,
            arrived: None,
            ecn: Ecn::Ce,
            probe: None,
        };
        fixed.on_feedback(Instant::ZERO, &[lost; 100]);
        fixed.on_timeout(Instant::from_nanos(1));
        assert_eq!((fixed.target().as_bps(), fixed.pacing().as_bps()), (800_000, 2_000_000));
        assert_eq!((fixed.poll_timeout(), fixed.probe(Instant::ZERO), fixed.window()), (None, None, None));
    }

    #[test]
    fn the_encoder_s_bounds_hold() {
        let bps = BitRate::from_bps;
        for (asked, given) in [(1, 100_000), (9_000_000, 2_000_000), (500_000, 500_000)] {
            assert_eq!(Fixed::new(&RateStart { start: bps(asked), ..start() }).target(), bps(given));
        }
    }
}
