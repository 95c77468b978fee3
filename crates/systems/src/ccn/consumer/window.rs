//! How many Interests a consumer has on their way, and how long it waits for each.
//!
//! Either a number is given, or one of TCP's congestion controllers chooses it: an Interest and its Data
//! correspond to a segment and its acknowledgement, at the other end. An Interest that expires is a loss,
//! reported to the controller once for all that were in flight with it.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::congestion::{Ack, Controller, Repair, Start};
use streamgauge_transport::tcp::{Config, CongestionControl, RateSample, Rto};

/// The control that chooses the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowControl {
    /// Segments are requested up to this many ahead of the read ones: each loss holds up all behind it.
    InOrder,
    /// This many are in flight, wherever losses are.
    Fixed,
    /// Reno's additive increase and multiplicative decrease.
    Aimd,
    /// CUBIC.
    Cubic,
    /// Vegas, by the delay.
    Vegas,
    /// BBR, version 1.
    Bbr,
}

impl WindowControl {
    /// Each by its name in scenarios.
    pub const NAMED: [(&'static str, WindowControl); 6] = [
        ("in-order", WindowControl::InOrder),
        ("fixed", WindowControl::Fixed),
        ("aimd", WindowControl::Aimd),
        ("cubic", WindowControl::Cubic),
        ("vegas", WindowControl::Vegas),
        ("bbr", WindowControl::Bbr),
    ];
}

/// When an Interest is expressed again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retransmission {
    /// When its lifetime is over.
    Lifetime,
    /// After a timeout that is measured (RFC 6298), or its lifetime if that is shorter.
    Rto,
}

impl Retransmission {
    /// Each by its name in scenarios.
    pub const NAMED: [(&'static str, Retransmission); 2] =
        [("lifetime", Retransmission::Lifetime), ("rto", Retransmission::Rto)];
}

/// Settings of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowSettings {
    /// The control that chooses the number.
    pub control: WindowControl,
    /// That number, or the most that a controller may choose.
    pub interests: u32,
    /// When an Interest is expressed again.
    pub retransmission: Retransmission,
    /// How long an Interest lives.
    pub lifetime: Duration,
    /// Bytes of content that a Data is reckoned with.
    pub bytes: u32,
}

/// The least timeout that is measured.
const LEAST_RTO: Duration = Duration::from_millis(200);

/// The longest.
const LONGEST_RTO: Duration = Duration::from_secs(60);

/// Interests before anything was answered, where a controller chooses (RFC 6928's ten).
const INITIAL: u32 = 10;

/// The state when an Interest was sent.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    at: Instant,
    /// Expressed for the first time.
    is_first: bool,
    /// How many had been expressed before it.
    number: u64,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    in_flight: u64,
    is_held: bool,
}

/// The window of one consumer, over all that it fetches.
pub struct Window {
    control: WindowControl,
    most: u64,
    retransmission: Retransmission,
    lifetime: Duration,
    /// Bytes that an Interest requests, as controllers count.
    size: u64,
    controller: Box<dyn Controller>,
    is_open: bool,
    rto: Rto,
    expressed: u64,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    lost_told: u64,
    /// Losses of Interests expressed before that belong to the last reduction.
    reduced_at: u64,
    /// The window kept an Interest back since the last Data.
    is_limited: bool,
    departs: Instant,
}

impl Window {
    /// Returns a window with these `settings`.
    pub fn new(settings: &WindowSettings, seed: u64) -> Self {
        let WindowSettings { control, interests: most, bytes: size, .. } = *settings;
        let congestion = match control {
            WindowControl::InOrder | WindowControl::Fixed => CongestionControl::FIXED,
            WindowControl::Aimd => CongestionControl::RENO,
            WindowControl::Cubic => CongestionControl::CUBIC,
            WindowControl::Vegas => CongestionControl::VEGAS,
            WindowControl::Bbr => CongestionControl::BBR,
        };
        let config = Config {
            mss: size,
            congestion,
            fixed_window: Some(u64::from(most) * u64::from(size)),
            seed,
            ..Config::default()
        };
        Window {
            control,
            most: u64::from(most),
            retransmission: settings.retransmission,
            lifetime: settings.lifetime,
            size: u64::from(size.max(1)),
            controller: config
                .congestion
                .make(&Start { segments: INITIAL.min(most.max(1)), ..config.start() }),
            is_open: false,
            rto: Rto::new(LEAST_RTO, LONGEST_RTO),
            expressed: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            lost: 0,
            lost_told: 0,
            reduced_at: 0,
            is_limited: false,
            departs: Instant::ZERO,
        }
    }

    /// Interests that may be on their way.
    pub fn interests(&self) -> u64 {
        match self.control {
            WindowControl::InOrder | WindowControl::Fixed => self.most,
            _ => (self.controller.window() / self.size).clamp(1, self.most),
        }
    }

    /// Returns how long an Interest is waited for.
    pub fn timeout(&self) -> Duration {
        match self.retransmission {
            Retransmission::Lifetime => self.lifetime,
            Retransmission::Rto => self.rto.timeout().min(self.lifetime),
        }
    }

    /// Returns the smoothed time from Interest to Data.
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
    }

    /// Returns whether the window lets a segment be asked for that is `ahead` of the one to be read next,
    /// with `in_flight` on their way.
    pub fn has_room(&mut self, ahead: u64, in_flight: u64) -> bool {
        let room = match self.control {
            WindowControl::InOrder => ahead < self.most,
            // Segments that have arrived and cannot be read yet are held: no more than some windows.
            _ => in_flight < self.interests() && ahead < 4 * self.most,
        };
        self.is_limited |= !room;
        room
    }

    /// Returns when pacing lets the next Interest go; `now` or before if at once.
    pub fn departs(&self) -> Instant {
        self.departs
    }

    /// Notes that an Interest is sent.
    pub fn expressed(&mut self, now: Instant, is_first: bool, in_flight: u64) -> Stamp {
        if !self.is_open {
            self.is_open = true;
            self.controller.on_open(now, None);
        }
        if in_flight == 0 {
            (self.delivered_at, self.first_sent) = (now, now);
        }
        self.expressed += 1;
        if let Some(rate) = self.controller.pacing_rate().filter(|rate| *rate > 0) {
            let gap = Duration::from_nanos((self.size as u128 * 1_000_000_000 / u128::from(rate)) as u64);
            self.departs = self.departs.max(now) + gap;
        }
        Stamp {
            at: now,
            is_first,
            number: self.expressed,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: (in_flight + 1) * self.size,
            is_held: self.is_limited,
        }
    }

    /// Notes the Data of an Interest, after which `in_flight` are on their way.
    pub fn answered(&mut self, now: Instant, stamp: &Stamp, in_flight: u64) {
        let rtt = stamp.is_first.then(|| now.saturating_since(stamp.at));
        self.delivered += self.size;
        let next = self.delivered + in_flight * self.size;
        if let Some(rtt) = rtt {
            self.rto.sample(rtt, self.delivered, next);
            self.rto.note_least(rtt);
        }
        let interval =
            now.saturating_since(stamp.delivered_at).max(stamp.at.saturating_since(stamp.first_sent));
        let rate = RateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            total_delivered: self.delivered,
            prior_in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
            total_lost: self.lost,
            app_limited: !stamp.is_held,
        };
        (self.delivered_at, self.first_sent) = (now, stamp.at);
        let srtt = self.rto.srtt().unwrap_or(self.lifetime);
        self.controller.on_ack(&Ack {
            now,
            delivered: self.size,
            segments: 1,
            marked: 0,
            lost: self.lost - self.lost_told,
            una: self.delivered,
            next,
            prior_in_flight: (in_flight + 1) * self.size,
            in_flight: in_flight * self.size,
            rtt,
            srtt,
            min_rtt: self.rto.min_rtt().min(srtt),
            window_limited: self.is_limited,
            repair: Repair::None,
            rate: (rate.interval > Duration::ZERO).then_some(rate),
            departs: self.departs.max(now),
        });
        (self.lost_told, self.is_limited) = (self.lost, false);
    }

    /// Notes that an Interest expired.
    pub fn expired(&mut self, now: Instant, stamp: &Stamp) {
        self.lost += self.size;
        if stamp.number > self.reduced_at {
            self.reduced_at = self.expressed;
            self.controller.on_congestion_event(now);
            self.rto.back_off();
        }
    }
}
