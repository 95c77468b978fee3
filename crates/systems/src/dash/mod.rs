//! Adaptive streaming over HTTP: a ladder as MPEG-DASH (ISO/IEC 23009-1) or HLS (RFC 8216), from one set of segments.
//!
//! The [`origin`] writes manifests and segments for the HTTP server; the [`manifest`] reader understands those and
//! others'; the player asks for one segment after another at the level that its rule chooses
//! ([`abr`](crate::abr)).

pub mod manifest;
pub mod origin;
mod player;
mod spec;
mod standalone;

pub use player::DashPlayer;
pub use player::settings::{DashPlayerSettings, FORMATS, PlayerKind};
pub use spec::DashSpec;
pub use standalone::DashServerSettings;
pub(crate) use standalone::{LadderShelf, PLAYERS, Tally, content_type_of, player_of, seen};

use std::sync::Arc;

use streamgauge_plan::{Parameter, Protocols, StreamProtocol, TcpSpec};

use self::origin::{MASTER, MPD, OriginSettings, Presentation, RANGES_MASTER, RANGES_MPD, TIMELINE_MPD};
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Presets, Refusal, System, events, tcp_last, within};
use crate::http::{HttpServer, HttpServerSettings, LISTENER, PORT, Source};
use crate::machines::{Channel, Machines};
use crate::media::LadderSpec;
use crate::rates::stream_bps;
use crate::standalone::{Player, Server};

/// The server's name for the player of a trial.
const HOST: &str = "server";

/// A trial's flow of at most so many levels: more is no ladder.
const MOST_LEVELS: usize = 64;

/// The origin's name for a manifest of that format.
pub fn target_of(format: &str) -> &'static str {
    match format {
        "mpd-timeline" => TIMELINE_MPD,
        "mpd-ranges" => RANGES_MPD,
        "hls" => MASTER,
        "hls-ranges" => RANGES_MASTER,
        _ => MPD,
    }
}

/// The origin's presentation of the ladder at `key` in the flow's plan.
///
/// # Errors
///
/// The part that cannot be presented, and the accepted values.
pub(crate) fn presented(
    key: &'static str,
    ladder: &LadderSpec,
    origin: &OriginSettings,
) -> Result<Presentation, Refusal> {
    ladder.check().map_err(within(key))?;
    if ladder.video.len() > MOST_LEVELS {
        let what = format!("{} rates; give at most {MOST_LEVELS}", ladder.video.len());
        return Err((format!("{key}.video").into(), what));
    }
    Presentation::of_ladder(ladder, origin).map_err(|what| (key.into(), format!("{what}; give another clip")))
}

/// The seed of a flow's player. Flows of one scenario draw apart.
pub fn seed_of(seed: u64, flow: &str) -> u64 {
    let seed = blake3::hash(format!("{seed} {flow} abr").as_bytes());
    u64::from_le_bytes(seed.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}

impl System for DashSpec {
    const NAME: &'static str = "dash";
    const TITLE: &'static str =
        "Adaptive streaming over HTTP/1.1: DASH or HLS, with a rule that chooses the bit rate";
    const VERSION: u32 = 3;
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
        ("live_latency", "s"),
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
        ("http_response", "1"),
        ("http_failure", "1"),
        ("http_redirect", "1"),
        ("http_broken", ""),
        ("cmcd", "s"),
    ]);

    fn usual() -> Self {
        DashSpec {
            ladder: LadderSpec::default(),
            player: DashPlayerSettings::default(),
            server: HttpServerSettings::default(),
            live: false,
            tcp: TcpSpec::default(),
        }
    }

    fn parameters() -> Vec<Parameter> {
        tcp_last(Self::fields())
    }

    fn presets() -> Vec<Presets> {
        let player = "The program that the player's constants are from; other parameters override them.";
        vec![Presets::new(("player", "player", player), &PlayerKind::NAMED, DashPlayerSettings::of)]
    }

    fn ladder(&mut self) -> Option<&mut LadderSpec> {
        Some(&mut self.ladder)
    }

    fn server() -> Option<Server> {
        Some(Server::of::<DashServerSettings>())
    }

    fn player() -> Option<Player> {
        Some(Player::of::<DashPlayerSettings>())
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        self.player.check().map_err(within("app.dash.player"))?;
        self.server.check().map_err(within("app.dash.server"))?;
        let origin = OriginSettings { live: self.live, ..OriginSettings::default() };
        let presentation = presented("app.dash.ladder", &self.ladder, &origin)?;
        let settings = self.tcp.clone();
        let listener =
            Carrier::Listener { port: PORT, settings: settings.clone(), backlog: self.server.backlog };
        let source = Source {
            host: HOST.into(),
            target: target_of(&self.player.format).into(),
            carrier: Carrier::Tcp { port: PORT, settings },
            asks_identity: false,
        };
        Ok(Machines {
            channels: vec![Channel { id: LISTENER, carrier: listener }],
            server: Box::new(HttpServer::new(Arc::new(presentation), self.server.clone())),
            player: Box::new(
                DashPlayer::new(self.player.clone(), source, seed_of(seed, flow))
                    .with_server_clock(origin.epoch),
            ),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::tcp(StreamProtocol::Http)
    }

    fn media_tcp(&self) -> Option<&TcpSpec> {
        Some(&self.tcp)
    }

    /// The mean rate of the highest level and the sound.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        let top = self.ladder.video.last()?;
        let media = top.bit_rate_bps + self.ladder.audio.as_ref().map_or(0, |audio| audio.bit_rate_bps);
        Some(stream_bps(media as f64, &self.tcp, link_bytes))
    }

    fn is_finite(&self) -> bool {
        true
    }
}
