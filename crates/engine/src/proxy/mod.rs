//! Players of HTTP on one side, on the other a protocol that they lack: a machine that sim runs, on real
//! sockets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Map, Value, json};
use streamgauge_base::Instant;
use streamgauge_systems::standalone::{Answered, Proxy, Proxying};
use streamgauge_systems::{ChannelId, Input, standalone_proxies};
use streamgauge_wire::rtsp::Url;

use crate::error::{EngineError, Result};
use crate::net::host::Host;
use crate::net::stream::{Listener, listen_for_strangers};
use crate::reactor::{Arrival, Channels, Reactor, Ready, Room};
use crate::serve::tell::Teller;
use crate::settings::with_overrides;
use crate::sys::{self, monotonic_ns, raise_descriptors};

/// The default address to listen at: for players of this machine.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), PORT);

/// The customary port of proxies (IANA, http-alt).
const PORT: u16 = 8080;

/// Descriptors that are no player's.
const OWN_DESCRIPTORS: u64 = 24;

/// Inputs of one channel before the others get their turn.
const TURN: usize = 256;

/// Where the one machine is.
const PLACE: u32 = 0;

/// Upstream and options of a proxy.
#[derive(clap::Args)]
pub struct ProxyArgs {
    /// SCHEME://HOST[:PORT][/PATH] of the upstream server; the path of a request is appended to this one's.
    url: Upstream,
    /// Where players are taken; port 0 lets the kernel choose.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = LISTEN)]
    listen: SocketAddr,
    /// The constants, where there are several sets.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// One constant, by its field's name; times take a unit (250 ms). Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Connections of players at once; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Connections at once of one address; further ones are closed.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_address: u32,
    /// Also write the machine's events as JSON lines; "-" is stdout.
    #[arg(long, value_name = "FILE|-")]
    log: Option<PathBuf>,
    /// One JSON object a line on stdout.
    #[arg(long)]
    json: bool,
}

/// Servers that a proxy of ours can ask.
#[derive(Clone)]
struct Upstream {
    url: Url,
    proxy: Proxy,
    host: Host,
}

impl FromStr for Upstream {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let forms = standalone_proxies().map(|one| format!("{}://HOST[:PORT][/PATH]", one.facts.scheme));
        let forms = forms.collect::<Vec<_>>().join(" or ");
        let wrong = |why: &str| format!("{text:?} {why}; write {forms}");
        let url = Url::parse(text).map_err(|e| wrong(&format!("is no URL ({e})")))?;
        let proxy = standalone_proxies().find(|one| one.facts.scheme == url.scheme());
        let proxy = proxy
            .ok_or_else(|| wrong(&format!("is of scheme {}, which no proxy here asks by", url.scheme())))?;
        let host = Host::of(&url, proxy.facts.port).map_err(wrong)?;
        Ok(Upstream { url, proxy, host })
    }
}

/// Answers until it is stopped.
pub fn run(args: &ProxyArgs) -> Result<()> {
    let app = machine(args)?;
    let listener = listen_for_strangers(args.listen, PORT)?;
    let failed = |e: std::io::Error| EngineError::io("learn the own address", &e);
    let address = listener.local_addr().map_err(failed)?;
    let zero_ns = monotonic_ns();
    let teller = Teller::new(args.json, args.log.as_deref(), zero_ns)?;
    let mut reactor = Reactor::new()?;
    let stream = args.url.host.reach(reactor.heed_signals()?)?;
    let own = stream.own_address().map_err(failed)?;
    let listener = Listener::of(listener).map_err(failed)?;
    let needed = OWN_DESCRIPTORS + u64::from(args.max_connections);
    let room = raise_descriptors(needed).unwrap_or(needed).saturating_sub(OWN_DESCRIPTORS).max(1);
    let most = u64::from(args.max_connections).min(room) as usize;
    teller.say(
        &json!({
            "event": "ready", "address": address.ip().to_string(), "port": address.port(),
            "pid": std::process::id(), "max_connections": most, "asks": args.url.url.as_str(),
        }),
        &format!("answering at http://{address}/ with the files of {}", args.url.url),
    );
    // The connection to the upstream server is one of its streams.
    let channels = Channels::of_proxy(stream, own, listener, (most + 1, args.max_per_address as usize));
    Running {
        app,
        channels,
        reactor,
        room: Room::new(),
        ready: Vec::new(),
        teller,
        zero_ns,
        answered: BTreeMap::new(),
    }
    .run()
}

/// Returns the proxy by its settings.
fn machine(args: &ProxyArgs) -> Result<Box<dyn Proxying>> {
    let wrong = |what: String, why: String| EngineError::new(what, why).code(3);
    let proxy = args.url.proxy;
    let name = args.preset.as_deref().or(proxy.facts.presets.first().copied()).unwrap_or_default();
    let preset = proxy.preset(name).ok_or_else(|| {
        wrong(format!("read --preset {name}"), format!("there are {}", proxy.facts.presets.join(", ")))
    })?;
    let settings = with_overrides(preset, &args.settings, |settings| proxy.read(settings))?;
    let seed = monotonic_ns().cast_unsigned();
    proxy.open(settings, args.url.url.as_str(), seed).map_err(|(field, why)| match field {
        Some(field) => wrong(format!("read --set {field}"), why),
        None => wrong(format!("read {}", args.url.url), why),
    })
}

struct Running {
    app: Box<dyn Proxying>,
    channels: Channels,
    reactor: Reactor,
    room: Room,
    ready: Vec<Ready>,
    teller: Teller,
    zero_ns: i64,
    /// Requests by their answers' status; 0 means none.
    answered: BTreeMap<u16, u64>,
}

impl Running {
    fn now(&self) -> Instant {
        Instant::from_nanos((monotonic_ns() - self.zero_ns).max(0) as u64)
    }

    fn run(mut self) -> Result<()> {
        self.give(Input::Start);
        while !self.turn()? {}
        self.give(Input::Stop);
        let count: u64 = self.answered.values().sum();
        let by_status: Map<String, Value> =
            self.answered.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
        self.teller.say(
            &json!({"event": "stopped", "requests": count, "by_status": by_status, "cpu_s": sys::cpu_seconds()}),
            &format!("stopped after {count} requests"),
        );
        Ok(())
    }

    /// Waits for something and gives it to the machine. True if it is to end.
    fn turn(&mut self) -> Result<bool> {
        self.channels.settle(&self.reactor, PLACE)?;
        let wakes = self.app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let wakes = if self.channels.has_news() { Instant::ZERO } else { wakes };
        let until = self.zero_ns.saturating_add_unsigned(wakes.as_nanos());
        let until = self.channels.settles_again_ns().map_or(until, |at| at.min(until));
        self.reactor.wait(Some(until), &mut self.ready)?;
        self.channels.renew();
        for (channel, error) in self.channels.take_refused() {
            self.give(Input::Refused(channel, &error));
        }
        for channel in self.channels.take_ready() {
            self.arrivals(channel);
        }
        self.refuse_crowds();
        for at in 0..self.ready.len() {
            match self.ready[at] {
                Ready::Signal => return Ok(true),
                Ready::Channel { channel, .. } => self.arrivals(channel),
                Ready::Own(_) => {}
            }
        }
        if self.app.poll_timeout().is_some_and(|at| at <= self.now()) {
            self.give(Input::Timeout);
        }
        Ok(false)
    }

    /// Reports the clients that were closed because their address has connections enough.
    fn refuse_crowds(&mut self) {
        for peer in self.channels.take_turned_away() {
            let why = "its address has as many connections as it may";
            self.teller.say(
                &json!({"event": "refused", "client": peer.to_string(), "why": why}),
                &format!("{peer} turned away: {why}"),
            );
        }
    }

    fn arrivals(&mut self, channel: ChannelId) {
        for _ in 0..TURN {
            match self.channels.arrival(channel, &mut self.room) {
                None => break,
                Some(Arrival::Input(input)) => self.give(input),
                Some(Arrival::Datagram(on, came)) => {
                    let at = came.at(self.now());
                    self.give(Input::Datagram { on, bytes: &came.bytes, ecn: came.ecn, at });
                }
                Some(Arrival::Refused(error)) => self.give(Input::Refused(channel, &error)),
            }
        }
    }

    fn give(&mut self, input: Input<'_>) {
        self.app.handle(self.now(), input, &mut self.channels);
        while let Some(event) = self.app.poll_event() {
            self.teller.event(None, &event);
        }
        while let Some(answered) = self.app.next_answered() {
            *self.answered.entry(answered.status.unwrap_or(0)).or_default() += 1;
            let (value, line) = told(&answered);
            self.teller.say(&value, &line);
        }
    }
}

/// Returns the result of a request, for both kinds of readers.
fn told(answered: &Answered) -> (Value, String) {
    let Answered { method, path, status, whole, bytes, took, counts } = answered;
    let took = took.as_secs_f64();
    let mut value = json!({
        "event": "answered", "method": method, "path": path, "status": status, "whole": whole, "bytes": bytes,
        "duration_s": took,
    });
    let mut line = status.map_or_else(|| "no answer".into(), |status| status.to_string());
    line = format!("{method} {path}: {line}, {bytes} B in {took:.3} s");
    for (name, count) in counts {
        value[*name] = json!(count);
        line.push_str(&format!(", {count} {name}"));
    }
    if !whole {
        line.push_str(", broken off");
    }
    (value, line)
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Duration;

    use super::*;

    #[test]
    fn urls_are_read_and_others_say_what_is_wanted() {
        for one in standalone_proxies() {
            let scheme = one.facts.scheme;
            let upstream: Upstream = format!("{scheme}://127.0.0.1/a").parse().unwrap();
            assert_eq!(upstream.host.resolve().unwrap()[0].port(), one.facts.port);
            for (text, words) in [
                ("gopher://a/b".to_owned(), "which no proxy here asks by"),
                (format!("{scheme}:///a"), "has no host"),
                ("a".into(), "is no URL"),
            ] {
                let error = text.parse::<Upstream>().err().unwrap();
                assert!(error.contains(words) && error.contains(&format!("{scheme}://HOST")), "{error}");
            }
        }
    }

    #[test]
    fn a_request_is_told_to_people_and_to_programs() {
        let answered = Answered {
            method: "GET".into(),
            path: "/a".into(),
            status: Some(200),
            whole: false,
            bytes: 7,
            took: Duration::from_millis(20),
            counts: vec![("asked", 3)],
        };
        let (value, line) = told(&answered);
        assert_eq!(line, "GET /a: 200, 7 B in 0.020 s, 3 asked, broken off");
        assert_eq!((&value["status"], &value["asked"]), (&json!(200), &json!(3)));
        let (value, line) = told(&Answered { status: None, whole: true, ..answered });
        assert!(line.starts_with("GET /a: no answer") && value["status"].is_null());
    }
}
