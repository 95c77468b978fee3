//! University College Cork's 4G and 5G data sets: CSV as G-NetTrack Pro writes it, a row a second, with `Timestamp`
//! (2018.01.18_14.38.13), `DL_bitrate` and `UL_bitrate` in kbit/s among many other columns.
//!
//! Rows with `State` I were taken while nothing was being downloaded: their rate is no measurement of the link, so they
//! are passed over and the rate before them stays. If two rows are of one second, the later counts.

use streamgauge_base::{BitRate, Duration};

use super::lines::{Lines, lasting, not_later, number, quote, rate, room, since};
use super::{Samples, TraceError};

/// Returns whether a line is such a file's header.
pub fn is_header(line: &str) -> bool {
    let has = |name| line.split(',').any(|column| column.trim() == name);
    has("Timestamp") && (has("DL_bitrate") || has("UL_bitrate"))
}

pub fn parse(mut lines: Lines<'_>, bit_rate: &str) -> Result<(Samples, Duration), TraceError> {
    let Some((line, text)) = lines.next()? else { return Err(TraceError::empty()) };
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let column = |name: &str| names.iter().position(|column| *column == name);
    let (Some(stamp), Some(bit_rate)) = (column("Timestamp"), column(bit_rate)) else {
        let what = format!("{} is no header (ucc); expected columns Timestamp and {bit_rate}", quote(text));
        return Err(TraceError::at(line, what));
    };
    let state = column("State");
    let mut rates: Vec<(Duration, BitRate)> = Vec::new();
    let mut first = None;
    while let Some((line, text)) = lines.next()? {
        room(line, rates.len())?;
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        if fields.len() != names.len() {
            let what =
                format!("{} has {} columns; the header has {}", quote(text), fields.len(), names.len());
            return Err(TraceError::at(line, what));
        }
        if state.is_some_and(|state| fields[state] == "I") {
            continue;
        }
        let at = Duration::from_secs(seconds(fields[stamp]).ok_or_else(|| {
            let what = format!("{} is no time; expected such as 2018.01.18_14.38.13", quote(fields[stamp]));
            TraceError::at(line, what)
        })?);
        let kbps = rate(line, number(line, fields[bit_rate], "the bit rate in kbit/s", "12960")?, 1e3)?;
        let first = *first.get_or_insert(at);
        if at < first {
            return Err(not_later(line));
        }
        let at = since(line, at, first)?;
        match rates.last_mut() {
            Some(last) if last.0 == at => last.1 = kbps,
            Some(last) if last.0 > at => return Err(not_later(line)),
            _ => rates.push((at, kbps)),
        }
    }
    lasting(rates)
}

/// Seconds from 1970 of year.month.day_hour.minute.second, by the civil calendar.
fn seconds(text: &str) -> Option<u64> {
    let mut parts = text.split(['.', '_']).map(|part| {
        let digits = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse::<u64>().ok() } else { None }
    });
    let mut next = |range: std::ops::RangeInclusive<u64>| parts.next()?.filter(|part| range.contains(part));
    let (year, month, day) = (next(1970..=2199)?, next(1..=12)?, next(1..=31)?);
    let (hour, minute, second) = (next(0..=23)?, next(0..=59)?, next(0..=60)?);
    if parts.next().is_some() {
        return None;
    }
    // Years that begin in March, so that the leap day is last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (153 * month + 2) / 5 + day - 1;
    // From 1 March of the year 0 to 1 January 1970.
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}
