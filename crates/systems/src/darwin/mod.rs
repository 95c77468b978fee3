//! Apple's streaming stack: an RTSP server with Reliable UDP as in Darwin Streaming Server, and players of it: one like
//! QuickTime's, which asks for Reliable UDP, and one like VLC's, which does not.

mod player;
mod server;
mod spec;
mod standalone;

pub use player::{
    DarwinPlayer, MediaTransport, PlayerKind, PlayerReport, PlayerSettings, PlayoutStats, ReceivedUnit,
};
pub use server::{DarwinServer, Growth, Preset, ServerSettings};
pub use spec::DarwinSpec;

use std::sync::Arc;

use streamgauge_plan::{DatagramProtocol, Kind, Parameter, Protocols, StreamProtocol, TcpSpec};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{
    Content, EventKind, Presets, Refusal, System, check_ends, events, tcp_last, transport,
};
use crate::machines::{Channel, Machines};
use crate::media::{Asset, ClipSpec, OneAsset};
use crate::rates::rtp_bps;
use crate::standalone::{Player, Server};

/// The RTSP connection.
pub const RTSP: ChannelId = ChannelId(0);

/// RTP of the first track that is set up over UDP, of a machine that has the RTSP connection alone to begin with; RTCP
/// is the channel after it, and each further track has the next two.
pub const FIRST_RTP: ChannelId = ChannelId(1);

/// RTSP's port (RFC 2326 section 3.2).
pub const RTSP_PORT: u16 = 554;

/// The URL that a trial's player requests; the trial's server has one clip under every path.
const TRIAL_URL: &str = "rtsp://server/clip.mov";

/// The source of the server's constants without another source.
const PUBLIC_SERVER: &str = "Darwin Streaming Server 6.0.3";

/// Indicator and header of a fragment, which replace the NAL unit's own byte (RFC 6184 section 5.8).
const FU_A_BYTES: u64 = 2;

impl System for DarwinSpec {
    const NAME: &'static str = "darwin";
    const TITLE: &'static str =
        "A clip by RTSP and RTP from a server as Apple's, by Reliable UDP where the player asks for it";
    const VERSION: u32 = 2;
    const CONTENT: Content = Content::Clip;
    const EVENTS: &'static [EventKind] = &events([
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("frame_late", "s"),
        ("frame_incomplete", "1"),
        ("stall", "1"),
        ("resume", "s"),
        ("buffer", "s"),
        ("jitter", "s"),
        ("fraction_lost", "1"),
        ("cumulative_lost", "1"),
        ("rudp_retransmit", "1"),
        ("rudp_given_up", "1"),
        ("rudp_expired", "1"),
        ("rudp_cut", "B"),
        ("rudp_cwnd", "B"),
        ("rudp_rto", "s"),
        ("thinning", "1"),
        ("stale_drop", "s"),
        ("overbuffer", "s"),
        ("session_timeout", "s"),
    ]);

    fn usual() -> Self {
        DarwinSpec {
            clip: ClipSpec::default(),
            server: ServerSettings::of(Preset::Paper),
            player: PlayerSettings::of(PlayerKind::Quicktime),
            tcp: TcpSpec::default(),
        }
    }

    fn parameters() -> Vec<Parameter> {
        let chosen = transport(&["player", "transport"], Kind::Words(vec!["udp", "tcp"]));
        let from = |field: Parameter| match field.at[0] {
            "server" => field.or_from(PUBLIC_SERVER),
            _ => field,
        };
        std::iter::once(chosen).chain(tcp_last(Self::fields()).into_iter().map(from)).collect()
    }

    fn presets() -> Vec<Presets> {
        let server = "The server's constants: those of De Cicco et al., or those of the public server.";
        let player = "The player's constants: quicktime asks for Reliable UDP, vlc does not.";
        vec![
            Presets::new(("preset", "server", server), &Preset::NAMED, ServerSettings::of),
            // The flow itself selects the carrier of the media.
            Presets::new(("player", "player", player), &PlayerKind::NAMED, PlayerSettings::of)
                .without("transport"),
        ]
    }

    fn clip(&mut self) -> Option<&mut ClipSpec> {
        Some(&mut self.clip)
    }

    fn server() -> Option<Server> {
        Some(Server::of::<ServerSettings>())
    }

    fn player() -> Option<Player> {
        Some(Player::of::<PlayerSettings>())
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        check_ends(Self::NAME, &self.player, &self.server, &self.clip)?;
        let carrier = Carrier::Tcp { port: RTSP_PORT, settings: self.tcp.clone() };
        let library = Arc::new(OneAsset(Arc::new(Asset::of_clip(&self.clip))));
        Ok(Machines {
            channels: vec![Channel { id: RTSP, carrier }],
            server: Box::new(DarwinServer::new(library, self.server.clone(), flow, seed)),
            player: Box::new(DarwinPlayer::new(self.player.clone(), TRIAL_URL, flow, seed)),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols { tcp: vec![StreamProtocol::Rtsp], udp: vec![DatagramProtocol::ReliableUdp] }
    }

    /// Where the media is on UDP, the RTSP connection has nothing to show.
    fn media_tcp(&self) -> Option<&TcpSpec> {
        (self.player.transport == MediaTransport::Tcp).then_some(&self.tcp)
    }

    /// A frame is a NAL unit, cut into fragments where it is larger than a payload.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        let largest = u64::from(self.server.max_payload);
        let room = largest.saturating_sub(FU_A_BYTES).max(1);
        let cut = |frame: u64| match frame.saturating_sub(1).div_ceil(room) {
            _ if frame <= largest => (1, frame),
            fragments => (fragments, frame - 1 + FU_A_BYTES * fragments),
        };
        rtp_bps(&self.clip, cut, self.media_tcp(), link_bytes)
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Duration;

    use super::*;
    use crate::media::ClipSpec;

    #[test]
    fn a_plan_that_cannot_be_played_is_refused_by_its_key() {
        let second = Duration::from_secs(1);
        let refused = |change: fn(&mut DarwinSpec)| {
            let mut spec = DarwinSpec {
                clip: ClipSpec {
                    name: "test".into(),
                    duration: second * 10,
                    frame_interval: second,
                    frame_bytes: vec![1000].into(),
                    ..ClipSpec::default()
                },
                server: ServerSettings::of(Preset::Source),
                player: PlayerSettings::of(PlayerKind::Quicktime),
                tcp: TcpSpec::default(),
            };
            change(&mut spec);
            spec.machines("video", 1).err().map_or_else(String::new, |(key, _)| key.into_owned())
        };
        assert_eq!(refused(|_| {}), "");
        assert_eq!(
            refused(|spec| spec.server.rtsp_timeout = Duration::ZERO),
            "app.darwin.server.rtsp_timeout"
        );
        assert_eq!(refused(|spec| spec.player.speed = Some(0.0)), "app.darwin.player.speed");
        assert_eq!(
            refused(|spec| spec.player.report_interval = Duration::ZERO),
            "app.darwin.player.report_interval"
        );
        assert_eq!(refused(|spec| spec.clip.frame_bytes = vec![].into()), "app.darwin.clip.frame_bytes");
        assert_eq!(
            refused(|spec| spec.clip.frame_interval = Duration::ZERO),
            "app.darwin.clip.frame_interval"
        );
        assert_eq!(refused(|spec| spec.clip.duration = Duration::MAX), "app.darwin.clip.duration");
    }
}
