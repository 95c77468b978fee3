//! A plan's settings of adaptive streaming over content-centric networking.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, Parameter, TcpSpec, check_bounds, setting, settings};

use super::consumer::window::{Retransmission, WindowControl, WindowSettings};
use super::forwarder::{ForwarderSettings, StorePolicy};
use crate::dash::DashPlayerSettings;
use crate::media::LadderSpec;

fn words<T>(named: &[(&'static str, T)]) -> Kind {
    Kind::Words(named.iter().map(|(name, _)| *name).collect())
}

/// How a packet that is larger than the network's crosses it, over UDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fragmentation {
    /// The host cuts the datagram: with one fragment all is lost.
    Ip,
    /// The face cuts the packet into datagrams that fit.
    Ndnlp,
}

impl Fragmentation {
    /// Each by its name in scenarios.
    pub const NAMED: [(&'static str, Fragmentation); 2] =
        [("ip", Fragmentation::Ip), ("ndnlp", Fragmentation::Ndnlp)];
}

/// Returns the parameter that chooses the transport of faces, for settings that have TCP's at `tcp` where
/// that is chosen.
pub(super) fn transport(help: &str) -> Parameter {
    let kind = Kind::Presence(["udp", "tcp"]);
    Parameter { at: vec!["tcp"], ..Parameter::of("transport", &[help, "Source: NDNLPv2."], kind) }
}

setting! {
    WindowControl => words(&WindowControl::NAMED),
    Retransmission => words(&Retransmission::NAMED),
    StorePolicy => words(&StorePolicy::NAMED),
    Fragmentation => words(&Fragmentation::NAMED),
}

settings! {
    /// Consumer, forwarders and producer. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CcnSettings {
        /// Control of the Interests in flight: by segments ahead of reading, by number, or by congestion
        /// control.
        pub window_control: WindowControl,
        /// That number, or the most that a controller may choose.
        pub interest_window: u32 => |p| p.kind(Kind::Count).least(1).most(CcnSettings::MOST_INTERESTS),
        /// When an unanswered Interest is expressed again: after its lifetime, or after a measured timeout.
        /// Source: RFC 6298.
        pub retransmission: Retransmission,
        /// How long forwarders keep an Interest.
        /// Source: NDN Packet Format Specification 0.3, InterestLifetime.
        pub interest_lifetime: Duration => |p| p.least(1e6).most(60e9),
        /// Times that a segment is asked for before its object is given up.
        pub interest_tries: u32 => |p| p.least(1).most(100_000),
        /// An object's size and version are asked for before its segments.
        /// Source: NDN Technical Report 0019, real-time data retrieval.
        pub metadata: bool,
        /// Content of a Data packet.
        pub chunk_bytes: u32 => |p| p.called("chunk").least(64).most(CcnSettings::MOST_CHUNK),
        /// How long stored Data counts as fresh.
        /// Source: NDN Packet Format Specification 0.3, FreshnessPeriod.
        pub freshness: Duration,
        /// An Interest repeated within this time after being passed on is held for a copy.
        /// Source: NFD Developer's Guide, retransmission suppression.
        pub suppression: Duration => |p| p.most(60e9),
        /// Forwarders and the producer refuse Interests that they cannot answer; else they are silent.
        pub nacks: bool,
        /// Interests that a forwarder keeps at most.
        pub pit: u32 => |p| p.called("pending_interests").least(1).most(500_000),
        /// Data that the consumer's forwarder keeps for later requests; 0 B turns storing off.
        pub store_bytes: u64 => |p| p.called("content_store"),
        /// Order of eviction when the store is full.
        pub store_policy: StorePolicy,
        /// How a packet that is larger than the network's crosses it, over UDP.
        pub fragmentation: Fragmentation,
        /// UDP's or TCP's port of the forwarders.
        pub face_port: u32 => |p| p.least(1).most(65_535),
    }
}

/// The source of the constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CcnPreset {
    /// A consumer of today's NDN: ndnd's.
    NdnToday,
    /// Constants of Muto et al., and those of CCNx 0.x where they state none.
    CcnxPaper,
    /// CCNx 0.7 and 0.8: their get expresses again after a quarter of a second.
    Ccnx08,
}

impl CcnPreset {
    /// Each by its name in scenarios.
    pub const NAMED: [(&'static str, CcnPreset); 3] = [
        ("ndn-today", CcnPreset::NdnToday),
        ("ccnx-paper", CcnPreset::CcnxPaper),
        ("ccnx-0.8", CcnPreset::Ccnx08),
    ];
}

impl CcnSettings {
    /// More Interests on their way are none of a consumer.
    pub const MOST_INTERESTS: u32 = 10_000;

    /// The largest content: with name and signature it is within NDN's practical limit of 8800 B.
    pub const MOST_CHUNK: u32 = 8_000;

    /// Returns the constants of a preset.
    pub fn of(preset: CcnPreset) -> Self {
        let today = CcnSettings {
            window_control: WindowControl::Fixed,
            interest_window: 100,
            retransmission: Retransmission::Lifetime,
            interest_lifetime: Duration::from_secs(4),
            interest_tries: 3,
            metadata: true,
            chunk_bytes: 8_000,
            freshness: Duration::from_secs(4),
            suppression: Duration::from_millis(400),
            nacks: true,
            pit: 65_536,
            store_bytes: 0,
            store_policy: StorePolicy::Lru,
            fragmentation: Fragmentation::Ndnlp,
            face_port: 6363,
        };
        let paper = CcnSettings {
            window_control: WindowControl::InOrder,
            // VLC's plugin of the time asked for five chunks ahead, and waited 5 s for them.
            interest_window: 5,
            interest_lifetime: Duration::from_secs(5),
            interest_tries: 100,
            metadata: false,
            chunk_bytes: 4096,
            suppression: Duration::ZERO,
            nacks: false,
            fragmentation: Fragmentation::Ip,
            face_port: 9695,
            ..today.clone()
        };
        match preset {
            CcnPreset::NdnToday => today,
            CcnPreset::CcnxPaper => paper,
            CcnPreset::Ccnx08 => {
                CcnSettings { interest_lifetime: Duration::from_millis(250), interest_window: 12, ..paper }
            }
        }
    }

    /// Returns the settings of the consumer's window.
    pub fn window(&self) -> WindowSettings {
        WindowSettings {
            control: self.window_control,
            interests: self.interest_window,
            retransmission: self.retransmission,
            lifetime: self.interest_lifetime,
            bytes: self.chunk_bytes,
        }
    }

    /// Returns the settings of a forwarder with a store of this many bytes.
    pub fn forwarder(&self, store_bytes: u64) -> ForwarderSettings {
        ForwarderSettings {
            most_pending: self.pit as usize,
            suppression: self.suppression,
            nacks: self.nacks,
            store_bytes,
            store_policy: self.store_policy,
        }
    }

    /// Refuses settings that cannot be run: the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}

settings! {
    /// A ladder by DASH over content-centric networking.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CcnSpec {
        /// Its encodings.
        pub ladder: LadderSpec,
        /// The player.
        pub player: DashPlayerSettings,
        /// Consumer, forwarders and producer.
        pub network: CcnSettings,
        /// The forwarders' faces to each other are over UDP, or over TCP with these settings.
        #[serde(default)]
        pub tcp: Option<TcpSpec>,
    }
}
