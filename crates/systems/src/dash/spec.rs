//! The settings of adaptive streaming over HTTP in a plan.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{TcpSpec, settings};

use super::player::settings::DashPlayerSettings;
use crate::http::HttpServerSettings;
use crate::media::LadderSpec;

settings! {
    /// A ladder by DASH or HLS.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct DashSpec {
        /// Its encodings.
        pub ladder: LadderSpec,
        /// The player.
        pub player: DashPlayerSettings,
        /// The server.
        pub server: HttpServerSettings,
        /// The stream is live: it begins with the trial, and a segment is there when its last frame has been captured.
        /// Source: ISO/IEC 23009-1 section 5.3.9.5.3.
        pub live: bool,
        /// Each connection's transport.
        pub tcp: TcpSpec,
    }
}
