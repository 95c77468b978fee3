//! A flow's application.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// The system of a flow with third-party programs.
pub const EXTERNAL: &str = "external";

const FORM: &str = "give \"external\", or an object with one system and its settings: {\"SYSTEM\": {...}}";

/// A system by name, and its settings as that system reads them.
///
/// In JSON `{"NAME": {settings}}`, or the bare text `"external"` for a third-party system, which has none. Settings are
/// kept as the text they are: a plan of thousands of flows is no larger in memory than on disk.
#[derive(Clone, Debug)]
pub struct AppSpec {
    system: Box<str>,
    /// `None`: third-party programs.
    settings: Option<Box<RawValue>>,
}

impl AppSpec {
    /// Makes the system of that name with these settings, which are an object in JSON.
    ///
    /// # Panics
    ///
    /// If they are not: a programming error of the system's.
    pub fn new(system: &str, settings: &impl Serialize) -> Self {
        match serde_json::value::to_raw_value(settings) {
            Ok(settings) if is_object(&settings) => {
                AppSpec { system: system.into(), settings: Some(settings) }
            }
            other => panic!("the settings of {system} are no JSON object: {other:?}"),
        }
    }

    /// Makes a third-party system, which sim cannot run.
    pub fn external() -> Self {
        AppSpec { system: EXTERNAL.into(), settings: None }
    }

    /// Returns the system's name.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns the settings as their system reads them; otherwise the fault.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_str(self.text()).map_err(|error| {
            // The place in the settings is of no use: readers never see this form of them.
            let (said, place) =
                (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
            said.strip_suffix(&place).unwrap_or(&said).to_owned()
        })
    }

    fn text(&self) -> &str {
        self.settings.as_ref().map_or("{}", |settings| settings.get())
    }
}

/// Compares their texts: equal settings that are written in another order count as different.
impl PartialEq for AppSpec {
    fn eq(&self, other: &Self) -> bool {
        self.system == other.system && self.text() == other.text()
    }
}

fn is_object(settings: &RawValue) -> bool {
    settings.get().starts_with('{')
}

impl Serialize for AppSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(settings) = &self.settings else { return serializer.serialize_str(EXTERNAL) };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(&self.system, settings)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for AppSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = || de::Error::custom(FORM);
        let whole = Box::<RawValue>::deserialize(deserializer)?;
        if serde_json::from_str(whole.get()).is_ok_and(|word: String| word == EXTERNAL) {
            return Ok(AppSpec::external());
        }
        let named: BTreeMap<Box<str>, Box<RawValue>> =
            serde_json::from_str(whole.get()).map_err(|_| form())?;
        let mut named = named.into_iter();
        match (named.next(), named.next()) {
            (Some((system, settings)), None) if *system != *EXTERNAL && is_object(&settings) => {
                Ok(AppSpec { system, settings: Some(settings) })
            }
            _ => Err(form()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        rate: f64,
        bytes: u64,
    }

    #[test]
    fn settings_come_back_exactly() {
        let settings = Settings { rate: 0.1 + 0.2, bytes: u64::MAX };
        let text = serde_json::to_string(&AppSpec::new("cbr", &settings)).unwrap();
        assert_eq!(text, r#"{"cbr":{"rate":0.30000000000000004,"bytes":18446744073709551615}}"#);
        let app: AppSpec = serde_json::from_str(&text).unwrap();
        assert_eq!((app.system(), app.settings()), ("cbr", Ok(settings)));
    }

    #[test]
    fn a_third_party_system_is_a_word() {
        let app: AppSpec = serde_json::from_str(r#""external""#).unwrap();
        assert_eq!(app, AppSpec::external());
        assert_eq!(serde_json::to_string(&app).unwrap(), r#""external""#);
    }

    #[test]
    fn what_names_no_one_system_is_refused() {
        for text in
            ["\"bulk\"", "{}", "[]", "1", r#"{"bulk": 1}"#, r#"{"a": {}, "b": {}}"#, r#"{"external": {}}"#]
        {
            assert!(serde_json::from_str::<AppSpec>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn settings_that_their_system_does_not_know_are_told() {
        let app: AppSpec = serde_json::from_str(r#"{"x": {"rate": 1, "bytes": 2, "colour": 3}}"#).unwrap();
        let error = app.settings::<Settings>().unwrap_err();
        assert!(error.starts_with("unknown field `colour`") && !error.contains("line"), "{error}");
    }
}
