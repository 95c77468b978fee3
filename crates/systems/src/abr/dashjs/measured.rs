//! The throughput as dash.js estimates it (`streaming/models/ThroughputModel.js`, `ThroughputController.js`).

use std::collections::HashMap;

use super::super::estimate::EwmaPair;
use super::super::{Fetched, Tuning};
use streamgauge_base::Duration;

/// `abr.throughput.bandwidthSafetyFactor`.
const SHARE: f64 = 0.9;
/// A sample's weight for each second that it took: `ewma.weightDownloadTimeMultiplicationFactor`, there per ms.
const WEIGHT_PER_S: f64 = 1.5;

/// Bytes that Resource Timing adds to a body for its head, at any length of the head (W3C Resource Timing,
/// `transferSize`).
const HEAD_BYTES: u64 = 300;

/// The lower of two averages, with half-lives of 3 and 8. Samples run from the first byte to the last, in whole kbit/s.
///
/// The times of a sample are the browser's Resource Timing for the segment's URL. If there are several, the first
/// counts (`streaming/net/HTTPLoader.js`, `_addResourceTimingValues`). A segment from the cache, or fetched a second
/// time, therefore repeats its first sample.
pub struct Measured {
    share: f64,
    averages: EwmaPair,
    last_kbps: Option<f64>,
    /// For each complete segment at each level: its sample in kbit/s, and its time in s.
    first: HashMap<(usize, usize), (f64, f64)>,
}

impl Measured {
    /// Nothing yet.
    pub fn new(tuning: &Tuning) -> Self {
        let share = tuning.safety_factor.unwrap_or(SHARE);
        Measured { share, averages: EwmaPair::new(3.0, 8.0), last_kbps: None, first: HashMap::new() }
    }

    /// Takes in a complete segment.
    pub fn push(&mut self, fetched: &Fetched) {
        let time_s = fetched.done.saturating_sub(fetched.first_byte).as_secs_f64();
        if time_s > 0.0 {
            let kbps = ((fetched.bytes + HEAD_BYTES) as f64 * 8.0 / time_s / 1e3).round();
            let key = (fetched.level, fetched.segment);
            let sample = *self.first.entry(key).or_insert((kbps, time_s));
            self.sample(sample);
        }
    }

    /// Takes in the received part of an abandoned segment, from progress reports. Resource Timing has no entry for it.
    pub fn push_given_up(&mut self, bytes: u64, time: Duration) {
        let time_s = time.as_secs_f64().max(1e-3);
        self.sample(((bytes as f64 * 8.0 / time_s / 1e3).round(), time_s));
    }

    /// Takes in a segment from the cache.
    pub fn push_cached(&mut self, level: usize, segment: usize) {
        if let Some(sample) = self.first.get(&(level, segment)).copied() {
            self.sample(sample);
        }
    }

    fn sample(&mut self, (kbps, time_s): (f64, f64)) {
        self.averages.push(kbps, WEIGHT_PER_S * time_s);
        self.last_kbps = Some(kbps);
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

    /// The reason for a choice by this throughput.
    pub fn why(&self) -> String {
        let kbps = self.bps().unwrap_or(0.0) / 1e3;
        format!("the highest within {} of an estimated {kbps:.0} kbit/s", self.share)
    }
}
