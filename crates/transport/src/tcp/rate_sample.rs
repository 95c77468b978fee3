//! Delivery rate (Cheng and others, draft-cheng-iccrg-delivery-rate-estimation).

use streamgauge_base::Duration;

/// What one acknowledgement tells of the rate at which the network delivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the times over which those bytes were sent and acknowledged.
    pub interval: Duration,
    /// Bytes that the connection had delivered when the segment that this tells of was sent.
    pub prior_delivered: u64,
    /// And until now.
    pub total_delivered: u64,
    /// Bytes that were in flight when that segment was sent.
    pub prior_in_flight: u64,
    /// Bytes lost between that segment's sending and now.
    pub lost: u64,
    /// The writer, not the network, set the rate at that segment.
    pub app_limited: bool,
}
