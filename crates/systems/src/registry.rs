//! The systems there are, a line each.

use serde::Serialize;
use serde_json::Value;
use streamgauge_plan::{AppSpec, EXTERNAL, FlowSpec, Parameter, Protocols, RelaySpec, TcpSpec};

use crate::bulk::BulkSpec;
use crate::call::CallSpec;
use crate::cbr::CbrSpec;
use crate::ccn::CcnForwarderSpec;
use crate::ccn::CcnSpec;
use crate::darwin::DarwinSpec;
use crate::dash::DashSpec;
use crate::describe::{Description, EventKind, Facts, Refusal, Relay, System, value};
use crate::http::HttpSpec;
use crate::http_cache::HttpCacheSpec;
use crate::machines::{Machines, RelayMachine};
use crate::media::Contents;
use crate::ping::PingSpec;
use crate::realvideo::RealVideoSpec;
use crate::rist::RistSpec;
use crate::rtp::RtpSpec;
use crate::srt::SrtSpec;
use crate::standalone::{Player, Proxy, Server};
use crate::webrtc::WebRtcSpec;
use crate::windows_media::WindowsMediaSpec;

static SYSTEMS: &[Registered] = &[
    Registered::of::<BulkSpec>(),
    Registered::of::<CbrSpec>(),
    Registered::of::<PingSpec>(),
    Registered::of::<RtpSpec>(),
    Registered::of::<CallSpec>(),
    Registered::of::<SrtSpec>(),
    Registered::of::<RistSpec>(),
    Registered::of::<WebRtcSpec>(),
    Registered::of::<DarwinSpec>(),
    Registered::of::<HttpSpec>(),
    Registered::of::<DashSpec>(),
    Registered::of::<CcnSpec>(),
    Registered::of::<RealVideoSpec>(),
    Registered::of::<WindowsMediaSpec>(),
];

static RELAYS: &[RegisteredRelay] =
    &[RegisteredRelay::of::<HttpCacheSpec>(), RegisteredRelay::of::<CcnForwarderSpec>()];

/// A system without its type.
struct Registered {
    name: &'static str,
    machines: fn(&FlowSpec, u64, &Contents) -> Result<Machines, Refusal>,
    media_tcp: fn(&AppSpec) -> Option<TcpSpec>,
    begins_with_control: fn(&AppSpec) -> bool,
    protocols: fn(&AppSpec) -> Option<Protocols>,
    description: fn() -> Description,
    server: fn() -> Option<Server>,
    player: fn() -> Option<Player>,
    proxy: fn() -> Option<Proxy>,
    facts: fn(&AppSpec) -> Option<Facts>,
    #[cfg(test)]
    every_parameter_takes_what_it_says: fn(),
}

impl Registered {
    const fn of<S: System>() -> Self {
        Registered {
            name: S::NAME,
            machines: |flow, seed, contents| {
                let read = flow.app.settings::<S>();
                let mut read = read.map_err(|what| (format!("app.{}", S::NAME).into(), what))?;
                let found = read.clip().map_or(Ok(()), |clip| clip.resolve(contents));
                found.map_err(|(field, what)| (format!("app.{}.clip.{field}", S::NAME).into(), what))?;
                let found = read.ladder().map_or(Ok(()), |ladder| ladder.resolve(contents));
                found.map_err(|(field, what)| (format!("app.{}.ladder.{field}", S::NAME).into(), what))?;
                read.machines(&flow.name, seed)
            },
            media_tcp: |app| app.settings::<S>().ok()?.media_tcp().cloned(),
            begins_with_control: |app| {
                app.settings::<S>().is_ok_and(|settings| settings.begins_with_control())
            },
            protocols: |app| Some(app.settings::<S>().ok()?.protocols()),
            description: Description::of::<S>,
            server: S::server,
            player: S::player,
            proxy: S::proxy,
            facts: |app| {
                Some(Facts::of(&app.settings::<S>().ok().or_else(|| settings_across_versions(app))?))
            },
            #[cfg(test)]
            every_parameter_takes_what_it_says: tests::every_parameter_takes_what_it_says::<S>,
        }
    }
}

/// A relay without its type.
struct RegisteredRelay {
    name: &'static str,
    protocols: fn(&AppSpec) -> Option<Protocols>,
    machine: fn(&RelaySpec, u64) -> Result<RelayMachine, Refusal>,
    description: fn() -> RelayDescription,
}

impl RegisteredRelay {
    const fn of<R: Relay>() -> Self {
        RegisteredRelay {
            name: R::NAME,
            protocols: |app| Some(app.settings::<R>().ok()?.protocols()),
            machine: |relay, seed| {
                let read = relay.app.settings::<R>();
                read.map_err(|what| (format!("app.{}", R::NAME).into(), what))?.machine(relay, seed)
            },
            description: || RelayDescription {
                name: R::NAME,
                title: R::TITLE,
                version: R::VERSION,
                protocols: R::usual().protocols(),
                parameters: R::parameters().into_iter().filter(|one| !one.is_elsewhere()).collect(),
                usual: value(&R::usual()),
                events: R::EVENTS.to_vec(),
            },
        }
    }
}

/// All facts about a relay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RelayDescription {
    /// Its name in scenarios and plans.
    pub name: &'static str,
    /// Its description, in a line.
    pub title: &'static str,
    /// [`Relay::VERSION`].
    pub version: u32,
    /// The protocols of its channels by default.
    pub protocols: Protocols,
    /// Its parameters, in the order that people read.
    pub parameters: Vec<Parameter>,
    /// The settings of one without any of its own.
    pub usual: Value,
    /// Its events.
    pub events: Vec<EventKind>,
}

/// Returns the settings of a plan that another version may have written: missing ones have their defaults,
/// and unknown ones are left out.
fn settings_across_versions<S: System>(app: &AppSpec) -> Option<S> {
    let (mut whole, given) = (value(&S::usual()), app.settings::<Value>().ok()?);
    for (key, part) in S::parts().into_iter().filter(|(key, _)| given[key].is_object()) {
        whole[key] = part;
    }
    replace(&mut whole, given);
    serde_json::from_value(whole).ok()
}

fn replace(known: &mut Value, given: Value) {
    match (known, given) {
        (Value::Object(known), Value::Object(given)) => {
            for (key, value) in given {
                known.entry(key).and_modify(|known| replace(known, value));
            }
        }
        (known, given) => *known = given,
    }
}

fn registered(app: &AppSpec) -> Option<&'static Registered> {
    SYSTEMS.iter().find(|system| system.name == app.system())
}

/// A flow that cannot be made into machines, or a relay that cannot be made into one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind}.{name}.{key}: {what}")]
pub struct MachineError {
    /// Whether it is one of the plan's `flows` or `relays`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The key within its plan.
    pub key: String,
    /// The fault and the remedy.
    pub what: String,
}

/// Returns the machines of `flow`; its plan may name some of `contents`. Their random streams are named by
/// `seed` and the flow's name.
pub fn machines(flow: &FlowSpec, seed: u64, contents: &Contents) -> Result<Machines, MachineError> {
    let made = match registered(&flow.app) {
        Some(system) if flow.tcp.is_some() => {
            let what = format!("the settings of {} choose its TCP; remove this", system.name);
            Err(("tcp".into(), what))
        }
        Some(system) => (system.machines)(flow, seed, contents),
        None if flow.app.system() == EXTERNAL => {
            let what = "a third-party system runs in emu only. Give the flow a stand-in for sim \
                        (sim: {system: rtp}) or run with --mode emu";
            Err(("app".into(), what.into()))
        }
        None => {
            let known = SYSTEMS.iter().map(|system| system.name).collect::<Vec<_>>().join(", ");
            Err(("app".into(), format!("no system is called {:?}; there are {known}", flow.app.system())))
        }
    };
    made.map_err(|(key, what)| MachineError {
        kind: "flows",
        name: flow.name.clone(),
        key: key.into_owned(),
        what,
    })
}

/// Returns the settings of the TCP connection that a flow's media rides on; `None` where it rides on
/// something else, and for third-party systems.
pub fn media_tcp(app: &AppSpec) -> Option<TcpSpec> {
    (registered(app)?.media_tcp)(app)
}

/// Returns whether a flow's first stream carries none of its media ([`System::begins_with_control`]).
pub fn begins_with_control(app: &AppSpec) -> bool {
    registered(app).is_some_and(|one| (one.begins_with_control)(app))
}

/// Returns the protocols of a flow's channels: the plan's, else its system's. Empty where neither has any, as
/// for a command.
pub fn protocols(flow: &FlowSpec) -> Protocols {
    if !flow.protocols.is_empty() {
        return flow.protocols.clone();
    }
    registered(&flow.app).and_then(|system| (system.protocols)(&flow.app)).unwrap_or_default()
}

/// Returns the systems that have a server outside trials.
pub fn standalone_servers() -> impl Iterator<Item = (&'static str, Server)> {
    SYSTEMS.iter().filter_map(|system| Some((system.name, (system.server)()?)))
}

/// Returns the systems that have a player outside trials.
pub fn standalone_players() -> impl Iterator<Item = (&'static str, Player)> {
    SYSTEMS.iter().filter_map(|system| Some((system.name, (system.player)()?)))
}

/// Returns the proxies that players of HTTP may ask.
pub fn standalone_proxies() -> impl Iterator<Item = Proxy> {
    SYSTEMS.iter().filter_map(|system| (system.proxy)())
}

/// Returns the server of a system outside trials.
pub fn server_of(system: &str) -> Option<Server> {
    standalone_servers().find(|(name, _)| *name == system).map(|(_, server)| server)
}

/// Returns the player for a URL of that scheme with that path.
pub fn player_of(scheme: &str, path: &str) -> Option<Player> {
    let path = path.to_ascii_lowercase();
    let of_scheme =
        || standalone_players().map(|(_, player)| player).filter(|one| one.facts.scheme == scheme);
    let named = of_scheme().find(|one| one.facts.endings.iter().any(|ending| path.ends_with(ending)));
    named.or_else(|| of_scheme().find(|one| one.facts.endings.is_empty()))
}

/// Returns the player of that scheme with a preset of that name, for any path.
pub fn player_called(scheme: &str, name: &str) -> Option<Player> {
    let mut of_scheme = standalone_players().map(|(_, player)| player);
    of_scheme.find(|one| one.facts.scheme == scheme && one.facts.players.contains(&name))
}

/// Returns the machine of `relay`. Its random streams are named by `seed` and the relay's name.
pub fn relay_machine(relay: &RelaySpec, seed: u64) -> Result<RelayMachine, MachineError> {
    let system = relay.app.system();
    let made = match RELAYS.iter().find(|one| one.name == system) {
        Some(one) => (one.machine)(relay, seed),
        None => {
            let known = RELAYS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
            Err(("app".into(), format!("no relay is called {system:?}; there are {known}")))
        }
    };
    made.map_err(|(key, what)| MachineError {
        kind: "relays",
        name: relay.name.clone(),
        key: key.into_owned(),
        what,
    })
}

/// Returns the protocols of the channels of a relay that runs `app`. Empty for an unknown one.
pub fn relay_protocols(app: &AppSpec) -> Protocols {
    let known = RELAYS.iter().find(|one| one.name == app.system());
    known.and_then(|one| (one.protocols)(app)).unwrap_or_default()
}

/// Returns the description of each relay.
pub fn relay_descriptions() -> Vec<RelayDescription> {
    RELAYS.iter().map(|relay| (relay.description)()).collect()
}

/// Returns the description of each system.
pub fn descriptions() -> Vec<Description> {
    SYSTEMS.iter().map(|system| (system.description)()).collect()
}

/// Returns the facts of a flow that runs `app`; `None` for third-party systems. The plan may be of an older
/// version.
pub fn facts(app: &AppSpec) -> Option<Facts> {
    (registered(app)?.facts)(app)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use streamgauge_base::{Duration, Ecn};
    use streamgauge_plan::{
        DatagramProtocol, Entry, FlowTcp, Kind, MediaWay, Parameter, Role, StreamProtocol,
    };

    use super::*;
    use crate::app::ChannelId;
    use crate::carrier::Carrier;
    use crate::cbr::EcnField;
    use crate::describe::{MediaOver, Pace};
    use crate::media::ClipSpec;

    fn flow(app: AppSpec) -> FlowSpec {
        let (start, role, entry) = (Duration::ZERO, Role::Subject, Entry::Server);
        let protocols = Protocols::default();
        let (name, actions, tcp) = ("x".into(), Vec::new(), None);
        let (direction, via, content) = (MediaWay::Down, None, None);
        FlowSpec { name, role, entry, direction, start, actions, app, protocols, tcp, via, content }
    }

    fn tcp() -> TcpSpec {
        TcpSpec { receive_window: 65_536, send_buffer: Some(65_536), ..TcpSpec::default() }
    }

    fn rtp(tcp: Option<TcpSpec>) -> AppSpec {
        let second = Duration::from_secs(1);
        let (name, frame_interval) = ("clip".into(), Duration::from_millis(40));
        let clip = ClipSpec {
            name,
            duration: second,
            frame_interval,
            frame_bytes: vec![1000].into(),
            ..ClipSpec::default()
        };
        RtpSpec { clip, tcp, rtcp_interval: second, playout_delay: second, ..RtpSpec::usual() }.app()
    }

    #[test]
    fn what_a_relay_says_of_its_settings_has_its_sources_apart() {
        for relay in relay_descriptions() {
            for Parameter { name, help, source, .. } in &relay.parameters {
                assert!(
                    help.ends_with('.') && !help.contains("Source:") && !help.contains("RFC "),
                    "{name}: {help}"
                );
                assert!(!source.ends_with('.'), "{name}: {source}");
            }
            assert!(relay.version > 0);
            let told = |keys: &[String]| relay.parameters.iter().any(|one| one.at == keys);
            let elsewhere = |keys: &[String]| {
                keys.last().is_some_and(|key| matches!(key.as_str(), "congestion_control" | "ecn" | "l4s"))
            };
            for keys in leaves(&relay.usual) {
                assert!(told(&keys) || elsewhere(&keys), "{}: {keys:?} is no parameter", relay.name);
            }
        }
    }

    #[test]
    fn every_flow_declares_its_channels_in_order_of_their_ids() {
        let udp = |port| Carrier::Udp { port, ecn: Ecn::NotEct };
        let stream = |port| Carrier::Tcp { port, settings: tcp() };
        let windows = Vec::new();
        let cbr = CbrSpec { packets_per_s: 1.0, payload_bytes: 1, burst: 1, windows, ecn: EcnField::No };
        let ping = PingSpec { interval: Duration::from_secs(1), payload_bytes: 56 };
        for (app, expected) in [
            (BulkSpec { tcp: tcp(), ..BulkSpec::usual() }.app(), vec![stream(5201)]),
            (cbr.app(), vec![udp(5000)]),
            (ping.app(), vec![Carrier::IcmpEcho]),
            (rtp(None), vec![udp(5004), udp(5005)]),
            (rtp(Some(tcp())), vec![stream(554)]),
        ] {
            let channels = machines(&flow(app), 1, &Contents::NONE).unwrap().channels;
            assert!((0..).zip(&channels).all(|(id, channel)| channel.id == ChannelId(id)));
            assert_eq!(channels.into_iter().map(|c| c.carrier).collect::<Vec<_>>(), expected);
        }
    }

    /// Returns every leaf of `settings`: the keys that lead to it.
    fn leaves(settings: &Value) -> Vec<Vec<String>> {
        let Value::Object(fields) = settings else { return vec![Vec::new()] };
        let inside = |(key, inner): (&String, &Value)| {
            let key = key.clone();
            leaves(inner).into_iter().map(move |rest| [vec![key.clone()], rest].concat()).collect::<Vec<_>>()
        };
        fields.iter().flat_map(inside).collect()
    }

    fn at<'a>(settings: &'a mut Value, keys: &[&str]) -> &'a mut Value {
        keys.iter().fold(settings, |inner, key| &mut inner[*key])
    }

    /// Returns values of a parameter's kind, in the plan's form.
    fn examples(parameter: &Parameter) -> Vec<Value> {
        let mut found = match &parameter.kind {
            Kind::Switch => vec![json!(true), json!(false)],
            Kind::Number | Kind::Frequency => vec![json!(0.5), json!(2.0)],
            Kind::Words(words) | Kind::WordsOrFunction(words) => {
                words.iter().map(|word| json!(word)).collect()
            }
            Kind::Several(words) => vec![json!(words), json!([])],
            Kind::Windows => vec![json!([[1, 2], [3, 4]]), json!([])],
            Kind::Quantiles => vec![json!([1, 2, 2]), json!([3]), json!([])],
            Kind::Presence(_) => vec![Value::Null],
            Kind::Count | Kind::Size | Kind::Rate | Kind::Percent | Kind::Time | Kind::Packets => {
                vec![json!(7)]
            }
            Kind::Text => panic!("{}: nobody knows its words", parameter.name),
        };
        found.extend(parameter.optional.then_some(Value::Null));
        found
    }

    pub(super) fn every_parameter_takes_what_it_says<S: System>() {
        let description = Description::of::<S>();
        let mut whole = description.usual.clone();
        for (key, part) in &description.parts {
            whole[key] = part.clone();
        }
        for parameter in &description.parameters {
            let (name, keys) = (parameter.name, parameter.at.as_slice());
            assert!(
                parameter.help.ends_with('.') && !parameter.help.contains("  "),
                "{name}: {}",
                parameter.help
            );
            // Where it is from has a place of its own.
            let inside = ["RFC ", "(pref ", "Source:"].iter().any(|mark| parameter.help.contains(mark));
            assert!(!inside && !parameter.source.ends_with('.'), "{name}: {parameter:?}");
            assert!(parameter.least.unwrap_or(0.0) <= parameter.most.unwrap_or(f64::INFINITY), "{name}");
            for example in examples(parameter) {
                let mut changed = whole.clone();
                *at(&mut changed, keys) = example.clone();
                let read: S =
                    serde_json::from_value(changed).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(*at(&mut value(&read), keys), example, "{name}");
            }
            if !parameter.optional && !matches!(parameter.kind, Kind::Presence(_)) {
                let mut without = whole.clone();
                *at(&mut without, keys) = Value::Null;
                assert!(serde_json::from_value::<S>(without).is_err(), "{name}");
            }
            let usual = at(&mut whole.clone(), keys).as_f64().filter(|_| !parameter.required);
            assert!(usual.is_none_or(|usual| parameter.least.unwrap_or(0.0) <= usual), "{name}");
            assert!(usual.is_none_or(|usual| usual <= parameter.most.unwrap_or(f64::INFINITY)), "{name}");
        }
        // Every setting has a parameter, except those that a scenario has in another place.
        let told = |keys: &[String]| description.parameters.iter().any(|parameter| parameter.at == keys);
        let elsewhere = |keys: &[String]| {
            matches!(keys.last().map(String::as_str), Some("congestion_control" | "ecn" | "l4s" | "kind"))
        };
        for keys in leaves(&whole).iter().filter(|keys| !matches!(keys[0].as_str(), "clip" | "ladder")) {
            assert!(told(keys) || elsewhere(keys), "{}: {keys:?} is no parameter", S::NAME);
        }
        assert!(description.version > 0);
        for presets in &description.presets {
            for (name, set) in &presets.sets {
                let mut chosen = description.usual.clone();
                replace(&mut chosen[presets.at], set.clone());
                assert!(serde_json::from_value::<S>(chosen).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn every_parameter_of_every_system_takes_what_it_says() {
        assert!(!SYSTEMS.is_empty());
        for system in SYSTEMS {
            (system.every_parameter_takes_what_it_says)();
        }
    }

    #[test]
    fn a_constant_rate_is_what_it_wants_whatever_its_bursts() {
        for burst in [1, 10] {
            let cbr = CbrSpec { packets_per_s: 100.0, payload_bytes: 958, burst, ..CbrSpec::usual() };
            let facts = facts(&cbr.app()).unwrap();
            assert_eq!((facts.wanted_ethernet_bps, facts.wanted_ip_bps), (Some(800_000.0), Some(788_800.0)));
            assert_eq!(facts.pace, Some(Pace { packets_per_s: 100.0, burst, fragments: 1 }));
        }
    }

    #[test]
    fn facts_are_known_of_plans_of_other_versions() {
        let app = |name: &str, settings: Value| AppSpec::new(name, &settings);
        let of = |name: &str, settings| facts(&app(name, settings)).unwrap();
        assert_eq!(of("bulk", json!({})).media_over, MediaOver::Tcp);
        assert_eq!(of("rtp", json!({})).media_over, MediaOver::Udp);
        assert_eq!(of("rtp", json!({"tcp": {"mss": 1448}, "colour": 1})).media_over, MediaOver::Tcp);
        assert_eq!(of("rtp", json!({"tcp": {"mss": 1448, "colour": 1}})).media_over, MediaOver::Tcp);
        assert_eq!(of("rtp", json!({"tcp": null})).media_over, MediaOver::Udp);
        assert_eq!(of("ping", json!({"interval": 1})).media_over, MediaOver::Icmp);
        let old = json!({"player": {"transport": "tcp", "gone": 3}, "server": {}, "tcp": {}});
        assert_eq!(of("darwin", old).media_over, MediaOver::Tcp);
        let windows = of("cbr", json!({"windows": [[1, 2]], "ecn": "ect0"})).windows;
        assert_eq!(windows, [(Duration::from_nanos(1), Duration::from_nanos(2))]);
        assert!(of("bulk", json!({"bytes": 1})).is_finite && !of("bulk", json!({})).is_finite);
        assert_eq!(facts(&AppSpec::external()), None);
    }

    #[test]
    fn media_rides_on_tcp_where_the_plan_says_so() {
        assert_eq!(media_tcp(&BulkSpec { tcp: tcp(), ..BulkSpec::usual() }.app()), Some(tcp()));
        assert_eq!(media_tcp(&rtp(Some(tcp()))), Some(tcp()));
        assert_eq!(media_tcp(&rtp(None)), None);
        assert_eq!(media_tcp(&AppSpec::external()), None);
    }

    #[test]
    fn a_flow_speaks_what_its_plan_says_else_what_its_system_does() {
        let opaque = Protocols::tcp(StreamProtocol::Opaque);
        let bulk = flow(BulkSpec { tcp: tcp(), ..BulkSpec::usual() }.app());
        assert_eq!(protocols(&bulk), opaque);
        assert_eq!(protocols(&flow(rtp(None))), Protocols::udp(DatagramProtocol::Rtp));
        assert_eq!(protocols(&flow(rtp(Some(tcp())))), Protocols::tcp(StreamProtocol::Rtsp));
        let external = flow(AppSpec::external());
        assert_eq!(protocols(&external), Protocols::default());
        let quic = Protocols::udp(DatagramProtocol::Quic);
        assert_eq!(protocols(&FlowSpec { protocols: quic.clone(), ..external }), quic);
    }

    #[test]
    fn a_refusal_names_flow_and_key_and_what_to_do() {
        let refused = |app| machines(&flow(app), 1, &Contents::NONE).err().unwrap().to_string();
        let external = refused(AppSpec::external());
        assert!(external.starts_with("flows.x.app: ") && external.contains("--mode emu"), "{external}");
        let twice = FlowTcp { congestion_control: "reno".into(), ecn: false };
        let twice = FlowSpec { tcp: Some(twice), ..flow(PingSpec::usual().app()) };
        let twice = machines(&twice, 1, &Contents::NONE).err().unwrap().to_string();
        assert!(twice.starts_with("flows.x.tcp: ") && twice.contains("ping"), "{twice}");
        let ping = |settings: serde_json::Value| AppSpec::new("ping", &settings);
        let unknown = refused(ping(serde_json::json!({"interval": 1, "payload_bytes": 1, "colour": 1})));
        assert!(unknown.starts_with("flows.x.app.ping: unknown field `colour`"), "{unknown}");
        let nobody = refused(AppSpec::new("pong", &serde_json::json!({})));
        assert!(
            nobody.starts_with("flows.x.app: ") && nobody.contains("there are bulk, cbr, ping"),
            "{nobody}"
        );
    }
}
