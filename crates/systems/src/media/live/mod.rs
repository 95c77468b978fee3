//! A live encoder: frames with sizes that follow a target rate, drawn from real encodes.
//!
//! The sizes are those of x264 and VP8 on three sequences at ten rates (`frames.txt`, made by
//! `scripts/measure-encoders.py`): 640x360, 30 frames/s, as a call encodes. Between two measured rates they
//! are interpolated. The rate follows its target with a lag, and the excess of a key frame is saved by those
//! after it. The same seed and targets give the same frames, in both modes.

mod tables;

use std::fmt;

use streamgauge_base::{BitRate, Duration, RandomStream};

use tables::{Encode, encodes};

/// In this time the encoder's buffer makes good for a frame that was too large: half a second of its rate, as the measured
/// encodes had it (`bufsize`).
const REPAY: Duration = Duration::from_millis(500);
/// A frame is not made smaller than by this factor to make good for others.
const LEAST_BUDGET: f64 = 0.3;
/// Bytes of the smallest frame.
const LEAST_BYTES: f64 = 20.0;

/// The settings of a live encoder.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveEncoderSettings {
    /// `x264` or `vp8`.
    pub codec: String,
    /// `carphone`, `bikes` or `bigbuckbunny`.
    pub sequence: String,
    /// Returns the interval between two frames.
    pub interval: Duration,
    /// From one key frame to the next; `None`: only the first, and those that are asked for.
    pub key_interval: Option<Duration>,
    /// The time constant with which the rate follows its target. Assumed, not measured.
    pub lag: Duration,
    /// No lower target is obeyed.
    pub floor: BitRate,
    /// The highest rate.
    pub ceiling: BitRate,
}

impl Default for LiveEncoderSettings {
    /// 30 frames/s of a talking head by VP8, within the rates of RFC 8867's cases.
    fn default() -> Self {
        LiveEncoderSettings {
            codec: "vp8".into(),
            sequence: "carphone".into(),
            interval: Duration::from_nanos(33_333_333),
            key_interval: None,
            lag: Duration::from_millis(100),
            floor: BitRate::from_bps(150_000),
            ceiling: BitRate::from_bps(1_500_000),
        }
    }
}

/// Settings that no encoder can work with: the key, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveEncoderError {
    /// The key.
    pub key: &'static str,
    /// The fault, and the remedy.
    pub what: String,
}

impl fmt::Display for LiveEncoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}
impl std::error::Error for LiveEncoderError {}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveFrame {
    /// From 0.
    pub number: u64,
    /// It needs no other frame.
    pub is_key: bool,
    /// Its length.
    pub bytes: u32,
}

/// Makes frame after frame.
#[derive(Clone, Debug)]
pub struct LiveEncoder {
    settings: LiveEncoderSettings,
    encodes: &'static [Encode],
    random: RandomStream,
    target: f64,
    /// The rate now, bit/s; `None` before the first frame.
    rate: Option<f64>,
    /// Bytes beyond the rate so far, which later frames save.
    debt: f64,
    number: u64,
    /// The place in the sequence.
    place: usize,
    since_key: u64,
    key_asked: bool,
}

impl LiveEncoder {
    /// Returns an encoder that begins at `target`.
    ///
    /// # Errors
    ///
    /// The settings' first fault.
    pub fn new(settings: LiveEncoderSettings, target: BitRate, seed: u64) -> Result<Self, LiveEncoderError> {
        let wrong = |key, what: String| Err(LiveEncoderError { key, what });
        let known = |wanted: &str| encodes().iter().any(|(of, _)| of.0 == wanted);
        if !known(&settings.codec) {
            return wrong("codec", format!("{:?} was not measured; give x264 or vp8", settings.codec));
        }
        let key = (settings.codec.as_str(), settings.sequence.as_str());
        let Some((_, found)) = encodes().iter().find(|(of, _)| *of == key) else {
            let what =
                format!("{:?} was not measured; give carphone, bikes or bigbuckbunny", settings.sequence);
            return wrong("sequence", what);
        };
        let ms = |d: Duration| d.as_nanos() as f64 / 1e6;
        if !(1.0..=1000.0).contains(&ms(settings.interval)) {
            return wrong("interval", format!("{} ms; give 1 ms to 1 s", ms(settings.interval)));
        }
        if settings.key_interval.is_some_and(|every| every < settings.interval) {
            return wrong(
                "key_interval",
                "it is shorter than a frame; give a multiple of the interval".into(),
            );
        }
        let (floor, ceiling) = (settings.floor.as_bps(), settings.ceiling.as_bps());
        if !(10_000..=100_000_000).contains(&floor) || ceiling < floor || ceiling > 100_000_000 {
            let what =
                format!("{floor} to {ceiling} bit/s; give 10 kbit/s <= floor <= ceiling <= 100 Mbit/s");
            return wrong("floor", what);
        }
        let mut random = RandomStream::named(seed, "live", "encoder");
        let place = random.below(found[0].deltas.len() as u64) as usize;
        Ok(LiveEncoder {
            settings,
            encodes: found,
            random,
            target: target.as_bps() as f64,
            rate: None,
            debt: 0.0,
            number: 0,
            place,
            since_key: 0,
            key_asked: true,
        })
    }

    /// Sets the target for the frames from the next one on, within floor and ceiling.
    pub fn set_target(&mut self, target: BitRate) {
        self.target = target.as_bps() as f64;
    }
    /// Makes the next frame a key frame.
    pub fn ask_for_key(&mut self) {
        self.key_asked = true;
    }
    /// Returns the rate that the next frame is made for, before it follows its target further.
    pub fn rate(&self) -> BitRate {
        BitRate::from_bps(self.rate.unwrap_or(self.bounded()) as u64)
    }
    /// Returns the interval between two frames.
    pub fn interval(&self) -> Duration {
        self.settings.interval
    }

    fn bounded(&self) -> f64 {
        let (floor, ceiling) = (self.settings.floor.as_bps() as f64, self.settings.ceiling.as_bps() as f64);
        self.target.clamp(floor, ceiling)
    }

    /// Makes the next frame, one interval after the last.
    pub fn next_frame(&mut self) -> LiveFrame {
        let interval = self.settings.interval.as_secs_f64();
        let (goal, lag) = (self.bounded(), self.settings.lag.as_secs_f64());
        let rate = match self.rate {
            None => goal,
            Some(rate) if lag == 0.0 => rate + (goal - rate),
            Some(rate) => rate + (goal - rate) * -libm::expm1(-interval / lag),
        };
        self.rate = Some(rate);
        let every =
            self.settings.key_interval.map(|every| every.as_nanos() / self.settings.interval.as_nanos());
        let is_key = self.key_asked || every.is_some_and(|every| self.since_key >= every);
        (self.key_asked, self.since_key) = (false, if is_key { 1 } else { self.since_key + 1 });

        let share = rate * interval / 8.0;
        let saved = self.debt * (interval / REPAY.as_secs_f64()).min(1.0);
        let budget = (share - saved).max(LEAST_BUDGET * share);
        let key = if is_key { self.random.below(self.encodes[0].keys.len() as u64) as usize } else { 0 };
        let factor = self.between(rate, |one| if is_key { one.keys[key] } else { one.deltas[self.place] });
        let bytes = libm::round((factor * budget).max(LEAST_BYTES));
        self.debt += bytes - share;
        if !is_key {
            self.place = (self.place + 1) % self.encodes[0].deltas.len();
        }
        self.number += 1;
        LiveFrame { number: self.number - 1, is_key, bytes: bytes as u32 }
    }

    /// Returns the value of `of` at `rate`: between the two nearest encodes, by the rate's logarithm.
    fn between(&self, rate: f64, of: impl Fn(&Encode) -> f64) -> f64 {
        let above = self.encodes.partition_point(|one| one.rate <= rate);
        if above == 0 || above == self.encodes.len() {
            return of(&self.encodes[above.min(self.encodes.len() - 1)]);
        }
        let (low, high) = (&self.encodes[above - 1], &self.encodes[above]);
        let part = libm::log(rate / low.rate) / libm::log(high.rate / low.rate);
        of(low) + (of(high) - of(low)) * part
    }
}

#[cfg(test)]
mod tests;
