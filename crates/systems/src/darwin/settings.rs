//! Every constant of server and player, by name and with its source.
//!
//! "The paper" is De Cicco, Mascolo and Palmisano, "An Experimental Investigation of the End-to-End QoS of the
//! Apple Darwin Streaming Server", section III. "The server" is Apple's public Darwin Streaming Server 6.0.3.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

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

/// Which player.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerKind {
    /// Asks for Reliable UDP, with QuickTime's headers.
    Quicktime,
    /// Plain RTP.
    Vlc,
}

/// What carries RTP and RTCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// UDP.
    Udp,
    /// The RTSP connection (RFC 2326 section 10.12).
    Tcp,
}

/// The player's constants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayerSettings {
    /// Which player.
    pub kind: PlayerKind,
    /// What carries the media.
    pub transport: Transport,
    /// How much media it gathers before it begins to play.
    pub prebuffer: Duration,
}

impl PlayerSettings {
    /// The constants of `kind`.
    pub fn of(kind: PlayerKind) -> Self {
        PlayerSettings { kind, transport: Transport::Udp, prebuffer: Duration::from_secs(2) }
    }
}
