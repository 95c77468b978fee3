//! What RTSP and SDP would have told both ends before the first packet.

use streamgauge_base::{Duration, Stream};

use crate::plan::RtpSpec;
use crate::reports::Reports;

/// RTP ticks per second for video (RFC 3551 section 5).
pub const CLOCK_RATE: u32 = 90_000;

#[derive(Clone)]
pub struct Session {
    /// The server's synchronisation source.
    pub server_ssrc: u32,
    /// The player's.
    pub player_ssrc: u32,
    /// RTP-Info's `seq`.
    pub first_sequence: u16,
    /// RTP-Info's `rtptime`.
    pub first_timestamp: u32,
    pub frame_interval: Duration,
    /// Frames until the end of the clip.
    pub frames: u64,
    pub max_payload: u32,
    pub playout_delay: Duration,
    pub rtcp_interval: Duration,
    /// Draws the intervals between RTCP reports; each end has its own.
    server_reports: Stream,
    player_reports: Stream,
}

impl Session {
    pub fn new(spec: &RtpSpec, flow: &str, seed: u64) -> Self {
        let mut ids = Stream::named(seed, flow, "rtp_session");
        let server_ssrc = ids.bits() as u32;
        Session {
            server_ssrc,
            // Two sources of a session differ (RFC 3550 section 8).
            player_ssrc: server_ssrc ^ (1 + ids.below(u64::from(u32::MAX)) as u32),
            first_sequence: ids.bits() as u16,
            first_timestamp: ids.bits() as u32,
            frame_interval: spec.clip.frame_interval,
            frames: spec.clip.duration.as_nanos().div_ceil(spec.clip.frame_interval.as_nanos()),
            max_payload: spec.max_payload,
            playout_delay: spec.playout_delay,
            rtcp_interval: spec.rtcp_interval,
            server_reports: Stream::named(seed, flow, "rtcp_server"),
            player_reports: Stream::named(seed, flow, "rtcp_player"),
        }
    }

    /// When frame `number` is due, counted from frame 0.
    pub fn offset(&self, number: u64) -> Duration {
        self.frame_interval * number
    }

    /// The RTP timestamp of frame `number`.
    pub fn timestamp(&self, number: u64) -> u32 {
        self.first_timestamp.wrapping_add(ticks(self.offset(number)) as u32)
    }

    /// The frame that carries `timestamp`, the one nearest to frame `near`; `None` before frame 0.
    pub fn frame(&self, timestamp: u32, near: u64) -> Option<u64> {
        // Timestamps are rounded down to a tick, so half a frame is added before rounding down again.
        let interval = u128::from(self.frame_interval.as_nanos());
        Some(((self.media_ns(timestamp, near)? + interval / 2) / interval) as u64)
    }

    /// How many frames are due by the media time of `timestamp`, near frame `near`.
    pub fn frames_by(&self, timestamp: u32, near: u64) -> u64 {
        let interval = u128::from(self.frame_interval.as_nanos());
        // A tick more, again for the rounding.
        let tick = 1_000_000_000 / u128::from(CLOCK_RATE) + 1;
        self.media_ns(timestamp, near).map_or(0, |ns| ((ns + tick) / interval) as u64 + 1)
    }

    fn media_ns(&self, timestamp: u32, near: u64) -> Option<u128> {
        let ahead = timestamp.wrapping_sub(self.timestamp(near)) as i32;
        let ticks = ticks(self.offset(near)).cast_signed() + i64::from(ahead);
        Some(u128::try_from(ticks).ok()? * 1_000_000_000 / u128::from(CLOCK_RATE))
    }

    pub fn server_reports(&self) -> Reports {
        Reports::new(self.rtcp_interval, self.server_reports.clone())
    }

    pub fn player_reports(&self) -> Reports {
        Reports::new(self.rtcp_interval, self.player_reports.clone())
    }
}

/// RTP ticks in `d`, rounded down.
pub fn ticks(d: Duration) -> u64 {
    (u128::from(d.as_nanos()) * u128::from(CLOCK_RATE) / 1_000_000_000) as u64
}

/// `ticks` in seconds.
pub fn ticks_to_s(ticks: u32) -> f64 {
    f64::from(ticks) / f64::from(CLOCK_RATE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::ClipSpec;

    proptest! {
        #[test]
        fn a_timestamp_leads_back_to_its_frame(
            seed in any::<u64>(), interval_us in 1_000u64..2_000_000, number in 0u64..100_000, off in -100i64..100,
        ) {
            let frame_interval = Duration::from_micros(interval_us);
            let clip = ClipSpec {
                name: String::new(), duration: Duration::from_secs(1), frame_interval, frame_bytes: vec![1],
                key_frames: vec![],
            };
            let (rtcp_interval, playout_delay) = (Duration::ZERO, Duration::ZERO);
            let spec = RtpSpec { clip, max_payload: 1400, tcp: None, rtcp_interval, playout_delay };
            let session = Session::new(&spec, "video", seed);
            let near = number.saturating_add_signed(off);
            prop_assert_eq!(session.frame(session.timestamp(number), near), Some(number));
            prop_assert_eq!(session.frames_by(session.timestamp(number), near), number + 1);
        }
    }
}
