//! Further impairments of packets on the way. Each is on from the start unless its `switches` change that: times (ns)
//! at which it is switched on or off, ascending; on at time zero unless the first entry is at zero.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

/// Lets some packets wait while others pass. Exactly one of `probability` and `every` is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// With which a packet waits, independently, in [0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Every so-many-th packet waits, >= 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// How long it waits (ns).
    pub extra: Duration,
    /// When on.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

/// Sends some packets twice.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuplicateSpec {
    /// With which a packet is, independently, in [0, 1].
    pub probability: f64,
    /// When on.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

/// Damages some packets, which travel on and are thrown away by the host that they reach.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorruptSpec {
    /// With which a packet is, independently, in [0, 1].
    pub probability: f64,
    /// When on.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

/// Cuts up IP packets that are too long (RFC 791 section 3.2), or drops those that may not be cut up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MtuSpec {
    /// IP bytes of the longest packet that passes whole, 68 to 65535.
    pub bytes: u32,
    /// When on.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

/// Drops every packet of a protocol, as a firewall, or those from or to certain ports.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// Which.
    pub protocol: BlockedProtocol,
    /// Ports of TCP or UDP, source or destination: 1 to 65535, at most 16, each once. All packets without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// When on.
    #[serde(default)]
    pub switches: Vec<(Duration, bool)>,
}

/// The protocols that a firewall can distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP.
    Icmp,
}
