//! The proxy between players of HTTP and a forwarder, to which it opens a face.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::ndn::Name;
use streamgauge_wire::rtsp::Url;

use super::consumer::ConsumerSettings;
use super::server::PORT;
use crate::app::{App, Input, Io};
use crate::carrier::Carrier;
use crate::ccn::ends::ConsumerHost;
use crate::ccn::face::Face;
use crate::ccn::names::object_of;
use crate::ccn::spec::CcnPreset;
use crate::standalone::{Answered, ContentFault, Proxied, Proxying, names};

/// The name by which nonces of its Interests are drawn.
const OWNER: &str = "proxy";

/// Data that the proxy's forwarder keeps, for players of the same, bytes.
const STORE_BYTES: u64 = 64 << 20;

/// Its consumer's constants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CcnProxySettings(pub ConsumerSettings);

/// The consumer's host, and the results of its requests.
struct ProxyHost(ConsumerHost);

impl App for ProxyHost {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.0.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}

impl Proxying for ProxyHost {
    fn next_answered(&mut self) -> Option<Answered> {
        self.0.next_answered()
    }
}

impl Proxied for CcnProxySettings {
    const SCHEME: &'static str = "ndn";
    const PORT: u16 = PORT;
    const PRESETS: &'static [&'static str] = &names(&CcnPreset::NAMED);

    fn preset(name: &str) -> Option<Self> {
        let (_, preset) = CcnPreset::NAMED.iter().find(|(known, _)| *known == name)?;
        Some(CcnProxySettings(ConsumerSettings { store_bytes: STORE_BYTES, ..ConsumerSettings::of(*preset) }))
    }

    fn check(&self) -> Result<(), ContentFault> {
        self.0.check()
    }

    fn machine(self, url: &str, seed: u64) -> Result<Box<dyn Proxying>, String> {
        let url = Url::parse(url).map_err(|e| format!("it is no URL ({e})"))?;
        let prefix = match url.path() {
            "" | "/" => Name::root(),
            path => object_of(&Name::root(), path)
                .ok_or_else(|| format!("{path:?} is no name; write it as /clip"))?,
        };
        let carrier = Carrier::Tcp { port: url.port().unwrap_or(PORT), settings: TcpSpec::default() };
        let mut host = ConsumerHost::new(prefix, &self.0.constants(), Face::opening(carrier), OWNER, seed);
        host.keep_answered();
        host.lose_patience();
        Ok(Box::new(ProxyHost(host)))
    }
}
