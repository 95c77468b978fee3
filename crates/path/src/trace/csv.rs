//! Comma-separated values: from each time on, that rate. A header names the units, `time_s,rate_mbps` or
//! `t (ms),throughput [kbit/s]`; other columns are passed over. Without a header there are two columns, s and bit/s.
//! Times count from the first.

use streamgauge_base::{BitRate, Duration};

use super::lines::{Lines, lasting, not_later, number, quote, rate, room, since, time};
use super::{Samples, TraceError};

/// Names of units of time, and their ns.
const TIMES: [(&[&str], f64); 2] = [
    (&["s", "sec", "secs", "second", "seconds"], 1e9),
    (&["ms", "msec", "millisecond", "milliseconds"], 1e6),
];

/// Names of units of rate, and their bit/s. Not kB/s, whose b is too often a bit.
const RATES: [(&[&str], f64); 4] = [
    (&["bit/s", "bits/s", "bps"], 1.0),
    (&["kbit/s", "kbits/s", "kbps"], 1e3),
    (&["mbit/s", "mbits/s", "mbps"], 1e6),
    (&["gbit/s", "gbits/s", "gbps"], 1e9),
];

/// Where the two columns are, and their units.
struct Layout {
    columns: usize,
    time: (usize, f64),
    rate: (usize, f64),
}

pub fn parse(mut lines: Lines<'_>) -> Result<(Samples, Duration), TraceError> {
    let Some((line, text)) = lines.peek()? else { return Err(TraceError::empty()) };
    let is_header = text.split(',').any(|field| field.trim().parse::<f64>().is_err());
    let layout = if is_header && text.chars().any(char::is_alphabetic) {
        lines.next()?;
        header(line, text)?
    } else {
        Layout { columns: 2, time: (0, 1e9), rate: (1, 1.0) }
    };
    let mut rates: Vec<(Duration, BitRate)> = Vec::new();
    let mut first = None;
    while let Some((line, text)) = lines.next()? {
        room(line, rates.len())?;
        let fields: Vec<&str> = text.split(',').collect();
        if fields.len() != layout.columns {
            let what = format!("{} has {} columns; expected {}", quote(text), fields.len(), layout.columns);
            return Err(TraceError::at(line, what));
        }
        let at = time(line, number(line, fields[layout.time.0], "the time", "0.5")?, layout.time.1)?;
        let first = *first.get_or_insert(at);
        if rates.last().is_some_and(|(last, _)| at <= first + *last) {
            return Err(not_later(line));
        }
        let value = number(line, fields[layout.rate.0], "the rate", "2500")?;
        rates.push((since(line, at, first)?, rate(line, value, layout.rate.1)?));
    }
    lasting(rates)
}

fn header(line: usize, text: &str) -> Result<Layout, TraceError> {
    // A column's name often cannot have a slash: kbit_s.
    let spelt = |name: &str| name.to_lowercase().replace("bit_s", "bit/s").replace("bits_s", "bits/s");
    let names: Vec<String> = text.split(',').map(spelt).collect();
    let find = |what: &str, units: &[(&[&str], f64)], example: &str| {
        let of = |name: &String| {
            let mut words = name.split(|c: char| !(c.is_alphanumeric() || c == '/'));
            words.find_map(|word| units.iter().find(|(words, _)| words.contains(&word)).map(|unit| unit.1))
        };
        let mut found = names.iter().enumerate().filter_map(|(index, name)| Some((index, of(name)?)));
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (None, _) => Err(TraceError::at(
                line,
                format!(
                    "{}: no column's name has a unit of {what}; expected one such as {example}",
                    quote(text)
                ),
            )),
            (Some(_), Some(_)) => Err(TraceError::at(
                line,
                format!("{}: two columns have a unit of {what}; keep the one that is meant", quote(text)),
            )),
        }
    };
    let time = find("time", &TIMES, "time_s or time_ms")?;
    let rate = find("rate", &RATES, "rate_bps, rate_kbps, rate_mbps or \"rate (Mbit/s)\"")?;
    Ok(Layout { columns: names.len(), time, rate })
}
