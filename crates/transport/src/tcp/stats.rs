//! A connection's figures.

use streamgauge_base::Duration;

use super::sender::Sender;

/// A connection's figures. Bytes and segments are those sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Congestion window in force, in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Bytes thought to be in the network (RFC 6675's pipe).
    pub in_flight: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Duration,
    /// Least round-trip time seen; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout, backed off.
    pub rto: Duration,
    /// Bytes per second at which the sender paces; `None` if it does not.
    pub pacing_rate: Option<u64>,
    /// Segments with payload or FIN, retransmissions included.
    pub segments: u64,
    /// Payload bytes, retransmissions included.
    pub bytes: u64,
    /// Segments sent again; SYNs are not counted.
    pub retransmits: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub recoveries: u64,
    /// Zero-window probes.
    pub probes: u64,
    /// Tail loss probes (RFC 8985 section 7), those with new data too.
    pub loss_probes: u64,
    /// Reductions of the window that were undone.
    pub undos: u64,
    /// Whether both ends use ECN.
    pub ecn: bool,
    /// Data segments that arrived with congestion experienced.
    pub marked_received: u64,
    /// Reductions of the window for a mark that the peer echoed.
    pub ecn_reductions: u64,
}

impl Stats {
    /// Returns the statistics of `sender`; its connection uses `ecn` and has received `marked_received` marked
    /// segments.
    pub(super) fn of(sender: &Sender, ecn: bool, marked_received: u64) -> Self {
        let (rto, counts) = (sender.rto(), sender.counts());
        Stats {
            cwnd: sender.window(),
            ssthresh: sender.controller().ssthresh(),
            in_flight: sender.pipe(),
            srtt: rto.srtt(),
            rttvar: rto.rttvar(),
            min_rtt: rto.srtt().map(|_| rto.min_rtt()),
            rto: sender.timeout(),
            pacing_rate: sender.pacing_rate(),
            segments: counts.segments,
            bytes: counts.bytes,
            retransmits: counts.retransmits,
            retransmitted_bytes: counts.retransmitted_bytes,
            timeouts: counts.timeouts.into(),
            recoveries: counts.recoveries.into(),
            probes: counts.probes.into(),
            loss_probes: counts.loss_probes.into(),
            undos: counts.undos.into(),
            ecn,
            marked_received,
            ecn_reductions: counts.ecn_reductions.into(),
        }
    }
}
