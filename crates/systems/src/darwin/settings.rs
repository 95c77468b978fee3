//! Every constant of the server, by name and with its source.
//!
//! "The paper" is De Cicco, Mascolo and Palmisano, "An Experimental Investigation of the End-to-End QoS of the
//! Apple Darwin Streaming Server", section III. "The server" is Apple's public Darwin Streaming Server 6.0.3.

use serde::{Deserialize, Serialize};

/// A set of the server's constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// What the paper states; what it does not state is as in `Source`.
    Paper,
    /// What the public server does.
    Source,
}

impl Preset {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, Preset); 2] = [("paper", Preset::Paper), ("source", Preset::Source)];
}

/// The server's constants. Sizes in bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Reliable UDP is granted to who asks for it.
    pub reliable_udp: bool,
    /// Largest RTP payload of a packet.
    pub max_payload: u32,
}

impl ServerSettings {
    /// The constants of `preset`.
    pub fn of(_preset: Preset) -> Self {
        ServerSettings { reliable_udp: true, max_payload: 1450 }
    }
}
