//! Every constant of the server, by name and with its source.
//!
//! "The thesis" is Nichols, Measurement of Windows Streaming Media; "ours" is what nobody published.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{check_bounds, settings};

/// In nanoseconds.
const MS: f64 = 1e6;

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Windows Media Services 9, of 2003.
    Wms9,
    /// Windows Media Services 8, which fills the player's buffer no faster than it plays.
    Wms8,
}

impl Preset {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, Preset); 2] = [("wms9", Preset::Wms9), ("wms8", Preset::Wms8)];
}

settings! {
    /// The server's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ServerSettings {
        /// A data packet of ASF at most: with the headers of IPv4, UDP, RTP and the longest of its payload, of 16 B, 1,500 B;
        /// ours has 4 B.
        /// Source: [MS-RTSP] section 4.1.
        pub packet_bytes: u32 => |p| p.least(200).most(1444),
        /// So much media goes at once, in a burst.
        /// Source: the thesis, section 4.1, time between bursts of 548 kbit/s.
        pub burst: Duration => |p| p.least(MS).most(10_000.0 * MS),
        /// Media goes at this multiple of its rate at most, whatever a player asks for.
        /// Source: the thesis, section 4.1.
        pub most_acceleration: f64 => |p| p.least(1),
        /// And at this rate at most.
        /// Source: Windows Media Services 9, player connections' accelerated rate.
        pub most_accelerated_bps: u64 => |p| p.called("most_accelerated").least(1_000),
        /// Keeps what it has sent over UDP for so long, and sends it again where the player says that it is lost.
        /// Source: ours.
        pub resend_keep: Duration,
        /// Packets that it looks for at most of what one message of the player's says to be lost.
        /// Source: [MS-RTSP] section 3.2.5.10.
        pub most_resent: u32 => |p| p.least(1),
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
            packet_bytes: 1444,
            burst: ms(475),
            most_acceleration: match preset {
                Preset::Wms9 => 4.0,
                Preset::Wms8 => 1.0,
            },
            most_accelerated_bps: 3_500_000,
            resend_keep: ms(10_000),
            most_resent: 128,
            timeout: ms(60_000),
        }
    }

    /// Refuses what no server can work with: the constant, what is wrong and what would be right.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
