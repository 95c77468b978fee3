//! Microsoft's streaming stack of 2003: a server that sends ASF by RTSP, MMS and HTTP, over UDP and TCP, and a player
//! that tries them in turn where it is set to, measures the link before it begins and requests less of one object when
//! too much is lost.

mod file;
mod object;
mod player;
mod sdp;
mod server;
mod spec;
mod standalone;
#[cfg(test)]
mod tests;

pub use player::{PlayerKind, PlayerSettings, WmPlayer, WmPlayerReport, WmTransport, WmsCame};
pub use server::{Preset, ServerSettings, WmServer};
pub use spec::WindowsMediaSpec;

use std::sync::Arc;

use streamgauge_base::Ecn;
use streamgauge_plan::{DatagramProtocol, Kind, Parameter, Protocols, StreamProtocol, TcpSpec};
use streamgauge_wire::mms;

use self::object::{MOST_ENCODINGS, Object, OneObject};
use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Presets, Refusal, System, events, tcp_last, within};
use crate::machines::{Channel, Machines};
use crate::media::LadderSpec;
use crate::rates::stream_bps;
use crate::standalone::{Player, Server};

/// The RTSP connection, where a flow begins with it.
pub const RTSP: ChannelId = ChannelId(0);

/// The initial channels where it does not: the server's listeners, and the ports of MMS's datagrams.
pub const RTSP_LISTENER: ChannelId = ChannelId(0);
/// Listener of MMS.
pub const MMS_LISTENER: ChannelId = ChannelId(1);
/// Listener of HTTP.
pub const HTTP_LISTENER: ChannelId = ChannelId(2);
/// UDP at MMS's port of either end.
pub const MMS_DATAGRAMS: ChannelId = ChannelId(3);

/// RTSP's port (RFC 2326 section 3.2).
pub const RTSP_PORT: u16 = 554;

/// HTTP's port (RFC 9110 section 4.2.1).
pub const HTTP_PORT: u16 = 80;

/// Connections that may wait to be accepted; a player opens one after another.
const BACKLOG: u32 = 16;

/// The URL that a trial's player requests; the trial's server has one object under every path.
const TRIAL_URL: &str = "rtsp://server/clip.wmv";

/// The first dynamic payload type (RFC 3551 section 6), which Microsoft's servers use.
const PAYLOAD_TYPE: u8 = 96;

/// A data packet of ASF at most, as in the header.
const MOST_PACKET_BYTES: u32 = 1_444;

/// How much later media is presented than it is shown in the object, ours; the player has its own buffer.
const PREROLL_MS: u32 = 3_000;

/// Bytes of IP, UDP, RTP and its payload's header beside a packet of ASF.
const PACKET_HEADERS_BYTES: u32 = 20 + 8 + 12 + 4;

impl System for WindowsMediaSpec {
    const NAME: &'static str = "windows_media";
    const TITLE: &'static str =
        "A ladder by RTSP from a server as Microsoft's; the player measures the link and thins the stream";
    const VERSION: u32 = 1;
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
        ("estimate", "bit/s"),
        ("level_changed", "bit/s"),
        ("level_sent", "bit/s"),
        ("delivery_asked", "bit/s"),
        ("buffering", "1"),
        ("reception_quality", "1"),
        ("packets_missed", "1"),
        ("packet_resent", "1"),
        ("session_timeout", "s"),
        ("protocol_tried", "1"),
    ]);

    fn usual() -> Self {
        WindowsMediaSpec {
            ladder: LadderSpec::default(),
            server: ServerSettings::of(Preset::Wms9),
            player: PlayerSettings::of(PlayerKind::Wmp9),
            tcp: TcpSpec::default(),
        }
    }

    fn parameters() -> Vec<Parameter> {
        let lines = [
            "RTSP with RTP over UDP (udp) or on its connection (tcp). MMS with media over UDP or on its connection. HTTP, or",
            "each of these in turn until one works.",
            "Source: the thesis, section 2.3.1; Windows Media Format SDK, protocol rollover.",
        ];
        let kind = Kind::Words(WmTransport::NAMED.map(|(name, _)| name).to_vec());
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
        self.player.check().map_err(within("app.windows_media.player"))?;
        self.server.check().map_err(within("app.windows_media.server"))?;
        self.ladder.check().map_err(within("app.windows_media.ladder"))?;
        self.ladder.check_in_order().map_err(within("app.windows_media.ladder"))?;
        if self.ladder.video.len() > MOST_ENCODINGS {
            let what = format!("{} rates; give at most {MOST_ENCODINGS}", self.ladder.video.len());
            return Err(("app.windows_media.ladder.video".into(), what));
        }
        let shelf = Arc::new(OneObject(Arc::new(Object::of_ladder(&self.ladder))));
        let server = WmServer::new(shelf, self.server.clone(), flow, seed);
        let player = WmPlayer::new(self.player.clone(), TRIAL_URL);
        if self.player.transport.begins_connected() {
            let carrier = Carrier::Tcp { port: RTSP_PORT, settings: self.tcp.clone() };
            let channels = vec![Channel { id: RTSP, carrier }];
            return Ok(Machines { channels, server: Box::new(server), player: Box::new(player) });
        }
        let listener = |port| Carrier::Listener { port, settings: self.tcp.clone(), backlog: BACKLOG };
        let channels = [
            (RTSP_LISTENER, listener(RTSP_PORT)),
            (MMS_LISTENER, listener(mms::PORT)),
            (HTTP_LISTENER, listener(HTTP_PORT)),
            (MMS_DATAGRAMS, Carrier::Udp { port: mms::PORT, ecn: Ecn::NotEct }),
        ];
        Ok(Machines {
            channels: channels.map(|(id, carrier)| Channel { id, carrier }).to_vec(),
            server: Box::new(server.with_datagrams()),
            player: Box::new(player.connecting(self.tcp.clone())),
        })
    }

    fn protocols(&self) -> Protocols {
        match self.player.transport {
            WmTransport::Udp | WmTransport::Tcp => {
                Protocols { tcp: vec![StreamProtocol::Rtsp], udp: vec![DatagramProtocol::Rtp] }
            }
            WmTransport::MmsUdp | WmTransport::MmsTcp => {
                Protocols { tcp: vec![StreamProtocol::Opaque], udp: vec![DatagramProtocol::Opaque] }
            }
            WmTransport::Http => Protocols::tcp(StreamProtocol::Http),
            WmTransport::Rollover => Protocols {
                tcp: vec![StreamProtocol::Rtsp, StreamProtocol::Http],
                udp: vec![DatagramProtocol::Rtp],
            },
        }
    }

    /// Where the media is on UDP, or may be, connections have nothing to show.
    fn media_tcp(&self) -> Option<&TcpSpec> {
        use WmTransport::{Http, MmsTcp, Tcp};
        matches!(self.player.transport, Tcp | MmsTcp | Http).then_some(&self.tcp)
    }

    /// Returns the average rate of the highest encoding and the sound; the buffer fills faster.
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
