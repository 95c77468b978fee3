//! Every constant of the server, by name and with its source.
//!
//! "The thesis" is Nichols, Measurement of Windows Streaming Media; "ours" has no published source.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{check_bounds, settings};

/// A millisecond in nanoseconds.
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
        /// Length of the media that is sent at once, in a burst.
        /// Source: the thesis, section 4.1, time between bursts of 548 kbit/s.
        pub burst: Duration => |p| p.least(MS).most(10_000.0 * MS),
        /// The same once media is sent at its own rate; `none` for as much as before. Smaller bursts need less of a
        /// queue.
        /// Source: the thesis, section 4.1: bursts are then equally far apart at 340 and 548 kbit/s; how far is not printed.
        pub steady_burst: Option<Duration> => |p| p.least(MS).most(10_000.0 * MS),
        /// Media up to here is sent in bursts of `burst` at any rate: the buffers of players fill.
        /// Source: the thesis, section 4.1: 548 kbit/s, which fill the buffer at their own rate, come in bursts of 475 ms.
        pub steady_from: Duration,
        /// Media is sent at this multiple of its rate at most, at any request.
        /// Source: the thesis, section 4.1.
        pub most_acceleration: f64 => |p| p.least(1),
        /// Upper bound of that rate.
        /// Source: Windows Media Services 9, player connections' accelerated rate.
        pub most_accelerated_bps: u64 => |p| p.called("most_accelerated").least(1_000),
        /// Keeps packets sent over UDP for this time, and sends them again where the player reports them lost.
        /// Source: ours.
        pub resend_keep: Duration,
        /// Most packets that it looks up from one message of the player's about losses.
        /// Source: [MS-RTSP] section 3.2.5.10.
        pub most_resent: u32 => |p| p.least(1),
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
            packet_bytes: 1444,
            burst: ms(475),
            steady_burst: None,
            steady_from: Duration::ZERO,
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

    /// Refuses unusable settings: returns the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
