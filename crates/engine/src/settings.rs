//! `--set`: constants of a machine by their fields' names.

use serde_json::Value;
use streamgauge_base::Duration;

use crate::error::{EngineError, Result};

/// Nanoseconds of each unit that a time may be written in.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Returns `plain` with each `NAME=VALUE` in its place.
pub fn with_overrides(
    plain: Value,
    overrides: &[String],
    read: impl Fn(&Value) -> std::result::Result<(), String>,
) -> Result<Value> {
    let wrong = |text: &str, why: String| EngineError::new(format!("read --set {text}"), why).code(3);
    let mut settings = plain;
    for text in overrides {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            wrong(text, "it has no '='".into()).remedy("write NAME=VALUE, reliable_udp=false")
        })?;
        let name = name.trim();
        let Some(field) = settings.get_mut(name) else {
            let names = settings.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str));
            return Err(wrong(text, format!("there is no constant {name:?}"))
                .remedy(format!("choose among {}", names.collect::<Vec<_>>().join(", "))));
        };
        *field = value_of(value.trim());
        read(&settings).map_err(|why| wrong(text, why))?;
    }
    Ok(settings)
}

/// Returns a positive number of seconds, at most a day.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    if !(value > 0.0 && value <= 86_400.0) {
        return Err("not above 0 and at most 86400 s".into());
    }
    Ok(Duration::from_nanos((value * 1e9) as u64))
}

/// Returns a time with its unit in nanoseconds, JSON as it is, and anything else as a word.
fn value_of(text: &str) -> Value {
    let time = UNITS.iter().find_map(|(unit, ns)| {
        let number = text.strip_suffix(unit)?.trim_end();
        let value = number.parse::<f64>().ok()? * ns;
        (0.0..1.8e19).contains(&value).then(|| Value::from(value.round() as u64))
    });
    time.unwrap_or_else(|| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Constants {
        reliable_udp: bool,
        max_payload: u32,
    }

    fn set(overrides: &[&str]) -> Result<Constants> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let plain = serde_json::to_value(Constants { reliable_udp: true, max_payload: 1450 }).unwrap();
        let read = |settings: &Value| serde_json::from_value::<Constants>(settings.clone());
        let set =
            with_overrides(plain, &overrides, |settings| read(settings).map(drop).map_err(|e| e.to_string()));
        set.map(|settings| read(&settings).unwrap())
    }

    #[test]
    fn constants_are_set_by_name() {
        assert_eq!(set(&[]).unwrap(), Constants { reliable_udp: true, max_payload: 1450 });
        let set = set(&["reliable_udp=false", "max_payload = 1200"]).unwrap();
        assert_eq!((set.reliable_udp, set.max_payload), (false, 1200));
    }

    #[test]
    fn times_take_their_units() {
        for (text, ns) in [("250 ms", 250_000_000), ("0.6s", 600_000_000), ("20us", 20_000), ("7 ns", 7)] {
            assert_eq!(value_of(text), Value::from(ns), "{text}");
        }
        assert_eq!(value_of("24000"), Value::from(24_000));
        assert_eq!(value_of("none"), Value::from("none"));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        for (text, words) in [
            ("reliable_udp", "has no '='"),
            ("reliable=true", "choose among"),
            ("reliable_udp=perhaps", "expected a boolean"),
            ("max_payload=-1", "-1"),
        ] {
            let error = set(&[text]).unwrap_err();
            assert!(error.code == 3 && error.to_string().contains(words), "{error}");
        }
    }
}
