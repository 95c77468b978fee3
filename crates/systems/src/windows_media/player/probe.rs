//! Packets in a row that measure the link.

use streamgauge_base::Instant;

/// Bytes of IPv4 and UDP in front of a datagram's content.
const HEADERS_BYTES: usize = 20 + 8;

/// Those packets, as they arrive.
#[derive(Default)]
pub struct Probe {
    /// Time when they are waited for no longer.
    pub until: Option<Instant>,
    came: Vec<(Instant, usize)>,
}

impl Probe {
    /// Counts a datagram of `bytes` that arrived. Returns how many have arrived.
    pub fn takes(&mut self, now: Instant, bytes: usize) -> usize {
        self.came.push((now, bytes + HEADERS_BYTES));
        self.came.len()
    }

    /// Prepares for new packets, which are independent of the received ones.
    pub fn begin_anew(&mut self) {
        self.came.clear();
    }

    /// Returns how many have arrived.
    pub fn len(&self) -> usize {
        self.came.len()
    }

    /// Returns whether none has arrived.
    pub fn is_empty(&self) -> bool {
        self.came.is_empty()
    }

    /// Returns the rate at which the slowest arrived behind the one before it, in bit/s.
    pub fn estimate_bps(&self) -> Option<f64> {
        let rate = |pair: &[(Instant, usize)]| {
            let gap = pair[1].0.saturating_since(pair[0].0).as_secs_f64();
            (gap > 0.0).then(|| 8.0 * pair[1].1 as f64 / gap)
        };
        self.came.windows(2).filter_map(rate).min_by(f64::total_cmp)
    }
}
