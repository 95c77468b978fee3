//! BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, and where that differs from Linux's `tcp_bbr`,
//! as Linux (6.x): the constants, the filter of the bandwidth, the compensation for aggregated acknowledgements and
//! the detection of policers are its.
//!
//! A model of the path, the greatest delivery rate of ten round trips and the least round trip of ten seconds,
//! sets the rate of pacing and twice its product the window. Loss does not shrink the model.

mod long_term;

use streamgauge_base::{Duration, Instant, RandomStream};

use self::long_term::LongTerm;
use super::bandwidth::{UNIT, carried, coarse_rate, least_burst, paced, rate};
use super::windowed_max::WindowedMax;
use super::{Ack, Controller, Repair};

/// 2 / ln 2, rounded up: the least that doubles the rate per round trip.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse, which empties in one round trip the queue that `HIGH_GAIN` made in one.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Twice the product: room for delayed and stretched acknowledgements.
const CWND_GAIN: u64 = UNIT * 2;
/// The phases of PROBE_BW, each about a least round trip long.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// A cycle begins at any phase but the second, which would drain a queue that does not exist.
const CYCLE_RANDOM: u64 = 7;
/// Round trips over which the greatest bandwidth counts: a cycle and two.
const BW_ROUNDS: u64 = 10;
/// The pipe is full after this many round trips in which the bandwidth grew by less than a quarter.
const FULL_BW_ROUNDS: u32 = 3;
const FULL_BW_GROWTH: u64 = UNIT * 5 / 4;
/// How long the least round trip counts.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// How long PROBE_RTT lasts at its small window.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Least window, in segments: enough to keep acknowledgements arriving.
const MIN_SEGMENTS: u64 = 4;
/// The round trip assumed for the first rate where the handshake measured none.
const FIRST_RTT: Duration = Duration::from_millis(1);
/// The window of a connection over an unknown path, in segments (Linux's `TCP_INIT_CWND`).
const INITIAL_SEGMENTS: u64 = 10;
/// Most segments of a burst for which the window makes room.
const MAX_BURST_SEGMENTS: u64 = 0x7f;
/// Round trips over which acknowledgements beyond the bandwidth count: one to two of these.
const AGGREGATION_ROUNDS: u32 = 5;
/// They add at most the bytes that the bandwidth carries in this time.
const AGGREGATION_TIME: Duration = Duration::from_millis(100);
/// An epoch of counting them ends after this many segments.
const AGGREGATION_SEGMENTS: u64 = 1 << 20;

/// Phase of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Doubles the rate per round trip.
    Startup,
    /// Empties the queue that start-up made.
    Drain,
    /// Cruises, probing for more bandwidth once in eight phases.
    ProbeBw,
    /// Sends next to nothing, to see the path's round trip.
    ProbeRtt,
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u64,
    /// Bandwidths are whole bytes per second, not as coarse as Linux's.
    fine: bool,
    window: u64,
    ssthresh: u64,
    /// Bytes/s.
    pacing_rate: u64,
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// Bytes/s, over rounds.
    bw: WindowedMax<u64>,
    rounds: u64,
    round_start: bool,
    /// A round ends when something sent after this many bytes had been delivered is delivered.
    round_end: u64,
    delivered: u64,
    delivered_at: Instant,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    has_seen_rtt: bool,
    phase: usize,
    phase_began: Instant,
    full_bw: u64,
    full_bw_rounds: u32,
    full_bw_reached: bool,
    /// Time when PROBE_RTT may end; `None` until the window is as small as it should be.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round: bool,
    /// The window before it was cut short.
    prior_window: u64,
    repair: Repair,
    conserve: bool,
    idle_restart: bool,
    long_term: LongTerm,
    /// Bytes acknowledged beyond the bandwidth: the most of the last and of this stretch of rounds.
    extra: [u64; 2],
    extra_rounds: u32,
    epoch_began: Instant,
    epoch_acked: u64,
    random: RandomStream,
}

impl Bbr {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them; `seed` begins the stream that
    /// draws phases; `fine`: [`Mechanisms::fine_bandwidth`](crate::tcp::Mechanisms::fine_bandwidth).
    pub fn new(mss: u32, initial: u32, seed: u64, fine: bool) -> Self {
        let mss = u64::from(mss);
        let mut bbr = Bbr {
            mss,
            fine,
            window: mss * u64::from(initial),
            ssthresh: u64::MAX,
            pacing_rate: 0,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bw: WindowedMax::default(),
            rounds: 0,
            round_start: false,
            round_end: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            has_seen_rtt: false,
            phase: 0,
            phase_began: Instant::ZERO,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_reached: false,
            probe_rtt_until: None,
            probe_rtt_round: false,
            prior_window: 0,
            repair: Repair::None,
            conserve: false,
            idle_restart: false,
            long_term: LongTerm::default(),
            extra: [0; 2],
            extra_rounds: 0,
            epoch_began: Instant::ZERO,
            epoch_acked: 0,
            random: RandomStream::named(seed, "bbr", "phase"),
        };
        bbr.pace_from_rtt(None);
        bbr
    }

    /// Returns the bytes/s of `bytes` in `time`.
    fn rate(&self, bytes: u64, time: Duration) -> u64 {
        if self.fine { rate(bytes, time) } else { coarse_rate(bytes, time, self.mss) }
    }

    /// Returns the bandwidth in use, in bytes/s.
    fn bandwidth(&self) -> u64 {
        self.long_term.policed().unwrap_or(self.bw.get())
    }

    /// Sets the first rate: the window per round trip, times the gain of start-up.
    fn pace_from_rtt(&mut self, rtt: Option<Duration>) {
        self.has_seen_rtt |= rtt.is_some();
        let rtt = rtt.unwrap_or(FIRST_RTT).max(Duration::from_micros(1));
        self.pacing_rate = paced(self.rate(self.window, rtt), HIGH_GAIN);
    }

    fn set_pacing_rate(&mut self, bw: u64, gain: u64) {
        let rate = paced(bw, gain);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Returns the bytes of a product of `bw` and the least round trip, times `gain`, in whole segments.
    fn product(&self, bw: u64, gain: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_SEGMENTS * self.mss };
        let bytes = u128::from(carried(bw, min_rtt)) * u128::from(gain) / u128::from(UNIT);
        (bytes as u64).div_ceil(self.mss) * self.mss
    }

    /// Returns the bytes that `bw` carries in `time`, in whole segments: Linux counts those, and drops the rest.
    fn carried(&self, bw: u64, time: Duration) -> u64 {
        carried(bw, time) / self.mss * self.mss
    }

    /// Returns the segments of one burst.
    fn burst(&self) -> u64 {
        ((self.pacing_rate >> 10) / self.mss).max(self.least_burst()).min(MAX_BURST_SEGMENTS)
    }

    /// Returns the room beside `window` for bursts at both ends of the path and in the network.
    fn with_bursts(&self, window: u64) -> u64 {
        let segments = (window.div_ceil(self.mss) + 3 * self.burst()).next_multiple_of(2);
        let probing = self.mode == Mode::ProbeBw && self.phase == 0;
        (segments + if probing { 2 } else { 0 }) * self.mss
    }

    fn target_in_flight(&self, bw: u64, gain: u64) -> u64 {
        self.with_bursts(self.product(bw, gain))
    }

    /// Returns the part of `in_flight` that will be left in the network when the next segment may leave.
    fn left_at_departure(&self, in_flight: u64, ack: &Ack) -> u64 {
        let going = if self.pacing_gain > UNIT { self.burst() * self.mss } else { 0 };
        let gone = self.carried(self.bandwidth(), ack.departs.saturating_since(ack.now));
        (in_flight + going).saturating_sub(gone)
    }

    fn save_window(&mut self) {
        let cut = self.repair != Repair::None || self.mode == Mode::ProbeRtt;
        self.prior_window = if cut { self.prior_window.max(self.window) } else { self.window };
    }

    fn next_phase(&mut self) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_began = self.delivered_at;
    }

    fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        self.phase = CYCLE.len() - 1 - self.random.below(CYCLE_RANDOM) as usize;
        self.next_phase();
    }

    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round_start = false;
        let Some(sample) = ack.rate else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserve = false;
        }
        self.sample_long_term(ack.lost > 0, sample.app_limited, sample.total_lost);
        let bw = self.rate(sample.delivered, sample.interval);
        if !sample.app_limited || bw >= self.bw.get() {
            self.bw.add(BW_ROUNDS, self.rounds, bw);
        }
    }

    fn sample_long_term(&mut self, losses: bool, app_limited: bool, lost: u64) {
        let now = long_term::Now {
            at: self.delivered_at,
            delivered: self.delivered,
            lost,
            round_start: self.round_start,
            probing: self.mode == Mode::ProbeBw,
            coarse: (!self.fine).then_some(self.mss),
        };
        match self.long_term.sample(&now, losses, app_limited) {
            long_term::Verdict::Policed => self.pacing_gain = UNIT,
            long_term::Verdict::ProbeAgain => self.enter_probe_bw(),
            long_term::Verdict::Unchanged => {}
        }
    }

    fn update_aggregation(&mut self, ack: &Ack) {
        if ack.rate.is_none() || ack.delivered == 0 {
            return;
        }
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= AGGREGATION_ROUNDS {
                self.extra_rounds = 0;
                self.extra = [0, self.extra[0]];
            }
        }
        let mut expected =
            self.carried(self.bandwidth(), self.delivered_at.saturating_since(self.epoch_began));
        if self.epoch_acked <= expected || self.epoch_acked + ack.delivered >= AGGREGATION_SEGMENTS * self.mss
        {
            self.epoch_acked = 0;
            self.epoch_began = self.delivered_at;
            expected = 0;
        }
        self.epoch_acked += ack.delivered;
        self.extra[0] = self.extra[0].max((self.epoch_acked - expected).min(self.window));
    }

    fn update_phase(&mut self, ack: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let lasted = self.delivered_at.saturating_since(self.phase_began);
        let full = self.min_rtt.is_some_and(|rtt| lasted > rtt);
        let left = self.left_at_departure(ack.prior_in_flight, ack);
        let bw = self.bw.get();
        let over = match self.pacing_gain {
            UNIT => full,
            // Until the queue that it should make is there, or proves too long.
            gain if gain > UNIT => full && (ack.lost > 0 || left >= self.target_in_flight(bw, gain)),
            // Until the queue is drained.
            _ => full || left <= self.target_in_flight(bw, UNIT),
        };
        if over {
            self.next_phase();
        }
    }

    fn check_full(&mut self, ack: &Ack) {
        let app_limited = ack.rate.is_some_and(|sample| sample.app_limited);
        if self.full_bw_reached || !self.round_start || app_limited {
            return;
        }
        let bw = self.bw.get();
        if bw >= self.full_bw * FULL_BW_GROWTH / UNIT {
            (self.full_bw, self.full_bw_rounds) = (bw, 0);
            return;
        }
        self.full_bw_rounds += 1;
        self.full_bw_reached = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    fn check_drain(&mut self, ack: &Ack) {
        let drained = self.target_in_flight(self.bw.get(), UNIT);
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = drained;
        }
        if self.mode == Mode::Drain && self.left_at_departure(ack.in_flight, ack) <= drained {
            self.enter_probe_bw();
        }
    }

    fn update_min_rtt(&mut self, ack: &Ack) {
        let expired = ack.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = ack.now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            // In this order, as in Linux: a greater window saved before stays.
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            if self.probe_rtt_until.is_some() {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt(ack.now);
                }
            } else if ack.in_flight <= MIN_SEGMENTS * self.mss {
                self.probe_rtt_until = Some(ack.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.round_end = self.delivered;
            }
        }
        if ack.rate.is_some() {
            self.idle_restart = false;
        }
    }

    /// Leaves PROBE_RTT if its time is over.
    fn check_probe_rtt(&mut self, now: Instant) {
        if self.probe_rtt_until.is_some_and(|until| now > until) {
            self.min_rtt_at = now;
            self.window = self.window.max(self.prior_window);
            if self.full_bw_reached {
                self.enter_probe_bw();
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.policed().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Sets the window as a repair leaves it; true if the repair alone decides it.
    fn repair_window(&mut self, ack: &Ack) -> bool {
        if ack.lost > 0 {
            self.window = self.window.saturating_sub(ack.lost).max(self.mss);
        }
        let before = std::mem::replace(&mut self.repair, ack.repair);
        if ack.repair == Repair::Recovery && before != Repair::Recovery {
            // The first round trip of a recovery sends only as much as arrives.
            self.conserve = true;
            self.round_end = self.delivered;
            self.window = ack.in_flight + ack.delivered;
        } else if before != Repair::None && ack.repair == Repair::None {
            self.conserve = false;
            self.window = self.window.max(self.prior_window);
        }
        if self.conserve {
            self.window = self.window.max(ack.in_flight + ack.delivered);
        }
        self.conserve
    }

    fn set_window(&mut self, ack: &Ack) {
        if ack.delivered > 0 && !self.repair_window(ack) {
            let bw = self.bandwidth();
            let mut target = self.product(bw, self.cwnd_gain);
            if self.full_bw_reached {
                let most = self.carried(bw, AGGREGATION_TIME);
                target += self.extra[0].max(self.extra[1]).min(most);
            }
            let target = self.with_bursts(target);
            if self.full_bw_reached {
                self.window = (self.window + ack.delivered).min(target);
            } else if self.window < target || self.delivered + self.mss < INITIAL_SEGMENTS * self.mss {
                // In Linux the SYN counts as a segment delivered.
                self.window += ack.delivered;
            }
            self.window = self.window.max(MIN_SEGMENTS * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(MIN_SEGMENTS * self.mss);
        }
    }
}

impl Controller for Bbr {
    fn on_open(&mut self, now: Instant, rtt: Option<Duration>) {
        (self.min_rtt, self.min_rtt_at) = (rtt, now);
        (self.delivered_at, self.epoch_began) = (now, now);
        self.long_term.begin(now);
        self.pace_from_rtt(rtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.delivered > 0 {
            self.delivered_at = ack.now;
        }
        self.delivered = ack.rate.map_or(self.delivered + ack.delivered, |sample| sample.total_delivered);
        self.update_bandwidth(ack);
        self.update_aggregation(ack);
        self.update_phase(ack);
        self.check_full(ack);
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_gains();
        if !self.has_seen_rtt && ack.srtt > Duration::ZERO {
            self.pace_from_rtt(Some(ack.srtt));
        }
        self.set_pacing_rate(self.bandwidth(), self.pacing_gain);
        self.set_window(ack);
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        self.save_window();
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.save_window();
        }
        self.repair = Repair::Timeout;
        // Like the end of a round; the pipe may have changed.
        (self.full_bw, self.round_start) = (0, true);
        self.sample_long_term(true, false, self.long_term.last_lost());
        self.window = self.mss;
    }

    fn on_undo(&mut self, _now: Instant) {
        (self.full_bw, self.full_bw_rounds) = (0, 0);
        self.long_term.reset(self.delivered_at, self.delivered, self.long_term.last_lost());
    }

    /// Keeps the window; a paced sender does not restart in a burst.
    fn on_idle(&mut self, _now: Instant, _idle: Duration, _rto: Duration) {}

    fn on_start(&mut self, now: Instant, _since: Duration, _next: u64, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        (self.epoch_began, self.epoch_acked) = (now, 0);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.check_probe_rtt(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
    fn samples_rates(&self) -> bool {
        true
    }
    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }
    fn least_burst(&self) -> u64 {
        least_burst(self.pacing_rate)
    }
    fn limits_itself(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }
    fn governs_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
