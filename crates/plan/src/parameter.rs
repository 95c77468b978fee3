//! What settings say of themselves: a new field is known to scenarios without another table.

use serde::Serialize;
use streamgauge_base::Duration;

/// One setting, as a scenario knows it. Numbers have the unit of the plan: bytes, bit/s, nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parameter {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The keys that lead to its value in the system's settings, from the outermost.
    pub at: Vec<&'static str>,
    /// What its value is.
    pub kind: Kind,
    /// It may be without a value.
    pub optional: bool,
    /// It has no default: a flow must say it.
    pub required: bool,
    /// The least value that makes sense.
    pub least: Option<f64>,
    /// The greatest.
    pub most: Option<f64>,
    /// It is more than this, by however little.
    pub above: Option<f64>,
    /// It is no less than these beside it, by their keys, where those have a value.
    pub not_below: Vec<&'static str>,
    /// It is no more than these.
    pub not_above: Vec<&'static str>,
    /// What it does.
    pub help: String,
    /// Where that is from: the paper, the RFC and its section, the program and its preference. Empty where it is ours.
    pub source: String,
}

/// What a value is.
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
    /// Of a hundred.
    Percent,
    /// Nanoseconds.
    Time,
    /// How many packets or segments.
    Packets,
    /// Per second.
    Frequency,
    /// Pairs of times, on and off, ascending.
    Windows,
    /// One of these.
    Words(Vec<&'static str>),
    /// One of these, or a function of Python as `FILE.py:NAME`.
    WordsOrFunction(Vec<&'static str>),
    /// Some of these, each once.
    Several(Vec<&'static str>),
    /// The settings that it leads to are left out with the first word, and are there with the second; what the usual
    /// settings have is the default.
    Presence([&'static str; 2]),
    /// A text that the crate above knows the words of.
    Text,
}

/// What a line of a comment begins with that says where a setting is from; it goes on to the comment's end.
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
    /// A field of that name, by the lines of its comment and what its type tells.
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

    /// Under another name in scenarios.
    pub fn called(self, name: &'static str) -> Self {
        Parameter { name, ..self }
    }

    /// Of a kind that its type does not tell.
    pub fn kind(self, kind: Kind) -> Self {
        Parameter { kind, ..self }
    }

    /// Without a default.
    pub fn required(self) -> Self {
        Parameter { required: true, ..self }
    }

    /// Not below this.
    pub fn least(self, least: impl Into<f64>) -> Self {
        Parameter { least: Some(least.into()), ..self }
    }

    /// Not above this.
    pub fn most(self, most: impl Into<f64>) -> Self {
        Parameter { most: Some(most.into()), ..self }
    }

    /// More than this.
    pub fn above(self, above: impl Into<f64>) -> Self {
        Parameter { above: Some(above.into()), ..self }
    }

    /// Not below the settings beside it that have these keys.
    pub fn not_below(self, keys: &[&'static str]) -> Self {
        Parameter { not_below: keys.to_vec(), ..self }
    }

    /// Not above the settings beside it that have these keys.
    pub fn not_above(self, keys: &[&'static str]) -> Self {
        Parameter { not_above: keys.to_vec(), ..self }
    }

    /// From there, if its comment does not say it.
    pub fn or_from(self, source: &str) -> Self {
        if self.source.is_empty() { Parameter { source: source.into(), ..self } } else { self }
    }

    /// Not a parameter: the scenario says it in another place.
    pub fn elsewhere(self) -> Self {
        Parameter { name: "", ..self }
    }

    /// Whether it is one.
    pub fn is_elsewhere(&self) -> bool {
        self.name.is_empty()
    }
}

/// A type that settings have.
pub trait Setting {
    /// The parameters in a field of that name, by the lines of its comment; those [`Parameter::elsewhere`] too.
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

/// A struct of settings that can say what they are. A field's comment is its help, up to a line `Source: ...`, which is
/// where it is from; behind its type may stand `=> |parameter| ...` with what its type does not tell: bounds, its name in scenarios.
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
            /// What its fields are, in order.
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
        /// Of a part.
        pub struct Part {
            /// How long
            /// it waits.
            /// Source: RFC 6298
            /// section 2.
            pub wait: Option<Duration>,
            /// Said elsewhere.
            pub kind: u32 => Parameter::elsewhere,
        }
    }

    settings! {
        /// Of the whole.
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
