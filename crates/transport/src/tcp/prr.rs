//! Proportional rate reduction (RFC 6937), as in Linux: it limits the segments sent during one reduction, so that the
//! window falls to the threshold by its end.

/// One reduction. Everything counts segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reduction {
    /// The congestion window when it began, where RFC 6937 uses the outstanding bytes.
    prior: u32,
    /// Arrived since.
    delivered: u32,
    /// Sent since.
    out: u32,
    /// Segments that may be in flight.
    window: u32,
}

impl Reduction {
    /// Begins a reduction from a congestion window of `prior`.
    pub fn begin(prior: u32) -> Self {
        Reduction { prior: prior.max(1), delivered: 0, out: 0, window: prior }
    }
    /// Returns the segments that may be in flight.
    #[inline]
    pub fn window(&self) -> u32 {
        self.window
    }
    /// Counts a segment that was sent.
    #[inline]
    pub fn sent(&mut self) {
        self.out += 1;
    }

    /// Handles an acknowledgement: `delivered` segments arrived, and `in_flight` remain. `progress`: it moved the
    /// cumulative acknowledgement and reported no new loss, so that the slow start reduction bound may apply in place
    /// of the conservative one.
    pub fn on_ack(&mut self, delivered: u32, in_flight: u32, ssthresh: u32, progress: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let send = if in_flight > ssthresh {
            let due = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior));
            due.saturating_sub(u64::from(self.out)).min(u64::from(u32::MAX)) as u32
        } else {
            let owed = self.delivered.saturating_sub(self.out).max(delivered);
            (owed + u32::from(progress)).min(ssthresh - in_flight)
        };
        // The fast retransmit itself does not wait.
        self.window = in_flight + send.max(u32::from(self.out == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_threshold_half_of_what_arrives_is_replaced() {
        let mut reduction = Reduction::begin(40);
        let (mut in_flight, mut sent) = (39, 0);
        for _ in 0..36 {
            in_flight -= 1;
            reduction.on_ack(1, in_flight, 20, false);
            while in_flight < reduction.window() {
                reduction.sent();
                (in_flight, sent) = (in_flight + 1, sent + 1);
            }
        }
        assert_eq!((sent, in_flight), (18, 21));
    }

    #[test]
    fn below_the_threshold_what_arrives_is_replaced_and_progress_adds_one() {
        let mut reduction = Reduction::begin(40);
        for (delivered, progress, window) in [(1, false, 6), (2, false, 7), (2, true, 9)] {
            reduction.out = 50;
            reduction.on_ack(delivered, 5, 20, progress);
            assert_eq!(reduction.window(), 5 + delivered + u32::from(progress));
            assert!(reduction.window() <= window);
        }
        reduction.on_ack(10, 18, 20, true);
        assert_eq!(reduction.window(), 20);
    }
}
