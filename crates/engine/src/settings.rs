//! `--set`: constants of a machine by their fields' names.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use streamgauge_base::Duration;

use crate::error::{EngineError, Result};

/// Nanoseconds of each unit that a time may be written in.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// `plain` with each `NAME=VALUE` in its place.
pub fn with_overrides<T: Serialize + DeserializeOwned>(plain: &T, overrides: &[String]) -> Result<T> {
    let wrong = |text: &str, why: String| EngineError::new(format!("read --set {text}"), why).code(3);
    let mut fields = match serde_json::to_value(plain) {
        Ok(Value::Object(fields)) => fields,
        other => return Err(wrong("", format!("the settings are no object: {other:?}"))),
    };
    for text in overrides {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            wrong(text, "it has no '='".into()).remedy("write NAME=VALUE, reliable_udp=false")
        })?;
        let name = name.trim();
        if !fields.contains_key(name) {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(wrong(text, format!("there is no constant {name:?}"))
                .remedy(format!("choose among {}", names.join(", "))));
        }
        fields.insert(name.into(), value_of(value.trim()));
        read::<T>(&fields).map_err(|e| wrong(text, e.to_string()))?;
    }
    read(&fields).map_err(|e| wrong("", e.to_string()))
}

fn read<T: DeserializeOwned>(fields: &Map<String, Value>) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(fields.clone()))
}

/// A positive number of seconds, at most a day.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    if !(value > 0.0 && value <= 86_400.0) {
        return Err("not above 0 and at most 86400 s".into());
    }
    Ok(Duration::from_nanos((value * 1e9) as u64))
}

/// A time with its unit in nanoseconds, JSON as it is, and anything else as a word.
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
    use streamgauge_systems::darwin::{Preset, ServerSettings};

    use super::*;

    fn set(overrides: &[&str]) -> Result<ServerSettings> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        with_overrides(&ServerSettings::of(Preset::Source), &overrides)
    }

    #[test]
    fn constants_are_set_by_name() {
        assert_eq!(set(&[]).unwrap(), ServerSettings::of(Preset::Source));
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
