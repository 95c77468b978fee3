//! What a system says of itself, once. Everybody else asks.

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

/// A streaming system or traffic source of ours, told by what a plan says of it.
pub trait System: Serialize + DeserializeOwned {
    /// Its name in scenarios and plans.
    const NAME: &'static str;
    /// What it is, in a line.
    const TITLE: &'static str;
    /// Raised when its machines would do something else than before with the same settings, or when more is recorded of
    /// what they do: only its own trials run again.
    const VERSION: u32;
    /// What it plays.
    const CONTENT: Content;
    /// It plays pictures that are shown in another order than sent: B-frames.
    const B_FRAMES: bool = true;
    /// What its machines say that metrics are made of, beside `media_end`.
    const EVENTS: &'static [EventKind];
    /// Whether a flow of it may be many short transfers: its settings have a field `arrivals`
    /// ([`streamgauge_plan::Arrivals`]).
    const ARRIVALS: bool = false;

    /// The settings of a flow that says nothing, but for the clip.
    fn usual() -> Self;

    /// Its parameters, in the order that people read.
    fn parameters() -> Vec<Parameter>;

    /// Sets of settings that a flow chooses by name.
    fn presets() -> Vec<Presets> {
        Vec::new()
    }

    /// What the parts of the settings are that `usual` leaves out ([`Kind::Presence`]), by their keys.
    fn parts() -> Map<String, Value> {
        Map::new()
    }

    /// The clip among its settings, whose frames the plan may leave to stored content.
    fn clip(&mut self) -> Option<&mut ClipSpec> {
        None
    }

    /// The ladder among its settings, as [`System::clip`].
    fn ladder(&mut self) -> Option<&mut LadderSpec> {
        None
    }

    /// Its server outside trials, if it has one: what `streamgauge serve` runs.
    fn server() -> Option<Server> {
        None
    }

    /// Its player outside trials, if it has one: what `streamgauge play` runs.
    fn player() -> Option<Player> {
        None
    }

    /// Its proxy for players of HTTP outside trials, if it has one: what `streamgauge proxy` runs.
    fn proxy() -> Option<Proxy> {
        None
    }

    /// Both ends of a flow of that name. Their random streams are named by `seed` and the flow's name.
    ///
    /// # Errors
    ///
    /// The key within the flow's plan that cannot be done, and what would be right.
    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal>;

    /// What its channels speak, for the classifier of packets.
    fn protocols(&self) -> Protocols;

    /// The settings of the TCP connection that its media rides on; `None` where it rides on something else.
    fn media_tcp(&self) -> Option<&TcpSpec> {
        None
    }

    /// What its media rides on.
    fn media_over(&self) -> MediaOver {
        if self.media_tcp().is_some() { MediaOver::Tcp } else { MediaOver::Udp }
    }

    /// The rate in bit/s at which it wants to send to its player, in IP packets that cost `link_bytes` more each;
    /// `None` if it takes any.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64>;

    /// When it sends at all, in trial time, each [on, off); empty for always.
    fn windows(&self) -> &[(Duration, Duration)] {
        &[]
    }

    /// The clock by which it sends, whatever becomes of what it sends; `None` where it heeds that.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Whether it ends by itself, when it has sent what it was to send.
    fn is_finite(&self) -> bool {
        false
    }

    /// When it sends for the first time, in trial time, if that is after the flow's start.
    fn begins(&self) -> Duration {
        Duration::ZERO
    }

    /// As a flow of a plan has it.
    fn app(&self) -> AppSpec {
        AppSpec::new(Self::NAME, self)
    }
}

/// A machine of ours that flows share, told by what a plan says of it.
pub trait Relay: Serialize + DeserializeOwned {
    /// Its name in scenarios and plans.
    const NAME: &'static str;
    /// What it is, in a line.
    const TITLE: &'static str;
    /// Raised when its machine would do something else than before with the same settings, as [`System::VERSION`].
    const VERSION: u32;
    /// What it says that metrics are made of.
    const EVENTS: &'static [EventKind];

    /// The settings of one that says nothing.
    fn usual() -> Self;

    /// Its parameters, in the order that people read.
    fn parameters() -> Vec<Parameter>;

    /// What its channels speak, for the classifier of packets: a flow goes through it whose own channels speak the same.
    fn protocols(&self) -> Protocols;

    /// The machine of `relay`. Its random streams are named by `seed` and the relay's name.
    ///
    /// # Errors
    ///
    /// The key within the relay's plan that cannot be done, and what would be right.
    fn machine(&self, relay: &RelaySpec, seed: u64) -> Result<RelayMachine, Refusal>;

    /// As a plan has it.
    fn app(&self) -> AppSpec {
        AppSpec::new(Self::NAME, self)
    }
}

/// What a system plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing: it is traffic.
    None,
    /// One clip, by the sizes of its frames.
    Clip,
    /// One content at several rates.
    Ladder,
}

/// What media rides on.
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
    /// Packets of a datagram: what Ethernet does not carry whole the host sends in fragments.
    pub fragments: u64,
}

/// What a machine says as events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct EventKind {
    /// Its name in the record.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: &'static str,
}

/// [`EventKind`]s of names and units.
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

/// Sets of settings under names, one of which a flow chooses by a parameter of its own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Presets {
    /// The parameter that chooses.
    pub name: &'static str,
    /// Whose settings they are: the key in the system's.
    pub at: &'static str,
    /// What is chosen.
    pub help: &'static str,
    /// Each set by its name; the first is the default.
    pub sets: Vec<(&'static str, Value)>,
}

impl Presets {
    /// The sets that `of` gives for each of `named`; the parameter that chooses, whose they are and what is chosen.
    pub fn new<P: Copy, S: Serialize>(
        (name, at, help): (&'static str, &'static str, &'static str),
        named: &[(&'static str, P)],
        of: impl Fn(P) -> S,
    ) -> Self {
        let sets = named.iter().map(|&(name, one)| (name, value(&of(one)))).collect();
        Presets { name, at, help, sets }
    }

    /// The same without the setting `key`, which is chosen in another place.
    pub fn without(mut self, key: &str) -> Self {
        for set in self.sets.iter_mut().filter_map(|(_, set)| set.as_object_mut()) {
            set.remove(key);
        }
        self
    }
}

/// What holds of a flow with these settings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Facts {
    /// What its media rides on.
    pub media_over: MediaOver,
    /// [`System::protocols`].
    pub protocols: Protocols,
    /// [`System::wanted_bps`] of IP packets.
    pub wanted_ip_bps: Option<f64>,
    /// Of Ethernet frames without their check sequence.
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
    /// Of a flow.
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

/// What a frame has beside its IP packet, without the check sequence.
const ETHERNET_BYTES: u32 = 14;

/// Everything that the house must know of a system.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Description {
    /// Its name in scenarios and plans.
    pub name: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// [`System::VERSION`].
    pub version: u32,
    /// What it plays.
    pub content: Content,
    /// [`System::B_FRAMES`].
    pub b_frames: bool,
    /// What it rides on if nothing is said.
    pub media_over: MediaOver,
    /// What its channels speak if nothing is said.
    pub protocols: Protocols,
    /// Sets of settings that a flow chooses by name.
    pub presets: Vec<Presets>,
    /// Its parameters, in the order that people read.
    pub parameters: Vec<Parameter>,
    /// The settings of a flow that says nothing, but for the clip.
    pub usual: Value,
    /// The parts that it leaves out, by their keys, as they are if nothing is said of them.
    pub parts: Map<String, Value>,
    /// What its machines say.
    pub events: Vec<EventKind>,
    /// [`System::ARRIVALS`].
    pub arrivals: bool,
    /// Of its server outside trials.
    pub server: Option<ServerFacts>,
    /// Of its player outside trials.
    pub player: Option<PlayerFacts>,
}

impl Description {
    /// Of a system.
    pub fn of<S: System>() -> Self {
        let parameters = S::parameters().into_iter().filter(|one| !one.is_elsewhere()).collect();
        Description {
            name: S::NAME,
            title: S::TITLE,
            version: S::VERSION,
            content: S::CONTENT,
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

/// The parameter by which a flow chooses what carries its media, at those keys.
pub(crate) fn transport(at: &[&'static str], kind: Kind) -> Parameter {
    let lines = ["RTP over UDP, or interleaved on one TCP connection.", "Source: RFC 2326 section 10.12."];
    Parameter { at: at.to_vec(), ..Parameter::of("transport", &lines, kind) }
}

/// `fields` with the words that TCP's have, which the plan does not know, and with TCP's behind the others.
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

/// What is wrong with a part of the plan: its key within the flow, and the fault with its remedy.
pub type Refusal = (Cow<'static, str>, String);

/// What a part of the plan says of itself, a field and its fault, as a refusal of the plan that has the part at `key`.
pub(crate) fn within(key: &'static str) -> impl Fn((&'static str, String)) -> Refusal {
    move |(field, what)| (format!("{key}.{field}").into(), what)
}

/// Refuses, by its key in the plan, what a flow of `system` cannot be made of: its player's settings, its server's, its
/// clip, which may have no more frames than a file that is read.
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
