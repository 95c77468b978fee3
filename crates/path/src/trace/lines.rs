//! Lines of a trace, and the numbers on them, with errors that name the place.

use streamgauge_base::{BitRate, Duration};

use super::{Trace, TraceError};

/// No line of any of the formats is nearly as long.
const LONGEST_LINE: usize = 4096;

/// The lines with something on them, numbered from 1.
pub struct Lines<'a> {
    rest: std::iter::Enumerate<std::str::Lines<'a>>,
    peeked: Option<(usize, &'a str)>,
}

impl<'a> Lines<'a> {
    pub fn of(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Lines { rest: text.lines().enumerate(), peeked: None }
    }

    /// Returns the next line, which stays the next.
    pub fn peek(&mut self) -> Result<Option<(usize, &'a str)>, TraceError> {
        if self.peeked.is_none() {
            self.peeked = self.advance()?;
        }
        Ok(self.peeked)
    }

    /// Returns the next line, trimmed.
    pub fn next(&mut self) -> Result<Option<(usize, &'a str)>, TraceError> {
        match self.peeked.take() {
            Some(line) => Ok(Some(line)),
            None => self.advance(),
        }
    }

    fn advance(&mut self) -> Result<Option<(usize, &'a str)>, TraceError> {
        for (index, line) in self.rest.by_ref() {
            let (number, line) = (index + 1, line.trim());
            if line.len() > LONGEST_LINE {
                let what = format!("{} bytes long; a trace's lines have at most {LONGEST_LINE}", line.len());
                return Err(TraceError::at(number, what));
            }
            if !line.is_empty() && !line.starts_with('#') {
                return Ok(Some((number, line)));
            }
        }
        Ok(None)
    }
}

/// Quotes a part of a file, short enough for a message.
pub fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}

/// Reads a number that is finite and not negative. `what` it is, and an `example`, for the message.
pub fn number(line: usize, text: &str, what: &str, example: &str) -> Result<f64, TraceError> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        Ok(value) => Err(TraceError::at(
            line,
            format!("{what} is {value}; expected a finite number of at least 0, such as {example}"),
        )),
        Err(_) => Err(TraceError::at(
            line,
            format!("{what} is {}; expected a number, such as {example}", quote(text)),
        )),
    }
}

/// Reads a whole number that is not negative.
pub fn whole(line: usize, text: &str, what: &str, example: &str) -> Result<u64, TraceError> {
    text.trim().parse().map_err(|_| {
        let given = quote(text);
        TraceError::at(
            line,
            format!("{what} is {given}; expected a whole number of at least 0, such as {example}"),
        )
    })
}

/// Returns a time of `value` units of `unit_ns`, to the nearest ns.
pub fn time(line: usize, value: f64, unit_ns: f64) -> Result<Duration, TraceError> {
    let ns = value * unit_ns + 0.5;
    // Epoch times in ms are in range as well: only the time since the first counts, checked by `since`.
    if ns < 1.8e19 { Ok(Duration::from_nanos(ns as u64)) } else { Err(too_late(line)) }
}

/// Returns `at` counted from `first`, within the longest duration of a trace.
pub fn since(line: usize, at: Duration, first: Duration) -> Result<Duration, TraceError> {
    let since = at.saturating_sub(first);
    if since <= Trace::LONGEST { Ok(since) } else { Err(too_late(line)) }
}

fn too_late(line: usize) -> TraceError {
    TraceError::at(line, "more than 30 days from the trace's start; check the unit, or cut the trace up")
}

/// Returns a rate of `value` units of `unit_bps`, to the nearest bit/s.
pub fn rate(line: usize, value: f64, unit_bps: f64) -> Result<BitRate, TraceError> {
    let bps = value * unit_bps + 0.5;
    if bps <= Trace::HIGHEST.as_bps() as f64 {
        return Ok(BitRate::from_bps(bps as u64));
    }
    Err(TraceError::at(
        line,
        format!("a rate of {value:e} x {unit_bps:e} bit/s is above 1 Tbit/s; check the unit"),
    ))
}

/// Refuses one sample too many.
pub fn room(line: usize, samples: usize) -> Result<(), TraceError> {
    if samples < Trace::MOST_SAMPLES {
        return Ok(());
    }
    let what = format!("more than {} samples; cut the trace up", Trace::MOST_SAMPLES);
    Err(TraceError::at(line, what))
}

/// Returns the error of a time that is not later than the one before it.
pub fn not_later(line: usize) -> TraceError {
    TraceError::at(
        line,
        "its time is not later than that of the line before. Sort the lines, and keep one of each time",
    )
}

/// Samples that hold from their time on, with a duration: the last lasts as long as the one before it, a single one a
/// second.
pub fn lasting(rates: Vec<(Duration, BitRate)>) -> Result<(super::Samples, Duration), TraceError> {
    let duration = match rates.as_slice() {
        [] => return Err(TraceError::empty()),
        [_] => Duration::from_secs(1),
        [.., (before, _), (last, _)] => *last + last.saturating_sub(*before),
    };
    Ok((super::Samples::Rates(rates), duration))
}
