//! The description of a system, in one place. Everybody else asks.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use streamgauge_base::Duration;
use streamgauge_plan::{AppSpec, Kind, Parameter, Protocols, RelaySpec, TcpSpec};
use streamgauge_transport::tcp::{Hystart, Mechanisms};

use crate::machines::{Machines, RelayMachine};
use crate::media::mp4::MOST_UNITS;
use crate::media::{ClipSpec, LadderSpec};
use crate::standalone::{Playable, Player, PlayerFacts, Proxy, Server, ServerFacts, Service};

/// A built-in streaming system or traffic source, which a plan's settings define.
pub trait System: Serialize + DeserializeOwned {
    /// Its name in scenarios and plans.
    const NAME: &'static str;
    /// Its description, in a line.
    const TITLE: &'static str;
    /// Raised when its machines would behave differently from before with the same settings, or when more of
    /// their behaviour is recorded: only its own trials run again.
    const VERSION: u32;
    /// The content that it plays.
    const CONTENT: Content;
    /// The library that it hosts, if it is one.
    const HOSTED: Option<Hosted> = None;
    /// It plays pictures that are shown in another order than sent: B-frames.
    const B_FRAMES: bool = true;
    /// Its machines' events that metrics use, beside `media_end`.
    const EVENTS: &'static [EventKind];
    /// Whether a flow of it may be many short transfers: its settings have a field `arrivals`
    /// ([`streamgauge_plan::Arrivals`]).
    const ARRIVALS: bool = false;

    /// Returns the settings of a flow without any of its own, except for the clip.
    fn usual() -> Self;

    /// Its parameters, in the order that people read.
    fn parameters() -> Vec<Parameter>;

    /// Sets of settings that a flow chooses by name.
    fn presets() -> Vec<Presets> {
        Vec::new()
    }

    /// Returns the defaults of the parts of the settings that `usual` leaves out ([`Kind::Presence`]), by
    /// their keys.
    fn parts() -> Map<String, Value> {
        Map::new()
    }

    /// Returns the clip among its settings; the plan may leave its frames to stored content.
    fn clip(&mut self) -> Option<&mut ClipSpec> {
        None
    }

    /// Returns the ladder among its settings, as [`System::clip`].
    fn ladder(&mut self) -> Option<&mut LadderSpec> {
        None
    }

    /// Returns its server outside trials, if it has one: the server of `streamgauge serve`.
    fn server() -> Option<Server> {
        None
    }

    /// Returns its player outside trials, if it has one: the player of `streamgauge play`.
    fn player() -> Option<Player> {
        None
    }

    /// Returns its proxy for players of HTTP outside trials, if it has one: the proxy of `streamgauge proxy`.
    fn proxy() -> Option<Proxy> {
        None
    }

    /// Returns both ends of a flow of that name. Their random streams are named by `seed` and the flow's
    /// name.
    ///
    /// # Errors
    ///
    /// The faulty key within the flow's plan, and the remedy.
    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal>;

    /// Returns the protocols of its channels, for the classifier of packets.
    fn protocols(&self) -> Protocols;

    /// Returns the settings of the TCP connection that its media rides on; `None` where it rides on something
    /// else.
    fn media_tcp(&self) -> Option<&TcpSpec> {
        None
    }

    /// Returns whether the flow's first stream carries no media: the ends agree on it there, and media has a
    /// stream of its own.
    fn begins_with_control(&self) -> bool {
        false
    }

    /// Returns the transport of its media.
    fn media_over(&self) -> MediaOver {
        if self.media_tcp().is_some() { MediaOver::Tcp } else { MediaOver::Udp }
    }

    /// Returns the rate in bit/s at which it would send to its player, in IP packets that cost `link_bytes`
    /// more each; `None` if it uses any rate.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64>;

    /// Returns when it sends at all, in trial time, each [on, off); empty for always.
    fn windows(&self) -> &[(Duration, Duration)] {
        &[]
    }

    /// Returns the clock by which it sends, regardless of the packets' fate; `None` where it reacts to that.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Returns whether it ends by itself, when it has sent everything.
    fn is_finite(&self) -> bool {
        false
    }

    /// Returns when it sends for the first time, in trial time, if that is after the flow's start.
    fn begins(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the settings as in a flow of a plan.
    fn app(&self) -> AppSpec {
        AppSpec::new(Self::NAME, self)
    }
}

/// A built-in machine that flows share, which a plan's settings define.
pub trait Relay: Serialize + DeserializeOwned {
    /// Its name in scenarios and plans.
    const NAME: &'static str;
    /// Its description, in a line.
    const TITLE: &'static str;
    /// Raised when its machine would do something else than before with the same settings, as [`System::VERSION`].
    const VERSION: u32;
    /// Its events that metrics use.
    const EVENTS: &'static [EventKind];

    /// Returns the settings of one without any of its own.
    fn usual() -> Self;

    /// Its parameters, in the order that people read.
    fn parameters() -> Vec<Parameter>;

    /// Returns the protocols of its channels, for the classifier of packets: a flow with the same protocols
    /// may pass through it.
    fn protocols(&self) -> Protocols;

    /// Returns the machine of `relay`. Its random streams are named by `seed` and the relay's name.
    ///
    /// # Errors
    ///
    /// The faulty key within the relay's plan, and the remedy.
    fn machine(&self, relay: &RelaySpec, seed: u64) -> Result<RelayMachine, Refusal>;

    /// Returns the settings as in a plan.
    fn app(&self) -> AppSpec {
        AppSpec::new(Self::NAME, self)
    }
}

/// The content that a system plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing: it is traffic.
    None,
    /// One clip, by the sizes of its frames.
    Clip,
    /// One content at several rates.
    Ladder,
    /// Media that its sender makes as it sends them.
    Live,
}

/// A library that others wrote, which a system hosts unmodified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Hosted {
    /// Its name.
    pub library: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Whether this build has it.
    pub is_built: bool,
    /// The command that builds it.
    pub build: &'static str,
}

/// The transport of media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaOver {
    /// A TCP connection.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// ICMP messages.
    Icmp,
}

/// Packets at a constant rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Pace {
    /// Datagrams per second.
    pub packets_per_s: f64,
    /// Datagrams at each tick, back to back.
    pub burst: u32,
    /// Packets of a datagram: the host fragments datagrams that exceed an Ethernet frame.
    pub fragments: u64,
}

/// A machine's kind of event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct EventKind {
    /// Its name in the record.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: &'static str,
}

/// Returns the [`EventKind`]s of names and units.
pub(crate) const fn events<const N: usize>(told: [(&'static str, &'static str); N]) -> [EventKind; N] {
    let mut found = [EventKind { name: "", unit: "" }; N];
    let mut place = 0;
    while place < N {
        let (name, unit) = told[place];
        found[place] = EventKind { name, unit };
        place += 1;
    }
    found
}

/// Named sets of settings; a flow chooses one by a parameter of its own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Presets {
    /// The parameter that chooses.
    pub name: &'static str,
    /// The place of these settings: the key in the system's.
    pub at: &'static str,
    /// The meaning of the choice.
    pub help: &'static str,
    /// Each set by its name; the first is the default.
    pub sets: Vec<(&'static str, Value)>,
}

impl Presets {
    /// Returns the sets that `of` gives for each of `named`, with the parameter that chooses, the place of
    /// the settings and the meaning of the choice.
    pub fn new<P: Copy, S: Serialize>(
        (name, at, help): (&'static str, &'static str, &'static str),
        named: &[(&'static str, P)],
        of: impl Fn(P) -> S,
    ) -> Self {
        let sets = named.iter().map(|&(name, one)| (name, value(&of(one)))).collect();
        Presets { name, at, help, sets }
    }

    /// Returns the same without the setting `key`, which is chosen in another place.
    pub fn without(mut self, key: &str) -> Self {
        for set in self.sets.iter_mut().filter_map(|(_, set)| set.as_object_mut()) {
            set.remove(key);
        }
        self
    }
}

/// Facts of a flow with these settings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Facts {
    /// The transport of its media.
    pub media_over: MediaOver,
    /// [`System::protocols`].
    pub protocols: Protocols,
    /// [`System::wanted_bps`] of IP packets.
    pub wanted_ip_bps: Option<f64>,
    /// Rate of Ethernet frames without their check sequence.
    pub wanted_ethernet_bps: Option<f64>,
    /// [`System::windows`] in nanoseconds.
    pub windows: Vec<(Duration, Duration)>,
    /// [`System::is_finite`].
    pub is_finite: bool,
    /// [`System::begins`], in nanoseconds.
    pub begins: Duration,
    /// [`System::pace`].
    pub pace: Option<Pace>,
}

impl Facts {
    /// Returns the facts of a flow.
    pub fn of(settings: &impl System) -> Self {
        Facts {
            media_over: settings.media_over(),
            protocols: settings.protocols(),
            wanted_ip_bps: settings.wanted_bps(0),
            wanted_ethernet_bps: settings.wanted_bps(ETHERNET_BYTES),
            windows: settings.windows().to_vec(),
            is_finite: settings.is_finite(),
            begins: settings.begins(),
            pace: settings.pace(),
        }
    }
}

/// Bytes of a frame beside its IP packet, without the check sequence.
const ETHERNET_BYTES: u32 = 14;

/// All facts about a system.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Description {
    /// Its name in scenarios and plans.
    pub name: &'static str,
    /// Its description, in a line.
    pub title: &'static str,
    /// [`System::VERSION`].
    pub version: u32,
    /// The content that it plays.
    pub content: Content,
    /// [`System::HOSTED`].
    pub hosted: Option<Hosted>,
    /// [`System::B_FRAMES`].
    pub b_frames: bool,
    /// The transport of its media by default.
    pub media_over: MediaOver,
    /// The protocols of its channels by default.
    pub protocols: Protocols,
    /// Sets of settings that a flow chooses by name.
    pub presets: Vec<Presets>,
    /// Its parameters, in the order that people read.
    pub parameters: Vec<Parameter>,
    /// The settings of a flow without any of its own, except for the clip.
    pub usual: Value,
    /// The parts that it leaves out, by their keys, with their defaults.
    pub parts: Map<String, Value>,
    /// The events of its machines.
    pub events: Vec<EventKind>,
    /// [`System::ARRIVALS`].
    pub arrivals: bool,
    /// Facts about its server outside trials.
    pub server: Option<ServerFacts>,
    /// Facts about its player outside trials.
    pub player: Option<PlayerFacts>,
}

impl Description {
    /// Returns the description of a system.
    pub fn of<S: System>() -> Self {
        let parameters = S::parameters().into_iter().filter(|one| !one.is_elsewhere()).collect();
        Description {
            name: S::NAME,
            title: S::TITLE,
            version: S::VERSION,
            content: S::CONTENT,
            hosted: S::HOSTED,
            b_frames: S::B_FRAMES,
            media_over: S::usual().media_over(),
            protocols: S::usual().protocols(),
            presets: S::presets(),
            parameters,
            usual: value(&S::usual()),
            parts: S::parts(),
            events: S::EVENTS.to_vec(),
            arrivals: S::ARRIVALS,
            server: S::server().map(|server| server.facts),
            player: S::player().map(|player| player.facts),
        }
    }
}

pub(crate) fn value(settings: &impl Serialize) -> Value {
    serde_json::to_value(settings).expect("settings are numbers, texts, lists and objects")
}

/// Returns the parameter by which a flow chooses the transport of its media, at those keys.
pub(crate) fn transport(at: &[&'static str], kind: Kind) -> Parameter {
    let lines = ["RTP over UDP, or interleaved on one TCP connection.", "Source: RFC 2326 section 10.12."];
    Parameter { at: at.to_vec(), ..Parameter::of("transport", &lines, kind) }
}

/// Returns `fields` with the words of TCP's parameters, which the plan does not define, and with TCP's behind
/// the others.
pub(crate) fn tcp_last(mut fields: Vec<Parameter>) -> Vec<Parameter> {
    fields.sort_by_key(|field| field.at.first() == Some(&"tcp"));
    for parameter in &mut fields {
        match parameter.at.as_slice() {
            [.., "tcp", "hystart"] => parameter.kind = Kind::Words(names(Hystart::NAMED)),
            [.., "tcp", "without"] => parameter.kind = Kind::Several(names(Mechanisms::NAMED)),
            _ => {}
        }
    }
    fields
}

fn names<T>(named: &[(&'static str, T)]) -> Vec<&'static str> {
    named.iter().map(|(name, _)| *name).collect()
}

/// A fault in a part of the plan: its key within the flow, and the fault with its remedy.
pub type Refusal = (Cow<'static, str>, String);

/// Returns a function that turns a part's own fault, a field and its fault, into a refusal of the plan with
/// the part at `key`.
pub(crate) fn within(key: &'static str) -> impl Fn((&'static str, String)) -> Refusal {
    move |(field, what)| (format!("{key}.{field}").into(), what)
}

/// Refuses, by its key in the plan, any faulty part of a flow of `system`: its player's settings, its
/// server's, its clip, which may have no more frames than a file that is read.
pub(crate) fn check_ends(
    system: &str,
    player: &impl Playable,
    server: &impl Service,
    clip: &ClipSpec,
) -> Result<(), Refusal> {
    let at = |part: &str| {
        let key = format!("app.{system}.{part}");
        move |(field, what): (&'static str, String)| (format!("{key}.{field}").into(), what)
    };
    player.check().map_err(at("player"))?;
    server.check().map_err(at("server"))?;
    clip.check().map_err(at("clip"))?;
    let frames = clip.duration.as_nanos() / clip.frame_interval.as_nanos();
    if frames > MOST_UNITS as u64 {
        let what = format!("{frames} frames; give a time in which there are at most {MOST_UNITS}");
        return Err(at("clip")(("duration", what)));
    }
    Ok(())
}
