//! A shared cache of HTTP/1.1 as a relay (RFC 9111): what several players ask for crosses the path once.
//!
//! Of the standard it does what streaming needs: answers to GET (and HEAD) out of what it has stored, whole or in parts,
//! while that is fresh by Cache-Control and Age; asking again by entity tag when it is not; byte ranges of either; one
//! request to the server for all who ask for the same at once. It has no clock of days, so Expires, Date and heuristic
//! freshness are not heeded: what names no age is asked for again each time. It heeds no Vary.

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
