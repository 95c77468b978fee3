//! The congestion window, one for all tracks of a session.

use super::rto::Timeout;
use super::settings::{Growth, ServerSettings};
use super::{millis, share};

/// Congestion window, slow-start threshold, bytes in flight and retransmission timeout of a session. Sizes in
/// bytes, times in milliseconds. The window is always between a segment and its cap.
pub struct Tracker {
    settings: Settings,
    /// The window's cap; 0 until the first PLAY has set it.
    cap: u32,
    window: u32,
    threshold: u32,
    in_flight: u32,
    last_cut: Option<i64>,
    /// Bytes acknowledged in avoidance and not yet rewarded with a segment.
    credit: u32,
    pub timeout: Timeout,
    ack_timeout: i64,
    /// With pacing, when the next new packet may leave, in microseconds.
    paced_until: i64,
}

/// A sender that is late by this time catches up, in microseconds.
const PACING_CREDIT: i64 = 10_000;

/// The server's settings that the tracker needs.
struct Settings {
    binds: bool,
    paces: bool,
    segment: u32,
    growth: Growth,
    duplicates_grow: bool,
    expiry_grows: bool,
    threshold_decrease: f64,
    window_decrease: f64,
    slow_start_after_loss: bool,
    cut_spacing: i64,
    ack_timeouts: (i64, i64),
}

impl Tracker {
    pub fn new(settings: &ServerSettings) -> Self {
        let ack_timeouts = (millis(settings.min_ack_timeout), millis(settings.max_ack_timeout));
        Tracker {
            settings: Settings {
                binds: settings.congestion_control,
                paces: settings.paced,
                segment: settings.segment_bytes,
                growth: settings.growth,
                duplicates_grow: settings.duplicates_grow_window,
                expiry_grows: settings.expiry_grows_window,
                threshold_decrease: settings.threshold_decrease,
                window_decrease: settings.window_decrease,
                slow_start_after_loss: settings.slow_start_after_loss,
                cut_spacing: millis(settings.cut_spacing),
                ack_timeouts,
            },
            cap: 0,
            window: 0,
            threshold: 0,
            in_flight: 0,
            last_cut: None,
            credit: 0,
            timeout: Timeout::new(settings),
            ack_timeout: ack_timeouts.0,
            paced_until: i64::MIN,
        }
    }

    /// Sets the window by the media's rate in bit/s, 0 if unknown. Only the first call counts.
    pub fn open(&mut self, bit_rate_bps: u64, settings: &ServerSettings) {
        if self.is_open() {
            return;
        }
        let cap = if bit_rate_bps == 0 || bit_rate_bps > settings.large_window_above_bps {
            settings.large_window_bytes
        } else if bit_rate_bps > settings.medium_window_above_bps {
            settings.medium_window_bytes
        } else {
            settings.small_window_bytes
        };
        let least = self.settings.segment;
        self.cap = cap.max(least);
        let of_cap = |fraction| share(self.cap, fraction).clamp(least, self.cap);
        (self.window, self.threshold) = if settings.slow_start {
            (of_cap(settings.initial_window_share), of_cap(settings.initial_threshold_share))
        } else {
            (self.cap, self.cap)
        };
    }

    /// Returns whether the first PLAY has set the window; before it, acknowledgements have no meaning.
    pub fn is_open(&self) -> bool {
        self.cap > 0
    }

    /// Returns the congestion window.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Returns the bytes sent and neither acknowledged nor given up.
    #[cfg(test)]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns whether no new packet may be sent. A packet that may be sent overshoots the window by its excess over
    /// the rest.
    pub fn is_full(&self) -> bool {
        self.settings.binds && self.in_flight >= self.window
    }

    /// Counts a new outstanding packet of `bytes`.
    pub fn sent(&mut self, bytes: u32) {
        self.in_flight += bytes;
    }

    /// Notes that a new packet of `bytes` left at `now`: with pacing the next has to wait for the time of this one at
    /// the rate of the window per round trip.
    pub fn pace(&mut self, now: i64, bytes: u32) {
        if self.settings.paces {
            let gap = 1_000 * self.timeout.mean() * i64::from(bytes) / i64::from(self.window.max(1));
            self.paced_until = self.paced_until.max(1_000 * now - PACING_CREDIT) + gap;
        }
    }

    /// Returns when the next new packet may leave, in milliseconds, if pacing holds it back at `now`.
    pub fn paced_until(&self, now: i64) -> Option<i64> {
        (self.settings.paces && self.paced_until > 1_000 * now)
            .then(|| (self.paced_until + 999).div_euclid(1_000))
    }

    /// Handles the acknowledgement of an outstanding packet of `bytes`.
    pub fn acknowledged(&mut self, bytes: u32) {
        let bytes = self.leave(bytes);
        self.grow(bytes);
    }

    /// Handles the acknowledgement of a packet that is not outstanding.
    pub fn acknowledged_again(&mut self) {
        if self.settings.duplicates_grow {
            self.grow(self.settings.segment.min(self.in_flight));
        }
    }

    /// Handles the timeout of an outstanding packet of `bytes`.
    pub fn expired(&mut self, bytes: u32) {
        let bytes = self.leave(bytes);
        if self.settings.expiry_grows {
            self.grow(bytes);
        }
    }

    /// Gives up an outstanding packet of `bytes` without any conclusion about the network.
    pub fn leave(&mut self, bytes: u32) -> u32 {
        let bytes = bytes.min(self.in_flight);
        self.in_flight -= bytes;
        bytes
    }

    fn grow(&mut self, bytes: u32) {
        if bytes == 0 {
            return;
        }
        let segment = self.settings.segment;
        let slow_start = self.window < self.threshold;
        self.window += match self.settings.growth {
            Growth::Bytes if slow_start => bytes,
            Growth::Bytes => (u64::from(bytes) * u64::from(bytes) / u64::from(self.window)) as u32,
            Growth::Segments if slow_start => segment,
            Growth::Segments => {
                self.credit += bytes;
                if self.credit < self.window {
                    0
                } else {
                    self.credit -= self.window;
                    segment
                }
            }
        };
        self.window = self.window.min(self.cap);
    }

    /// Handles a packet that counts as lost. True if the window was cut: it is not if it has been just before.
    pub fn lost(&mut self, now: i64) -> bool {
        let segment = self.settings.segment;
        // Before the cut, not after it: a threshold of 3/4 segment lasts until the next loss.
        self.threshold = self.threshold.max(segment);
        let cut = self.last_cut.is_none_or(|last| now - last > self.settings.cut_spacing);
        if cut {
            self.threshold = share(self.window, self.settings.threshold_decrease);
            self.window = share(self.window, self.settings.window_decrease);
            self.last_cut = Some(now);
            self.credit = 0;
        }
        self.window = self.window.clamp(segment, self.cap.max(segment));
        if cut && !self.settings.slow_start_after_loss {
            self.threshold = self.threshold.min(self.window);
        }
        cut
    }

    /// Returns how long the player may gather acknowledgements, in milliseconds.
    pub fn ack_timeout(&self) -> i64 {
        self.ack_timeout
    }

    /// Computes the time for gathering acknowledgements from `bits` sent in the last `interval`: the time to fill the
    /// window, less half of the round trip. The window counts bytes and the sending bits, as in the public server, so
    /// it is an eighth of the stated size.
    pub fn update_ack_timeout(&mut self, bits: u64, interval: i64) {
        let fill = (interval * i64::from(self.window)).checked_div(bits.cast_signed()).unwrap_or(0);
        let timeout = self.timeout.unclamped().max(self.ack_timeout);
        let (least, most) = self.settings.ack_timeouts;
        self.ack_timeout = (fill - fill.min((timeout - self.ack_timeout) / 2)).clamp(least, most.max(least));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::Preset;
    use super::*;

    const SEGMENT: u32 = 1466;

    fn tracker(bit_rate_bps: u64, settings: &ServerSettings) -> Tracker {
        let mut tracker = Tracker::new(settings);
        tracker.open(bit_rate_bps, settings);
        tracker
    }

    fn source() -> ServerSettings {
        ServerSettings::of(Preset::Source)
    }

    #[test]
    fn paced_packets_leave_as_fast_as_acknowledgements_return() {
        let mut tracker = tracker(288_000, &ServerSettings { paced: true, ..source() });
        tracker.timeout.sample(200);
        let mut sent = 0;
        for now in 0..10_000 {
            if tracker.paced_until(now).is_none_or(|until| until <= now) {
                tracker.pace(now, 1_000);
                sent += 1_000;
            }
        }
        // A window of 24,576 B each 200 ms.
        assert!((1_228_800 - 20_000..=1_228_800 + 20_000).contains(&sent), "{sent}");
        let mut bursts = self::tracker(288_000, &source());
        bursts.pace(0, 1_000);
        assert_eq!(bursts.paced_until(0), None);
    }

    #[test]
    fn the_window_begins_at_half_of_a_cap_that_the_rate_chooses() {
        // The three first windows are those seen of the public server.
        for (bps, window) in
            [(0, 32_768), (288_000, 24_576), (100_000, 12_288), (1_024_000, 24_576), (1_024_001, 32_768)]
        {
            let tracker = tracker(bps, &source());
            assert_eq!((tracker.window(), tracker.threshold), (window, window / 2 * 3), "{bps} bit/s");
        }
        let settings = ServerSettings { slow_start: false, ..source() };
        let mut tracker = tracker(288_000, &settings);
        assert_eq!((tracker.window(), tracker.threshold), (49_152, 49_152));
        tracker.open(0, &settings);
        assert_eq!(tracker.window(), 49_152, "set once");
    }

    #[test]
    fn slow_start_adds_the_bytes_and_avoidance_their_square_by_the_window() {
        let mut tracker = tracker(288_000, &source());
        for _ in 0..20 {
            tracker.sent(1400);
        }
        tracker.acknowledged(1400);
        assert_eq!((tracker.window(), tracker.in_flight()), (24_576 + 1400, 19 * 1400));
        tracker.window = 40_000;
        tracker.acknowledged(1400);
        assert_eq!(tracker.window(), 40_000 + 1400 * 1400 / 40_000);
        tracker.acknowledged(199);
        assert_eq!(tracker.window(), 40_049, "small packets add nothing");
    }

    #[test]
    fn a_repeated_acknowledgement_opens_the_window_and_leaves_the_flight() {
        let mut tracker = tracker(288_000, &source());
        tracker.acknowledged_again();
        assert_eq!(tracker.window(), 24_576, "nothing in flight, nothing to add");
        tracker.sent(9000);
        tracker.acknowledged_again();
        assert_eq!((tracker.window(), tracker.in_flight()), (24_576 + SEGMENT, 9000));
        tracker.expired(9000);
        assert_eq!((tracker.window(), tracker.in_flight()), (24_576 + SEGMENT + 9000, 0), "expiry too");
    }

    #[test]
    fn one_segment_a_round_trip_in_the_papers_avoidance() {
        let mut tracker = tracker(288_000, &ServerSettings::of(Preset::Paper));
        for _ in 0..40 {
            tracker.sent(1000);
        }
        tracker.acknowledged(1000);
        assert_eq!(tracker.window(), 24_576 + SEGMENT, "slow start: a segment a packet, whatever its size");
        tracker.window = 37_000;
        (0..36).for_each(|_| tracker.acknowledged(1000));
        assert_eq!(tracker.window(), 37_000);
        tracker.acknowledged(1000);
        assert_eq!(tracker.window(), 37_000 + SEGMENT, "one window acknowledged");
    }

    #[test]
    fn a_loss_takes_half_and_slow_start_gives_back_to_three_quarters() {
        let mut tracker = tracker(288_000, &source());
        tracker.sent(48_000);
        assert!(tracker.lost(1000));
        assert_eq!((tracker.window(), tracker.threshold), (12_288, 18_432));
        assert!(!tracker.lost(1250), "250 ms later the window is not cut again");
        assert_eq!(tracker.window(), 12_288);
        for _ in 0..5 {
            tracker.acknowledged(1400);
        }
        assert_eq!(tracker.window(), 12_288 + 5 * 1400);
        tracker.acknowledged(1400);
        assert_eq!(tracker.window(), 19_288 + 1400 * 1400 / 19_288, "avoidance above three quarters");
        assert!(tracker.lost(1251));

        let reno = ServerSettings { threshold_decrease: 0.5, slow_start_after_loss: false, ..source() };
        let mut tracker = self::tracker(288_000, &reno);
        tracker.sent(48_000);
        assert!(tracker.lost(0));
        tracker.acknowledged(1400);
        assert_eq!(tracker.window(), 12_288 + 1400 * 1400 / 12_288, "TCP's: no slow start after a loss");
    }

    #[test]
    fn the_least_window_is_a_segment_and_its_threshold_falls_below_until_the_next_loss() {
        let mut tracker = tracker(288_000, &source());
        for at in 0..6 {
            assert!(tracker.lost(at * 251));
        }
        assert_eq!((tracker.window(), tracker.threshold), (SEGMENT, SEGMENT * 3 / 4));
        assert!(!tracker.lost(5 * 251));
        assert_eq!((tracker.window(), tracker.threshold), (SEGMENT, SEGMENT));
    }

    #[test]
    fn without_congestion_control_the_window_is_never_full() {
        let mut tracker = tracker(0, &ServerSettings { congestion_control: false, ..source() });
        tracker.sent(1 << 20);
        assert!(!tracker.is_full());
    }

    #[test]
    fn the_time_for_gathering_acknowledgements_follows_window_and_rate() {
        let mut tracker = tracker(288_000, &source());
        assert_eq!(tracker.ack_timeout(), 20);
        tracker.timeout.sample(30);
        // 3000 ms * 24,576 / 864,000 bit = 85 ms, less half of the excess of 30 ms over 20 ms.
        tracker.update_ack_timeout(864_000, 3000);
        assert_eq!(tracker.ack_timeout(), 85 - 5);
        tracker.update_ack_timeout(0, 3000);
        assert_eq!(tracker.ack_timeout(), 20);
        tracker.update_ack_timeout(1, 3000);
        assert_eq!(tracker.ack_timeout(), 100);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(u32),
        Ack(u32),
        Again,
        Expire(u32),
        Lose(i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = 1u32..1500;
        let step = prop_oneof![
            4 => bytes.clone().prop_map(Step::Send),
            3 => bytes.clone().prop_map(Step::Ack),
            1 => Just(Step::Again),
            1 => bytes.prop_map(Step::Expire),
            1 => (0i64..400).prop_map(Step::Lose),
        ];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        #[test]
        fn the_window_stays_between_a_segment_and_its_cap_and_is_cut_at_most_each_250_ms(
            steps in steps(), bps in 0u64..2_000_000, paper: bool,
        ) {
            let settings = ServerSettings::of(if paper { Preset::Paper } else { Preset::Source });
            let mut tracker = tracker(bps, &settings);
            let (mut now, mut last_cut) = (0, None);
            let mut in_flight = 0u32;
            for step in steps {
                let before = tracker.window();
                match step {
                    Step::Send(bytes) => {
                        let full = tracker.is_full();
                        prop_assert_eq!(full, in_flight >= before);
                        if !full {
                            tracker.sent(bytes);
                            in_flight += bytes;
                        }
                    }
                    Step::Ack(bytes) => {
                        tracker.acknowledged(bytes);
                        in_flight -= bytes.min(in_flight);
                        prop_assert!(tracker.window() >= before);
                    }
                    Step::Again => tracker.acknowledged_again(),
                    Step::Expire(bytes) => {
                        tracker.expired(bytes);
                        in_flight -= bytes.min(in_flight);
                        prop_assert!(tracker.window() >= before, "an expired packet is no loss");
                    }
                    Step::Lose(later) => {
                        now += later;
                        let cut = tracker.lost(now);
                        prop_assert_eq!(cut, last_cut.is_none_or(|last| now - last > 250));
                        let after = if cut { (before / 2).max(SEGMENT) } else { before };
                        prop_assert_eq!(tracker.window(), after);
                        if cut {
                            last_cut = Some(now);
                        }
                    }
                }
                prop_assert_eq!(tracker.in_flight(), in_flight);
                prop_assert!((SEGMENT..=tracker.cap).contains(&tracker.window()));
                prop_assert!(tracker.in_flight() < tracker.cap + 1500);
            }
        }
    }
}
