//! Apple's streaming stack: an RTSP server with Reliable UDP as Darwin Streaming Server speaks it, and players of
//! it: one like QuickTime's, which asks for Reliable UDP, and one like VLC's, which does not.

mod backlog;
mod fields;
mod player;
mod server;

pub use fields::{Field, Kind};
pub use player::{DarwinPlayer, Fates, PlayerKind, PlayerReport, PlayerSettings, ReceivedUnit, Transport};
pub use server::{DarwinServer, Growth, Library, OneAsset, OpenError, Preset, ServerSettings};

use std::sync::Arc;

use streamgauge_base::Ecn;

use crate::app::ChannelId;
use crate::machines::{Carrier, Channel, Machines, Refusal};
use crate::media::Asset;
use crate::plan::DarwinSpec;

/// The RTSP connection.
pub const RTSP: ChannelId = ChannelId(0);

/// RTP of the first track; RTCP is the channel after it, and each further track has the next two.
pub const FIRST_RTP: ChannelId = ChannelId(1);

/// RTSP's port (RFC 2326 section 3.2).
pub const RTSP_PORT: u16 = 554;

/// What the player of a trial asks for; the trial's server has one clip under every path.
const TRIAL_URL: &str = "rtsp://server/clip.mov";

/// The first track's port of RTP in a trial, as in Darwin; RTCP's is the next.
pub const FIRST_RTP_PORT: u16 = 6970;

pub(crate) fn machines(spec: &DarwinSpec, flow: &str, seed: u64) -> Result<Machines, Refusal> {
    spec.player.check()?;
    spec.server.check()?;
    let udp = |port| Carrier::Udp { port, ecn: Ecn::NotEct };
    let carriers = [
        Carrier::Tcp { port: RTSP_PORT, settings: spec.tcp.clone() },
        udp(FIRST_RTP_PORT),
        udp(FIRST_RTP_PORT + 1),
    ];
    let library = Arc::new(OneAsset(Arc::new(Asset::of_clip(&spec.clip))));
    Ok(Machines {
        channels: (0..).zip(carriers).map(|(id, carrier)| Channel { id: ChannelId(id), carrier }).collect(),
        server: Box::new(DarwinServer::new(library, spec.server.clone(), flow, seed)),
        player: Box::new(DarwinPlayer::new(spec.player.clone(), TRIAL_URL, flow, seed)),
    })
}
