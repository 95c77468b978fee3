//! Every constant of the player, by name and with its source.
//!
//! "Helix DNA client" is RealNetworks' published client source; its dated files are of 2006 to 2008, and that the
//! players of 2000 to 2003 had the same constants is an assumption. "Ours" has no published source.

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
    /// RealPlayer 8, of 2000 to 2002.
    #[serde(rename = "realplayer8")]
    RealPlayer8,
    /// RealPlayer 10, of 2003 and 2004: it begins with the full configured rate of the link.
    #[serde(rename = "realplayer10")]
    RealPlayer10,
}

impl PlayerKind {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, PlayerKind); 2] =
        [("realplayer8", PlayerKind::RealPlayer8), ("realplayer10", PlayerKind::RealPlayer10)];
}

setting!(PlayerKind => Kind::Words(vec!["realplayer8", "realplayer10"]));

settings! {
    /// The player's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PlayerSettings {
        /// Which player.
        pub kind: PlayerKind => Parameter::elsewhere,
        /// The carrier of the media.
        pub transport: MediaTransport => Parameter::elsewhere,

        /// The link's rate as the user sets it, the player's bandwidth preference.
        /// Source: ours.
        pub preference_bps: u64 => |p| p.called("preference").least(10_000),
        /// Share of a preference above 150 kbit/s that is believed at the start.
        /// Source: Helix DNA client, session manager.
        pub fast_share: f64 => |p| p.above(0).most(1),
        /// Share of a lower preference.
        /// Source: Helix DNA client, session manager.
        pub slow_share: f64 => |p| p.above(0).most(1),
        /// The lowest level is the sound alone, where there is sound.
        /// Source: Chung et al., section V-A.
        pub audio_only: bool,
        /// Beneath the lowest level of pictures its key frames alone are selected.
        /// Source: Helix DNA client, rule books.
        pub key_frames_only: bool,

        /// It is behind when the delay from server to player exceeds its least by this. The signal of congestion.
        /// Source: Helix DNA client, session manager.
        pub udp_behind: Duration => |p| p.least(MS),
        /// The same over TCP.
        /// Source: Helix DNA client, session manager.
        pub tcp_behind: Duration => |p| p.least(MS),
        /// Once it is behind, it is so again only when the excess has grown by this.
        /// Source: Helix DNA client, session manager.
        pub behind_step: Duration,
        /// Beyond this excess it does not raise its request.
        /// Source: Helix DNA client, session manager.
        pub slightly_behind: Duration,
        /// Over UDP the received rate is a mean over this time, less the excess that makes it behind.
        /// Source: Helix DNA client, session manager.
        pub udp_rate_window: Duration => |p| p.called("udp_rate_time").least(100.0 * MS),
        /// The received rate is a mean over at least this time.
        /// Source: Helix DNA client, session manager.
        pub least_rate_window: Duration => |p| p.called("least_rate_time").least(100.0 * MS),
        /// Over TCP it is a mean over this time.
        /// Source: Helix DNA client, session manager.
        pub tcp_rate_window: Duration => |p| p.called("tcp_rate_time").least(100.0 * MS),
        /// A player that is behind offers this share of the received rate, and selects the highest level that fits.
        /// Source: Helix DNA client, session manager.
        pub behind_share: f64 => |p| p.above(0).most(1),
        /// A player that is behind, with a level that fits already, asks for this share of the received rate.
        /// Source: Helix DNA client, session manager.
        pub slow_down_share: f64 => |p| p.above(0).most(1),
        /// The last rate that was stable is offered instead where the two are within this share of it.
        /// Source: Helix DNA client, session manager.
        pub stable_within: f64 => |p| p.least(0).most(1),
        /// Reacts to the delay at all.
        /// Source: ours.
        pub heed_delay: bool,

        /// Over UDP, time over which a share of lost packets is counted.
        /// Source: Helix DNA client, session manager.
        pub loss_time: Duration => |p| p.least(100.0 * MS),
        /// Loss of this share or more reduces a rate above the level's by the same share.
        /// Source: Helix DNA client, session manager.
        pub moderate_loss: f64 => |p| p.least(0).most(1).not_above(&["heavy_loss"]),
        /// The greatest such reduction.
        /// Source: Helix DNA client, session manager.
        pub most_loss_cut: f64 => |p| p.least(0).most(1),
        /// Loss of this share or more reduces the rate to `heavy_share` of itself, and the level with it.
        /// Source: Helix DNA client, session manager.
        pub heavy_loss: f64 => |p| p.least(0).most(1),
        /// See `heavy_loss`.
        /// Source: Helix DNA client, session manager.
        pub heavy_share: f64 => |p| p.above(0).most(1),
        /// Loss never reduces the rate below this multiple of the level's.
        /// Source: Helix DNA client, session manager.
        pub loss_floor: f64 => |p| p.least(0),
        /// Reacts to loss at all.
        /// Source: ours.
        pub heed_loss: bool,

        /// Over UDP, the link's rate is the median of this many packet pairs.
        /// Source: Helix DNA client, session manager.
        pub pairs: u32 => |p| p.least(1).most(1_000),
        /// Over UDP it is this multiple of the received rate instead, as over TCP; `none` for the packet pairs.
        /// Source: ours; Chung et al., section V-B, saw UDP and TCP get the same share of 600 kbit/s.
        pub udp_available: Option<f64> => |p| p.least(1),
        /// Over TCP it is this multiple of the received rate.
        /// Source: Helix DNA client, session manager.
        pub tcp_available: f64 => |p| p.least(1),
        /// Over TCP it asks for this multiple of the level's rate at least.
        /// Source: Helix DNA client, session manager.
        pub tcp_floor: f64 => |p| p.least(0),
        /// It tries this share of the available rate above the used one.
        /// Source: Helix DNA client, session manager.
        pub test_share: f64 => |p| p.above(0).most(1).not_below(&["least_test_share"]),
        /// Which shrinks by this factor each time that a try fails.
        /// Source: Helix DNA client, session manager.
        pub test_shrink: f64 => |p| p.above(0).most(1),
        /// To this at least.
        /// Source: Helix DNA client, session manager.
        pub least_test_share: f64 => |p| p.above(0).most(1),
        /// After this many reports of the delay without congestion it asks for a higher rate.
        /// Source: Helix DNA client, session manager.
        pub raise_after: u32,
        /// After more reports than this it looks for a higher level.
        /// Source: Helix DNA client, session manager.
        pub offer_after: u32,
        /// After it was behind, this many more reports are needed.
        /// Source: Helix DNA client, session manager.
        pub behind_debt: u32 => |p| p.most(10_000),
        /// The same after loss.
        /// Source: Helix DNA client, session manager.
        pub loss_debt: u32 => |p| p.most(10_000),
        /// Does not exceed the rate of the preference, or the rate of the last loss, before this many times of
        /// `loss_time` passed without loss.
        /// Source: Helix DNA client, session manager.
        pub ceiling_after: u32,

        /// Before enough is buffered it asks for this multiple of the highest level's rate at most.
        /// Source: Helix DNA client, session manager.
        pub acceleration: f64 => |p| p.least(0.1),
        /// At once with all that the preference and the acceleration allow; else the rate is raised from the level's on.
        /// Source: Helix DNA client, TurboPlay.
        pub turboplay: bool,
        /// Beyond this much media it has enough.
        /// Source: Helix DNA client, buffer control.
        pub high_mark: Duration,
        /// It has enough beyond this many bytes, too.
        /// Source: Helix DNA client, buffer control.
        pub high_mark_bytes: u64 => |p| p.least(1_000),
        /// Below this it has not.
        /// Source: Helix DNA client, buffer control.
        pub low_mark: Duration => |p| p.not_above(&["high_mark"]),
        /// With at least this many bytes it still has enough.
        /// Source: Helix DNA client, buffer control.
        pub low_mark_bytes: u64 => |p| p.not_above(&["high_mark_bytes"]),
        /// A player that has enough asks for this multiple of the level's rate.
        /// Source: Helix DNA client, session manager.
        pub enough_share: f64 => |p| p.above(0),

        /// Over UDP, asks the server to send lost packets again.
        /// Source: Helix DNA client, RDT transport.
        pub retransmission: bool,
        /// A gap of this many missing packets is reported at once.
        /// Source: Helix DNA client, RDT transport.
        pub nak_gap: u32 => |p| p.least(1),
        /// A shorter gap is reported when more than this many have arrived after it.
        /// Source: Helix DNA client, RDT transport.
        pub nak_after: u32,
        /// It is also reported after this time.
        /// Source: Helix DNA client, RDT transport.
        pub nak_wait: Duration,
        /// Time between two checks for missing packets.
        /// Source: Helix DNA client, RDT transport.
        pub nak_check: Duration => |p| p.least(MS),
        /// Time between two acknowledgements where nothing is missing.
        /// Source: Helix DNA client, RDT transport.
        pub ack_interval: Duration => |p| p.least(10.0 * MS),

        /// Media gathered before any is shown. The example of a published description has 4.536 s.
        /// Source: ours.
        pub preroll: Duration,
        /// How much more is gathered after each halt.
        /// Source: Helix DNA client, latency mode.
        pub rebuffer_step: Duration,
        /// How much more at most.
        /// Source: Helix DNA client, latency mode.
        pub rebuffer_most: Duration,
        /// A silence of this length ends the session. A minute without a packet ended a run.
        /// Source: Chung et al., section III-B.
        pub give_up_after: Duration => |p| p.least(1_000.0 * MS),
    }
}

impl PlayerSettings {
    /// Makes the constants of `kind`.
    pub fn of(kind: PlayerKind) -> Self {
        let ms = Duration::from_millis;
        PlayerSettings {
            kind,
            transport: MediaTransport::Udp,

            preference_bps: match kind {
                PlayerKind::RealPlayer8 => 700_000,
                PlayerKind::RealPlayer10 => 1_000_000,
            },
            fast_share: 0.9,
            slow_share: 0.85,
            audio_only: true,
            key_frames_only: true,

            udp_behind: ms(1_000),
            tcp_behind: ms(5_000),
            behind_step: ms(500),
            slightly_behind: ms(400),
            udp_rate_window: ms(4_000),
            least_rate_window: ms(800),
            tcp_rate_window: ms(20_000),
            behind_share: 0.97,
            slow_down_share: 0.7,
            stable_within: 0.1,
            heed_delay: true,

            loss_time: ms(3_000),
            moderate_loss: 0.04,
            most_loss_cut: 0.15,
            heavy_loss: 0.2,
            heavy_share: 0.85,
            loss_floor: 1.05,
            heed_loss: true,

            pairs: 12,
            udp_available: None,
            tcp_available: 1.5,
            tcp_floor: 1.1,
            test_share: 0.4,
            test_shrink: 0.85,
            least_test_share: 0.15,
            raise_after: 2,
            offer_after: 4,
            behind_debt: 2,
            loss_debt: 10,
            ceiling_after: 5,

            acceleration: 4.0,
            turboplay: kind == PlayerKind::RealPlayer10,
            high_mark: ms(20_000),
            high_mark_bytes: 4_000_000,
            low_mark: ms(10_000),
            low_mark_bytes: 2_000_000,
            enough_share: 0.75,

            retransmission: true,
            nak_gap: 3,
            nak_after: 3,
            nak_wait: ms(500),
            nak_check: ms(100),
            ack_interval: ms(1_000),

            preroll: ms(4_500),
            rebuffer_step: ms(1_000),
            rebuffer_most: ms(3_000),
            give_up_after: ms(60_000),
        }
    }

    /// Refuses unplayable settings: returns the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
