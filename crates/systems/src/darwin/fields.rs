//! What a set of constants holds, told by its struct: a new constant is known to scenarios without another table.

use serde::Serialize;
use streamgauge_base::Duration;

/// One constant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Field {
    /// Its name in the plan and in scenarios.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// It may be without a value.
    pub optional: bool,
    /// What it does.
    pub help: String,
}

/// What a constant's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// On or off.
    Switch,
    /// How many.
    Count,
    /// A share or a multiple.
    Number,
    /// Bytes.
    Size,
    /// Bit/s.
    Rate,
    /// Of a hundred.
    Percent,
    /// Nanoseconds.
    Time,
    /// One of these.
    Words(&'static [&'static str]),
}

/// A type that constants have.
pub trait Holds {
    /// What its values are.
    const KIND: Kind;
    /// There may be none.
    const OPTIONAL: bool = false;
}

impl Holds for bool {
    const KIND: Kind = Kind::Switch;
}

impl Holds for u32 {
    const KIND: Kind = Kind::Count;
}

impl Holds for u64 {
    const KIND: Kind = Kind::Count;
}

impl Holds for f64 {
    const KIND: Kind = Kind::Number;
}

impl Holds for Duration {
    const KIND: Kind = Kind::Time;
}

impl<T: Holds> Holds for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
}

/// Whole numbers have their unit in their name.
const UNITS: [(&str, Kind); 5] = [
    ("_bytes", Kind::Size),
    ("_payload", Kind::Size),
    ("_window", Kind::Size),
    ("_bps", Kind::Rate),
    ("_percent", Kind::Percent),
];

impl Field {
    pub(super) fn of<T: Holds>(name: &'static str, lines: &[&str]) -> Field {
        let unit = UNITS.iter().find(|(end, _)| T::KIND == Kind::Count && name.ends_with(end));
        let help = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        Field { name, kind: unit.map_or(T::KIND, |&(_, kind)| kind), optional: T::OPTIONAL, help }
    }
}

/// A struct of constants that can say what they are: `fields`.
macro_rules! constants {
    ($(#[$outer:meta])* pub struct $name:ident {
        $($(#[doc = $line:literal])* pub $field:ident: $held:ty,)*
    }) => {
        $(#[$outer])*
        pub struct $name {
            $($(#[doc = $line])* pub $field: $held,)*
        }

        impl $name {
            /// Its constants, in order.
            pub fn fields() -> Vec<$crate::darwin::Field> {
                vec![$($crate::darwin::Field::of::<$held>(stringify!($field), &[$($line),*])),*]
            }
        }
    };
}

pub(super) use constants;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::darwin::{PlayerKind, PlayerSettings, Preset, ServerSettings};

    /// Values of the field's kind, as the plan has them.
    fn examples(field: &Field) -> Vec<Value> {
        let mut found = match field.kind {
            Kind::Switch => vec![json!(true), json!(false)],
            Kind::Number => vec![json!(0.5), json!(2.0)],
            Kind::Words(words) => words.iter().map(|word| json!(word)).collect(),
            Kind::Count | Kind::Size | Kind::Rate | Kind::Percent | Kind::Time => vec![json!(7)],
        };
        found.extend(field.optional.then_some(Value::Null));
        found
    }

    fn each_takes_what_it_says<T: serde::Serialize + serde::de::DeserializeOwned>(all: &T, fields: &[Field]) {
        let Value::Object(whole) = serde_json::to_value(all).unwrap() else { panic!("not an object") };
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), whole.len());
        for field in fields {
            assert!(whole.contains_key(field.name), "{} is not in the plan", field.name);
            assert!(!field.help.is_empty() && !field.help.contains("  "), "{}: {:?}", field.name, field.help);
            for value in examples(field) {
                let mut changed = whole.clone();
                changed.insert(field.name.into(), value.clone());
                let read: T = serde_json::from_value(Value::Object(changed)).unwrap();
                assert_eq!(serde_json::to_value(&read).unwrap()[field.name], value, "{}", field.name);
            }
            if !field.optional {
                let mut without = whole.clone();
                without.insert(field.name.into(), Value::Null);
                assert!(serde_json::from_value::<T>(Value::Object(without)).is_err(), "{}", field.name);
            }
        }
    }

    #[test]
    fn every_constant_takes_the_values_that_it_says() {
        for (_, kind) in PlayerKind::NAMED {
            each_takes_what_it_says(&PlayerSettings::of(kind), &PlayerSettings::fields());
        }
        for (_, preset) in Preset::NAMED {
            each_takes_what_it_says(&ServerSettings::of(preset), &ServerSettings::fields());
        }
    }
}
