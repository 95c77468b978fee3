//! A shared cache of HTTP/1.1 as a relay (RFC 9111): a resource that several players request crosses the path
//! once.
//!
//! It implements the part of the standard that streaming needs: answers to GET (and HEAD) from stored
//! responses, whole or in parts, while they are fresh by Cache-Control and Age; validation by entity tag when
//! they are not; byte ranges of either; one request to the server for all concurrent requests of the same
//! resource. It has no clock of days and ignores Expires, Date and heuristic freshness: a response without an
//! age is requested again each time. It ignores Vary.

mod answer;
mod cache;
mod fetch;
mod object;
mod spec;
#[cfg(test)]
mod tests;

pub use cache::HttpCache;
pub use spec::HttpCacheSpec;

use streamgauge_base::Duration;
use streamgauge_plan::{Parameter, Protocols, RelaySpec, StreamProtocol, TcpSpec};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{EventKind, Refusal, Relay, events, tcp_last};
use crate::machines::{Channel, RelayMachine};

/// Where players come.
const LISTENER: ChannelId = ChannelId(0);

/// Connections of players that may wait to be accepted: Linux's somaxconn.
const BACKLOG: u32 = 4_096;

impl Relay for HttpCacheSpec {
    const NAME: &'static str = "http-cache";
    const TITLE: &'static str = "Shared HTTP cache";
    const VERSION: u32 = 1;
    const EVENTS: &'static [EventKind] = &events([
        ("cache_hit", "B"),
        ("cache_joined", "B"),
        ("cache_miss", "B"),
        ("cache_validated", "B"),
        ("cache_error", ""),
        ("cache_evicted", "B"),
    ]);

    fn usual() -> Self {
        HttpCacheSpec {
            capacity_bytes: 1_000_000_000,
            port: 80,
            timeout: Duration::from_secs(60),
            tcp: TcpSpec::default(),
        }
    }

    fn parameters() -> Vec<Parameter> {
        tcp_last(Self::fields())
    }

    fn protocols(&self) -> Protocols {
        Protocols::tcp(StreamProtocol::Http)
    }

    fn machine(&self, relay: &RelaySpec, _: u64) -> Result<RelayMachine, Refusal> {
        let Some(port) = u16::try_from(self.port).ok().filter(|port| *port > 0) else {
            return Err(("app.http-cache.port".into(), format!("{}; give 1 to 65535", self.port)));
        };
        if self.timeout == Duration::ZERO {
            return Err(("app.http-cache.timeout".into(), "give more than 0".into()));
        }
        let carrier = Carrier::Listener { port, settings: self.tcp.clone(), backlog: BACKLOG };
        Ok(RelayMachine {
            channels: vec![Channel { id: LISTENER, carrier }],
            app: Box::new(HttpCache::new(self.clone(), port, &relay.name)),
        })
    }
}
