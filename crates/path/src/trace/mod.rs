//! Traces of links: files of what others measured, as rates over time or delivery opportunities. No IO: text in, a
//! typed value out.
//!
//! | format | a line | source |
//! |---|---|---|
//! | `mahimahi` | ms of one delivery opportunity | mm-link(1) |
//! | `csv` | time,rate with units in the header | ours |
//! | `pensieve` | s Mbit/s | Mao et al., "Neural Adaptive Video Streaming with Pensieve", SIGCOMM 2017: "cooked" traces |
//! | `byte_log` | epoch, ms, latitude, longitude, bytes, ms | Riiser et al., MMSys 2013 (HSDPA, Norway); van der Hooft et al., IEEE Communications Letters 20(11), 2016 (4G, Ghent) |
//! | `ucc`, `ucc_up` | G-NetTrack's CSV, `DL_bitrate` or `UL_bitrate` in kbit/s | Raca et al., MMSys 2018 (4G) and 2020 (5G), Cork |

mod byte_log;
mod csv;
mod lines;
mod mahimahi;
mod pensieve;
mod ucc;

use std::fmt;
use std::str::FromStr;

use streamgauge_base::{BitRate, Duration};

use crate::spec::{OpportunitiesSpec, RateSpec};
use lines::Lines;

/// How a trace's text is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// mahimahi's packet-delivery traces.
    Mahimahi,
    /// Comma-separated times and rates, with units in the header.
    Csv,
    /// Pensieve's: seconds and Mbit/s.
    Pensieve,
    /// Bytes received in so many ms, after a time and a position: HSDPA in Norway, 4G in Ghent.
    ByteLog,
    /// University College Cork's 4G and 5G, downlink.
    Ucc,
    /// The same, uplink.
    UccUp,
}

impl TraceFormat {
    /// Every format.
    pub const ALL: [TraceFormat; 6] = [
        TraceFormat::Mahimahi,
        TraceFormat::Csv,
        TraceFormat::Pensieve,
        TraceFormat::ByteLog,
        TraceFormat::Ucc,
        TraceFormat::UccUp,
    ];

    /// As it is said.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Mahimahi => "mahimahi",
            TraceFormat::Csv => "csv",
            TraceFormat::Pensieve => "pensieve",
            TraceFormat::ByteLog => "byte_log",
            TraceFormat::Ucc => "ucc",
            TraceFormat::UccUp => "ucc_up",
        }
    }

    /// The format that the first line with something on it looks like.
    fn detect(lines: &mut Lines<'_>) -> Result<Self, TraceError> {
        let (number, line) = lines.peek()?.ok_or_else(TraceError::empty)?;
        if line.contains(',') {
            return Ok(if ucc::is_header(line) { TraceFormat::Ucc } else { TraceFormat::Csv });
        }
        match line.split_whitespace().count() {
            1 => Ok(TraceFormat::Mahimahi),
            2 => Ok(TraceFormat::Pensieve),
            6 => Ok(TraceFormat::ByteLog),
            columns => Err(TraceError::at(
                number,
                format!(
                    "{columns} columns are no format known here; expected one number (mahimahi), two (pensieve), \
                     six (byte_log), or commas (csv, ucc)"
                ),
            )),
        }
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = TraceError;
    fn from_str(name: &str) -> Result<Self, TraceError> {
        TraceFormat::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let all = TraceFormat::ALL.map(TraceFormat::name).join(", ");
            TraceError {
                line: None,
                what: format!("no trace format is called {}; expected {all}", lines::quote(name)),
            }
        })
    }
}

/// What is wrong with a trace: one line that names the place, what was expected, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{what}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TraceError {
    /// Counted from 1; `None` if it is about the whole.
    pub line: Option<usize>,
    /// What, expected, remedy.
    pub what: String,
}

impl TraceError {
    fn at(line: usize, what: impl Into<String>) -> Self {
        TraceError { line: Some(line), what: what.into() }
    }
    fn whole(what: impl Into<String>) -> Self {
        TraceError { line: None, what: what.into() }
    }
    fn empty() -> Self {
        TraceError::whole("the trace is empty; expected at least one line of data")
    }
}

/// What a trace says of its link.
#[derive(Clone, PartialEq, Debug)]
pub enum Samples {
    /// When an MTU-sized packet may leave. Never going back.
    Opportunities(Vec<Duration>),
    /// From each time on, that rate; ascending, the first at 0.
    Rates(Vec<(Duration, BitRate)>),
}

/// A trace, read.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The layout it had.
    pub format: TraceFormat,
    /// What it says.
    pub samples: Samples,
    /// How long it lasts, > 0: after this it may begin again.
    pub duration: Duration,
}

impl Trace {
    /// The longest text, bytes.
    pub const LONGEST_TEXT: usize = 64 << 20;
    /// The most samples, also of a trace that is repeated.
    pub const MOST_SAMPLES: usize = 1_000_000;
    /// The longest time, 30 days.
    pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
    /// The highest rate, 1 Tbit/s.
    pub const HIGHEST: BitRate = BitRate::from_bps(1_000_000_000_000);

    /// Reads `text`; `None` for the format that its first line looks like. Blank lines and lines that begin with
    /// `#` are passed over.
    ///
    /// # Errors
    ///
    /// Everything that is not such a trace, one without any capacity, and one of absurd size.
    pub fn parse(text: &str, format: Option<TraceFormat>) -> Result<Trace, TraceError> {
        if text.len() > Self::LONGEST_TEXT {
            return Err(TraceError::whole(format!(
                "the trace has {} bytes; at most {} are read, so cut it up",
                text.len(),
                Self::LONGEST_TEXT
            )));
        }
        let mut lines = Lines::of(text);
        let format = match format {
            Some(format) => format,
            None => TraceFormat::detect(&mut lines)?,
        };
        let (samples, duration) = match format {
            TraceFormat::Mahimahi => mahimahi::parse(lines)?,
            TraceFormat::Csv => csv::parse(lines)?,
            TraceFormat::Pensieve => pensieve::parse(lines)?,
            TraceFormat::ByteLog => byte_log::parse(lines)?,
            TraceFormat::Ucc => ucc::parse(lines, "DL_bitrate")?,
            TraceFormat::UccUp => ucc::parse(lines, "UL_bitrate")?,
        };
        if let Samples::Rates(rates) = &samples
            && rates.iter().all(|(_, rate)| rate.as_bps() == 0)
        {
            return Err(TraceError::whole(
                "every rate is 0, so nothing would ever leave; expected one above 0",
            ));
        }
        Ok(Trace { format, samples, duration })
    }

    /// As a bottleneck's rate. Opportunities repeat by themselves; rates are written out again and again until
    /// `lasts`, or once if that is `None`, and the last one stays.
    ///
    /// # Errors
    ///
    /// More than [`Trace::MOST_SAMPLES`] steps.
    pub fn rate(&self, lasts: Option<Duration>) -> Result<RateSpec, TraceError> {
        let rates = match &self.samples {
            Samples::Opportunities(times) => {
                let (times, period) = (times.clone(), self.duration);
                return Ok(RateSpec::Opportunities(OpportunitiesSpec {
                    times,
                    bytes: mahimahi::BYTES,
                    period,
                }));
            }
            Samples::Rates(rates) => rates,
        };
        let mut steps = rates.clone();
        let mut start = self.duration;
        while lasts.is_some_and(|lasts| start < lasts) {
            if steps.len() + rates.len() > Self::MOST_SAMPLES {
                return Err(TraceError::whole(format!(
                    "repeated to the end the trace has more than {} steps; shorten the trial or thin the trace",
                    Self::MOST_SAMPLES
                )));
            }
            steps.extend(rates.iter().map(|&(at, rate)| (start + at, rate)));
            start += self.duration;
        }
        Ok(RateSpec::Steps(steps))
    }

    /// What it carries over its duration, by the duration.
    pub fn mean(&self) -> BitRate {
        match &self.samples {
            Samples::Opportunities(times) => {
                OpportunitiesSpec { times: times.clone(), bytes: mahimahi::BYTES, period: self.duration }
                    .mean()
            }
            Samples::Rates(rates) => {
                let ends = rates.iter().skip(1).map(|&(at, _)| at).chain([self.duration]);
                let work: u128 = rates
                    .iter()
                    .zip(ends)
                    .map(|(&(at, rate), end)| rate.nanobits_in(end.saturating_sub(at)))
                    .sum();
                let mean = work / u128::from(self.duration.as_nanos().max(1));
                BitRate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
            }
        }
    }

    /// How many samples it has.
    pub fn len(&self) -> usize {
        match &self.samples {
            Samples::Opportunities(times) => times.len(),
            Samples::Rates(rates) => rates.len(),
        }
    }

    /// Never: a trace has at least one sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
