//! Settings of a consumer outside trials.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;

use crate::ccn::consumer::window::{Retransmission, WindowControl};
use crate::ccn::forwarder::StorePolicy;
use crate::ccn::spec::{CcnPreset, CcnSettings};
use crate::standalone::ContentFault;

/// The consumer's constants, and its forwarder's. Times in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConsumerSettings {
    /// Control of the Interests in flight.
    pub window_control: WindowControl,
    /// That number, or the most that a controller may choose.
    pub interest_window: u32,
    /// When an Interest that brings nothing is expressed again.
    pub retransmission: Retransmission,
    /// How long forwarders keep an Interest (NDN Packet Format Specification 0.3, InterestLifetime).
    pub interest_lifetime: Duration,
    /// Times that a segment is asked for before its object is given up.
    pub interest_tries: u32,
    /// An object's size and version are asked for before its segments (NDN Technical Report 0019); without it they are asked
    /// for right away, which a producer must answer that is asked for no version.
    pub metadata: bool,
    /// An Interest repeated within this time after being passed on is held for a copy.
    pub suppression: Duration,
    /// Data in bytes that the forwarder keeps for later requests; 0 turns storing off.
    pub store_bytes: u64,
    /// Order of eviction when the store is full.
    pub store_policy: StorePolicy,
}

impl ConsumerSettings {
    /// Returns those of a preset.
    pub fn of(preset: CcnPreset) -> Self {
        let ccn = CcnSettings::of(preset);
        ConsumerSettings {
            window_control: ccn.window_control,
            interest_window: ccn.interest_window,
            retransmission: ccn.retransmission,
            interest_lifetime: ccn.interest_lifetime,
            interest_tries: ccn.interest_tries,
            metadata: ccn.metadata,
            suppression: ccn.suppression,
            store_bytes: ccn.store_bytes,
            store_policy: ccn.store_policy,
        }
    }

    /// Returns the constants, with today's values for those not chosen.
    pub fn constants(&self) -> CcnSettings {
        CcnSettings {
            window_control: self.window_control,
            interest_window: self.interest_window,
            retransmission: self.retransmission,
            interest_lifetime: self.interest_lifetime,
            interest_tries: self.interest_tries,
            metadata: self.metadata,
            suppression: self.suppression,
            store_bytes: self.store_bytes,
            store_policy: self.store_policy,
            ..CcnSettings::of(CcnPreset::NdnToday)
        }
    }

    /// Refuses settings that cannot be run: the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), ContentFault> {
        self.constants().check()
    }
}
