//! What a plan says of an HTTP cache.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{TcpSpec, settings};

settings! {
    /// A shared cache of HTTP (RFC 9111).
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HttpCacheSpec {
        /// Most that it keeps of what nobody is reading just now; 0 B turns storing off, and every request is forwarded.
        pub capacity_bytes: u64 => |p| p.called("capacity"),
        /// It listens on this port, and reaches servers at the same.
        pub port: u32 => |p| p.least(1).most(65_535),
        /// A server that is silent for so long while it owes an answer is given up: the player gets 504.
        /// Source: RFC 9110 section 15.6.5.
        pub timeout: Duration => |p| p.least(1e6),
        /// Its connections, both sides.
        pub tcp: TcpSpec,
    }
}
