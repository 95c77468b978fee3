//! The transports that players choose between.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{Kind, setting};

/// The carrier of the media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaTransport {
    /// UDP.
    Udp,
    /// The RTSP connection (RFC 2326 section 10.12).
    Tcp,
}

setting!(MediaTransport => Kind::Words(vec!["udp", "tcp"]));
