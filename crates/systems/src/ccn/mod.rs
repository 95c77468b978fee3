//! Adaptive streaming over content-centric networking: a producer of named segments, forwarders, and a consumer that any
//! player of HTTP plays from (Muto et al.; NDN Packet Format Specification 0.3).
//!
//! Each host of a flow has a [`forwarder`], with a face to the host's own application and one to the other
//! host, over UDP or TCP. The player is that of [`dash`](crate::dash): it sends requests to a proxy in its
//! host, which fetches segments by name with its [`consumer`].

pub mod consumer;
mod ends;
mod face;
pub mod forwarder;
mod host;
mod names;
mod producer;
mod proxy;
mod relay;
pub mod spec;
mod standalone;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value};
use streamgauge_base::Ecn;
use streamgauge_plan::{DatagramProtocol, Parameter, Protocols, StreamProtocol, TcpSpec};
use streamgauge_wire::ndn::{Component, Name};

pub use self::ends::{ConsumerHost, ProducerHost};
use self::face::Face;
use self::host::Host;
pub use self::relay::CcnForwarderSpec;
pub use self::spec::{CcnPreset, CcnSettings, CcnSpec};
pub use self::standalone::{CcnPlayerSettings, CcnProxySettings, CcnServerSettings};
use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::dash::origin::OriginSettings;
use crate::dash::{DashPlayer, DashPlayerSettings, PlayerKind, presented, seed_of, target_of};
use crate::describe::{Content, EventKind, Presets, Refusal, System, events, tcp_last, value, within};
use crate::http::Source;
use crate::machines::{Channel, Machines};
use crate::media::LadderSpec;
use crate::rates::{datagram_bytes, stream_bps};
use crate::standalone::{Player, Proxy, Server};

/// The one channel: the forwarders' faces to each other.
pub const FACE: ChannelId = ChannelId(0);

/// Connections that may wait to be accepted: one neighbour has one.
const BACKLOG: u32 = 16;

/// The name of the proxy for the player of a trial.
const HOST: &str = "proxy";

/// The first component of all names of a trial.
const PREFIX: &str = "clip";

/// Bytes of a Data packet beside name and content: types, lengths, MetaInfo, signature.
const DATA_BYTES: u32 = 64;

/// Returns the protocols of faces, over TCP with these settings or over UDP.
fn protocols(tcp: Option<&TcpSpec>) -> Protocols {
    match tcp {
        None => Protocols::udp(DatagramProtocol::Ndn),
        Some(_) => Protocols::tcp(StreamProtocol::Ndn),
    }
}

impl System for CcnSpec {
    const NAME: &'static str = "ccn";
    const TITLE: &'static str = "Adaptive streaming over content-centric networking: named segments, forwarders, a player with a rule";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::Ladder;
    const EVENTS: &'static [EventKind] = &events([
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("segment_shown", "bit/s"),
        ("level_changed", "bit/s"),
        ("stall", "1"),
        ("resume", "s"),
        ("gap_jumped", "s"),
        ("buffer", "s"),
        ("decision", "bit/s"),
        ("estimate", "bit/s"),
        ("segment_fetched", "bit/s"),
        ("segment_from_cache", "bit/s"),
        ("segment_abandoned", "B"),
        ("segment_skipped", "1"),
        ("manifest_flaw", "s"),
        ("download_off", "s"),
        ("download_on", "s"),
        ("http_request", "B"),
        ("http_failure", "1"),
        ("http_redirect", "1"),
        ("cmcd", "s"),
        ("interest_window", "1"),
        ("interest_timeout", "1"),
        ("object_fetched", "B"),
        ("object_failed", "1"),
        ("face_down", ""),
        ("forwarder", "1"),
    ]);

    fn usual() -> Self {
        CcnSpec {
            ladder: LadderSpec::default(),
            player: DashPlayerSettings::default(),
            network: CcnSettings::of(CcnPreset::NdnToday),
            tcp: None,
        }
    }

    fn parts() -> Map<String, Value> {
        Map::from_iter([("tcp".into(), value(&TcpSpec::default()))])
    }

    fn parameters() -> Vec<Parameter> {
        let chosen = spec::transport("The transport between the forwarders.");
        std::iter::once(chosen).chain(tcp_last(Self::fields())).collect()
    }

    fn presets() -> Vec<Presets> {
        let player = "The program that the player's constants are from; other parameters override them.";
        let ccn = "The source of the constants of all nodes: today's NDN, or the paper's CCNx.";
        vec![
            Presets::new(("player", "player", player), &PlayerKind::NAMED, DashPlayerSettings::of),
            Presets::new(("preset", "network", ccn), &CcnPreset::NAMED, CcnSettings::of),
        ]
    }

    fn ladder(&mut self) -> Option<&mut LadderSpec> {
        Some(&mut self.ladder)
    }

    fn server() -> Option<Server> {
        Some(Server::of::<CcnServerSettings>())
    }

    fn player() -> Option<Player> {
        Some(Player::of::<CcnPlayerSettings>())
    }

    fn proxy() -> Option<Proxy> {
        Some(Proxy::of::<CcnProxySettings>())
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        self.player.check().map_err(within("app.ccn.player"))?;
        self.network.check().map_err(within("app.ccn.network"))?;
        if self.player.format.ends_with("ranges") && !self.network.metadata {
            let what = "byte ranges need the size of their object: give metadata: on, or another format";
            return Err(("app.ccn.player.format".into(), what.into()));
        }
        let origin = OriginSettings::default();
        let presentation = presented("app.ccn.ladder", &self.ladder, &origin)?;
        let prefix = Name::of([Component::generic(PREFIX.as_bytes())]).unwrap_or_default();
        let port = self.network.face_port as u16;
        let (carrier, upstream, downstream) = match &self.tcp {
            None => {
                let face = || Face::udp(FACE, self.network.fragmentation);
                (Carrier::Udp { port, ecn: Ecn::NotEct }, face(), face())
            }
            Some(settings) => {
                let opened = Carrier::Tcp { port, settings: settings.clone() };
                let listener = Carrier::Listener { port, settings: settings.clone(), backlog: BACKLOG };
                (listener, Face::opening(opened), Face::listening())
            }
        };
        let source = Source {
            host: HOST.into(),
            target: target_of(&self.player.format).into(),
            carrier: Carrier::Tcp { port: crate::http::PORT, settings: TcpSpec::default() },
            asks_identity: false,
        };
        let player = DashPlayer::new(self.player.clone(), source, seed_of(seed, flow));
        let consumer = ConsumerHost::new(prefix.clone(), &self.network, upstream, flow, seed);
        Ok(Machines {
            channels: vec![Channel { id: FACE, carrier }],
            server: Box::new(ProducerHost::new(prefix, Arc::new(presentation), &self.network, downstream)),
            player: Box::new(Host::new(player.with_server_clock(origin.epoch), consumer)),
        })
    }

    fn protocols(&self) -> Protocols {
        protocols(self.tcp.as_ref())
    }

    fn media_tcp(&self) -> Option<&TcpSpec> {
        self.tcp.as_ref()
    }

    /// Returns the average rate of the highest level and the sound, with the overhead of a Data packet.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        let top = self.ladder.video.last()?;
        let media = top.bit_rate_bps + self.ladder.audio.as_ref().map_or(0, |audio| audio.bit_rate_bps);
        let chunk = self.network.chunk_bytes.max(1);
        let packet = chunk + DATA_BYTES;
        let named = media as f64 * f64::from(packet) / f64::from(chunk);
        Some(match &self.tcp {
            Some(tcp) => stream_bps(named, tcp, link_bytes),
            None => named * datagram_bytes(packet, link_bytes) as f64 / f64::from(packet),
        })
    }

    fn is_finite(&self) -> bool {
        true
    }
}
