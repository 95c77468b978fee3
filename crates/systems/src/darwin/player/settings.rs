//! Every constant of the player, by name and with its source.
//!
//! "The server" is Apple's public Darwin Streaming Server 6.0.3; its packets and its handling of headers were read and
//! measured there. "A trace" is a published RTSP trace of QuickTime 6.5 and 7.4. "Ours" has no published source, and
//! gives the reason for our choice.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, Parameter, check_bounds, setting, settings};

use crate::rtsp::MediaTransport;

/// A millisecond in nanoseconds.
const MS: f64 = 1e6;

/// Which player.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerKind {
    /// Asks for Reliable UDP, with QuickTime's headers.
    Quicktime,
    /// Plain RTP, as live555 in VLC.
    Vlc,
}

impl PlayerKind {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, PlayerKind); 2] =
        [("quicktime", PlayerKind::Quicktime), ("vlc", PlayerKind::Vlc)];
}

setting!(PlayerKind => Kind::Words(vec!["quicktime", "vlc"]));

settings! {
    /// The player's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PlayerSettings {
        /// Which player.
        pub kind: PlayerKind => Parameter::elsewhere,
        /// The carrier of the media. The paper (section IV) has RTP over UDP.
        pub transport: MediaTransport => Parameter::elsewhere,
        /// Asks for Reliable UDP: `x-Retransmit: our-retransmit` in each SETUP over UDP.
        /// Source: a published RTSP trace of QuickTime 6.5 and 7.4.
        pub reliable_udp: bool,
        /// `x-Dynamic-Rate` in SETUP: asks for overbuffering, or not; `None` leaves the header out, and the server then
        /// overbuffers over Reliable UDP and TCP. 1 in the trace.
        /// Source: a published RTSP trace of QuickTime 6.5 and 7.4.
        pub dynamic_rate: Option<bool>,
        /// `x-Transport-Options: late-tolerance` of SETUP: 2.384 s in the trace. `None` leaves it out, and the server
        /// assumes 1.5 s.
        /// Source: a published RTSP trace of QuickTime 6.5 and 7.4.
        pub late_tolerance_setup: Option<Duration>,
        /// The same in PLAY, where it replaces the first: 10 s in the trace. How late a packet the server
        /// still sends and repeats follows from it.
        /// Source: a published RTSP trace of QuickTime 6.5 and 7.4.
        pub late_tolerance_play: Option<Duration>,
        /// `x-Prebuffer: maxtime` of PLAY: how far back to a key frame the server may begin; 2 s in the
        /// trace.
        /// Source: a published RTSP trace of QuickTime 6.5 and 7.4.
        pub prebuffer_maxtime: Option<Duration>,
        /// `Speed` of PLAY: a multiple of the media's pace at which the server is asked to send; playout keeps its
        /// pace. `None` leaves it out.
        /// Source: RFC 2326 section 12.35.
        pub speed: Option<f64> => |p| p.above(0),
        /// `Range` of PLAY: where in the media to begin.
        /// Source: RFC 2326 section 12.29.
        pub begin: Duration,
        /// An OPTIONS before DESCRIBE: live555 sends one, QuickTime does not.
        /// Source: a published RTSP trace of QuickTime 6.5 and 7.4.
        pub options_first: bool,
        /// How long an acknowledgement of Reliable UDP may wait for more packets to acknowledge, until the
        /// server recommends another time; the server's first recommendation (20 ms, and always 20 to 100
        /// ms).
        /// Source: Darwin Streaming Server 6.0.3.
        pub ack_delay: Duration,
        /// Uses the acknowledgement delay that the server recommends in its sender reports.
        /// Source: Darwin Streaming Server 6.0.3.
        pub follow_ack_hints: bool,
        /// Mean time between RTCP receiver reports, each a random 0.5 to 1.5 of it; the least, 5 s.
        /// Source: RFC 3550 section 6.2.
        pub report_interval: Duration => |p| p.least(10.0 * MS),
        /// Adds Apple's client report (RTCP APP `QTSS`) to each receiver report of a session with Reliable
        /// UDP.
        /// Source: Darwin Streaming Server 6.0.3.
        pub client_reports: bool,
        /// `ob` of the client report: bytes that the server may send ahead of their time until the next report. `None`
        /// leaves it out, which the server reads as no limit, as before the first report. QuickTime's is not published;
        /// ours sets no limit of its own, so that the server's 25 s and rate of 2 act alone.
        /// Source: ours.
        pub overbuffer_window: Option<u32>,
        /// How much media is gathered before any is shown, and again after a stall. QuickTime's is not published; ours
        /// is its `x-Prebuffer` of 2 s. For VLC its `network-caching` of 1 s.
        /// Source: ours.
        pub prebuffer: Duration,
        /// Over UDP, when the buffer has run dry, the clock stops until `prebuffer` is gathered again. QuickTime's way
        /// is not published; ours does for it, and does not for VLC, where the clock runs on. Changes nothing that is
        /// sent. Over TCP every player waits.
        /// Source: ours.
        pub rebuffer: bool,
        /// A silence of this length ends the session. Ours: above the server's longest retransmission timeout, 24 s.
        /// Source: ours.
        pub give_up_after: Duration => |p| p.least(1_000.0 * MS),
    }
}

impl PlayerSettings {
    /// Makes the constants of `kind`.
    pub fn of(kind: PlayerKind) -> Self {
        let ms = Duration::from_millis;
        let quicktime = PlayerSettings {
            kind,
            transport: MediaTransport::Udp,
            reliable_udp: true,
            dynamic_rate: Some(true),
            late_tolerance_setup: Some(ms(2_384)),
            late_tolerance_play: Some(ms(10_000)),
            prebuffer_maxtime: Some(ms(2_000)),
            speed: None,
            begin: Duration::ZERO,
            options_first: false,
            ack_delay: ms(20),
            follow_ack_hints: true,
            report_interval: ms(5_000),
            client_reports: true,
            overbuffer_window: None,
            prebuffer: ms(2_000),
            rebuffer: true,
            give_up_after: ms(30_000),
        };
        match kind {
            PlayerKind::Quicktime => quicktime,
            PlayerKind::Vlc => PlayerSettings {
                reliable_udp: false,
                dynamic_rate: None,
                late_tolerance_setup: None,
                late_tolerance_play: None,
                prebuffer_maxtime: None,
                options_first: true,
                client_reports: false,
                prebuffer: ms(1_000),
                rebuffer: false,
                ..quicktime
            },
        }
    }

    /// Refuses unplayable settings: returns the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
