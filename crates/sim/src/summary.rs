//! The result of a trial, beside its record.

use serde::Serialize;
use streamgauge_record::BalanceRow;
use streamgauge_transport::tcp;

use crate::reassembly::HostCounts;

/// Why a trial ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Its duration was over.
    Duration,
    /// The media of the flow in `until_media_end` had been sent and played.
    MediaEnd,
    /// No packet had crossed the path for `until_idle`.
    Idle,
    /// A steering client ended it.
    Stopped,
}

/// A trial's figures. In JSON the keys are those of the fields.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// [`crate::MODEL_VERSION`].
    pub model_version: u32,
    /// Time when the trial ended, in seconds of trial time.
    pub duration_s: f64,
    /// The same in nanoseconds.
    pub duration_ns: u64,
    /// Why it ended then.
    pub ended_by: EndedBy,
    /// Each flow, in the order of the plan.
    pub flows: Vec<FlowSummary>,
    /// Each relay, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<RelaySummary>,
    /// Counts of the hosts other than of deliveries.
    pub host: Hosts,
    /// Packets with payload that left down's bottleneck.
    pub bottleneck_packets: u64,
    /// Rows of `packets.parquet`; `None` if it was not written.
    pub rows: Option<u64>,
    /// Digest of its rows.
    pub packets_digest: Option<String>,
    /// Digest of `events.parquet`; `None` if it was not written.
    pub events_digest: Option<String>,
    /// The account of every stage and flow; empty if packets were not recorded.
    pub balance: Vec<BalanceRow>,
    /// Imbalances in that account; empty in a valid trial.
    pub imbalance: Vec<String>,
}

/// Both ends' hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Hosts {
    /// The servers' hosts.
    pub server: HostCounts,
    /// The players' hosts.
    pub player: HostCounts,
}

/// One flow's figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Bytes that the server's machine sent, retransmissions not counted.
    pub server_sent_bytes: u64,
    /// Bytes that the server's machine received.
    pub server_received_bytes: u64,
    /// Bytes that the player's machine sent.
    pub player_sent_bytes: u64,
    /// Bytes that the player's machine received.
    pub player_received_bytes: u64,
    /// The server's end of its stream; `None` if it has none, or never started.
    pub tcp: Option<TcpSummary>,
}

/// One relay's figures, of both its sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RelaySummary {
    /// Its name.
    pub name: String,
    /// Bytes that it sent, retransmissions not counted.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
}

/// A connection's figures at the end.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TcpSummary {
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Slow start threshold in bytes; `None` before the first loss.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed round-trip time in seconds; `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// Least round-trip time in seconds; `None` before the first sample.
    pub min_rtt_s: Option<f64>,
    /// Retransmission timeout in seconds.
    pub rto_s: f64,
    /// Segments with payload or FIN, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub recoveries: u64,
}

impl From<tcp::Stats> for TcpSummary {
    fn from(stats: tcp::Stats) -> Self {
        TcpSummary {
            cwnd_bytes: stats.cwnd,
            ssthresh_bytes: (stats.ssthresh < u64::MAX).then_some(stats.ssthresh),
            srtt_s: stats.srtt.map(|d| d.as_secs_f64()),
            min_rtt_s: stats.min_rtt.map(|d| d.as_secs_f64()),
            rto_s: stats.rto.as_secs_f64(),
            segments: stats.segments,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
            recoveries: stats.recoveries,
        }
    }
}
