//! The plan's settings for RealVideo.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{TcpSpec, settings};

use super::{PlayerSettings, ServerSettings};
use crate::media::LadderSpec;

settings! {
    /// One content at several rates, streamed by RTSP and RDT as RealNetworks' server and player do.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RealVideoSpec {
        /// Its encodings.
        pub ladder: LadderSpec,
        /// The server's constants.
        pub server: ServerSettings,
        /// The player's.
        pub player: PlayerSettings,
        /// TCP of the RTSP connection, and of the media if that is interleaved on it.
        pub tcp: TcpSpec,
    }
}
