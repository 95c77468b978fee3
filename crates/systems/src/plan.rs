//! The plan of a trial: a scenario lowered to SI integers, with every default filled in and every random
//! start drawn. Sim runs it; the emulator and `node` read the same plan.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Duration, Ecn};
use streamgauge_path::spec::PathSpec;

use crate::darwin::{PlayerSettings, ServerSettings};

/// One trial.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialPlan {
    /// The scenario's id.
    pub scenario: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// The trial ends here at the latest.
    pub duration: Duration,
    /// End when this flow's media has been sent and played.
    #[serde(default)]
    pub until_media_end: Option<String>,
    /// End when no packet has crossed the path for so long.
    #[serde(default)]
    pub until_idle: Option<Duration>,
    /// The path.
    pub path: PathSpec,
    /// The flows; a flow's index here is its `FlowId`.
    pub flows: Vec<FlowSpec>,
    /// Upper bound of the uniform, order-preserving delay that a simulated host adds to what it does.
    #[serde(default)]
    pub host_jitter: Duration,
    /// How much is kept.
    #[serde(default)]
    pub keep: Keep,
    /// Time between samples of the state of each flow's TCP; `None` takes none.
    #[serde(default)]
    pub tcp_sample: Option<Duration>,
}

/// How much of the record is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Nothing but the summary that `run` returns.
    Metrics,
    /// Events.
    Events,
    /// Packets and events.
    #[default]
    Packets,
}

/// One flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its name in the scenario.
    pub name: String,
    /// Subject or rival.
    pub role: Role,
    /// Where its packets enter the path.
    #[serde(default)]
    pub entry: Entry,
    /// When it starts.
    pub start: Duration,
    /// What is done to it later, ascending in time.
    #[serde(default)]
    pub actions: Vec<(Duration, Action)>,
    /// What it is.
    pub app: AppSpec,
}

/// What a flow is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The question is about this flow.
    Subject,
    /// It competes with the subject.
    Rival,
}

/// Where a flow's packets enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// At the server's end of the path.
    #[default]
    Server,
    /// At the bottleneck, past the stages before it (mgen on the router in Hessler and Welzl, section 2.1).
    Router,
}

/// What is done to a running flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stop sending for now.
    Pause,
    /// Go on.
    Resume,
    /// End.
    Stop,
}

/// The machine at work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AppSpec {
    /// Greedy TCP, as FTP or iperf3.
    Bulk(BulkSpec),
    /// Constant bit rate UDP, as mgen.
    Cbr(CbrSpec),
    /// ICMP echo.
    Ping(PingSpec),
    /// A clip paced out as RTP.
    Rtp(RtpSpec),
    /// Our Reliable UDP streaming server and a player of it.
    Darwin(Box<DarwinSpec>),
    /// A third-party system; sim cannot run it.
    External,
}

/// TCP settings that a flow may choose. What a plan leaves out has the value of `default`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// A congestion controller by its scenario name.
    pub congestion_control: String,
    /// Receive window limit in bytes.
    pub receive_window: u64,
    /// Send buffer limit in bytes.
    pub send_buffer: u64,
    /// Largest payload of a segment in bytes.
    pub mss: u32,
    /// Initial congestion window in segments (RFC 6928).
    #[serde(default = "default_initial_window")]
    pub initial_window: u32,
    /// How long an acknowledgement may wait for a second full segment; 0 acknowledges every segment at once.
    #[serde(default = "default_delayed_ack")]
    pub delayed_ack: Duration,
    /// How CUBIC leaves slow start before a loss makes it, by name.
    #[serde(default = "default_hystart")]
    pub hystart: String,
    /// The window in bytes of the controller `fixed`, which needs it; no other looks at it.
    #[serde(default)]
    pub fixed_window: Option<u64>,
    /// Asks for ECN (RFC 3168).
    #[serde(default)]
    pub ecn: bool,
    /// Mechanisms that are switched off, by name, to learn what each one does.
    #[serde(default)]
    pub without: Vec<String>,
}

fn default_initial_window() -> u32 {
    10
}

fn default_delayed_ack() -> Duration {
    Duration::from_millis(40)
}

fn default_hystart() -> String {
    "linux".into()
}

impl Default for TcpSpec {
    /// CUBIC with Linux's settings, and the windows that Linux grows to.
    fn default() -> Self {
        TcpSpec {
            congestion_control: "cubic".into(),
            receive_window: 3 << 20,
            send_buffer: 4 << 20,
            mss: 1448,
            initial_window: default_initial_window(),
            delayed_ack: default_delayed_ack(),
            hystart: default_hystart(),
            fixed_window: None,
            ecn: false,
            without: Vec::new(),
        }
    }
}

/// Greedy TCP, server to player.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkSpec {
    /// The transport.
    pub tcp: TcpSpec,
    /// How many bytes; `None` for no end.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// Constant bit rate UDP, server (or router) to player.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CbrSpec {
    /// Packets per second.
    pub packets_per_s: f64,
    /// UDP payload bytes of a packet.
    pub payload_bytes: u32,
    /// Packets sent back to back at each tick.
    pub burst: u32,
    /// Windows [on, off) in trial time, ascending; empty for always from the flow's start.
    #[serde(default)]
    pub windows: Vec<(Duration, Duration)>,
    /// What its packets say of ECN.
    #[serde(default)]
    pub ecn: EcnField,
}

/// What a sender sets in the ECN field (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnField {
    /// Not ECN-capable.
    #[default]
    No,
    /// ECT(0).
    Ect0,
    /// ECT(1), which names L4S traffic (RFC 9331).
    Ect1,
}

impl From<EcnField> for Ecn {
    fn from(field: EcnField) -> Ecn {
        match field {
            EcnField::No => Ecn::NotEct,
            EcnField::Ect0 => Ecn::Ect0,
            EcnField::Ect1 => Ecn::Ect1,
        }
    }
}

/// ICMP echo from server to player and back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingSpec {
    /// Time between requests.
    pub interval: Duration,
    /// Bytes above the ICMP header.
    pub payload_bytes: u32,
}

/// A clip paced out as RTP with RTCP reports and no congestion response.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RtpSpec {
    /// Its frames.
    pub clip: ClipSpec,
    /// Largest RTP payload of a packet in bytes.
    pub max_payload: u32,
    /// Over UDP, or interleaved over TCP (RFC 2326 section 10.12) with these settings.
    #[serde(default)]
    pub tcp: Option<TcpSpec>,
    /// Mean time between RTCP reports (RFC 3550 section 6.2).
    pub rtcp_interval: Duration,
    /// How long the player holds a frame before it is due.
    pub playout_delay: Duration,
}

/// A clip streamed by RTSP and RTP, by Apple's Reliable UDP where the player asks for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DarwinSpec {
    /// What is streamed, by the sizes of its frames.
    pub clip: ClipSpec,
    /// The server's constants.
    pub server: ServerSettings,
    /// The player's.
    pub player: PlayerSettings,
    /// Of the RTSP connection, and of the media if that is interleaved on it.
    pub tcp: TcpSpec,
}

/// Content as a sequence of frame sizes, repeated from its start until `duration`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipSpec {
    /// Its name.
    pub name: String,
    /// How long it plays.
    pub duration: Duration,
    /// Time between frames.
    pub frame_interval: Duration,
    /// Size of each coded frame in bytes.
    pub frame_bytes: Vec<u32>,
    /// Which of them are key frames, counted from 0. None named: the first alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_frames: Vec<u32>,
}

impl ClipSpec {
    /// Refuses what nobody can play: the field, what is wrong and what would be right.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.frame_interval < Duration::from_millis(1) {
            return Err(("frame_interval", "shorter than 1 ms; give 1 ms or more".into()));
        }
        if self.frame_bytes.is_empty() || self.frame_bytes.contains(&0) {
            return Err(("frame_bytes", "give at least one frame, each of 1 B or more".into()));
        }
        Ok(())
    }
}
