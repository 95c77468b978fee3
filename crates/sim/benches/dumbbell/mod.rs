//! The dumbbell that `sim` and `floor` measure: N Reno flows over 10 Mbit/s (N x 0.5 Mbit/s above 20 flows), a
//! drop-tail queue of 1 BDP, 20 ms round trip, starts spread over the first second.

use streamgauge_base::{BitRate, Duration};
use streamgauge_path::spec::{
    BottleneckSpec, DelaySpec, Layer, Limit, PathSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_plan::{Entry, FlowSpec, Keep, Role, TcpSpec, TrialPlan};
use streamgauge_systems::System;
use streamgauge_systems::bulk::BulkSpec;

pub const ROUND_TRIP: Duration = Duration::from_millis(20);
/// Each measurement is of about this many data packets.
pub const PACKETS: u64 = 1_000_000;
/// Flows are numbered by 16 bits.
pub const MOST_FLOWS: u64 = 60_000;

/// Returns the rate of the bottleneck with `flows`, in bit/s.
pub fn rate_bps(flows: u64) -> u64 {
    if flows > 20 { flows * 500_000 } else { 10_000_000 }
}

/// Returns the bytes that the path holds in a round trip, which is also the queue's limit.
pub fn bdp_bytes(flows: u64) -> u64 {
    rate_bps(flows) / 8 * ROUND_TRIP.as_nanos() / 1_000_000_000
}

/// Returns the time of [`PACKETS`] full packets.
pub fn duration(flows: u64) -> Duration {
    Duration::from_nanos(PACKETS * 1514 * 8 * 1_000 / (rate_bps(flows) / 1_000_000))
}

/// Returns the trial with `flows`.
pub fn plan(flows: u64, keep: Keep) -> TrialPlan {
    let rate_bps = rate_bps(flows);
    let one_way = ROUND_TRIP.div(2);
    let delay = |name: &str| StageSpec {
        name: name.into(),
        kind: StageKind::Delay(DelaySpec::constant(one_way)),
        changes: vec![],
    };
    let bottleneck = StageSpec {
        name: "bottleneck".into(),
        kind: StageKind::Bottleneck(BottleneckSpec {
            rate: RateSpec::Constant(BitRate::from_bps(rate_bps)),
            shaper: ShaperSpec::Serial,
            queue: QueueSpec::Droptail(Limit::Bytes(bdp_bytes(flows))),
            layer: Layer::Ethernet,
        }),
        changes: vec![],
    };
    let tcp = TcpSpec { congestion_control: "reno".into(), receive_window: 4 << 20, ..TcpSpec::default() };
    let flow = |index: u64| FlowSpec {
        name: format!("tcp{index}"),
        role: Role::Subject,
        entry: Entry::Server,
        direction: Default::default(),
        start: Duration::from_micros(index * 1_000_000 / flows),
        actions: Vec::new(),
        app: BulkSpec { tcp: tcp.clone(), ..BulkSpec::usual() }.app(),
        protocols: Default::default(),
        tcp: None,
        via: None,
        content: None,
    };
    TrialPlan {
        scenario: "bench/sim".into(),
        seed: 1,
        duration: duration(flows),
        until_media_end: None,
        until_idle: None,
        path: PathSpec { down: vec![bottleneck, delay("delay")], up: vec![delay("wire")] },
        flows: (0..flows).map(flow).collect(),
        relays: Vec::new(),
        host_jitter: Duration::from_micros(100),
        keep,
        tcp_sample: None,
        limits: Default::default(),
        marks: vec![],
    }
}

/// Returns user + system CPU time of this process so far, in microseconds.
pub fn cpu_us() -> f64 {
    let usage =
        nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("it always works");
    let us = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 * 1e6 + t.tv_usec() as f64;
    us(usage.user_time()) + us(usage.system_time())
}
