//! Decimal seconds as headers write them, in integer nanoseconds.

use streamgauge_base::Duration;

const NANOS: u64 = 1_000_000_000;

/// Reads `12`, `12.5`, `.5`: digits past the ninth decimal are cut off. `None` for anything else, and above
/// 580 years.
pub fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let kept = &fraction[..fraction.len().min(9)];
    let nanos = kept.bytes().fold(0, |n, b| n * 10 + u64::from(b - b'0')) * 10u64.pow(9 - kept.len() as u32);
    Some(Duration::from_nanos(whole.checked_mul(NANOS)?.checked_add(nanos)?))
}

/// Writes a time with `decimals` of at most 9, the rest cut off.
pub fn written(time: Duration, decimals: u32) -> String {
    let (whole, nanos) = (time.as_nanos() / NANOS, time.as_nanos() % NANOS);
    format!("{whole}.{:0width$}", nanos / 10u64.pow(9 - decimals), width = decimals as usize)
}
