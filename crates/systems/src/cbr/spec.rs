//! A plan's settings of constant bit rate UDP.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Duration, Ecn};
use streamgauge_plan::{Kind, setting, settings};

use super::{MAX_PACKETS_PER_S, MAX_PAYLOAD_BYTES};

settings! {
    /// Constant bit rate UDP, server (or router) to player.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CbrSpec {
        /// Packets per second.
        pub packets_per_s: f64 => |p| {
            p.called("rate").kind(Kind::Frequency).required().least(0.001).most(MAX_PACKETS_PER_S)
        },
        /// UDP payload of a packet.
        pub payload_bytes: u32 => |p| p.called("size").least(8).most(MAX_PAYLOAD_BYTES),
        /// Packets sent back to back at each tick.
        pub burst: u32 => |p| p.kind(Kind::Packets).least(1),
        /// [on, off] times since the trial's start; always on if left out.
        #[serde(default)]
        pub windows: Vec<(Duration, Duration)>,
        /// The ECN field of its packets; ect1 names L4S traffic.
        /// Source: RFC 3168 section 5; RFC 9331.
        #[serde(default)]
        pub ecn: EcnField,
    }
}

/// The sender's value of the ECN field (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnField {
    /// Not ECN-capable.
    #[default]
    No,
    /// ECT(0).
    Ect0,
    /// ECT(1), which names L4S traffic (RFC 9331).
    Ect1,
}

setting!(EcnField => Kind::Words(vec!["no", "ect0", "ect1"]));

impl From<EcnField> for Ecn {
    fn from(field: EcnField) -> Ecn {
        match field {
            EcnField::No => Ecn::NotEct,
            EcnField::Ect0 => Ecn::Ect0,
            EcnField::Ect1 => Ecn::Ect1,
        }
    }
}
