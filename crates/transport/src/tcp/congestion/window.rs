//! The window as Linux counts it, and the code that its controllers share (net/ipv4/tcp_cong.c, tcp_input.c,
//! tcp_output.c).
//!
//! Whole segments, with a count of those acknowledged towards the next one. Bytes that do not make a full segment are
//! carried over to the next acknowledgement, where Linux counts a short segment as one.

use streamgauge_base::{Duration, Instant};

/// Least window, and least slow start threshold, after a loss, in segments (RFC 5681 section 3.1).
const LEAST: u32 = 2;
/// The threshold before anything sets it.
const INFINITE: u32 = u32::MAX;

/// The state that an undone reduction restores.
#[derive(Clone, Copy, Debug)]
struct Prior {
    segments: u32,
    threshold: u32,
}

/// A congestion window in segments.
#[derive(Clone, Debug)]
pub(super) struct Window {
    mss: u32,
    initial: u32,
    segments: u32,
    threshold: u32,
    /// Segments acknowledged towards the next one of additive increase (`snd_cwnd_cnt`).
    counted: u32,
    /// Bytes acknowledged that make no full segment yet.
    rest: u32,
    prior: Option<Prior>,
}

impl Window {
    /// Makes a window of `initial` segments of `mss` bytes.
    pub fn new(mss: u32, initial: u32) -> Self {
        Window { mss, initial, segments: initial, threshold: INFINITE, counted: 0, rest: 0, prior: None }
    }

    /// Returns its size in segments.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.mss)
    }
    /// Returns the payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.mss
    }
    /// Returns the slow start threshold in bytes; `u64::MAX` while nothing has set it.
    pub fn threshold_bytes(&self) -> u64 {
        if self.threshold == INFINITE { u64::MAX } else { u64::from(self.threshold) * u64::from(self.mss) }
    }
    /// Returns whether nothing has set the threshold yet.
    pub fn unbounded(&self) -> bool {
        self.threshold == INFINITE
    }
    /// Returns whether the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// Returns the full segments in `delivered` bytes and in the remainder from before.
    pub fn acked(&mut self, delivered: u64) -> u32 {
        let bytes = u64::from(self.rest) + delivered;
        self.rest = (bytes % u64::from(self.mss)) as u32;
        (bytes / u64::from(self.mss)) as u32
    }

    /// Grows by the segments acknowledged up to the threshold; returns those left over for congestion avoidance. There is
    /// no limit per acknowledgement (RFC 3465 section 2.3 has one of two segments).
    #[must_use]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.segments.saturating_add(acked).min(self.threshold);
        let left = acked - (grown - self.segments);
        self.segments = grown;
        left
    }

    /// Increases the window additively: a segment for every `per` acknowledged. Bytes counted while a segment cost more
    /// are worth one segment at most.
    pub fn avoid(&mut self, per: u32, acked: u32) {
        if self.counted >= per {
            self.counted = 0;
            self.segments += 1;
        }
        self.counted += acked;
        self.segments += self.counted / per;
        self.counted %= per;
    }

    /// Grows in slow start, then by Reno's segment per window (RFC 5681 section 3.1).
    pub fn grow_as_reno(&mut self, acked: u32) {
        let left = if self.in_slow_start() { self.slow_start(acked) } else { acked };
        if left > 0 {
            self.avoid(self.segments, left);
        }
    }

    /// Sets the threshold, of 2 segments at least, and remembers the values before.
    pub fn lower(&mut self, threshold: u32) {
        self.prior = Some(Prior { segments: self.segments, threshold: self.usual() });
        self.threshold = threshold.max(LEAST);
    }

    /// Reduces the window to the threshold, for fast recovery.
    pub fn reduce(&mut self, threshold: u32) {
        self.lower(threshold);
        self.segments = self.threshold;
        self.counted = 0;
    }

    /// Reduces the window to one segment, after a timeout; the threshold is the caller's affair.
    pub fn collapse(&mut self) {
        self.segments = 1;
        self.counted = 0;
    }

    /// Undoes the last reduction, which was for nothing: window and threshold return to their old values, unless they
    /// are more.
    pub fn undo(&mut self) {
        if let Some(prior) = self.prior.take() {
            self.segments = self.segments.max(prior.segments);
            self.threshold = self.threshold.max(prior.threshold);
        }
    }

    /// Sets the window, of 2 segments at least.
    pub fn set(&mut self, segments: u32) {
        self.segments = segments.max(LEAST);
    }
    /// Sets the threshold to the window if that is less.
    pub fn cap_threshold(&mut self) {
        self.threshold = self.threshold.min(self.segments);
    }
    /// Raises the threshold to at least three quarters of the window, which the path carried (RFC 2861 section 3.1).
    pub fn raise_threshold(&mut self) {
        self.threshold = self.usual();
    }
    fn usual(&self) -> u32 {
        self.threshold.max(self.segments / 2 + self.segments / 4)
    }

    /// Reduces the window after `idle`: RFC 5681 section 4.1 falls to the restart window at once; Linux halves the
    /// window for every RTO that has passed (RFC 2861 section 3.1) and stops there, and this does the same.
    pub fn idle(&mut self, idle: Duration, rto: Duration) {
        self.raise_threshold();
        let restart = self.initial.min(self.segments);
        let halvings = (idle.as_nanos().saturating_sub(1) / rto.as_nanos().max(1)).min(31);
        self.segments = (self.segments >> halvings).max(restart);
    }
}

/// Ticks of Linux's clock: jiffies at HZ = 250, which Debian's and Ubuntu's kernels have had for most of their history.
/// BIC and CUBIC read it.
pub(super) const HZ: u32 = 250;
/// One of them, in ns.
pub(super) const JIFFY_NS: u64 = 1_000_000_000 / HZ as u64;

/// Returns the jiffies at `now`; 32 bits last for 198 days.
pub(super) fn jiffies(now: Instant) -> u32 {
    (now.as_nanos() / JIFFY_NS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    #[test]
    fn slow_start_grows_by_what_was_acknowledged_and_hands_on_the_rest() {
        let mut window = Window::new(MSS, 10);
        assert_eq!(window.slow_start(9), 0);
        assert_eq!(window.segments(), 19);
        window.lower(21);
        assert_eq!(window.slow_start(5), 3);
        assert_eq!(window.segments(), 21);
    }

    #[test]
    fn avoidance_counts_whole_segments_and_what_cost_more_is_worth_one() {
        let mut window = Window::new(MSS, 10);
        window.avoid(4, 3);
        assert_eq!(window.segments(), 10);
        window.avoid(4, 6);
        // 9 = 2 * 4 + 1.
        assert_eq!((window.segments(), window.counted), (12, 1));
        window.avoid(100, 50);
        window.avoid(2, 1);
        assert_eq!((window.segments(), window.counted), (13, 1));
    }

    #[test]
    fn parts_of_segments_add_up() {
        let mut window = Window::new(MSS, 10);
        assert_eq!([700, 700, 700, 2_900].map(|bytes| window.acked(bytes)), [0, 1, 1, 3]);
    }

    #[test]
    fn an_undone_reduction_gives_back_window_and_threshold() {
        let mut window = Window::new(MSS, 40);
        window.reduce(20);
        assert_eq!((window.bytes(), window.threshold_bytes()), (20_000, 20_000));
        window.undo();
        assert_eq!((window.bytes(), window.threshold_bytes()), (40_000, u64::MAX));
        // Once only.
        window.reduce(20);
        window.undo();
        window.set(7);
        window.undo();
        assert_eq!(window.segments(), 7);
    }

    #[test]
    fn undoing_restores_no_threshold_below_three_quarters_of_the_window() {
        let mut window = Window::new(MSS, 40);
        window.reduce(10);
        window.set(40);
        window.reduce(20);
        window.undo();
        assert_eq!(window.threshold_bytes(), 30_000);
    }

    #[test]
    fn idling_halves_per_timeout_down_to_the_restart_window() {
        let rto = Duration::from_millis(200);
        for (idle_ms, segments) in [(201, 20), (399, 20), (401, 10), (601, 6), (90_000, 6)] {
            let mut window = Window::new(MSS, 6);
            window.set(40);
            window.reduce(2);
            window.set(40);
            window.idle(Duration::from_millis(idle_ms), rto);
            assert_eq!((window.segments(), window.threshold_bytes()), (segments, 30_000));
        }
        let mut window = Window::new(MSS, 6);
        window.collapse();
        window.idle(Duration::from_secs(9), rto);
        assert_eq!(window.segments(), 1);
    }
}
