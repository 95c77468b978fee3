//! Settings checked against their declared bounds.

use serde::Serialize;
use serde_json::Value;

use crate::parameter::{Kind, Parameter};

/// Refuses settings outside their bounds: returns the key, the fault and the remedy.
///
/// `fields` are those of the settings' own type, as [`settings!`](crate::settings) lists them. A number that is not finite
/// is outside of all bounds.
pub fn check_bounds(fields: &[Parameter], settings: &impl Serialize) -> Result<(), (&'static str, String)> {
    let whole = serde_json::to_value(settings).expect("settings are numbers, texts, lists and objects");
    let of = |keys: &[&'static str]| keys.iter().try_fold(&whole, |inner, key| inner.get(key));
    for field in fields.iter().filter(|field| is_number(&field.kind)) {
        let (Some(value), Some(key)) = (of(&field.at), field.at.last()) else { continue };
        if let Some(what) = fault(field, value, |beside| {
            let (_, before) = field.at.split_last()?;
            of(&[before, &[beside]].concat())?.as_f64()
        }) {
            return Err((key, what));
        }
    }
    Ok(())
}

/// Returns the fault in the value of `field`; `beside` is the value of another key in the same settings.
fn fault(field: &Parameter, value: &Value, beside: impl Fn(&'static str) -> Option<f64>) -> Option<String> {
    let Some(value) = value.as_f64() else {
        // JSON has no other word for a number that is not finite.
        return (!field.optional).then(|| "no finite number; give one".into());
    };
    let said = |bound: f64| in_words(bound, &field.kind);
    let given = said(value);
    let none = if field.optional { ", or none" } else { "" };
    match (field.least, field.most) {
        (Some(least), Some(most)) if !(least..=most).contains(&value) => {
            return Some(format!("{given}; give {} to {}{none}", said(least), said(most)));
        }
        (Some(least), None) if value < least => {
            return Some(format!("{given}; give {} or more{none}", said(least)));
        }
        (None, Some(most)) if value > most => {
            return Some(format!("{given}; give at most {}{none}", said(most)));
        }
        _ => {}
    }
    if let Some(above) = field.above.filter(|above| value <= *above) {
        return Some(format!("{given}; give more than {}{none}", said(above)));
    }
    let hangs = |keys: &[&'static str], is_wrong: fn(f64, f64) -> bool, what: &str| {
        let wrong =
            |key: &&'static str| Some((*key, beside(key)?)).filter(|(_, bound)| is_wrong(value, *bound));
        let (key, bound) = keys.iter().find_map(wrong)?;
        Some(format!("{given} is {what} {key}, {}; give as much, or change {key}", said(bound)))
    };
    hangs(&field.not_below, |value, bound| value < bound, "less than")
        .or_else(|| hangs(&field.not_above, |value, bound| value > bound, "more than"))
}

fn is_number(kind: &Kind) -> bool {
    use Kind::{Count, Frequency, Number, Packets, Percent, Rate, Size, Time};
    matches!(kind, Count | Number | Size | Rate | Percent | Time | Packets | Frequency)
}

/// Returns a value of the plan, with its unit.
fn in_words(value: f64, kind: &Kind) -> String {
    match kind {
        Kind::Size => format!("{value} B"),
        Kind::Rate => format!("{value} bit/s"),
        Kind::Percent => format!("{value} %"),
        Kind::Time if value >= 1e9 => format!("{} s", value / 1e9),
        Kind::Time => format!("{} ms", value / 1e6),
        Kind::Packets => format!("{value} packets"),
        Kind::Frequency => format!("{value} packets/s"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Duration;

    use super::*;
    use crate::settings;

    settings! {
        /// The settings of the whole.
        #[derive(Clone, Serialize)]
        pub struct Whole {
            /// A size.
            pub max_bytes: u32 => |p| p.least(64).most(1460),
            /// A share.
            pub share: f64 => |p| p.above(0).most(1),
            /// A time.
            pub least_wait: Duration => |p| p.not_above(&["most_wait"]),
            /// Another.
            pub most_wait: Duration,
            /// Perhaps one more.
            pub again: Option<Duration> => |p| p.least(1e6).not_below(&["least_wait", "gone"]),
        }
    }

    #[test]
    fn the_key_that_is_out_of_its_bounds_is_named_with_the_bound() {
        let ms = Duration::from_millis;
        let sound = Whole { max_bytes: 64, share: 1.0, least_wait: ms(5), most_wait: ms(5), again: None };
        let of = |change: fn(&mut Whole)| {
            let mut settings = sound.clone();
            change(&mut settings);
            let said = check_bounds(&Whole::fields(), &settings);
            said.err().map(|(key, what)| format!("{key}: {what}")).unwrap_or_default()
        };
        assert_eq!(of(|_| {}), "");
        assert_eq!(of(|settings| settings.again = Some(Duration::from_millis(5))), "");
        assert_eq!(of(|settings| settings.max_bytes = 63), "max_bytes: 63 B; give 64 B to 1460 B");
        assert_eq!(of(|settings| settings.max_bytes = 1461), "max_bytes: 1461 B; give 64 B to 1460 B");
        assert_eq!(of(|settings| settings.share = 0.0), "share: 0; give more than 0");
        assert_eq!(of(|settings| settings.share = 1.5), "share: 1.5; give at most 1");
        assert_eq!(of(|settings| settings.share = f64::NAN), "share: no finite number; give one");
        assert_eq!(
            of(|settings| settings.again = Some(Duration::ZERO)),
            "again: 0 ms; give 1 ms or more, or none"
        );
        assert_eq!(
            of(|settings| settings.least_wait = Duration::from_secs(2)),
            "least_wait: 2 s is more than most_wait, 5 ms; give as much, or change most_wait"
        );
        assert_eq!(
            of(|settings| settings.again = Some(Duration::from_millis(4))),
            "again: 4 ms is less than least_wait, 5 ms; give as much, or change least_wait"
        );
    }
}
