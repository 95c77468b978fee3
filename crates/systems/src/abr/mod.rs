//! Adaptive bit rate: the choice of the level that a player requests next. Each rule has its file and its line in
//! [`RULES`]. Each decision has its reason, with its numbers.
//!
//! The player reports to a rule each segment ([`Rule::fetched`]) and each time the buffer was empty or full. It asks
//! the rule before each segment ([`Rule::decide`]) and during a transfer ([`Rule::abandon`]). A rule reads no clock and
//! draws only from its seed: equal reports give equal decisions.

mod bba;
mod dashjs;
mod estimate;
mod exoplayer;
mod festive;
mod fixed;
mod functions;
mod gstreamer;
mod harmonic;
mod hlsjs;
mod mmsys18;
mod mpc;
mod panda;
#[cfg(test)]
mod properties;
mod recent;
mod rules;
mod shaka;
#[cfg(test)]
mod telling;
mod utilities;
mod vlc2;
mod vlc3;

pub use functions::{
    Maker, call_functions_by, chosen_level, fetched_as_json, is_function, situation_as_json,
};
pub use rules::{NamedRule, RULES, fixed, make, rule};

use std::borrow::Cow;

use streamgauge_base::{BitRate, Duration};

/// The content as a rule can know it before the first fetch, from a manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct Ladder {
    /// The levels' declared rates, ascending; at least one.
    pub rates: Vec<BitRate>,
    /// How long a segment plays; the last may be shorter.
    pub segment: Duration,
    /// Segments in all; `None` of a live stream.
    pub segments: Option<usize>,
    /// Bytes of each segment, level by level, where the manifest or an index contains them; otherwise empty.
    pub sizes: Vec<Vec<u64>>,
}

impl Ladder {
    /// Bytes of segment `number` at `level`: the declared size, else the product of the declared rate and the length.
    pub fn bytes(&self, level: usize, number: usize) -> f64 {
        let told = self.sizes.get(level).and_then(|sizes| sizes.get(number));
        told.map_or_else(
            || self.rates[level].as_bps() as f64 / 8.0 * self.segment.as_secs_f64(),
            |&told| told as f64,
        )
    }

    /// Declared rate of `level` in bit/s; none where its manifest states no rate.
    pub fn declared_bps(&self, level: usize) -> Option<f64> {
        Some(self.bps(level)).filter(|bps| *bps > 0.0)
    }

    /// Declared rate of `level`, for people.
    pub fn in_words(&self, level: usize) -> String {
        self.declared_bps(level).map_or("an unknown rate".into(), |bps| format!("{:.0} kbit/s", bps / 1000.0))
    }

    /// Declared rate of `level` in bit/s, as rules compare it.
    pub fn bps(&self, level: usize) -> f64 {
        self.rates[level].as_bps() as f64
    }

    /// The last level.
    pub fn top(&self) -> usize {
        self.rates.len() - 1
    }

    /// The highest level with a declared rate of at most `bps`; the lowest if there is none.
    pub fn at_most(&self, bps: f64) -> usize {
        self.rates.partition_point(|rate| rate.as_bps() as f64 <= bps).saturating_sub(1)
    }

    /// The highest level with a declared rate below `bps`; the lowest if there is none.
    pub fn below(&self, bps: f64) -> usize {
        self.rates.partition_point(|rate| (rate.as_bps() as f64) < bps).saturating_sub(1)
    }
}

/// How far behind the live edge a player of a live stream is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Live {
    /// From capture to where play is.
    pub latency: Duration,
    /// The target of the latency.
    pub target: Duration,
    /// How fast it plays, 1 as a rule.
    pub speed: f64,
}

/// The state that a rule may read for its decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Situation<'a> {
    /// Since the session's first request.
    pub now: Duration,
    /// The content.
    pub ladder: &'a Ladder,
    /// The segment that is to be asked for, from 0.
    pub segment: usize,
    /// The level of the segment before; `None` before the first.
    pub level: Option<usize>,
    /// Media held: from the play position to the end of the last complete segment.
    pub buffer: Duration,
    /// The player asks for no more while it holds this much.
    pub target: Duration,
    /// The clock runs: play has begun and does not stall.
    pub playing: bool,
    /// The state of a live stream.
    pub live: Option<Live>,
}

/// A received segment, or the part that arrived before it was given up. Times are since the session's first request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fetched {
    /// Its number, from 0.
    pub segment: usize,
    /// Its level.
    pub level: usize,
    /// Received bytes of its body.
    pub bytes: u64,
    /// When it was asked for; after connecting, where a connection was made for it.
    pub asked: Duration,
    /// The time of the answer's first byte.
    pub first_byte: Duration,
    /// The time of the last byte, or of the abandonment.
    pub done: Duration,
    /// When the player's page had read it.
    pub seen: Duration,
    /// When the player had given it to the decoder.
    pub appended: Duration,
    /// How long the player waited in reading: without the time in which it did not want to read.
    pub reading: Duration,
    /// It was given up for another level.
    pub abandoned: bool,
}

impl Fetched {
    /// Body bits over the time from the first byte to the last.
    pub fn throughput_bps(&self) -> f64 {
        bps(self.bytes, self.done.saturating_sub(self.first_byte))
    }

    /// Body bits over the time from the request to the last byte.
    pub fn throughput_from_request_bps(&self) -> f64 {
        bps(self.bytes, self.done.saturating_sub(self.asked))
    }
}

fn bps(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64().max(1e-9)
}

/// A segment that is on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Its number.
    pub segment: usize,
    /// Its level.
    pub level: usize,
    /// Bytes of its body so far.
    pub bytes: u64,
    /// The body's length, once the answer's head has arrived.
    pub of: Option<u64>,
    /// When it was asked for.
    pub asked: Duration,
    /// The time of the answer's first byte, if there is one.
    pub first_byte: Option<Duration>,
}

/// A rule's decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The level, an index of the ladder's rates.
    pub level: usize,
    /// The wait before the request, beyond the player's wait for room in its buffer.
    pub wait: Duration,
    /// The rule's estimate of the throughput, if it has one.
    pub estimate: Option<BitRate>,
    /// Why this level, for people.
    pub why: Cow<'static, str>,
}

impl Decision {
    /// To ask for `level` at once.
    pub fn at_once(
        level: usize,
        estimate_bps: impl Into<Option<f64>>,
        why: impl Into<Cow<'static, str>>,
    ) -> Self {
        let estimate = estimate_bps.into().filter(|bps| bps.is_finite() && *bps >= 0.0);
        Decision {
            level,
            wait: Duration::ZERO,
            estimate: estimate.map(|bps| BitRate::from_bps(bps as u64)),
            why: why.into(),
        }
    }
}

/// A rule of adaptive bit rate.
pub trait Rule: Send {
    /// The level of the next segment.
    fn decide(&mut self, now: &Situation<'_>) -> Decision;

    /// Takes in a segment that is complete or was given up.
    fn fetched(&mut self, fetched: &Fetched, now: &Situation<'_>) {
        let _ = (fetched, now);
    }

    /// A segment was there again in no time: a browser's cache had it. It is the situation's segment.
    fn cache_had(&mut self, level: usize, now: &Situation<'_>) {
        let _ = (level, now);
    }

    /// Returns the level for which the segment in flight is to be given up. The player asks as bytes arrive, at the end
    /// of the segment, and at least each 100 ms. A rule that gives up no segment twice remembers its number.
    fn abandon(&mut self, progress: &Progress, now: &Situation<'_>) -> Option<Decision> {
        let _ = (progress, now);
        None
    }

    /// How far apart two such questions are at least, as bytes come.
    fn asked_each(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// The time at which the player asks about the segment in flight though no bytes arrive, since the session's first
    /// request.
    fn looks_again(&self) -> Option<Duration> {
        None
    }

    /// Takes in an idle time of the player: its buffer was full, or the decision was to wait.
    fn idled(&mut self, time: Duration) {
        let _ = time;
    }

    /// The buffer ran dry.
    fn ran_dry(&mut self) {}
}

/// A flow's settings of its rule, beside its name. A rule ignores those that it does not use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tuning {
    /// How much of the throughput may be used, in place of the rule's own share.
    pub safety_factor: Option<f64>,
    /// Segments may be given up while they come.
    pub abandons: bool,
    /// The first segment is chosen as if this were the throughput, in place of the rule's own start.
    pub initial: Option<BitRate>,
    /// The level of the rule `fixed`, from 0; the highest if there are fewer.
    pub level: usize,
    /// The seed of all draws.
    pub seed: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { safety_factor: None, abandons: true, initial: None, level: 0, seed: 0 }
    }
}
