//! What dash.js takes the throughput to be (`streaming/models/ThroughputModel.js`, `ThroughputController.js`).

use super::super::estimate::EwmaPair;
use super::super::{Fetched, Tuning};

/// `abr.throughput.bandwidthSafetyFactor`.
const SHARE: f64 = 0.9;
/// A sample's weight for each second that it took: `ewma.weightDownloadTimeMultiplicationFactor`, there per ms.
const WEIGHT_PER_S: f64 = 1.5;

/// Samples from the first byte to the last, in whole kbit/s, by half-lives of 3 and 8, the lower.
pub struct Measured {
    share: f64,
    averages: EwmaPair,
    last_kbps: Option<f64>,
}

impl Measured {
    /// Nothing yet.
    pub fn new(tuning: &Tuning) -> Self {
        let share = tuning.safety_factor.unwrap_or(SHARE);
        Measured { share, averages: EwmaPair::new(3.0, 8.0), last_kbps: None }
    }

    /// Takes in a segment, what came of one that was given up as well.
    pub fn push(&mut self, fetched: &Fetched) {
        let time_s = fetched.done.saturating_sub(fetched.first_byte).as_secs_f64();
        if time_s > 0.0 {
            let kbps = (fetched.throughput_bps() / 1e3).round();
            self.averages.push(kbps, WEIGHT_PER_S * time_s);
            self.last_kbps = Some(kbps);
        }
    }

    /// The estimate, of whole kbit/s, in bit/s.
    pub fn bps(&self) -> Option<f64> {
        self.averages.lower().map(|kbps| kbps.round() * 1e3)
    }

    /// How much of it may be used.
    pub fn safe_bps(&self) -> Option<f64> {
        self.bps().map(|bps| self.share * bps)
    }

    /// The last sample alone, in kbit/s.
    pub fn last_kbps(&self) -> Option<f64> {
        self.last_kbps
    }

    /// The words for what is chosen by it.
    pub fn why(&self) -> String {
        let kbps = self.bps().unwrap_or(0.0) / 1e3;
        format!("the highest within {} of an estimated {kbps:.0} kbit/s", self.share)
    }
}
