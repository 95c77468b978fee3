//! BBR, version 3 (draft-ietf-ccwg-bbr-01).
//!
//! As version 1 it paces at the measured bandwidth and holds about twice the product in flight; beyond that it infers
//! the path's capacity from losses, leaves room for others, and probes for more at a pace at which Reno and CUBIC can
//! coexist with it.
//!
//! The draft judges each lost packet by the bytes in flight when it was sent; here the sample of the acknowledgement
//! that reported the loss replaces them. The draft leaves ECN open: here a mark counts as a loss of the short term.

mod bounds;

use streamgauge_base::{Duration, Instant, RandomStream};

use self::bounds::{Bounds, beta, times, too_much_lost};
use super::bandwidth::{UNIT, carried, least_burst, paced, rate};
use super::windowed_max::WindowedMax;
use super::{Ack, Controller, Repair};

/// 4 ln 2: doubles the rate per round trip.
const STARTUP_GAIN: u64 = UNIT * 277 / 100;
const DRAIN_GAIN: u64 = UNIT / 2;
const DOWN_GAIN: u64 = UNIT * 9 / 10;
const UP_GAIN: u64 = UNIT * 5 / 4;
const CWND_GAIN: u64 = UNIT * 2;
const UP_CWND_GAIN: u64 = UNIT * 9 / 4;
const PROBE_RTT_CWND_GAIN: u64 = UNIT / 2;
/// The bandwidth counts for this many cycles of probing.
const MAX_BW_CYCLES: u64 = 2;
/// The pipe is full after this many round trips in which the bandwidth grew by less than a quarter.
const FULL_BW_ROUNDS: u32 = 3;
const FULL_BW_GROWTH: u64 = UNIT * 5 / 4;
/// The pipe is also full after a round trip with too much loss, spread over this many acknowledgements.
const FULL_LOSS_EVENTS: u32 = 6;
/// How long the least round trip counts, and how often it is sought.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Least window, in segments.
const MIN_SEGMENTS: u64 = 4;
/// The round trip assumed for the first rate where the handshake measured none.
const FIRST_RTT: Duration = Duration::from_millis(1);
/// A burst is the bytes sent in this time, and at most this much.
const QUANTUM: Duration = Duration::from_millis(1);
const MAX_QUANTUM: u64 = 64 << 10;
/// Round trips over which acknowledgements beyond the bandwidth count.
const AGGREGATION_ROUNDS: u64 = 10;
/// Least time between two probings, to which up to a second is added at random.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_RANDOM_NS: u64 = 1_000_000_000;
/// Reno would need as many round trips as its window has segments; at most this many are waited for.
const RENO_ROUNDS: u64 = 63;

/// Phase of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    /// Sends less than the bandwidth, until there is room for others.
    Down,
    /// Sends at the bandwidth.
    Cruise,
    /// A round trip that fills the pipe before more is sent.
    Refill,
    /// Sends more than the bandwidth, until something is in the way.
    Up,
    ProbeRtt,
}

/// Which part of a probing the acknowledgements that arrive are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Acks {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    mss: u64,
    initial: u64,
    window: u64,
    /// Bytes/s.
    pacing_rate: u64,
    state: State,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// Bytes/s, over cycles of probing.
    max_bw: WindowedMax<u64>,
    cycles: u64,
    /// The bandwidth that the model allows: the greatest within the bound of the short term.
    bw: u64,
    bounds: Bounds,
    rounds: u64,
    round_start: bool,
    round_end: u64,
    rounds_since_probe: u64,
    loss_round_end: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events: u32,
    /// The most delivered of late: bytes/s, and bytes in a round trip.
    latest: (u64, u64),
    delivered: u64,
    full_bw: u64,
    full_bw_rounds: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    probe_rtt_least: Option<Duration>,
    probe_rtt_least_at: Instant,
    probe_rtt_until: Option<Instant>,
    probe_rtt_round: bool,
    cycle_began: Instant,
    probe_wait: Duration,
    acks: Acks,
    /// Samples are of a probing, so that too much loss is its doing.
    probe_samples: bool,
    prior_window: u64,
    repair: Repair,
    idle_restart: bool,
    extra: WindowedMax<u64>,
    extra_began: Instant,
    extra_acked: u64,
    random: RandomStream,
}

impl Bbr3 {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them; `seed` begins the stream that
    /// draws waits.
    pub fn new(mss: u32, initial: u32, seed: u64) -> Self {
        let mss = u64::from(mss);
        let window = mss * u64::from(initial);
        let mut bbr = Bbr3 {
            mss,
            initial: window,
            window,
            pacing_rate: 0,
            state: State::Startup,
            pacing_gain: STARTUP_GAIN,
            cwnd_gain: CWND_GAIN,
            max_bw: WindowedMax::default(),
            cycles: 0,
            bw: 0,
            bounds: Bounds::new(),
            rounds: 0,
            round_start: false,
            round_end: 0,
            rounds_since_probe: 0,
            loss_round_end: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_events: 0,
            latest: (0, 0),
            delivered: 0,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_now: false,
            full_bw_reached: false,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_least: None,
            probe_rtt_least_at: Instant::ZERO,
            probe_rtt_until: None,
            probe_rtt_round: false,
            cycle_began: Instant::ZERO,
            probe_wait: Duration::ZERO,
            acks: Acks::Init,
            probe_samples: false,
            prior_window: 0,
            repair: Repair::None,
            idle_restart: false,
            extra: WindowedMax::default(),
            extra_began: Instant::ZERO,
            extra_acked: 0,
            random: RandomStream::named(seed, "bbr3", "probe"),
        };
        bbr.pace_from_rtt(None);
        bbr
    }

    fn pace_from_rtt(&mut self, rtt: Option<Duration>) {
        let rtt = rtt.unwrap_or(FIRST_RTT).max(Duration::from_micros(1));
        self.pacing_rate = paced(rate(self.initial, rtt), STARTUP_GAIN);
    }

    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = paced(self.bw, gain);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Returns the product of `bw` and the least round trip, times `gain`.
    fn product(&self, bw: u64, gain: u64) -> u64 {
        self.min_rtt.map_or(self.initial, |rtt| times(carried(bw, rtt), gain))
    }

    /// Returns the room for bursts at both ends of the path and in the network.
    fn with_bursts(&self, in_flight: u64) -> u64 {
        let floor = self.least_burst() * self.mss;
        let quantum = carried(self.pacing_rate, QUANTUM).min(MAX_QUANTUM).max(floor);
        let in_flight = in_flight.max(3 * quantum).max(MIN_SEGMENTS * self.mss);
        in_flight + if self.state == State::Up { 2 * self.mss } else { 0 }
    }

    fn target(&self) -> u64 {
        self.product(self.bw, UNIT).min(self.window)
    }

    fn probing_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    fn reset_full_bw(&mut self, bw: u64) {
        (self.full_bw, self.full_bw_rounds, self.full_bw_now) = (bw, 0, false);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        (self.pacing_gain, self.cwnd_gain) = match state {
            State::Startup => (STARTUP_GAIN, CWND_GAIN),
            State::Drain => (DRAIN_GAIN, CWND_GAIN),
            State::Down => (DOWN_GAIN, CWND_GAIN),
            State::Cruise | State::Refill => (UNIT, CWND_GAIN),
            State::Up => (UP_GAIN, UP_CWND_GAIN),
            State::ProbeRtt => (UNIT, PROBE_RTT_CWND_GAIN),
        };
    }

    fn enter_down(&mut self, now: Instant) {
        (self.loss_in_round, self.latest) = (false, (0, 0));
        self.bounds.stop_probing();
        self.rounds_since_probe = self.random.below(2);
        self.probe_wait = PROBE_WAIT + Duration::from_nanos(self.random.below(PROBE_WAIT_RANDOM_NS));
        self.cycle_began = now;
        self.acks = Acks::Stopping;
        self.start_round();
        self.enter(State::Down);
    }

    fn enter_refill(&mut self) {
        self.bounds.forget_lower();
        self.bounds.refill();
        self.acks = Acks::Refilling;
        self.start_round();
        self.enter(State::Refill);
    }

    fn enter_up(&mut self, now: Instant, bw: u64) {
        self.acks = Acks::Starting;
        self.start_round();
        self.reset_full_bw(bw);
        self.cycle_began = now;
        self.enter(State::Up);
        self.bounds.steepen(self.mss, self.window);
    }

    /// Updates rounds, the greatest bandwidth, and the short-term effect of the last round's losses.
    fn update_model(&mut self, ack: &Ack) {
        (self.round_start, self.loss_round_start) = (false, false);
        self.loss_in_round |= ack.lost > 0;
        let Some(sample) = ack.rate else { return };
        let bw = rate(sample.delivered, sample.interval);
        self.latest = (self.latest.0.max(bw), self.latest.1.max(sample.delivered));
        if sample.prior_delivered >= self.loss_round_end {
            self.loss_round_end = self.delivered;
            self.loss_round_start = true;
        }
        if sample.prior_delivered >= self.round_end {
            self.start_round();
            self.rounds += 1;
            self.rounds_since_probe += 1;
            self.round_start = true;
        }
        if bw >= self.max_bw.get() || !sample.app_limited {
            self.max_bw.add(MAX_BW_CYCLES, self.cycles, bw);
        }
        if self.loss_round_start {
            let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
            if self.loss_in_round && !probing {
                self.bounds.lower(self.max_bw.get(), self.window, self.latest.0, self.latest.1);
            }
            self.loss_in_round = false;
        }
    }

    fn update_aggregation(&mut self, ack: &Ack) {
        let mut expected = carried(self.bw, ack.now.saturating_since(self.extra_began));
        if self.extra_acked <= expected {
            (self.extra_acked, self.extra_began, expected) = (0, ack.now, 0);
        }
        self.extra_acked += ack.delivered;
        let extra = (self.extra_acked - expected).min(self.window);
        let rounds = if self.full_bw_reached { AGGREGATION_ROUNDS } else { 1 };
        self.extra.add(rounds, self.rounds, extra);
    }

    fn check_startup(&mut self, ack: &Ack) {
        if let Some(sample) = ack.rate
            && !self.full_bw_now
            && self.round_start
            && !sample.app_limited
        {
            let bw = rate(sample.delivered, sample.interval);
            if bw >= self.full_bw * FULL_BW_GROWTH / UNIT {
                self.reset_full_bw(bw);
            } else {
                self.full_bw_rounds += 1;
                self.full_bw_now = self.full_bw_rounds >= FULL_BW_ROUNDS;
                self.full_bw_reached |= self.full_bw_now;
            }
        }
        if self.full_bw_reached {
            return;
        }
        self.loss_events += u32::from(ack.lost > 0);
        if self.loss_round_start {
            let lossy = ack.rate.is_some_and(|sample| too_much_lost(sample.lost, sample.prior_in_flight));
            if lossy && self.repair == Repair::Recovery && self.loss_events >= FULL_LOSS_EVENTS {
                self.full_bw_reached = true;
                self.bounds.inflight_hi = self.product(self.max_bw.get(), UNIT).max(self.latest.1);
            }
            self.loss_events = 0;
        }
    }

    fn check_drain(&mut self, ack: &Ack) {
        if self.state == State::Startup && self.full_bw_reached {
            self.enter(State::Drain);
        }
        let drained = self.with_bursts(self.product(self.max_bw.get(), UNIT));
        if self.state == State::Drain && ack.in_flight <= drained {
            self.enter_down(ack.now);
        }
    }

    /// Adapts the bound of the long term to the last round trip of probing.
    fn adapt_upper(&mut self, ack: &Ack) {
        if self.round_start && self.acks == Acks::Starting {
            self.acks = Acks::Feedback;
        }
        if self.round_start && self.acks == Acks::Stopping {
            self.probe_samples = false;
            self.acks = Acks::Init;
            if self.probing_bw() && ack.rate.is_some_and(|sample| !sample.app_limited) {
                self.cycles += 1;
            }
        }
        let Some(sample) = ack.rate else { return };
        if too_much_lost(sample.lost, sample.prior_in_flight) {
            if self.probe_samples {
                self.probe_samples = false;
                if !sample.app_limited {
                    self.bounds.inflight_hi = sample.prior_in_flight.max(beta(self.target()));
                }
                if self.state == State::Up {
                    self.enter_down(ack.now);
                }
            }
            return;
        }
        self.bounds.carried(sample.prior_in_flight);
        if self.state == State::Up && ack.window_limited && self.window >= self.bounds.inflight_hi {
            self.bounds.probe_upward(self.mss, ack.delivered);
            if self.round_start {
                self.bounds.steepen(self.mss, self.window);
            }
        }
    }

    fn time_to_probe(&self, now: Instant) -> bool {
        let reno = (self.target() / self.mss).min(RENO_ROUNDS);
        now > self.cycle_began + self.probe_wait || self.rounds_since_probe >= reno
    }

    fn update_cycle(&mut self, ack: &Ack) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_upper(ack);
        let bw = ack.rate.map_or(0, |sample| rate(sample.delivered, sample.interval));
        match self.state {
            State::Down | State::Cruise if self.time_to_probe(ack.now) => self.enter_refill(),
            State::Down => {
                let room = self.bounds.with_headroom(self.mss, MIN_SEGMENTS * self.mss);
                let product = self.with_bursts(self.product(self.max_bw.get(), UNIT));
                if ack.in_flight <= room.min(product) {
                    self.enter(State::Cruise);
                }
            }
            State::Refill if self.round_start => {
                self.probe_samples = true;
                self.enter_up(ack.now, bw);
            }
            State::Up => {
                if ack.window_limited && self.window >= self.bounds.inflight_hi {
                    // The bound is in the way, not the path: growth cannot be judged yet.
                    self.reset_full_bw(bw);
                } else if self.full_bw_now {
                    self.enter_down(ack.now);
                }
            }
            _ => {}
        }
    }

    fn update_min_rtt(&mut self, ack: &Ack) {
        let due = ack.now > self.probe_rtt_least_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt
            && (due || self.probe_rtt_least.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_least, self.probe_rtt_least_at) = (Some(rtt), ack.now);
        }
        if let Some(least) = self.probe_rtt_least
            && (ack.now > self.min_rtt_at + MIN_RTT_WINDOW || self.min_rtt.is_none_or(|rtt| least < rtt))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(least), self.probe_rtt_least_at);
        }
        if due && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_window();
            self.enter(State::ProbeRtt);
            self.probe_rtt_until = None;
            self.acks = Acks::Stopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            if self.probe_rtt_until.is_some() {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt(ack.now);
                }
            } else if ack.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_until = Some(ack.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.start_round();
            }
        }
        if ack.rate.is_some() {
            self.idle_restart = false;
        }
    }

    fn probe_rtt_window(&self) -> u64 {
        self.product(self.bw, PROBE_RTT_CWND_GAIN).max(MIN_SEGMENTS * self.mss)
    }

    fn check_probe_rtt(&mut self, now: Instant) {
        if self.probe_rtt_until.is_some_and(|until| now > until) {
            self.probe_rtt_least_at = now;
            self.window = self.window.max(self.prior_window);
            self.bounds.forget_lower();
            if self.full_bw_reached {
                self.enter_down(now);
                self.enter(State::Cruise);
            } else {
                self.enter(State::Startup);
            }
        }
    }

    fn save_window(&mut self) {
        let cut = self.repair != Repair::None || self.state == State::ProbeRtt;
        self.prior_window = if cut { self.prior_window.max(self.window) } else { self.window };
    }

    fn set_window(&mut self, ack: &Ack) {
        let before = std::mem::replace(&mut self.repair, ack.repair);
        let most = self.with_bursts(self.product(self.bw, self.cwnd_gain) + self.extra.get());
        self.window = self.window.saturating_sub(ack.lost).max(self.mss);
        if ack.repair == Repair::Recovery && before != Repair::Recovery {
            self.window = ack.in_flight + ack.delivered.max(self.mss);
        } else if before != Repair::None && ack.repair == Repair::None {
            self.window = self.window.max(self.prior_window);
        }
        if self.full_bw_reached {
            self.window = (self.window + ack.delivered).min(most);
        } else if self.window < most || self.delivered < self.initial {
            self.window += ack.delivered;
        }
        let least = MIN_SEGMENTS * self.mss;
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_hi,
            State::Cruise | State::ProbeRtt => self.bounds.with_headroom(self.mss, least),
            State::Startup | State::Drain => u64::MAX,
        };
        self.window = self.window.max(least).min(cap.min(self.bounds.inflight_lo).max(least));
    }
}

impl Controller for Bbr3 {
    fn on_open(&mut self, now: Instant, rtt: Option<Duration>) {
        (self.min_rtt, self.min_rtt_at) = (rtt, now);
        (self.probe_rtt_least, self.probe_rtt_least_at) = (rtt, now);
        self.extra_began = now;
        self.pace_from_rtt(rtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.delivered = ack.rate.map_or(self.delivered + ack.delivered, |sample| sample.total_delivered);
        self.update_model(ack);
        self.update_aggregation(ack);
        self.check_startup(ack);
        self.check_drain(ack);
        self.update_cycle(ack);
        self.update_min_rtt(ack);
        if self.loss_round_start
            && let Some(sample) = ack.rate
        {
            self.latest = (rate(sample.delivered, sample.interval), sample.delivered);
        }
        self.bw = self.max_bw.get().min(self.bounds.bw_lo);
        self.set_pacing_rate(self.pacing_gain);
        self.set_window(ack);
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        self.save_window();
        self.bounds.save();
        self.loss_in_round = true;
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.save_window();
            self.bounds.save();
        }
        self.repair = Repair::Timeout;
        self.window = self.mss;
    }

    fn on_undo(&mut self, _now: Instant) {
        self.loss_in_round = false;
        self.reset_full_bw(0);
        self.bounds.restore();
    }

    /// Keeps the window; a paced sender does not restart in a burst.
    fn on_idle(&mut self, _now: Instant, _idle: Duration, _rto: Duration) {}

    fn on_start(&mut self, now: Instant, _since: Duration, _next: u64, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_began = now;
        if self.probing_bw() {
            self.set_pacing_rate(UNIT);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt(now);
        }
    }

    fn window(&self) -> u64 {
        self.window
    }
    /// Returns no threshold, as it has none.
    fn ssthresh(&self) -> u64 {
        u64::MAX
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
        self.state == State::ProbeRtt
    }
    fn governs_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
