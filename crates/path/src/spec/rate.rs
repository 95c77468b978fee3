//! Rates over time.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

/// A rate over time. A rate of zero holds everything until the next change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RateSpec {
    /// The same throughout.
    Constant(BitRate),
    /// From each time (ns, ascending, the first at 0) on, that rate.
    Steps(Vec<(Duration, BitRate)>),
    /// `first` for half a period, then `second` for the other half, and again.
    Square {
        /// The first half's rate.
        first: BitRate,
        /// The second half's rate.
        second: BitRate,
        /// Both halves together, > 0.
        period: Duration,
    },
    /// A trace of delivery opportunities, which is its own shaper.
    Opportunities(OpportunitiesSpec),
}

/// When how much may leave, as in mahimahi's packet-delivery traces. A packet leaves at the opportunity that carries
/// its last byte, and the rest of that opportunity serves the next at the same instant; an unused rest is lost. Its
/// mean over the period is used wherever a rate is asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpportunitiesSpec {
    /// Opportunities (ns, never decreasing, none later than the period); several may share a time.
    pub times: Vec<Duration>,
    /// Bytes that each carries, >= 1. mahimahi counts 1504: an MTU of 1500 and the 4 bytes of a TUN header.
    #[serde(default = "mahimahi_bytes")]
    pub bytes: u32,
    /// After this long it begins again, > 0; in mahimahi's files the last time.
    pub period: Duration,
}

/// How packets are sent at the rate.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ShaperSpec {
    /// One after the other, each for the time of its bits: a line of that rate.
    #[default]
    Serial,
    /// Whole packets, as tokens allow: `tc tbf`.
    TokenBucket(TokenBucketSpec),
    /// One bounded class of class-based queueing, as in Linux up to 6.2.
    Cbq(CbqSpec),
    /// Whole packets, each when a program wakes that sleeps for the time of its bits.
    Sleeping(SleepingSpec),
}

/// A token bucket without a peak rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenBucketSpec {
    /// Bytes it holds, in the bottleneck's layer: at least a full packet, 1514 (layer ip: 1500). A packet longer
    /// than the bucket never fits through it and is dropped, as by `tc tbf`.
    pub burst: u32,
    /// Bytes it holds at the start, at most `burst`: packets before the trial used the others. Full if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<u32>,
}

/// A bounded class, and the device it sends on. Rates below the device's, and never 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CbqSpec {
    /// The speed at which a packet is sent once it may be (tc: `bandwidth`).
    #[serde(default = "fast_ethernet")]
    pub device_rate: BitRate,
    /// Mean packet length in bytes, for the bursts (tc: `avpkt`).
    #[serde(default = "thousand_bytes")]
    pub average_packet: u32,
    /// Packets of the mean length that may follow each other after a long rest, >= 1 (tc: `maxburst`).
    #[serde(default = "twenty_packets")]
    pub max_burst_packets: u32,
    /// Packets it waits for before it sends, once it is over its limit; 0 and 1 are none (tc: `minburst`).
    #[serde(default)]
    pub min_burst_packets: u32,
    /// The average's weight is 2^-this, 1 to 31 (tc: `ewma`).
    #[serde(default = "default_ewma_log")]
    pub ewma_log: u8,
}

/// A program that sleeps, on a machine with a clock that ticks. Rates never 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepingSpec {
    /// Time between two ticks, at which alone sleeps end, > 0 and at most 1 s.
    pub tick: Duration,
    /// Ticks by which every sleep is longer than its whole ticks, at most 1000.
    #[serde(default)]
    pub late: u32,
}

impl Default for CbqSpec {
    fn default() -> Self {
        CbqSpec {
            device_rate: fast_ethernet(),
            average_packet: thousand_bytes(),
            max_burst_packets: twenty_packets(),
            min_burst_packets: 0,
            ewma_log: default_ewma_log(),
        }
    }
}

fn mahimahi_bytes() -> u32 {
    1504
}
fn fast_ethernet() -> BitRate {
    BitRate::from_bps(100_000_000)
}
fn thousand_bytes() -> u32 {
    1000
}
fn twenty_packets() -> u32 {
    20
}
fn default_ewma_log() -> u8 {
    5
}
