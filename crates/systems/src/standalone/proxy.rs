//! A proxy of HTTP on a real network, for players without the protocol of their media.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use streamgauge_base::Duration;

use super::{ContentFault, as_json};
use crate::app::App;

/// The result of a request of HTTP.
#[derive(Clone, PartialEq, Debug)]
pub struct Answered {
    /// GET, mostly.
    pub method: String,
    /// Path of the request.
    pub path: String,
    /// `None` where its connection ended before it was answered.
    pub status: Option<u16>,
    /// The answer is as long as its head promised.
    pub whole: bool,
    /// Bytes of content in it.
    pub bytes: u64,
    /// Since it was read.
    pub took: Duration,
    /// Further costs, each count by its name.
    pub counts: Vec<(&'static str, u64)>,
}

/// A proxy's machine. Players come by `Accepted`; it opens its connection to others itself, at the start.
pub trait Proxying: App {
    /// Returns the result of the next request.
    fn next_answered(&mut self) -> Option<Answered>;
}

/// Settings of a standalone proxy.
pub trait Proxied: Serialize + DeserializeOwned + 'static {
    /// That of the URLs that it asks behind.
    const SCHEME: &'static str;
    /// The port of a URL that names none.
    const PORT: u16;
    /// Names of sets of settings; the first is the usual one.
    const PRESETS: &'static [&'static str];

    /// Returns a set of settings by its name, one of `PRESETS`.
    fn preset(name: &str) -> Option<Self>;

    /// Checks whether a proxy can be made from them.
    ///
    /// # Errors
    ///
    /// The faulty field, and the remedy.
    fn check(&self) -> Result<(), ContentFault>;

    /// Returns the machine that answers requests for resources beneath the path of `url`.
    ///
    /// # Errors
    ///
    /// The fault of the URL.
    fn machine(self, url: &str, seed: u64) -> Result<Box<dyn Proxying>, String>;
}

/// Facts about a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProxyFacts {
    /// [`Proxied::SCHEME`].
    pub scheme: &'static str,
    /// [`Proxied::PORT`].
    pub port: u16,
    /// [`Proxied::PRESETS`].
    pub presets: &'static [&'static str],
}

/// A fault that prevents a proxy: the field, or none where it is the URL, and the remedy.
pub type ProxyFault = (Option<&'static str>, String);

/// Constructor of the machine from settings, a URL and a seed.
type Open = fn(Value, &str, u64) -> Result<Box<dyn Proxying>, ProxyFault>;

/// A [`Proxied`] without its type.
#[derive(Clone, Copy)]
pub struct Proxy {
    /// Facts about it.
    pub facts: ProxyFacts,
    preset: fn(&str) -> Option<Value>,
    read: fn(Value) -> Result<(), String>,
    open: Open,
}

impl Proxy {
    /// Returns the proxy of these settings.
    pub fn of<S: Proxied>() -> Self {
        Proxy {
            facts: ProxyFacts { scheme: S::SCHEME, port: S::PORT, presets: S::PRESETS },
            preset: |name| S::preset(name).as_ref().map(as_json),
            read: |settings| serde_json::from_value::<S>(settings).map(drop).map_err(|e| e.to_string()),
            open: |settings, url, seed| {
                let settings: S =
                    serde_json::from_value(settings).map_err(|e| (Some("settings"), e.to_string()))?;
                settings.check().map_err(|(field, why)| (Some(field), why))?;
                settings.machine(url, seed).map_err(|why| (None, why))
            },
        }
    }

    /// Returns the settings of a preset, by their fields' names.
    pub fn preset(&self, name: &str) -> Option<Value> {
        (self.preset)(name)
    }

    /// Checks whether these are settings at all.
    ///
    /// # Errors
    ///
    /// The fault that prevents reading.
    pub fn read(&self, settings: &Value) -> Result<(), String> {
        (self.read)(settings.clone())
    }

    /// Returns the proxy with these settings for resources beneath `url`.
    ///
    /// # Errors
    ///
    /// The fault, and the remedy.
    pub fn open(&self, settings: Value, url: &str, seed: u64) -> Result<Box<dyn Proxying>, ProxyFault> {
        (self.open)(settings, url, seed)
    }
}
