//! Times as manifests write them.

use streamgauge_base::Duration;

/// Seconds with as many decimals as they have: `4`, `4.004`.
pub fn seconds(time: Duration) -> String {
    let (whole, part) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
    match part {
        0 => whole.to_string(),
        part => format!("{whole}.{part:09}").trim_end_matches('0').to_owned(),
    }
}

/// A time since the Unix epoch as XML Schema and ISO 8601 have it: `2026-01-02T03:04:05.6Z`.
pub fn date(time: Duration) -> String {
    let (days, second) = (time.as_nanos() / 86_400_000_000_000, time.as_nanos() % 86_400_000_000_000);
    let (year, month, day) = civil(days);
    let (minutes, rest) = (second / 60_000_000_000, second % 60_000_000_000);
    let rest = seconds(Duration::from_nanos(rest));
    // Two digits before the point.
    let zero = if rest.split('.').next().is_some_and(|whole| whole.len() < 2) { "0" } else { "" };
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{zero}{rest}Z", minutes / 60, minutes % 60)
}

/// Year, month and day of a day since the Unix epoch (Hinnant, "chrono-compatible low-level date algorithms",
/// civil_from_days).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dash::manifest::time::{of_decimal, of_xs_date_time};

    #[test]
    fn as_people_write_them() {
        assert_eq!(seconds(Duration::from_millis(4_004)), "4.004");
        assert_eq!(seconds(Duration::from_secs(10)), "10");
        assert_eq!(date(Duration::ZERO), "1970-01-01T00:00:00Z");
        assert_eq!(date(Duration::from_millis(951_827_415_250)), "2000-02-29T12:30:15.25Z");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ms in 0u64..16_000_000_000_000, nanos: u64) {
            prop_assert_eq!(of_xs_date_time(&date(Duration::from_millis(ms))), Some(Duration::from_millis(ms)));
            prop_assert_eq!(of_decimal(&seconds(Duration::from_nanos(nanos))), Some(Duration::from_nanos(nanos)));
        }
    }
}
