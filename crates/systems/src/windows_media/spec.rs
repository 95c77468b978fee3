//! The plan's settings for Windows Media.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{TcpSpec, settings};

use super::{PlayerSettings, ServerSettings};
use crate::media::LadderSpec;

settings! {
    /// One content at several rates, streamed by RTSP as Microsoft's server and player do.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WindowsMediaSpec {
        /// Its encodings; the sound is that of the highest profile.
        pub ladder: LadderSpec,
        /// The server's constants.
        pub server: ServerSettings,
        /// The player's.
        pub player: PlayerSettings,
        /// TCP of each connection, and of the media if that is on it.
        pub tcp: TcpSpec,
    }
}
