//! The plan's settings for Apple's server and its player.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{TcpSpec, settings};

use super::{PlayerSettings, ServerSettings};
use crate::media::ClipSpec;

settings! {
    /// A clip streamed by RTSP and RTP, by Apple's Reliable UDP where the player asks for it.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct DarwinSpec {
        /// The streamed clip, by the sizes of its frames.
        pub clip: ClipSpec,
        /// The server's constants.
        pub server: ServerSettings,
        /// The player's.
        pub player: PlayerSettings,
        /// TCP of the RTSP connection, and of the media if that is interleaved on it.
        pub tcp: TcpSpec,
    }
}
