//! A server for clients of a real network.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use streamgauge_base::{Chunk, Duration};

use super::{ContentFault, as_json};
use crate::app::App;
use crate::media::Library;

/// A server's machine for one client. The client's connection is its channel 0, which is `Opened` after `Start`.
pub trait Served: App {
    /// What carries its media, as people call it, once some has gone out.
    fn plays_over(&self) -> Option<&'static str>;
    /// What it has sent so far, each count by its name.
    fn counts(&self) -> Vec<(&'static str, u64)>;
    /// The same in words: "3 RTP packets, 99 bytes".
    fn in_words(&self) -> String;
    /// It has given the client up, of whom nothing was heard.
    fn has_lost_its_client(&self) -> bool;
    /// Some of a request has come, and the rest of it is awaited.
    fn awaits_rest(&self) -> bool;
    /// Its client need not ask as soon as it comes: a forwarder's face waits for whoever wants something.
    fn may_wait_to_ask(&self) -> bool {
        false
    }
    /// Its client has shown that it is where it says that it is, as a connection does.
    fn is_proven(&self) -> bool {
        true
    }
    /// It still answers a client that has finished what it writes.
    fn still_answers(&self) -> bool {
        false
    }
}

/// A server that runs: it makes the machine of each client.
pub trait Clients {
    /// For a client of that name, who sees what `library` has. Nobody may guess `seed`: what must not be guessed is
    /// drawn from it.
    fn machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served>;
    /// Tells a client, on channel 0, that there is no room for another one, and closes.
    fn turn_away(&self) -> Box<dyn App>;
    /// Whether a datagram may be the first of a client ([`Service::DATAGRAMS`]). Another is dropped.
    fn begins(&self, datagram: &Chunk) -> bool {
        let _ = datagram;
        false
    }
    /// As [`Clients::machine`], for a client who sends datagrams: they come and go by its channel 0, which is there at
    /// `Start`. Nobody says goodbye by datagrams, and who sent one may be another than it says: the machine gives up who
    /// is silent for a minute at most.
    fn datagram_machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served> {
        self.machine(library, name, seed)
    }
    /// What tells who has sent a first datagram that there is no room for another client.
    fn turn_away_datagram(&self, datagram: &Chunk) -> Option<Chunk> {
        let _ = datagram;
        None
    }
}

/// Settings of a server that stands alone.
pub trait Service: Clients + Serialize + DeserializeOwned + 'static {
    /// That of its URLs.
    const SCHEME: &'static str;
    /// The port of its protocol, and the customary one for who may not use it.
    const PORTS: [u16; 2];
    /// Names of sets of settings; the first is the usual one.
    const PRESETS: &'static [&'static str];
    /// It has clients who send datagrams too, to the UDP port of the same number.
    const DATAGRAMS: bool = false;

    /// A set of settings by its name, one of `PRESETS`.
    fn preset(name: &str) -> Option<Self>;

    /// Whether a server can be made from them.
    ///
    /// # Errors
    ///
    /// The field that is wrong, and what would be right.
    fn check(&self) -> Result<(), ContentFault>;

    /// A client that is silent for so long has vanished.
    fn give_up_after(&mut self, silence: Duration);
}

/// What is told of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ServerFacts {
    /// [`Service::SCHEME`].
    pub scheme: &'static str,
    /// [`Service::PORTS`].
    pub ports: [u16; 2],
    /// [`Service::PRESETS`].
    pub presets: &'static [&'static str],
    /// [`Service::DATAGRAMS`].
    pub datagrams: bool,
}

/// Settings that no server can be made from: the field, or none where it is the time after which a client has vanished,
/// and what would be right.
pub type ServerFault = (Option<&'static str>, String);

/// What makes a server from settings and that time.
type Open = fn(Value, Option<Duration>) -> Result<Box<dyn Clients>, ServerFault>;

/// A [`Service`] without its type.
#[derive(Clone, Copy)]
pub struct Server {
    /// What is told of it.
    pub facts: ServerFacts,
    preset: fn(&str) -> Option<Value>,
    read: fn(Value) -> Result<(), String>,
    open: Open,
}

impl Server {
    /// Of a service.
    pub fn of<S: Service>() -> Self {
        Server {
            facts: ServerFacts {
                scheme: S::SCHEME,
                ports: S::PORTS,
                presets: S::PRESETS,
                datagrams: S::DATAGRAMS,
            },
            preset: |name| S::preset(name).as_ref().map(as_json),
            read: |settings| serde_json::from_value::<S>(settings).map(drop).map_err(|e| e.to_string()),
            open: |settings, silence| {
                let mut service: S = serde_json::from_value(settings).map_err(|e| (None, e.to_string()))?;
                service.check().map_err(|(field, why)| (Some(field), why))?;
                if let Some(silence) = silence {
                    service.give_up_after(silence);
                    service.check().map_err(|(_, why)| (None, why))?;
                }
                Ok(Box::new(service))
            },
        }
    }

    /// The settings of a preset, by their fields' names.
    pub fn preset(&self, name: &str) -> Option<Value> {
        (self.preset)(name)
    }

    /// Whether these are settings at all.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn read(&self, settings: &Value) -> Result<(), String> {
        (self.read)(settings.clone())
    }

    /// The server of these settings; `silence` replaces the time after which a client has vanished.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn open(&self, settings: Value, silence: Option<Duration>) -> Result<Box<dyn Clients>, ServerFault> {
        (self.open)(settings, silence)
    }
}
