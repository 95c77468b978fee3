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
    /// Returns the transport of its media, for people, once some has been sent.
    fn plays_over(&self) -> Option<&'static str>;
    /// Returns its counts so far, by name.
    fn counts(&self) -> Vec<(&'static str, u64)>;
    /// Returns the same in words: "3 RTP packets, 99 bytes".
    fn in_words(&self) -> String;
    /// Returns whether it has given the client up after a silence.
    fn has_lost_its_client(&self) -> bool;
    /// Returns whether some of a request has come, and the rest of it is awaited.
    fn awaits_rest(&self) -> bool;
    /// Returns whether its client may be silent at first: a forwarder's face waits for a consumer.
    fn may_wait_to_ask(&self) -> bool {
        false
    }
    /// Returns whether its client has proven its address, as a connection does.
    fn is_proven(&self) -> bool {
        true
    }
    /// Returns whether it has nothing more to send until it is asked again.
    fn may_be_quiet(&self) -> bool {
        self.plays_over().is_none()
    }
    /// Returns whether it still answers a client that has finished writing.
    fn still_answers(&self) -> bool {
        false
    }
}

/// A server that runs: it makes the machine of each client.
pub trait Clients {
    /// Returns the machine for a client of that name, with the content of `library`. `seed` must not be
    /// guessable: secrets are drawn from it.
    fn machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served>;
    /// Returns the machine that informs a client, on channel 0, of a full server, and closes.
    fn turn_away(&self) -> Box<dyn App>;
    /// Returns whether a datagram may be the first of a client ([`Service::DATAGRAMS`]). Another is dropped.
    fn begins(&self, datagram: &Chunk) -> bool {
        let _ = datagram;
        false
    }
    /// Returns the machine as [`Clients::machine`], for a client that sends datagrams: they use its channel
    /// 0, which is open at `Start`. Datagrams have no goodbye, and their sender may be forged: the machine
    /// gives up a silent client after a minute at most.
    fn datagram_machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served> {
        self.machine(library, name, seed)
    }
    /// Returns the datagram that informs the sender of a first datagram of a full server.
    fn turn_away_datagram(&self, datagram: &Chunk) -> Option<Chunk> {
        let _ = datagram;
        None
    }
}

/// Settings of a standalone server.
pub trait Service: Clients + Serialize + DeserializeOwned + 'static {
    /// That of its URLs.
    const SCHEME: &'static str;
    /// The port of its protocol, and the customary one for unprivileged users.
    const PORTS: [u16; 2];
    /// Names of sets of settings; the first is the usual one.
    const PRESETS: &'static [&'static str];
    /// Whether clients may send datagrams too, to the UDP port of the same number.
    const DATAGRAMS: bool = false;

    /// Returns a set of settings by its name, one of `PRESETS`.
    fn preset(name: &str) -> Option<Self>;

    /// Checks whether a server can be made from them.
    ///
    /// # Errors
    ///
    /// The faulty field, and the remedy.
    fn check(&self) -> Result<(), ContentFault>;

    /// Sets the silence after which a client has vanished.
    fn give_up_after(&mut self, silence: Duration);
}

/// Facts about a server.
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

/// A fault that prevents a server: the field, or none where it is the time after which a client has vanished,
/// and the remedy.
pub type ServerFault = (Option<&'static str>, String);

/// Constructor of a server from settings and that time.
type Open = fn(Value, Option<Duration>) -> Result<Box<dyn Clients>, ServerFault>;

/// A [`Service`] without its type.
#[derive(Clone, Copy)]
pub struct Server {
    /// Facts about it.
    pub facts: ServerFacts,
    preset: fn(&str) -> Option<Value>,
    read: fn(Value) -> Result<(), String>,
    open: Open,
}

impl Server {
    /// Returns the server of a service.
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

    /// Returns the server of these settings; `silence` replaces the time after which a client has vanished.
    ///
    /// # Errors
    ///
    /// The fault of the settings.
    pub fn open(&self, settings: Value, silence: Option<Duration>) -> Result<Box<dyn Clients>, ServerFault> {
        (self.open)(settings, silence)
    }
}
