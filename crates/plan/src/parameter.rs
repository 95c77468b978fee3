//! The descriptions that settings give of themselves: scenarios accept a new field without another table.

use serde::Serialize;
use streamgauge_base::Duration;

/// One setting, as in a scenario. Numbers have the unit of the plan: bytes, bit/s, nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parameter {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The keys that lead to its value in the system's settings, from the outermost.
    pub at: Vec<&'static str>,
    /// Kind of its value.
    pub kind: Kind,
    /// Whether it may be without a value.
    pub optional: bool,
    /// Whether it has no default: a flow must give it.
    pub required: bool,
    /// The least value that makes sense.
    pub least: Option<f64>,
    /// The greatest.
    pub most: Option<f64>,
    /// It is more than this, by however little.
    pub above: Option<f64>,
    /// It is at least as large as these beside it, by their keys, where those have a value.
    pub not_below: Vec<&'static str>,
    /// It is at most as large as these.
    pub not_above: Vec<&'static str>,
    /// Its effect.
    pub help: String,
    /// Where that is from: the paper, the RFC and its section, the program and its preference. Empty where it is ours.
    pub source: String,
}

/// The kind of a value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
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
    /// A share of a hundred.
    Percent,
    /// Nanoseconds.
    Time,
    /// How many packets or segments.
    Packets,
    /// Per second.
    Frequency,
    /// Pairs of times, on and off, ascending.
    Windows,
    /// Times that a distribution has at evenly spaced probabilities from 0 to 1, ascending; one alone is always drawn.
    Quantiles,
    /// One of these.
    Words(Vec<&'static str>),
    /// One of these, or a function of Python as `FILE.py:NAME`.
    WordsOrFunction(Vec<&'static str>),
    /// Some of these, each once.
    Several(Vec<&'static str>),
    /// The settings below it are left out with the first word, and are there with the second; the default follows the
    /// usual settings.
    Presence([&'static str; 2]),
    /// A string that the crate above validates.
    Text,
}

/// The start of a comment line that gives the source of a setting; it continues to the comment's end.
const SOURCE: &str = "Source:";

/// Whole numbers have their unit in their name.
const UNITS: [(&str, Kind); 6] = [
    ("bytes", Kind::Size),
    ("_payload", Kind::Size),
    ("_window", Kind::Size),
    ("_buffer", Kind::Size),
    ("_bps", Kind::Rate),
    ("_percent", Kind::Percent),
];

impl Parameter {
    /// Makes a field of that name from the lines of its comment and its type.
    pub fn of(name: &'static str, lines: &[&str], kind: Kind) -> Self {
        let unit = UNITS.iter().find(|(end, _)| kind == Kind::Count && name.ends_with(end));
        let kind = unit.map_or(kind, |(_, kind)| kind.clone());
        let from = lines.iter().position(|line| line.trim().starts_with(SOURCE)).unwrap_or(lines.len());
        let text = |lines: &[&str]| lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let (help, source) = (text(&lines[..from]), text(&lines[from..]));
        let source = source.trim_start_matches(SOURCE).trim().trim_end_matches('.').into();
        Parameter {
            name,
            at: vec![name],
            kind,
            optional: false,
            required: false,
            least: None,
            most: None,
            above: None,
            not_below: Vec::new(),
            not_above: Vec::new(),
            help,
            source,
        }
    }

    /// Gives it another name in scenarios.
    pub fn called(self, name: &'static str) -> Self {
        Parameter { name, ..self }
    }

    /// Sets a kind that its type does not show.
    pub fn kind(self, kind: Kind) -> Self {
        Parameter { kind, ..self }
    }

    /// Makes it required, without a default.
    pub fn required(self) -> Self {
        Parameter { required: true, ..self }
    }

    /// Sets the lower bound.
    pub fn least(self, least: impl Into<f64>) -> Self {
        Parameter { least: Some(least.into()), ..self }
    }

    /// Sets the upper bound.
    pub fn most(self, most: impl Into<f64>) -> Self {
        Parameter { most: Some(most.into()), ..self }
    }

    /// Sets a lower bound that is not allowed itself.
    pub fn above(self, above: impl Into<f64>) -> Self {
        Parameter { above: Some(above.into()), ..self }
    }

    /// Sets the settings beside it, by key, that it must not be below.
    pub fn not_below(self, keys: &[&'static str]) -> Self {
        Parameter { not_below: keys.to_vec(), ..self }
    }

    /// Sets the settings beside it, by key, that it must not exceed.
    pub fn not_above(self, keys: &[&'static str]) -> Self {
        Parameter { not_above: keys.to_vec(), ..self }
    }

    /// Sets the source, if its comment does not give it.
    pub fn or_from(self, source: &str) -> Self {
        if self.source.is_empty() { Parameter { source: source.into(), ..self } } else { self }
    }

    /// Makes it no parameter: the scenario gives it in another place.
    pub fn elsewhere(self) -> Self {
        Parameter { name: "", ..self }
    }

    /// Returns whether it is one.
    pub fn is_elsewhere(&self) -> bool {
        self.name.is_empty()
    }
}

/// A type that settings have.
pub trait Setting {
    /// Returns the parameters in a field of that name, by the lines of its comment; those [`Parameter::elsewhere`] too.
    fn tell(field: &'static str, lines: &[&str]) -> Vec<Parameter>;
}

/// A type of a single value.
#[macro_export]
macro_rules! setting {
    ($($held:ty => $kind:expr),* $(,)?) => {
        $(impl $crate::Setting for $held {
            fn tell(field: &'static str, lines: &[&str]) -> Vec<$crate::Parameter> {
                vec![$crate::Parameter::of(field, lines, $kind)]
            }
        })*
    };
}

setting! {
    bool => Kind::Switch,
    u32 => Kind::Count,
    u64 => Kind::Count,
    f64 => Kind::Number,
    Duration => Kind::Time,
    String => Kind::Text,
    Vec<String> => Kind::Text,
    Vec<(Duration, Duration)> => Kind::Windows,
    Vec<Duration> => Kind::Quantiles,
}

impl<T: Setting> Setting for Option<T> {
    fn tell(field: &'static str, lines: &[&str]) -> Vec<Parameter> {
        let mut told = T::tell(field, lines);
        for parameter in told.iter_mut().filter(|parameter| parameter.at.len() == 1) {
            parameter.optional = true;
        }
        told
    }
}

/// Declares a struct of settings that can describe themselves. A field's comment is its help, up to a line `Source:
/// ...`, which gives its source; behind its type may follow `=> |parameter| ...` with properties that its type does not
/// show: bounds, its name in scenarios.
#[macro_export]
macro_rules! settings {
    ($(#[$outer:meta])* pub struct $name:ident {
        $(
            $(#[doc = $line:literal])*
            $(#[serde($($serde:tt)*)])?
            pub $field:ident: $held:ty $(=> $with:expr)?,
        )*
    }) => {
        $(#[$outer])*
        pub struct $name {
            $($(#[doc = $line])* $(#[serde($($serde)*)])? pub $field: $held,)*
        }

        impl $name {
            /// Returns its fields, in order.
            pub fn fields() -> Vec<$crate::Parameter> {
                let mut found: Vec<$crate::Parameter> = Vec::new();
                $(
                    let told = <$held as $crate::Setting>::tell(stringify!($field), &[$($line),*]);
                    $(
                        let with: fn($crate::Parameter) -> $crate::Parameter = $with;
                        let told = told.into_iter().map(with).collect::<Vec<_>>();
                    )?
                    found.extend(told);
                )*
                found
            }
        }

        impl $crate::Setting for $name {
            fn tell(field: &'static str, _: &[&str]) -> Vec<$crate::Parameter> {
                let mut inner = Self::fields();
                for parameter in &mut inner {
                    parameter.at.insert(0, field);
                }
                inner
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    settings! {
        /// The settings of a part.
        pub struct Part {
            /// How long
            /// it waits.
            /// Source: RFC 6298
            /// section 2.
            pub wait: Option<Duration>,
            /// Given elsewhere.
            pub kind: u32 => Parameter::elsewhere,
        }
    }

    settings! {
        /// The settings of the whole.
        pub struct Whole {
            /// A size.
            pub max_payload: u32 => |p| p.called("largest").least(64).most(1460),
            /// A part.
            pub part: Part,
        }
    }

    #[test]
    fn a_struct_tells_its_fields_and_those_of_its_parts() {
        let whole = Whole { max_payload: 1, part: Part { wait: None, kind: 1 } };
        assert_eq!((whole.max_payload, whole.part.wait, whole.part.kind), (1, None, 1));
        let told = Whole::fields();
        assert_eq!(
            serde_json::to_value(&told[0]).unwrap(),
            json!({
                "name": "largest", "at": ["max_payload"], "kind": "size", "optional": false, "required": false,
                "least": 64.0, "most": 1460.0, "above": null, "not_below": [], "not_above": [],
                "help": "A size.", "source": ""
            })
        );
        assert_eq!((told[1].at.as_slice(), told[1].optional), (["part", "wait"].as_slice(), true));
        assert_eq!((told[1].kind.clone(), told[1].help.as_str()), (Kind::Time, "How long it waits."));
        assert_eq!(told[1].source, "RFC 6298 section 2");
        assert_eq!(told[1].clone().or_from("the paper").source, "RFC 6298 section 2");
        assert_eq!(told[0].clone().or_from("the paper").source, "the paper");
        assert!(told[2].is_elsewhere() && told.len() == 3);
    }
}
