//! TFRC (RFC 5348): the rate that TCP would have on average, without its sawtooth.
//!
//! The sender does the receiver's part too, from its own acknowledgements, as section 8.2 of the RFC allows
//! ("sender-based variants"): a feedback packet is a round trip's worth of acknowledgements, the receive rate is the
//! rate that they deliver, and losses are dated by the time when the sender detects them. Further choices:
//! - The no-feedback timer of section 4.4 is the connection's retransmission timer, which Linux never lets expire
//!   within 200 ms of a round trip. Losses that only that timer finds begin a loss event too.
//! - Lost segments are sent again at the same rate: this is TFRC under a reliable stream.
//! - The window is the bytes that may be sent until the no-feedback timer of section 4.4 would expire, five round trips
//!   of the rate: far more than the rate puts in flight, so that the rate alone governs, but not without bound.
//! - The instantaneous rate of section 4.5 and the memory of idle times of section 4.4 beyond the initial rate are left out.

mod history;

use streamgauge_base::{Duration, Instant};

use super::equation::{loss_event_rate, throughput};
use super::{Ack, Controller};
use history::LossIntervals;

/// Longest time between packets, t_mbi, in seconds (section 4.3).
const LONGEST_GAP_S: f64 = 64.0;
/// Weight of the old round-trip time (section 4.3, q).
const KEPT: f64 = 0.9;
/// Round trips of the rate that the window holds.
const WINDOW_RTTS: f64 = 5.0;
/// Least window in segments.
const LEAST_WINDOW: f64 = 4.0;

/// A feedback interval: a round trip or more.
#[derive(Clone, Copy, Debug)]
struct Feedback {
    since: Instant,
    /// Bytes delivered.
    delivered: u64,
    /// The writer set the rate from its start to now; `None` without a sample.
    data_limited: Option<bool>,
    /// Whether a loss event began.
    loss: bool,
}

impl Feedback {
    fn from(since: Instant) -> Self {
        Feedback { since, delivered: 0, data_limited: None, loss: false }
    }
}

/// TFRC.
#[derive(Clone, Debug)]
pub struct Tfrc {
    segment: u32,
    /// X, the allowed rate in bytes per second.
    rate: f64,
    /// R; `None` before the first measurement.
    rtt: Option<Duration>,
    intervals: LossIntervals,
    /// Time when the present loss event began.
    event: Option<Instant>,
    feedback: Feedback,
    /// X_recv_set: the rates received in the last feedback intervals, in bytes per second; infinite before the first
    /// (section 4.3).
    received: [f64; 2],
    /// The last round trip measured.
    sample: Duration,
    /// Time when the rate was last doubled, tld.
    doubled: Instant,
}

impl Tfrc {
    /// Makes a controller for segments of `mss` bytes.
    pub fn new(mss: u32) -> Self {
        Tfrc {
            segment: mss,
            // One packet per second until there is a round trip (section 4.2).
            rate: f64::from(mss),
            rtt: None,
            intervals: LossIntervals::default(),
            event: None,
            feedback: Feedback::from(Instant::ZERO),
            received: [f64::INFINITY, 0.0],
            sample: Duration::ZERO,
            doubled: Instant::ZERO,
        }
    }

    /// Returns W_init / R, with 2 to 4 segments and up to 4,380 bytes (section 4.2).
    fn initial_rate(&self, rtt: Duration) -> f64 {
        let segment = u64::from(self.segment);
        (4 * segment).min(4380.max(2 * segment)) as f64 / rtt.as_secs_f64()
    }

    fn least_rate(&self) -> f64 {
        f64::from(self.segment) / LONGEST_GAP_S
    }

    /// Measures a round trip: the first sets the initial rate; the others count once per feedback interval.
    fn measure(&mut self, now: Instant, sample: Duration) {
        self.sample = sample.max(Duration::from_nanos(1));
        if self.rtt.is_none() {
            self.rtt = Some(self.sample);
            self.rate = self.initial_rate(self.sample);
            self.doubled = now;
            self.feedback.since = now;
        }
    }

    /// Handles a loss. Losses within a round trip are one loss event (section 5.2).
    fn lose(&mut self, now: Instant) {
        let rtt = self.rtt.unwrap_or(Duration::ZERO);
        if self.event.is_some_and(|began| now.saturating_since(began) <= rtt) {
            return;
        }
        self.event = Some(now);
        self.feedback.loss = true;
        // The interval before the first loss event is the one that would give the received rate (section 6.3.1).
        let segment = f64::from(self.segment);
        let received = if self.most().is_finite() { self.most() } else { 0.0 };
        let least = segment / (2.0 * rtt.as_secs_f64().max(1e-9));
        let target = self.latest(now).max(received).max(least);
        self.intervals.event(|| 1.0 / loss_event_rate(self.segment, rtt, target));
    }

    /// Returns the rate received in this feedback interval, if that is a round trip old.
    fn latest(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_since(self.feedback.since);
        match self.rtt {
            Some(rtt) if elapsed >= rtt => self.feedback.delivered as f64 / elapsed.as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Returns the most of X_recv_set.
    fn most(&self) -> f64 {
        self.received[0].max(self.received[1])
    }

    /// Applies section 4.3 after a feedback interval.
    fn take_feedback(&mut self, now: Instant) {
        let received = self.latest(now);
        if let Some(rtt) = self.rtt {
            let ns = KEPT * rtt.as_nanos() as f64 + (1.0 - KEPT) * self.sample.as_nanos() as f64;
            self.rtt = Some(Duration::from_nanos(ns as u64));
        }
        if self.received[0].is_infinite() {
            self.received = [0.0; 2];
        }
        let limit = if !self.feedback.data_limited.unwrap_or(false) {
            self.received = [received, self.received[0]];
            2.0 * self.most()
        } else if self.feedback.loss {
            self.received = [(0.85 * received).max(self.most() / 2.0), 0.0];
            self.most()
        } else {
            self.received = [received.max(self.most()), 0.0];
            2.0 * self.most()
        };
        self.feedback = Feedback::from(now);
        self.limit(now, limit);
    }

    /// Sets the rate that loss and `limit` (recv_limit) allow.
    fn limit(&mut self, now: Instant, limit: f64) {
        let Some(rtt) = self.rtt else { return };
        let p = self.intervals.rate();
        if p > 0.0 {
            self.rate = throughput(self.segment, rtt, p).min(limit).max(self.least_rate());
        } else if now.saturating_since(self.doubled) >= rtt {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial_rate(rtt));
            self.doubled = now;
        }
    }
}

impl Controller for Tfrc {
    fn on_open(&mut self, now: Instant, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.measure(now, rtt);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.measure(ack.now, rtt);
        }
        let segment = f64::from(self.segment);
        self.intervals.count(ack.delivered as f64 / segment);
        self.feedback.delivered += ack.delivered;
        if let Some(rate) = ack.rate {
            self.feedback.data_limited = Some(rate.app_limited && self.feedback.data_limited.unwrap_or(true));
        }
        if ack.lost > 0 {
            self.lose(ack.now);
            self.intervals.count(ack.lost as f64 / segment);
        }
        match self.rtt {
            Some(rtt) if ack.now.saturating_since(self.feedback.since) >= rtt => self.take_feedback(ack.now),
            // A new loss event is reported at once (section 6.1, step 3); no better receive rate is known.
            Some(_) if self.feedback.loss => self.limit(ack.now, 2.0 * self.most()),
            _ => {}
        }
    }

    fn on_congestion_event(&mut self, now: Instant) {
        self.lose(now);
    }

    fn on_timeout(&mut self, now: Instant, _repeated: bool) {
        self.lose(now);
        // Section 4.4: half of the equation's rate, or of twice the received rate.
        let allowed = match self.rtt {
            Some(rtt) => throughput(self.segment, rtt, self.intervals.rate()),
            None => self.rate,
        };
        let limit = self.most().min(allowed / 2.0).min(self.rate / 2.0).max(self.least_rate());
        self.received = [limit / 2.0, 0.0];
        self.rate = limit;
        self.feedback = Feedback::from(now);
    }

    fn on_idle(&mut self, now: Instant, idle: Duration, _rto: Duration) {
        let Some(rtt) = self.rtt else { return };
        // The no-feedback timer halves the rate each time, down to the initial one (section 4.4).
        let segment = f64::from(self.segment);
        let timer = (4.0 * rtt.as_secs_f64()).max(2.0 * segment / self.rate);
        let least = self.initial_rate(rtt).min(self.rate);
        let mut left = idle.as_secs_f64();
        while left > timer && self.rate > least {
            self.rate = (self.rate / 2.0).max(least);
            left -= timer;
        }
        self.received = [self.rate / 2.0, 0.0];
        self.feedback = Feedback::from(now);
    }

    fn window(&self) -> u64 {
        let rtt = self.rtt.map_or(1.0, |rtt| rtt.as_secs_f64());
        (WINDOW_RTTS * rtt * self.rate).max(LEAST_WINDOW * f64::from(self.segment)) as u64
    }
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
    fn samples_rates(&self) -> bool {
        true
    }
    fn pacing_rate(&self) -> Option<u64> {
        Some((self.rate as u64).max(1))
    }
    fn least_burst(&self) -> u64 {
        1
    }
    fn governs_recovery(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
