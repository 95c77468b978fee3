//! Every constant of the server, by name and with its source.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{check_bounds, settings};

/// A millisecond in nanoseconds.
const MS: f64 = 1e6;

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// RealServer 8, of 2000 to 2002.
    RealServer8,
    /// Helix Universal Server 9, of 2003.
    Helix9,
}

impl Preset {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, Preset); 2] =
        [("realserver8", Preset::RealServer8), ("helix9", Preset::Helix9)];
}

settings! {
    /// The server's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ServerSettings {
        /// Media in a packet at most: larger frames are split, smaller ones share one. 640 is the median that Chung,
        /// Claypool and Zhu saw over UDP; other factors are not known.
        /// Source: Chung et al., section IV; for Helix, ours.
        pub packet_bytes: u32 => |p| p.least(100).most(1400),
        /// Pictures share a packet only if all of them are shown within this time; `none` for any number that fits. With
        /// 20 ms each picture has packets of its own, so that packets shrink with the level. Sound is exempt.
        /// Source: ours; Hessler and Welzl, section 3.1, saw packets of 1200 B shrink to less than 500 B under congestion.
        pub packet_media: Option<Duration> => |p| p.least(MS),
        /// Keeps sent packets for this time, and sends them again where the player reports them lost.
        /// Source: Helix DNA server, UDP resend buffer.
        pub resend_keep: Duration,
        /// Sends a packet again once at most, even if the player reports it again.
        /// Source: Helix DNA server, UDP resend buffer.
        pub resend_once: bool,
        /// One packet in this many follows the one before it at once: the player measures the link's rate by such a
        /// pair.
        /// Source: Helix DNA server, RDT transport.
        pub pair_interval: u32 => |p| p.least(2),
        /// Time between two packets that carry the server's clock.
        /// Source: Helix DNA server, RDT transport, latency reports.
        pub latency_interval: Duration => |p| p.least(10.0 * MS),
        /// A server that is later than this with its sending restarts from now, and does not catch up.
        /// Source: Helix DNA server, constant bit rate manager.
        pub late_restart: Duration,
        /// Over UDP it announces a stream's end this many times.
        /// Source: Helix DNA server, RDT transport.
        pub end_repeats: u32 => |p| p.least(1).most(100),
        /// A session ends after this long without a message from the player.
        /// Source: RFC 2326 section 12.37, its default.
        pub timeout: Duration => |p| p.least(1_000.0 * MS),
    }
}

impl ServerSettings {
    /// Makes the constants of `preset`.
    pub fn of(preset: Preset) -> Self {
        let ms = Duration::from_millis;
        ServerSettings {
            packet_bytes: match preset {
                Preset::RealServer8 => 640,
                Preset::Helix9 => 1200,
            },
            packet_media: None,
            resend_keep: ms(15_000),
            resend_once: true,
            pair_interval: 10,
            latency_interval: ms(1_000),
            late_restart: ms(1_000),
            end_repeats: 5,
            timeout: ms(60_000),
        }
    }

    /// Refuses unusable settings: returns the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
