//! Every constant of the server, by name and with its source.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{check_bounds, settings};

/// In nanoseconds.
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
        /// Media in a packet at most: larger frames go in several, smaller ones share one. 640 is the median that Chung,
        /// Claypool and Zhu saw over UDP; what else decides it is not known.
        /// Source: Chung et al., section IV; for Helix, ours.
        pub packet_bytes: u32 => |p| p.least(100).most(1400),
        /// Keeps what it has sent for so long, and sends it again where the player says that it is lost.
        /// Source: Helix DNA server, UDP resend buffer.
        pub resend_keep: Duration,
        /// Sends a packet again once at most, whatever the player says after that.
        /// Source: Helix DNA server, UDP resend buffer.
        pub resend_once: bool,
        /// One packet of so many follows the one before it at once: the player tells the link's rate by such a pair.
        /// Source: Helix DNA server, RDT transport.
        pub pair_interval: u32 => |p| p.least(2),
        /// Time between two packets that carry the server's clock.
        /// Source: Helix DNA server, RDT transport, latency reports.
        pub latency_interval: Duration => |p| p.least(10.0 * MS),
        /// One that is later than this with what it is to send begins anew from now, and does not catch up.
        /// Source: Helix DNA server, constant bit rate manager.
        pub late_restart: Duration,
        /// Over UDP it says a stream's end so many times.
        /// Source: Helix DNA server, RDT transport.
        pub end_repeats: u32 => |p| p.least(1).most(100),
        /// A session ends when nothing has come from the player for so long.
        /// Source: RFC 2326 section 12.37, its default.
        pub timeout: Duration => |p| p.least(1_000.0 * MS),
    }
}

impl ServerSettings {
    /// The constants of `preset`.
    pub fn of(preset: Preset) -> Self {
        let ms = Duration::from_millis;
        ServerSettings {
            packet_bytes: match preset {
                Preset::RealServer8 => 640,
                Preset::Helix9 => 1200,
            },
            resend_keep: ms(15_000),
            resend_once: true,
            pair_interval: 10,
            latency_interval: ms(1_000),
            late_restart: ms(1_000),
            end_repeats: 5,
            timeout: ms(60_000),
        }
    }

    /// Refuses what no server can work with: the constant, what is wrong and what would be right.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
