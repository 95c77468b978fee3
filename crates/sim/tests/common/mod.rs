//! Plans for tests.
#![allow(dead_code)]

use std::path::PathBuf;

use streamgauge_base::{BitRate, Direction, Duration, Event, Fate, FlowId, Item, PacketInfo, StageId};
use streamgauge_path::spec::{
    BottleneckSpec, DelaySpec, Layer, Limit, LossModel, LossSpec, PathSpec, QueueSpec, RateSpec, ShaperSpec,
    StageKind, StageSpec,
};
use streamgauge_plan::{AppSpec, Entry, FlowSpec, Keep, Role, TcpSpec, TrialPlan};
use streamgauge_sim::{Recorder, Summary, run};
use streamgauge_systems::System;
use streamgauge_systems::bulk::BulkSpec;
use streamgauge_systems::cbr::{CbrSpec, EcnField};
use streamgauge_systems::http::{HttpPlayerSettings, HttpSpec};
use streamgauge_systems::media::ClipSpec;
use streamgauge_systems::ping::PingSpec;
use streamgauge_systems::rtp::RtpSpec;

/// A folder that is removed after the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("streamgauge-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn sub(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn bottleneck(bps: u64, limit: Limit) -> StageSpec {
    let rate = RateSpec::Constant(BitRate::from_bps(bps));
    let kind = BottleneckSpec {
        rate,
        shaper: ShaperSpec::Serial,
        queue: QueueSpec::Droptail(limit),
        layer: Layer::Ethernet,
    };
    StageSpec { name: "bottleneck".into(), kind: StageKind::Bottleneck(kind), changes: vec![] }
}

pub fn delay(ms: u64) -> StageSpec {
    let kind = DelaySpec::constant(Duration::from_millis(ms));
    StageSpec { name: "delay".into(), kind: StageKind::Delay(kind), changes: vec![] }
}

pub fn loss(probability: f64) -> StageSpec {
    let kind = LossSpec { model: LossModel::Bernoulli { probability }, switches: Vec::new() };
    StageSpec { name: "loss".into(), kind: StageKind::Loss(kind), changes: vec![] }
}

/// Makes a path: `down` of a bottleneck and a delay, `up` of a delay.
pub fn path(bps: u64, limit: Limit, one_way_ms: u64) -> PathSpec {
    PathSpec { down: vec![bottleneck(bps, limit), delay(one_way_ms)], up: vec![delay(one_way_ms)] }
}

pub fn plan(path: PathSpec, flows: Vec<FlowSpec>, seconds: u64, seed: u64) -> TrialPlan {
    TrialPlan {
        scenario: "test/plan".into(),
        seed,
        duration: Duration::from_secs(seconds),
        until_media_end: None,
        until_idle: None,
        path,
        flows,
        relays: Vec::new(),
        host_jitter: Duration::ZERO,
        keep: Keep::Packets,
        tcp_sample: None,
        limits: Default::default(),
        marks: vec![],
    }
}

pub fn flow(name: &str, app: AppSpec) -> FlowSpec {
    let role = Role::Subject;
    FlowSpec {
        name: name.into(),
        role,
        entry: Entry::Server,
        direction: Default::default(),
        start: Duration::ZERO,
        actions: Vec::new(),
        app,
        protocols: Default::default(),
        tcp: None,
        via: None,
        content: None,
    }
}

pub fn starting(mut flow: FlowSpec, at: Duration) -> FlowSpec {
    flow.start = at;
    flow
}

pub fn tcp(congestion_control: &str, receive_window: u64) -> TcpSpec {
    let congestion_control = congestion_control.into();
    TcpSpec { congestion_control, receive_window, ..TcpSpec::default() }
}

fn bulk_spec(congestion_control: &str, receive_window: u64) -> BulkSpec {
    let usual = BulkSpec::usual();
    let tcp = TcpSpec { send_buffer: usual.tcp.send_buffer, ..tcp(congestion_control, receive_window) };
    BulkSpec { tcp, ..usual }
}

pub fn bulk(name: &str, congestion_control: &str, receive_window: u64) -> FlowSpec {
    flow(name, bulk_spec(congestion_control, receive_window).app())
}

/// Makes the same, with ends that exchange settings first as iperf3's do.
pub fn bulk_agreed(name: &str, congestion_control: &str, receive_window: u64) -> FlowSpec {
    let spec = bulk_spec(congestion_control, receive_window);
    flow(name, BulkSpec { control_connection: true, ..spec }.app())
}

pub fn cbr(name: &str, packets_per_s: f64, payload_bytes: u32, windows: &[(u64, u64)]) -> FlowSpec {
    let windows = windows.iter().map(|&(on, off)| (ms(on), ms(off))).collect();
    flow(name, CbrSpec { packets_per_s, payload_bytes, burst: 1, windows, ecn: EcnField::No }.app())
}

/// Makes a flow of constant rate, `burst` packets at each tick.
pub fn cbr_in_bursts(name: &str, packets_per_s: f64, payload_bytes: u32, burst: u32) -> FlowSpec {
    let spec = CbrSpec { packets_per_s, payload_bytes, burst, windows: vec![], ecn: EcnField::No };
    flow(name, spec.app())
}

pub fn ping(name: &str, interval_ms: u64, payload_bytes: u32) -> FlowSpec {
    flow(name, PingSpec { interval: ms(interval_ms), payload_bytes }.app())
}

/// Makes a clip of 25 frames/s of 2,000 B, every twelfth three times as long: about 470 kbit/s.
fn clip(seconds: u64) -> ClipSpec {
    let mut frame_bytes = vec![2000; 12];
    frame_bytes[0] = 6000;
    ClipSpec {
        name: "test".into(),
        duration: Duration::from_secs(seconds),
        frame_interval: ms(40),
        frame_bytes: frame_bytes.into(),
        ..ClipSpec::default()
    }
}

/// Makes a flow with that clip by HTTP.
pub fn http(name: &str, seconds: u64, player: HttpPlayerSettings) -> FlowSpec {
    flow(name, HttpSpec { clip: clip(seconds), player, ..HttpSpec::usual() }.app())
}

/// Makes a flow with that clip by RTP.
pub fn rtp(name: &str, seconds: u64, tcp: Option<TcpSpec>) -> FlowSpec {
    let clip = clip(seconds);
    let (rtcp_interval, playout_delay) = (Duration::from_secs(1), ms(500));
    flow(
        name,
        RtpSpec { clip, max_payload: 1400, tcp, rtcp_interval, playout_delay, decoder: Default::default() }
            .app(),
    )
}

/// A record in memory.
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<(Fate, PacketInfo, Direction)>,
    pub events: Vec<Event>,
    /// Copies and fragments: stage, original, itself.
    pub made: Vec<(StageId, Item, Item)>,
}

impl Recorder for Rows {
    const PACKETS: bool = true;

    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) {
        self.rows.push((*fate, *info, direction));
    }
    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.made.push((stage, *from, *made));
    }
    fn entered(&mut self, _: StageId, _: FlowId, _: u32) {}
    fn left(&mut self, _: Direction, _: FlowId, _: u32) {}
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

impl Rows {
    pub fn of(plan: &TrialPlan) -> (Summary, Rows) {
        run(plan, Rows::default()).unwrap()
    }

    /// Rows of a flow in a stage.
    pub fn at(&self, flow: u16, stage: u8) -> impl Iterator<Item = &(Fate, PacketInfo, Direction)> {
        self.rows.iter().filter(move |(fate, ..)| fate.item.flow.0 == flow && fate.stage.0 == stage)
    }

    /// Events of a name.
    pub fn named(&self, name: &str) -> Vec<&Event> {
        self.events.iter().filter(|event| event.name == name).collect()
    }
}
