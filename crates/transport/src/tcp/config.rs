//! What a connection may be told.

use streamgauge_base::Duration;

use super::mechanisms::Mechanisms;

/// Which congestion controller governs the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CongestionControl {
    /// RFC 5681.
    Reno,
    /// BIC-TCP, Linux's default from 2.6.8 to 2.6.18.
    Bic,
    /// RFC 9438, Linux's default since 2.6.19.
    #[default]
    Cubic,
    /// Brakmo, O'Malley and Peterson (1994).
    Vegas,
    /// A window that never changes.
    Fixed,
    /// RFC 5348: a rate that TCP would have on average.
    Tfrc,
    /// Version 1, as Linux has it.
    Bbr,
    /// Version 3, draft-ietf-ccwg-bbr.
    Bbr3,
}

impl CongestionControl {
    /// Every controller by the name that scenarios give it, which is Linux's where Linux has it.
    pub const NAMED: &[(&str, CongestionControl)] = &[
        ("reno", CongestionControl::Reno),
        ("bic", CongestionControl::Bic),
        ("cubic", CongestionControl::Cubic),
        ("vegas", CongestionControl::Vegas),
        ("fixed", CongestionControl::Fixed),
        ("tfrc", CongestionControl::Tfrc),
        ("bbr", CongestionControl::Bbr),
        ("bbr3", CongestionControl::Bbr3),
    ];

    /// The controller of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, control)| control)
    }
}

/// How CUBIC leaves slow start before a loss makes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hystart {
    /// HyStart as Linux has it: by the length of an ACK train, and by rising delay.
    #[default]
    Linux,
    /// HyStart++ (RFC 9406).
    PlusPlus,
    /// Not at all: slow start ends with a loss.
    Off,
}

impl Hystart {
    /// Every kind by the name that scenarios give it.
    pub const NAMED: &[(&str, Hystart)] =
        &[("linux", Hystart::Linux), ("plus_plus", Hystart::PlusPlus), ("off", Hystart::Off)];

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind)
    }
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
    /// The window in bytes of the controller that keeps it fixed; other controllers ignore it. Default none, which
    /// stands for the initial window.
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
    /// What is switched on. Default: everything.
    pub mechanisms: Mechanisms,
    /// Consecutive timeouts after which the connection gives up. Default 15 (Linux's `tcp_retries2`).
    pub max_retries: u32,
    /// Unanswered SYNs after which the connection gives up. Default 6 (Linux's `tcp_syn_retries`).
    pub max_syn_retries: u32,
    /// Asks for ECN (RFC 3168) and agrees to it. Default off.
    pub ecn: bool,
    /// How much of the pacing rate a paced sender sends back to back: what leaves in this time, as Linux builds
    /// super-segments. Default 2^-10 s.
    pub pacing_burst: Duration,
    /// Initial sequence number on the wire. Default 0.
    pub initial_sequence: u32,
    /// Where the controller's own random stream begins, if it draws any. Default 0.
    pub seed: u64,
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
            ecn: false,
            pacing_burst: Duration::from_nanos(1_000_000_000 >> 10),
            initial_sequence: 0,
            seed: 0,
        }
    }
}
