//! Pensieve's "cooked" traces, also made of the FCC's measurements and of many others: a time in s and a rate in
//! Mbit/s, separated by white space. Pensieve's own simulator applies a line's rate to the time since the line before
//! it, so the first line only gives the time at which the trace begins.

use streamgauge_base::{BitRate, Duration};

use super::lines::{Lines, not_later, number, quote, rate, room, since, time};
use super::{Samples, TraceError};

pub fn parse(mut lines: Lines<'_>) -> Result<(Samples, Duration), TraceError> {
    let mut rates: Vec<(Duration, BitRate)> = Vec::new();
    let mut first = None;
    let mut end = Duration::ZERO;
    while let Some((line, text)) = lines.next()? {
        room(line, rates.len())?;
        let mut columns = text.split_whitespace();
        let (Some(at), Some(mbps), None) = (columns.next(), columns.next(), columns.next()) else {
            let what = format!("{}; expected a time in s and a rate in Mbit/s (pensieve)", quote(text));
            return Err(TraceError::at(line, what));
        };
        let at = time(line, number(line, at, "the time in s", "0.5")?, 1e9)?;
        let mbps = rate(line, number(line, mbps, "the rate in Mbit/s", "2.5")?, 1e6)?;
        let Some(first) = first else {
            first = Some(at);
            continue;
        };
        if at <= first + end {
            return Err(not_later(line));
        }
        rates.push((end, mbps));
        end = since(line, at, first)?;
    }
    if rates.is_empty() {
        return Err(TraceError::whole(
            "fewer than two lines; expected at least two (pensieve), each with the rate since the one before it",
        ));
    }
    Ok((Samples::Rates(rates), end))
}
