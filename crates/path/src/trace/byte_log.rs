//! Logs of downloads at full speed over mobile networks, six columns separated by white space: a time since the epoch
//! (s in Riiser et al.'s HSDPA logs, ms in those of Ghent), a time in ms, latitude, longitude, bytes received since
//! the line before, and the ms since then. A line's rate is bytes by ms, for just those ms.

use streamgauge_base::{BitRate, Duration};

use super::lines::{Lines, not_later, number, quote, rate, room, since, time, whole};
use super::{Samples, TraceError};

pub fn parse(mut lines: Lines<'_>) -> Result<(Samples, Duration), TraceError> {
    let mut rates: Vec<(Duration, BitRate)> = Vec::new();
    let (mut end, mut stamp) = (Duration::ZERO, None);
    while let Some((line, text)) = lines.next()? {
        room(line, rates.len())?;
        let columns: Vec<&str> = text.split_whitespace().collect();
        let [epoch, ms, latitude, longitude, bytes, elapsed] = columns[..] else {
            let what = format!(
                "{}; expected six columns (byte_log): epoch, ms, latitude, longitude, bytes, ms since the line before",
                quote(text)
            );
            return Err(TraceError::at(line, what));
        };
        whole(line, epoch, "the time since the epoch", "1289406399")?;
        for position in [latitude, longitude] {
            number(line, position.trim_start_matches('-'), "the position", "59.851754")?;
        }
        let at = whole(line, ms, "the time in ms", "549692")?;
        if stamp.is_some_and(|stamp| at <= stamp) {
            return Err(not_later(line));
        }
        stamp = Some(at);
        let bytes = whole(line, bytes, "the number of bytes", "248069")?;
        let elapsed = whole(line, elapsed, "the ms since the line before", "1008")?;
        if elapsed == 0 {
            return Err(TraceError::at(
                line,
                "0 ms since the line before; expected at least 1: remove the line",
            ));
        }
        rates.push((end, rate(line, bytes as f64 * 8000.0 / elapsed as f64, 1.0)?));
        end = since(line, end + time(line, elapsed as f64, 1e6)?, Duration::ZERO)?;
    }
    if rates.is_empty() { Err(TraceError::empty()) } else { Ok((Samples::Rates(rates), end)) }
}
