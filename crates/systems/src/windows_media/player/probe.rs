//! Packets in a row that measure the link.

use streamgauge_base::Instant;

/// Bytes of IPv4 and UDP in front of what a datagram carries.
const HEADERS_BYTES: usize = 20 + 8;

/// Those packets, as they come.
#[derive(Default)]
pub struct Probe {
    /// When they are waited for no longer.
    pub until: Option<Instant>,
    came: Vec<(Instant, usize)>,
}

impl Probe {
    /// A datagram of so many bytes came. How many have come.
    pub fn takes(&mut self, now: Instant, bytes: usize) -> usize {
        self.came.push((now, bytes + HEADERS_BYTES));
        self.came.len()
    }

    /// Others are to come, which have nothing to do with those that have.
    pub fn begin_anew(&mut self) {
        self.came.clear();
    }

    /// How many have come.
    pub fn len(&self) -> usize {
        self.came.len()
    }

    /// None has come.
    pub fn is_empty(&self) -> bool {
        self.came.is_empty()
    }

    /// The rate at which the slowest came behind the one before it, in bit/s.
    pub fn estimate_bps(&self) -> Option<f64> {
        let rate = |pair: &[(Instant, usize)]| {
            let gap = pair[1].0.saturating_since(pair[0].0).as_secs_f64();
            (gap > 0.0).then(|| 8.0 * pair[1].1 as f64 / gap)
        };
        self.came.windows(2).filter_map(rate).min_by(f64::total_cmp)
    }
}
