//! A player of URLs of a real network.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use streamgauge_base::{Duration, Instant};

use super::{ContentFault, as_json};
use crate::app::App;
use crate::playout::PlayoutStats;

/// The media that count as shown: pictures, of any container and codec, and never sound.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Shows {
    /// Pictures, all of them counted.
    #[default]
    Pictures,
    /// The presentation has sound and no pictures: it is played by its sound.
    SoundAlone,
    /// Pictures that are not counted, for this reason.
    Uncounted(String),
}

/// Every player's observations, at any time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    /// The media that count as shown.
    pub shows: Shows,
    /// Bytes of media received, with the headers of their packets.
    pub bytes: u64,
    /// Packets that never arrived, where its protocol has any that can be lost.
    pub lost: Option<u64>,
    /// Outcomes of the pictures.
    pub frames: PlayoutStats,
    /// From the request for the media to the first picture's time.
    pub startup: Option<Duration>,
    /// Pictures held, from the play position to the newest received.
    pub buffer: Duration,
    /// Where play is in the media.
    pub position: Duration,
    /// The media's length, if it is known.
    pub duration: Option<Duration>,
}

impl Shows {
    /// Returns the observations of a player that counts the frames of all pictures.
    pub fn of(frames: &PlayoutStats) -> Self {
        if frames.sound_alone { Shows::SoundAlone } else { Shows::Pictures }
    }
}

impl Seen {
    /// Returns whether any of the media was shown or played.
    pub fn has_played(&self) -> bool {
        match self.shows {
            Shows::Pictures => self.frames.shown > 0,
            Shows::SoundAlone | Shows::Uncounted(_) => {
                self.startup.is_some() && self.position > Duration::ZERO
            }
        }
    }
}

/// A player's machine for one URL.
pub trait Playing: App {
    /// Returns the received and the shown media by `now`.
    fn seen(&mut self, now: Instant) -> Seen;
    /// Returns further figures for the report, by name.
    fn figures(&mut self, now: Instant) -> Map<String, Value>;
    /// Returns the transport of the media, in words.
    fn carried_by(&self) -> &'static str;
    /// Returns the received media, in a line; `rate` is that of the media, in words.
    fn in_words(&mut self, now: Instant, rate: &str) -> String;
    /// Returns the status of the last answer that was no success.
    fn refused(&self) -> Option<u16>;
    /// Hosts that may be asked beside the URL's own; `*` for all. Without effect on a player that uses its
    /// own host alone.
    fn allow_hosts(&mut self, hosts: &[String]) {
        let _ = hosts;
    }
    /// Tracks of the media that are not played, in words.
    fn left_out(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns whether the input cannot be played.
    fn is_unplayable(&self) -> bool {
        false
    }
    /// Returns the next kept bytes for `--save`.
    fn take_kept(&mut self) -> Option<Vec<u8>>;
}

/// Settings of a standalone player.
pub trait Playable: Serialize + DeserializeOwned + 'static {
    /// That of the URLs that it plays.
    const SCHEME: &'static str;
    /// The port of a URL that names none.
    const PORT: u16;
    /// Endings of the paths that it plays; another player of the scheme plays the rest. Without any it plays
    /// the rest.
    const ENDINGS: &'static [&'static str] = &[];
    /// Which players there are; the first is the usual one.
    const PLAYERS: &'static [&'static str];
    /// Possible transports of media; the first is the default.
    const TRANSPORTS: &'static [&'static str];
    /// Those among them without a connection, with datagrams from the start: it opens the channel to the
    /// URL's port.
    const WITHOUT_CONNECTION: &'static [&'static str] = &[];
    /// The request for the media: start-up counts from there.
    const ASKS: &'static str;
    /// The connection to the server is its channel 0, which is `Opened` after `Start`. Another player opens it.
    const IS_CONNECTED: bool;

    /// Returns the settings of a player by its name, one of `PLAYERS`, and its transport, one of
    /// `TRANSPORTS`.
    fn preset(player: &str, transport: &str) -> Option<Self>;

    /// Checks whether a player can be made from them.
    ///
    /// # Errors
    ///
    /// The faulty field, and the remedy.
    fn check(&self) -> Result<(), ContentFault>;

    /// Returns the machine that plays `url`, and with `keep` keeps shown media for its owner.
    fn machine(self, url: &str, keep: bool, seed: u64) -> Box<dyn Playing>;
}

/// Facts about a player.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PlayerFacts {
    /// [`Playable::SCHEME`].
    pub scheme: &'static str,
    /// [`Playable::PORT`].
    pub port: u16,
    /// [`Playable::ENDINGS`].
    pub endings: &'static [&'static str],
    /// [`Playable::PLAYERS`].
    pub players: &'static [&'static str],
    /// [`Playable::TRANSPORTS`].
    pub transports: &'static [&'static str],
    /// [`Playable::WITHOUT_CONNECTION`].
    pub without_connection: &'static [&'static str],
    /// [`Playable::ASKS`].
    pub asks: &'static str,
    /// [`Playable::IS_CONNECTED`].
    pub is_connected: bool,
}

/// Constructor of the machine from settings, a URL, whether to keep shown media, and a seed.
type Open = fn(Value, &str, bool, u64) -> Result<Box<dyn Playing>, ContentFault>;

/// A [`Playable`] without its type.
#[derive(Clone, Copy)]
pub struct Player {
    /// Facts about it.
    pub facts: PlayerFacts,
    preset: fn(&str, &str) -> Option<Value>,
    read: fn(Value) -> Result<(), String>,
    open: Open,
}

impl Player {
    /// Returns the player of these settings.
    pub fn of<S: Playable>() -> Self {
        Player {
            facts: PlayerFacts {
                scheme: S::SCHEME,
                port: S::PORT,
                endings: S::ENDINGS,
                players: S::PLAYERS,
                transports: S::TRANSPORTS,
                without_connection: S::WITHOUT_CONNECTION,
                asks: S::ASKS,
                is_connected: S::IS_CONNECTED,
            },
            preset: |player, transport| S::preset(player, transport).as_ref().map(as_json),
            read: |settings| serde_json::from_value::<S>(settings).map(drop).map_err(|e| e.to_string()),
            open: |settings, url, keep, seed| {
                let settings: S =
                    serde_json::from_value(settings).map_err(|e| ("settings", e.to_string()))?;
                settings.check()?;
                Ok(settings.machine(url, keep, seed))
            },
        }
    }

    /// Returns the settings of a player, by their fields' names.
    pub fn preset(&self, player: &str, transport: &str) -> Option<Value> {
        (self.preset)(player, transport)
    }

    /// Checks whether these are settings at all.
    ///
    /// # Errors
    ///
    /// The fault that prevents reading.
    pub fn read(&self, settings: &Value) -> Result<(), String> {
        (self.read)(settings.clone())
    }

    /// Returns the player of `url` by these settings. With `keep` it keeps the shown media.
    ///
    /// # Errors
    ///
    /// The faulty field, and the remedy.
    pub fn open(
        &self,
        settings: Value,
        url: &str,
        keep: bool,
        seed: u64,
    ) -> Result<Box<dyn Playing>, ContentFault> {
        (self.open)(settings, url, keep, seed)
    }
}
