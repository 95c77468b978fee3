//! The settings of a connection.

use streamgauge_base::Duration;

use super::congestion::{CongestionControl, Hystart, Start};
use super::mechanisms::Mechanisms;

/// How a connection uses explicit congestion notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// Not at all.
    #[default]
    Off,
    /// ECT(0), and an echo once in a window (RFC 3168).
    Classic,
    /// ECT(1) with counts of marks (RFC 9331, 9768); classic if the peer cannot count.
    L4s,
}

/// Settings of one end. The defaults are Linux's, except that the receive buffer does not autotune.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Largest payload of a segment in bytes. Default 1448: 1500 IP bytes with the timestamps option.
    pub mss: u32,
    /// The largest window ever advertised, in bytes; a quarter more is held between the peer and the reader.
    /// Default 6 MiB (the maximum of Linux's `tcp_rmem`).
    pub receive_window: u64,
    /// Most bytes written but not yet acknowledged, in bytes of payload. Default none: a buffer that grows with the
    /// congestion window, as Linux's does if no program has set it.
    pub send_buffer: Option<u64>,
    /// The controller. Default CUBIC.
    pub congestion: CongestionControl,
    /// How CUBIC leaves slow start; other controllers ignore it. Default Linux's.
    pub hystart: Hystart,
    /// The window in bytes of the controller that keeps it fixed; other controllers ignore it. Default none: the
    /// initial window.
    pub fixed_window: Option<u64>,
    /// Initial congestion window in segments. Default 10 (RFC 6928).
    pub initial_window: u32,
    /// Least value of the variance term 4 * RTTVAR of the retransmission timeout, as Linux applies its floor:
    /// RTO >= SRTT + `min_rto`. Default 200 ms, where RFC 6298 section 2.4 asks for an RTO of at least 1 s.
    pub min_rto: Duration,
    /// Largest retransmission timeout, backed off. Default 120 s.
    pub max_rto: Duration,
    /// Timers expire as Linux's do with HZ = 250: on a tick of 4 ms, up to one late, and on coarser steps if they are
    /// far off. Without it they are exact. Default on.
    pub coarse_timers: bool,
    /// How long an acknowledgement may wait for a second full segment; zero acknowledges every segment at
    /// once. Default 40 ms.
    pub delayed_ack: Duration,
    /// Most segments acknowledged at once at the start of a stream and after a pause of more than one RTO,
    /// before delaying begins. The receive window bounds it too, as in Linux. Default 16.
    pub quick_acks: u32,
    /// Sends a short segment while another short one is unacknowledged (TCP_NODELAY). Default off.
    pub no_delay: bool,
    /// Mechanisms that are switched on. Default: everything.
    pub mechanisms: Mechanisms,
    /// Consecutive timeouts after which the connection gives up. Default 15 (Linux's `tcp_retries2`).
    pub max_retries: u32,
    /// Unanswered SYNs after which the connection gives up. Default 6 (Linux's `tcp_syn_retries`).
    pub max_syn_retries: u32,
    /// The ECN that it asks for and agrees to. Default off.
    pub ecn: EcnMode,
    /// The part of the pacing rate that a paced sender sends back to back: the bytes of this time, as Linux builds
    /// super-segments. Default 2^-10 s.
    pub pacing_burst: Duration,
    /// Initial sequence number on the wire. Default 0.
    pub initial_sequence: u32,
    /// Start of the controller's own random stream, if it draws any. Default 0.
    pub seed: u64,
}

impl Config {
    /// Returns the conditions under which a sender's congestion controller starts.
    pub fn start(&self) -> Start {
        Start {
            mss: self.mss,
            segments: self.initial_window,
            seed: self.seed,
            initial_window: self.initial_window,
            fixed_window: self.fixed_window,
            hystart: self.hystart,
            mechanisms: self.mechanisms,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mss: 1448,
            receive_window: 6 << 20,
            send_buffer: None,
            congestion: CongestionControl::default(),
            hystart: Hystart::default(),
            fixed_window: None,
            initial_window: 10,
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            coarse_timers: true,
            delayed_ack: Duration::from_millis(40),
            quick_acks: 16,
            no_delay: false,
            mechanisms: Mechanisms::default(),
            max_retries: 15,
            max_syn_retries: 6,
            ecn: EcnMode::Off,
            pacing_burst: Duration::from_nanos(1_000_000_000 >> 10),
            initial_sequence: 0,
            seed: 0,
        }
    }
}
