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
use crate::machines::{Carrier, Channel, Machines, Refusal, within};
use crate::media::Asset;
use crate::media::mp4::MOST_UNITS;
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
    spec.player.check().map_err(within("app.darwin.player"))?;
    spec.server.check().map_err(within("app.darwin.server"))?;
    spec.clip.check().map_err(within("app.darwin.clip"))?;
    let frames = spec.clip.duration.as_nanos() / spec.clip.frame_interval.as_nanos();
    if frames > MOST_UNITS as u64 {
        let what = format!("{frames} frames; give a time in which there are at most {MOST_UNITS}");
        return Err(("app.darwin.clip.duration".into(), what));
    }
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

#[cfg(test)]
mod tests {
    use streamgauge_base::Duration;

    use super::*;
    use crate::plan::{ClipSpec, TcpSpec};

    #[test]
    fn a_plan_that_cannot_be_played_is_refused_by_its_key() {
        let second = Duration::from_secs(1);
        let refused = |change: fn(&mut DarwinSpec)| {
            let mut spec = DarwinSpec {
                clip: ClipSpec {
                    name: "test".into(),
                    duration: second * 10,
                    frame_interval: second,
                    frame_bytes: vec![1000],
                    key_frames: Vec::new(),
                },
                server: ServerSettings::of(Preset::Source),
                player: PlayerSettings::of(PlayerKind::Quicktime),
                tcp: TcpSpec::default(),
            };
            change(&mut spec);
            machines(&spec, "video", 1).err().map_or_else(String::new, |(key, _)| key.into_owned())
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
        assert_eq!(refused(|spec| spec.clip.frame_bytes.clear()), "app.darwin.clip.frame_bytes");
        assert_eq!(
            refused(|spec| spec.clip.frame_interval = Duration::ZERO),
            "app.darwin.clip.frame_interval"
        );
        assert_eq!(refused(|spec| spec.clip.duration = Duration::MAX), "app.darwin.clip.duration");
    }
}
