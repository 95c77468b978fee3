//! The session parameters that RTSP and SDP would have given both ends before the first packet.

use streamgauge_base::{Duration, RandomStream};

use crate::media::ClipSpec;
use crate::playout::Timeline;
use crate::reception::Reports;
use crate::rtp::RtpSpec;

/// RTP ticks per second for video (RFC 3551 section 5).
pub const CLOCK_RATE: u32 = 90_000;

#[derive(Clone)]
pub struct SessionDescription {
    /// The server's synchronisation source.
    pub server_ssrc: u32,
    /// The player's.
    pub player_ssrc: u32,
    /// RTP-Info's `seq`.
    pub first_sequence: u16,
    /// RTP-Info's `rtptime`.
    pub first_timestamp: u32,
    pub frame_interval: Duration,
    /// The clip, which has the order in which frames are shown.
    clip: ClipSpec,
    /// Frames until the end of the clip.
    pub frames: u64,
    pub max_payload: u32,
    pub playout_delay: Duration,
    pub rtcp_interval: Duration,
    /// Draws the intervals between RTCP reports; each end has its own.
    server_reports: RandomStream,
    player_reports: RandomStream,
}

impl SessionDescription {
    pub fn new(spec: &RtpSpec, flow: &str, seed: u64) -> Self {
        let mut ids = RandomStream::named(seed, flow, "rtp_session");
        let server_ssrc = ids.bits() as u32;
        SessionDescription {
            server_ssrc,
            // Two sources of a session differ (RFC 3550 section 8).
            player_ssrc: server_ssrc ^ (1 + ids.below(u64::from(u32::MAX)) as u32),
            first_sequence: ids.bits() as u16,
            first_timestamp: ids.bits() as u32,
            frame_interval: spec.clip.frame_interval,
            frames: spec.clip.frames(),
            clip: spec.clip.clone(),
            max_payload: spec.max_payload,
            playout_delay: spec.playout_delay,
            rtcp_interval: spec.rtcp_interval,
            server_reports: RandomStream::named(seed, flow, "rtcp_server"),
            player_reports: RandomStream::named(seed, flow, "rtcp_player"),
        }
    }

    /// Returns when frame `number` is sent, counted from frame 0.
    pub fn offset(&self, number: u64) -> Duration {
        self.frame_interval * number
    }

    /// Returns the RTP timestamp of the frame that is sent as `number`: when it is shown (RFC 6184 section 5.1).
    pub fn timestamp(&self, number: u64) -> u32 {
        let shown = self.frame_interval * self.clip.shown_place(number);
        self.first_timestamp.wrapping_add(ticks(shown) as u32)
    }

    /// Returns the meaning of RTP timestamps, from the clip's start on.
    pub fn timeline(&self) -> Timeline {
        Timeline::new(CLOCK_RATE, self.first_timestamp, Duration::ZERO)
    }

    /// Returns how many frames are due by the media's time `at`, from an RTP timestamp.
    pub fn frames_by(&self, at: Duration) -> u64 {
        // Timestamps are rounded down to a tick, so one is added before rounding down again.
        let tick = 1_000_000_000 / u64::from(CLOCK_RATE) + 1;
        (at.as_nanos() + tick) / self.frame_interval.as_nanos() + 1
    }

    pub fn server_reports(&self) -> Reports {
        Reports::new(self.rtcp_interval, self.server_reports.clone())
    }

    pub fn player_reports(&self) -> Reports {
        Reports::new(self.rtcp_interval, self.player_reports.clone())
    }
}

/// Returns the RTP ticks in `d`, rounded down.
pub fn ticks(d: Duration) -> u64 {
    (u128::from(d.as_nanos()) * u128::from(CLOCK_RATE) / 1_000_000_000) as u64
}

/// Returns `ticks` in seconds.
pub fn ticks_to_s(ticks: u32) -> f64 {
    f64::from(ticks) / f64::from(CLOCK_RATE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::describe::System;

    proptest! {
        #[test]
        fn a_timestamp_leads_back_to_its_frame(
            seed in any::<u64>(), interval_us in 1_000u64..2_000_000, number in 0u64..100_000, off in -100i64..100,
        ) {
            let frame_interval = Duration::from_micros(interval_us);
            let clip = ClipSpec {
                name: String::new(), duration: Duration::from_secs(1), frame_interval, frame_bytes: vec![1].into(),
                ..ClipSpec::default()
            };
            let (rtcp_interval, playout_delay) = (Duration::ZERO, Duration::ZERO);
            let spec = RtpSpec { clip, rtcp_interval, playout_delay, ..RtpSpec::usual() };
            let session = SessionDescription::new(&spec, "video", seed);
            let near = number.saturating_add_signed(off);
            let mut timeline = Timeline::new(CLOCK_RATE, session.timestamp(near), session.offset(near));
            let at = timeline.at(session.timestamp(number)).unwrap();
            let interval = frame_interval.as_nanos();
            prop_assert_eq!((at.as_nanos() + interval / 2) / interval, number);
            prop_assert_eq!(session.frames_by(at), number + 1);
        }
    }
}
