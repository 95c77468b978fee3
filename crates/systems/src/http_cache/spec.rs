//! A plan's settings of an HTTP cache.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{TcpSpec, settings};

settings! {
    /// A shared cache of HTTP (RFC 9111).
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HttpCacheSpec {
        /// Limit of stored data without current readers. 0 B turns storing off: every request is forwarded.
        pub capacity_bytes: u64 => |p| p.called("capacity"),
        /// It listens on this port, and reaches servers at the same.
        pub port: u32 => |p| p.least(1).most(65_535),
        /// A server that owes an answer is given up after this silence: the player gets 504.
        /// Source: RFC 9110 section 15.6.5.
        pub timeout: Duration => |p| p.least(1e6),
        /// Its connections, both sides.
        pub tcp: TcpSpec,
    }
}
