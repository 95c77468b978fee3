//! mahimahi's packet-delivery traces (mm-link(1)): on each line the ms at which one packet of the MTU may leave, never
//! decreasing; the last is also the period.

use streamgauge_base::Duration;

use super::lines::{Lines, not_later, room, time, whole};
use super::{Samples, Trace, TraceError};

/// Bytes of an opportunity in mahimahi's program: its manual rounds to the 1500 of an MTU, its queues count the TUN
/// device's 4 bytes too.
pub const BYTES: u32 = 1504;

pub fn parse(mut lines: Lines<'_>) -> Result<(Samples, Duration), TraceError> {
    let mut times: Vec<Duration> = Vec::new();
    while let Some((line, text)) = lines.next()? {
        room(line, times.len())?;
        let ms = whole(line, text, "the time of an opportunity (mahimahi)", "1520")?;
        let at = time(line, ms as f64, 1e6)?;
        if at > Trace::LONGEST {
            return Err(TraceError::at(line, "an opportunity after more than 30 days; times are in ms"));
        }
        if times.last().is_some_and(|&last| at < last) {
            return Err(not_later(line));
        }
        times.push(at);
    }
    let duration = *times.last().ok_or_else(TraceError::empty)?;
    if duration == Duration::ZERO {
        return Err(TraceError::whole(
            "the last opportunity is at 0 ms; it says when the trace begins again, so > 0",
        ));
    }
    Ok((Samples::Opportunities(times), duration))
}
