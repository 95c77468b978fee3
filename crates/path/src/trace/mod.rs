//! Traces of links: files of others' measurements, as rates over time or delivery opportunities. No IO: text in, a
//! typed value out.
//!
//! | format | a line | source |
//! |---|---|---|
//! | `mahimahi` | ms of one delivery opportunity | mm-link(1) |
//! | `csv` | time,rate (or time;rate, or by tabs) with units in the header | ours |
//! | `pensieve` | s Mbit/s | Mao et al., "Neural Adaptive Video Streaming with Pensieve", SIGCOMM 2017: "cooked" traces |
//! | `byte_log` | epoch, ms, latitude, longitude, bytes, ms | Riiser et al., MMSys 2013 (HSDPA, Norway); van der Hooft et al., IEEE Communications Letters 20(11), 2016 (4G, Ghent) |
//! | `ucc`, `ucc_up` | G-NetTrack's CSV, `DL_bitrate` or `UL_bitrate` in kbit/s | Raca et al., MMSys 2018 (4G) and 2020 (5G), Cork |

mod byte_log;
mod columns;
mod csv;
mod lines;
mod mahimahi;
mod pensieve;
mod ucc;
mod units;

use std::fmt;
use std::str::FromStr;

use streamgauge_base::{BitRate, Duration};

use crate::spec::{OpportunitiesSpec, RateSpec};
pub use columns::TraceColumn;
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
    /// Bytes received in a number of ms, after a time and a position: HSDPA in Norway, 4G in Ghent.
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

    /// Returns its name in texts.
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

    /// Returns the format that the first non-empty line resembles.
    fn detect(lines: &mut Lines<'_>) -> Result<Self, TraceError> {
        let (number, line) = lines.peek()?.ok_or_else(TraceError::empty)?;
        let columns = line.split_whitespace().count();
        let is_named = line.chars().any(char::is_alphabetic);
        if let Some(separator) = csv::separator(line)
            // Numbers between tabs are as those between spaces.
            && (separator != '\t' || is_named)
        {
            return Ok(if ucc::is_header(line) { TraceFormat::Ucc } else { TraceFormat::Csv });
        }
        if columns > 1 && is_named && line.chars().next().is_some_and(char::is_alphabetic) {
            let what = format!(
                "{} is a header with spaces between columns; use commas, semicolons or tabs",
                lines::quote(line)
            );
            return Err(TraceError::at(number, what));
        }
        match columns {
            1 => Ok(TraceFormat::Mahimahi),
            2 => Ok(TraceFormat::Pensieve),
            6 => Ok(TraceFormat::ByteLog),
            columns => Err(TraceError::at(
                number,
                format!(
                    "{columns} columns are no known format. Expected one number (mahimahi), two (pensieve), \
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

/// A fault of a trace: one line that names the place, the expected value, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{what}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TraceError {
    /// Counted from 1; `None` if it is about the whole.
    pub line: Option<usize>,
    /// The fault, the expected value and the remedy.
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

/// A trace's samples of its link.
#[derive(Clone, PartialEq, Debug)]
pub enum Samples {
    /// When an MTU-sized packet may leave. Never decreasing.
    Opportunities(Vec<Duration>),
    /// From each time on, that rate; ascending, the first at 0.
    Rates(Vec<(Duration, BitRate)>),
}

/// A trace, read.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The layout it had.
    pub format: TraceFormat,
    /// The samples.
    pub samples: Samples,
    /// How long it lasts, > 0: after this it may begin again.
    pub duration: Duration,
    /// The text names the units of its numbers.
    pub names_units: bool,
    /// One-way delays over its time: of `csv` with such a column.
    pub delays: TraceColumn<Duration>,
    /// Shares of packets that are lost over its time: of `csv` with such a column.
    pub losses: TraceColumn<f64>,
}

/// No link that media are streamed over is slower.
const SLOW_BPS: u64 = 10_000;

/// No link with such traces is faster.
const FAST_BPS: u64 = 20_000_000_000;

/// No measurement of a link is so sparse.
const SPARSE: Duration = Duration::from_secs(90);

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
        let named = |(samples, duration)| (samples, duration, true);
        let unnamed = |(samples, duration)| (samples, duration, false);
        let (mut delays, mut losses) = (Ok(Vec::new()), Ok(Vec::new()));
        let (samples, duration, names_units) = match format {
            TraceFormat::Mahimahi => unnamed(mahimahi::parse(lines)?),
            TraceFormat::Csv => {
                let table = csv::parse(lines)?;
                (delays, losses) = (table.delays, table.losses);
                (table.samples, table.duration, table.names_units)
            }
            TraceFormat::Pensieve => unnamed(pensieve::parse(lines)?),
            TraceFormat::ByteLog => unnamed(byte_log::parse(lines)?),
            TraceFormat::Ucc => named(ucc::parse(lines, "DL_bitrate")?),
            TraceFormat::UccUp => named(ucc::parse(lines, "UL_bitrate")?),
        };
        if let Samples::Rates(rates) = &samples
            && rates.iter().all(|(_, rate)| rate.as_bps() == 0)
        {
            return Err(TraceError::whole(
                "every rate is 0, so nothing would ever leave; expected one above 0",
            ));
        }
        Ok(Trace { format, samples, duration, names_units, delays, losses })
    }

    /// Returns why its numbers are probably of other units than those of its format, and the remedy. `None` if nothing
    /// looks odd, or if the text names its units.
    pub fn doubt(&self) -> Option<String> {
        let Samples::Rates(rates) = &self.samples else { return None };
        if self.names_units {
            return None;
        }
        let mean = self.mean().as_bps();
        let typical = self.duration.div(rates.len() as u64);
        match self.format {
            TraceFormat::Csv if mean < SLOW_BPS => Some(format!(
                "without a header rates are bit/s, and their mean is {mean} bit/s. If they are kbit/s, begin the file \
                 with a line such as `time_s,rate_kbps`"
            )),
            TraceFormat::Csv if typical >= SPARSE => Some(format!(
                "without a header times are s, and lines are {} s apart. If they are ms, begin the file with a line such \
                 as `time_ms,rate_bps`",
                typical.as_nanos() / 1_000_000_000
            )),
            TraceFormat::Pensieve if mean >= FAST_BPS => Some(format!(
                "without a header rates are Mbit/s (pensieve), and their mean is {} Mbit/s. If they are kbit/s, write csv \
                 with a header such as `time_s,rate_kbps`",
                mean / 1_000_000
            )),
            TraceFormat::Pensieve if mean < SLOW_BPS => Some(format!(
                "without a header rates are Mbit/s (pensieve), and their mean is {mean} bit/s, too little for a link. \
                 Write csv with a header such as `time_s,rate_kbps`"
            )),
            TraceFormat::Pensieve if typical >= SPARSE => Some(format!(
                "without a header times are s (pensieve), and lines are {} s apart. If they are ms, write csv with a \
                 header such as `time_ms,rate_mbps`",
                typical.as_nanos() / 1_000_000_000
            )),
            _ => None,
        }
    }

    /// Returns it as a bottleneck's rate. Opportunities repeat by themselves; rates are written out again and again
    /// until `lasts`, or once if that is `None`, and the last one stays.
    ///
    /// # Errors
    ///
    /// Fails with more than [`Trace::MOST_SAMPLES`] steps.
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
                    "the repeated trace has more than {} steps; shorten the trial or thin the trace",
                    Self::MOST_SAMPLES
                )));
            }
            steps.extend(rates.iter().map(|&(at, rate)| (start + at, rate)));
            start += self.duration;
        }
        Ok(RateSpec::Steps(steps))
    }

    /// Returns the bytes that it carries over its duration, by the duration.
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

    /// Returns how many samples it has.
    pub fn len(&self) -> usize {
        match &self.samples {
            Samples::Opportunities(times) => times.len(),
            Samples::Rates(rates) => rates.len(),
        }
    }

    /// Returns false: a trace has at least one sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
