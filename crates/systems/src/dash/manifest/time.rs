//! Times as manifests write them: ticks, XML Schema's durations and dates, decimal seconds.

use streamgauge_base::Duration;

const NANOS: u128 = 1_000_000_000;

/// Returns `ticks` of 1 / `timescale` s to the nearest nanosecond, or the longest duration if that is too long.
/// Durations are differences of such times, so that they add up.
pub fn of_ticks(ticks: u64, timescale: u64) -> Duration {
    let scale = u128::from(timescale.max(1));
    let nanos = (u128::from(ticks) * NANOS + scale / 2) / scale;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Seconds as a decimal number, `9.009`; digits beyond a nanosecond are left out.
pub fn of_decimal(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = part.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    seconds.checked_mul(NANOS as u64)?.checked_add(nanos).map(Duration::from_nanos)
}

/// A whole number, which may have zeros behind a decimal point.
pub fn whole_number(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    whole.parse().ok().filter(|_| part.bytes().all(|byte| byte == b'0'))
}

/// A rate in bit/s, rounded to a whole one.
pub fn rate(text: &str) -> Option<u64> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_digits = part.bytes().all(|byte| byte.is_ascii_digit());
    let up = u64::from(part.as_bytes().first().is_some_and(|digit| *digit >= b'5'));
    whole.parse::<u64>().ok().filter(|_| is_digits)?.checked_add(up)
}

/// The feature that an error of [`of_xs_duration`] names.
pub const DURATION: &str =
    "write a duration as P1DT2H3M4.5S; years and months must be 0, and weeks have no letter";

/// `P0Y0M1DT1H2M3.5S` (XML Schema part 2 section 3.2.6). The last part may have a fraction (ISO 8601). Years and months
/// are of no fixed length: other than 0 they are `None`.
pub fn of_xs_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('P')?;
    let (mut total, mut parts, mut is_last) = (0u64, 0, false);
    let units = [
        ('Y', None),
        ('M', None),
        ('D', Some(86_400)),
        ('T', None),
        ('H', Some(3600)),
        ('M', Some(60)),
        ('S', Some(1)),
    ];
    for (unit, seconds) in units {
        if unit == 'T' {
            rest = match rest.strip_prefix('T') {
                Some(clock) if !clock.is_empty() => clock,
                Some(_) => return None,
                None => break,
            };
            continue;
        }
        // The M of months is before the T, that of minutes after it.
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(end);
        let Some(after) = after.strip_prefix(unit) else { continue };
        let value = of_decimal(amount).filter(|_| !is_last)?;
        is_last = amount.contains('.');
        match seconds {
            Some(seconds) => total = total.checked_add(value.as_nanos().checked_mul(seconds)?)?,
            None if value > Duration::ZERO => return None,
            None => {}
        }
        (rest, parts) = (after, parts + 1);
    }
    (rest.is_empty() && parts > 0).then_some(Duration::from_nanos(total))
}

/// `2026-01-02T03:04:05.6Z` since the Unix epoch (XML Schema part 2 section 3.2.7); without a zone it is UTC, as ISO/IEC
/// 23009-1 section 5.3.1.2 wants. `None` also before 1970.
pub fn of_xs_date_time(text: &str) -> Option<Duration> {
    let (date, clock) = text.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| digits(part, part.len()));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (clock, offset_s) = match clock.find(['Z', '+', '-']) {
        None => (clock, 0),
        Some(at) if clock[at..] == *"Z" => (&clock[..at], 0),
        Some(at) => {
            let (hours, minutes) = clock.get(at + 1..)?.split_once(':')?;
            let seconds = digits(hours, 2)? * 3600 + digits(minutes, 2)? * 60;
            (&clock[..at], if clock.as_bytes()[at] == b'-' { -seconds } else { seconds })
        }
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = of_decimal(parts.next()?)?;
    let in_range = (1970..=2500).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && second < Duration::from_secs(61);
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 - offset_s;
    Some(Duration::from_secs(u64::try_from(seconds).ok().filter(|_| in_range)?) + second)
}

fn digits(text: &str, most: usize) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= most.min(4) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Converts a date of the Gregorian calendar, with years that begin in March (Hinnant, "chrono-compatible low-level
/// date algorithms", days_from_civil).
pub fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_and_durations() {
        let nanos = |text| of_decimal(text).map(Duration::as_nanos);
        assert_eq!(nanos("9.009"), Some(9_009_000_000));
        assert_eq!(nanos("4"), Some(4_000_000_000));
        assert_eq!(nanos(".5"), Some(500_000_000));
        assert_eq!(nanos("0.0000000019"), Some(1));
        for wrong in ["", ".", "-1", "1e3", "1,5", " 1", "99999999999999999999", "18446744074"] {
            assert_eq!(nanos(wrong), None, "{wrong}");
        }
        let nanos = |text| of_xs_duration(text).map(Duration::as_nanos);
        assert_eq!(nanos("PT1H2M3.5S"), Some(3_723_500_000_000));
        assert_eq!(nanos("P1DT0S"), Some(86_400_000_000_000));
        assert_eq!(nanos("PT0S"), Some(0));
        assert_eq!(nanos("P2D"), Some(172_800_000_000_000));
        // Years and months of nothing have a length.
        assert_eq!(nanos("P0Y0M0DT0H0M12.000S"), Some(12_000_000_000));
        assert_eq!(nanos("P0Y0M1DT0H"), Some(86_400_000_000_000));
        assert_eq!(nanos("P0Y"), Some(0));
        assert_eq!(nanos("P00Y00M01DT00H00M00.500S"), Some(86_400_500_000_000));
        assert_eq!(nanos("P0.00YT1S"), None);
        assert_eq!(nanos("PT1.5H"), Some(5_400_000_000_000));
        assert_eq!(nanos("P0.5D"), Some(43_200_000_000_000));
        assert_eq!(nanos("PT0.S"), Some(0));
        for wrong in [
            "",
            "P",
            "PT",
            "1S",
            "PT1",
            "P1Y",
            "P1M",
            "P0M0Y",
            "P1W",
            "P1DT",
            "P1H",
            "PT1D",
            "PT1.5H1S",
            "-PT1S",
            "PT-1S",
            "PT1S2M",
            "PT1,5S",
            "pt1s",
            "PT1S ",
            "P999999999999999999D",
            "PT1.5.5S",
            "PTS",
            "PT1e3S",
        ] {
            assert_eq!(nanos(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_and_rates_with_a_decimal_point() {
        assert_eq!(
            ["7", "7.0", "7.", "7.5", "-7", ".0", "x"].map(whole_number),
            [Some(7), Some(7), Some(7), None, None, None, None]
        );
        assert_eq!(
            ["300000", "299999.6", "1.4", "1.x", "", "-1"].map(rate),
            [Some(300_000), Some(300_000), Some(1), None, None, None]
        );
    }

    #[test]
    fn dates() {
        let seconds = |text| of_xs_date_time(text).map(Duration::as_nanos).map(|ns| ns / 1_000_000);
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2000-02-29T12:30:15.25Z"), Some(951_827_415_250));
        assert_eq!(seconds("2026-01-02T03:04:05"), Some(1_767_323_045_000));
        assert_eq!(seconds("2026-01-02T03:04:05+01:00"), Some(1_767_319_445_000));
        assert_eq!(seconds("2026-01-02T03:04:05-00:30"), Some(1_767_324_845_000));
        for wrong in [
            "",
            "T",
            "2026-01-02",
            "1969-12-31T23:59:59Z",
            "2026-13-01T00:00:00Z",
            "2026-01-02T03:04Z",
            "2026-01-02T03:04:05+1",
            "2026-01-02Té:04:05Z",
            "99999999-01-01T00:00:00Z",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ticks_round_to_the_nearest() {
        assert_eq!(of_ticks(1, 3).as_nanos(), 333_333_333);
        assert_eq!(of_ticks(2, 3).as_nanos(), 666_666_667);
        assert_eq!(of_ticks(u64::MAX, 1), Duration::MAX);
        assert_eq!(of_ticks(5, 0).as_nanos(), 5_000_000_000);
    }
}
