//! RealNetworks' streaming stack of 2000 to 2004: an RTSP server that sends RDT, over UDP or on the RTSP connection,
//! and a player that chooses among the encodings of one object (SureStream) and the rate of their delivery.

mod file;
mod object;
mod player;
mod sdp;
mod server;
mod spec;
mod standalone;
#[cfg(test)]
mod tests;

pub use player::{PlayerKind, PlayerSettings, RdtCame, RealPlayer, RealPlayerReport};
pub use server::{Preset, RealServer, ServerSettings};
pub use spec::RealVideoSpec;

pub use crate::rtsp::MediaTransport;

use std::sync::Arc;

use streamgauge_plan::{DatagramProtocol, Kind, Parameter, Protocols, StreamProtocol, TcpSpec};

use self::object::{MOST_ENCODINGS, Object, OneObject};
use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Presets, Refusal, System, events, tcp_last, within};
use crate::machines::{Channel, Machines};
use crate::media::LadderSpec;
use crate::rates::stream_bps;
use crate::standalone::{Player, Server};

/// The RTSP connection.
pub const RTSP: ChannelId = ChannelId(0);

/// RTSP's port (RFC 2326 section 3.2).
pub const RTSP_PORT: u16 = 554;

/// The URL that a trial's player requests; the trial's server has one object under every path.
const TRIAL_URL: &str = "rtsp://server/clip.rm";

/// Bytes of IP, UDP and RDT beside a packet's media.
const PACKET_HEADERS_BYTES: u32 = 20 + 8 + 10;

impl System for RealVideoSpec {
    const NAME: &'static str = "realvideo";
    const TITLE: &'static str =
        "A ladder by RTSP and RDT from a server as RealNetworks'; the player changes levels during playout";
    const VERSION: u32 = 3;
    const CONTENT: Content = Content::Ladder;
    const B_FRAMES: bool = false;
    const EVENTS: &'static [EventKind] = &events([
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("frame_late", "s"),
        ("frame_incomplete", "1"),
        ("stall", "1"),
        ("resume", "s"),
        ("buffer", "s"),
        ("level_changed", "bit/s"),
        ("level_sent", "bit/s"),
        ("delivery_asked", "bit/s"),
        ("estimate", "bit/s"),
        ("delay_excess", "s"),
        ("packets_missed", "1"),
        ("packet_resent", "1"),
        ("session_timeout", "s"),
    ]);

    fn usual() -> Self {
        RealVideoSpec {
            ladder: LadderSpec::default(),
            server: ServerSettings::of(Preset::RealServer8),
            player: PlayerSettings::of(PlayerKind::RealPlayer8),
            tcp: TcpSpec::default(),
        }
    }

    fn parameters() -> Vec<Parameter> {
        let lines =
            ["RDT over UDP, or interleaved on the RTSP connection.", "Source: Chung et al., section II."];
        let kind = Kind::Words(vec!["udp", "tcp"]);
        let chosen =
            Parameter { at: vec!["player", "transport"], ..Parameter::of("transport", &lines, kind) };
        std::iter::once(chosen).chain(tcp_last(Self::fields())).collect()
    }

    fn presets() -> Vec<Presets> {
        let server = "The program that the server's constants are from.";
        let player = "The program that the player's constants are from.";
        vec![
            Presets::new(("preset", "server", server), &Preset::NAMED, ServerSettings::of),
            // The flow itself selects the carrier of the media.
            Presets::new(("player", "player", player), &PlayerKind::NAMED, PlayerSettings::of)
                .without("transport"),
        ]
    }

    fn ladder(&mut self) -> Option<&mut LadderSpec> {
        Some(&mut self.ladder)
    }

    fn server() -> Option<Server> {
        Some(Server::of::<ServerSettings>())
    }

    fn player() -> Option<Player> {
        Some(Player::of::<PlayerSettings>())
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        self.player.check().map_err(within("app.realvideo.player"))?;
        self.server.check().map_err(within("app.realvideo.server"))?;
        self.ladder.check().map_err(within("app.realvideo.ladder"))?;
        self.ladder.check_in_order().map_err(within("app.realvideo.ladder"))?;
        if self.ladder.video.len() > MOST_ENCODINGS {
            let what = format!("{} rates; give at most {MOST_ENCODINGS}", self.ladder.video.len());
            return Err(("app.realvideo.ladder.video".into(), what));
        }
        let carrier = Carrier::Tcp { port: RTSP_PORT, settings: self.tcp.clone() };
        let shelf = Arc::new(OneObject(Arc::new(Object::of_ladder(&self.ladder))));
        Ok(Machines {
            channels: vec![Channel { id: RTSP, carrier }],
            server: Box::new(RealServer::new(shelf, self.server.clone(), flow, seed)),
            player: Box::new(RealPlayer::new(self.player.clone(), TRIAL_URL)),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols { tcp: vec![StreamProtocol::RtspRdt], udp: vec![DatagramProtocol::Rdt] }
    }

    /// Where the media is on UDP, the RTSP connection has nothing to show.
    fn media_tcp(&self) -> Option<&TcpSpec> {
        (self.player.transport == MediaTransport::Tcp).then_some(&self.tcp)
    }

    /// Returns the average rate of the highest level and the sound; the buffer fills faster.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        let top = self.ladder.video.last()?.bit_rate_bps;
        let media = (top + self.ladder.audio.as_ref().map_or(0, |audio| audio.bit_rate_bps)) as f64;
        Some(match self.media_tcp() {
            Some(tcp) => stream_bps(media, tcp, link_bytes),
            None => {
                let beside =
                    f64::from(PACKET_HEADERS_BYTES + link_bytes) / f64::from(self.server.packet_bytes);
                media * (1.0 + beside)
            }
        })
    }

    fn is_finite(&self) -> bool {
        true
    }
}
