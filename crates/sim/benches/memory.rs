//! The cost of an idle flow in memory: bytes allocated and not yet freed, by the allocator's own count, with the
//! connection open, after it has carried data and everything is acknowledged.
//!
//! Flows start, send as much as fits their send buffer of 64 kB and are paused; long after, one packet of another flow
//! passes, and the live bytes are counted then. The difference between 4,000 such flows and 1,000 is divided by 3,000,
//! so memory that a trial needs once is left out. The same with flows that have yet to start.
//!
//! Run it by `cargo bench -p streamgauge-sim --bench memory`; `--json` for one line of JSON.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use streamgauge_base::{BitRate, Direction, Duration, Event, Fate, FlowId, Item, PacketInfo, StageId};
use streamgauge_path::spec::{
    BottleneckSpec, DelaySpec, Layer, Limit, PathSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_plan::{Action, Entry, FlowSpec, Keep, Role, TcpSpec, TrialPlan};
use streamgauge_sim::Recorder;
use streamgauge_systems::System as _;
use streamgauge_systems::bulk::BulkSpec;
use streamgauge_systems::ping::PingSpec;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FEW: usize = 1_000;
const MANY: usize = 4_000;
const LENGTH: Duration = Duration::from_secs(60);

/// Notes the live bytes whenever a packet leaves the path.
struct LastLook(usize);

impl Recorder for LastLook {
    const PACKETS: bool = false;

    fn row(&mut self, _: &Fate, _: &PacketInfo, _: Direction) {}
    fn made(&mut self, _: StageId, _: &Item, _: &Item) {}
    fn entered(&mut self, _: StageId, _: FlowId, _: u32) {}
    fn left(&mut self, _: Direction, _: FlowId, _: u32) {
        self.0 = LIVE.load(Relaxed);
    }
    fn event(&mut self, _: Event) {}
}

fn main() -> ExitCode {
    let mut json = false;
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            // An argument that cargo adds.
            "--bench" => {}
            "--json" => json = true,
            _ => {
                eprintln!("memory bench: {arg}: there is only --json");
                return ExitCode::from(2);
            }
        }
    }
    let idle = per_flow(Duration::ZERO);
    let unstarted = per_flow(LENGTH);
    if json {
        let schema = "streamgauge.bench.memory/1";
        let report =
            serde_json::json!({"schema": schema, "idle_flow_bytes": idle, "unstarted_flow_bytes": unstarted});
        println!("{report}");
    } else {
        println!("an idle flow: {idle:.0} B; one that has yet to start: {unstarted:.0} B");
    }
    ExitCode::SUCCESS
}

/// Returns the bytes that each further flow costs at the end of a trial, flows starting at `start`.
fn per_flow(start: Duration) -> f64 {
    let live = |flows: usize| {
        // The plan is the caller's and does not count: memory live before the trial is subtracted.
        let plan = plan(flows, start);
        let before = LIVE.load(Relaxed);
        let (summary, look) = streamgauge_sim::run(&plan, LastLook(0)).expect("the plan is sound");
        let received: u64 = summary.flows[1..].iter().map(|flow| flow.player_received_bytes).sum();
        let expected = if start == Duration::ZERO { flows as u64 * SEND_BUFFER } else { 0 };
        assert!(received == expected, "{received} B have arrived of {expected}");
        look.0 - before
    };
    (live(MANY) - live(FEW)) as f64 / (MANY - FEW) as f64
}

const SEND_BUFFER: u64 = 65_536;

fn plan(flows: usize, start: Duration) -> TrialPlan {
    let stage = |name: &str, kind| StageSpec { name: name.into(), kind, changes: vec![] };
    let delay = |name| stage(name, StageKind::Delay(DelaySpec::constant(Duration::from_millis(10))));
    let bottleneck = BottleneckSpec {
        rate: RateSpec::Constant(BitRate::from_bps(10_000_000_000)),
        shaper: ShaperSpec::Serial,
        queue: QueueSpec::Droptail(Limit::Bytes(1 << 30)),
        layer: Layer::Ethernet,
    };
    let tcp =
        TcpSpec { congestion_control: "reno".into(), send_buffer: Some(SEND_BUFFER), ..TcpSpec::default() };
    let flow = |name: String, start, actions, app| FlowSpec {
        name,
        role: Role::Subject,
        entry: Entry::Server,
        direction: Default::default(),
        start,
        actions,
        app,
        protocols: Default::default(),
        tcp: None,
        via: None,
        content: None,
    };
    // Sends one packet and its answer at the very end, when all else is long over.
    let ping = PingSpec { interval: LENGTH, payload_bytes: 56 }.app();
    let mut all = vec![flow("last".into(), Duration::from_secs(59), Vec::new(), ping)];
    all.extend((0..flows).map(|index| {
        let start = start + Duration::from_micros(100 * index as u64);
        // By then the connection is open and its buffer full.
        let pause = vec![(start + Duration::from_millis(40), Action::Pause)];
        let app = BulkSpec { tcp: tcp.clone(), ..BulkSpec::usual() }.app();
        flow(format!("tcp{index}"), start, pause, app)
    }));
    TrialPlan {
        scenario: "bench/memory".into(),
        seed: 1,
        duration: LENGTH,
        until_media_end: None,
        until_idle: None,
        path: PathSpec {
            down: vec![stage("bottleneck", StageKind::Bottleneck(bottleneck)), delay("delay")],
            up: vec![delay("wire")],
        },
        flows: all,
        relays: Vec::new(),
        host_jitter: Duration::ZERO,
        tcp_sample: None,
        limits: Default::default(),
        keep: Keep::Metrics,
        marks: vec![],
    }
}
