//! The cost of a packet in a path: criterion prints items/s, an item being one packet enqueued and dequeued.
//!
//! `cargo bench -p streamgauge-path`

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{
    BitRate, Direction, Duration, Fate, FateSink, FlowId, Instant, Item, PacketId, StageId,
};
use streamgauge_path::Path;
use streamgauge_path::spec::*;

const PACKETS: u64 = 10_000;

fn loss() -> StageSpec {
    let model = LossModel::Gilbert { good_packets: 990.0, bad_packets: 10.0 };
    StageSpec {
        name: "loss".into(),
        kind: StageKind::Loss(LossSpec { model, switches: vec![] }),
        changes: vec![],
    }
}

fn bottleneck() -> StageSpec {
    bottleneck_with(QueueSpec::Droptail(Limit::Bytes(100_000)))
}

fn bottleneck_with(queue: QueueSpec) -> StageSpec {
    let rate = RateSpec::Constant(BitRate::from_bps(10_000_000));
    let kind = StageKind::Bottleneck(BottleneckSpec {
        rate,
        shaper: ShaperSpec::Serial,
        queue,
        layer: Layer::Ethernet,
    });
    StageSpec { name: "bottleneck".into(), kind, changes: vec![] }
}

fn of(name: &str, kind: StageKind) -> (&str, Vec<StageSpec>) {
    (name, vec![StageSpec { name: name.into(), kind, changes: vec![] }])
}

/// Returns the impairments, each with its effect on a hundredth of the packets, where it chooses.
fn impairments() -> Vec<(&'static str, Vec<StageSpec>)> {
    let switches = vec![];
    let model =
        LossModel::GilbertElliott { good_packets: 990.0, bad_packets: 10.0, loss_good: 0.005, loss_bad: 0.5 };
    let packets = (0..1_000).map(|n| n * 100).collect();
    let jitter = |distribution, keep_order| {
        let jitter = Some(JitterSpec { distribution, keep_order, switches: vec![] });
        StageKind::Delay(DelaySpec { jitter, ..DelaySpec::constant(Duration::from_millis(20)) })
    };
    let (width, extra) = (Duration::from_millis(2), Duration::from_millis(5));
    let flows = vec![(0, extra), (1, width)];
    let probability = 0.01;
    vec![
        of("loss gilbert-elliott", StageKind::Loss(LossSpec { model, switches: vec![] })),
        of("loss list", StageKind::Loss(LossSpec { model: LossModel::List { packets }, switches: vec![] })),
        of("jitter uniform", jitter(Distribution::Uniform { spread: width }, true)),
        of("jitter normal", jitter(Distribution::Normal { deviation: width }, true)),
        of("jitter normal, any order", jitter(Distribution::Normal { deviation: width }, false)),
        of("jitter pareto", jitter(Distribution::Pareto { scale: width, shape: 2.0 }, true)),
        of("jitter gamma", jitter(Distribution::Gamma { scale: width, shape: 2.0 }, true)),
        of("delay of flows", StageKind::Delay(DelaySpec { flows, ..DelaySpec::constant(extra) })),
        of(
            "reorder",
            StageKind::Reorder(ReorderSpec { probability: Some(0.01), every: None, extra, switches: vec![] }),
        ),
        of("duplicate", StageKind::Duplicate(DuplicateSpec { probability, switches: vec![] })),
        of("corrupt", StageKind::Corrupt(CorruptSpec { probability, switches: vec![] })),
        of("mtu", StageKind::Mtu(MtuSpec { bytes: 576, switches: vec![] })),
        of(
            "block",
            StageKind::Block(BlockSpec { protocol: BlockedProtocol::Udp, ports: Vec::new(), switches }),
        ),
    ]
}

fn delay() -> StageSpec {
    let spec = DelaySpec::constant(Duration::from_millis(20));
    StageSpec { name: "delay".into(), kind: StageKind::Delay(spec), changes: vec![] }
}

/// Counts and adds up, the least that a record does.
#[derive(Default)]
struct Tally {
    fates: u64,
    bytes: u64,
}

impl FateSink for Tally {
    fn fate(&mut self, fate: &Fate) {
        self.fates += 1;
        self.bytes += u64::from(fate.item.bytes) + u64::from(fate.queue.bytes);
    }
    fn made(&mut self, _: StageId, _: &Item, _: &Item) {}
    fn changed(&mut self, _: StageId, _: Instant, _: &'static str, _: f64, _: &'static str) {}
}

/// Sends `PACKETS` at 2 % above the rate, so that the queue is full and now and then drops, and calls as a driver does:
/// at each arrival and at each time the path asks for.
fn load(path: &mut Path, start: Instant, sink: &mut impl FateSink) -> u64 {
    let mut departed = 0;
    for index in 0..PACKETS {
        let now = start + Duration::from_nanos(1_187_000) * index;
        while path.next_event().is_some_and(|next| next <= now) {
            while let Some(departure) = path.dequeue(now, sink) {
                black_box(departure);
                departed += 1;
            }
        }
        let hash = (index % 16) as u32; // flow queues have something to do
        path.enqueue(now, Item { hash, ..Item::new(PacketId(index), FlowId(0), 1500) }, sink);
    }
    departed
}

/// Returns a queue of each discipline; flows are hashed to 16 queues at most.
fn disciplines() -> Vec<(&'static str, Vec<StageSpec>)> {
    let delay = Duration::from_millis(20);
    let drd = DrdSpec { min_packets: 20, max_packets: 80, congested_packets: None, limit: None, delay };
    let red = RedSpec {
        min: Limit::Packets(20),
        max: Limit::Packets(60),
        limit: Limit::Packets(200),
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        ecn: false,
        mean_packet: 1000,
    };
    let queues = [
        ("droptail", QueueSpec::Droptail(Limit::Packets(1000))),
        ("nistnet", QueueSpec::Nistnet(NistnetSpec { packets: 100, delay: Duration::from_millis(20) })),
        ("drd", QueueSpec::Drd(drd)),
        ("red", QueueSpec::Red(red)),
        ("codel", QueueSpec::Codel(CodelSpec::default())),
        ("fq_codel", QueueSpec::FqCodel(FqCodelSpec::default())),
        ("pie", QueueSpec::Pie(PieSpec::default())),
        ("dualpi2", QueueSpec::Dualpi2(Dualpi2Spec::default())),
    ];
    queues.into_iter().map(|(name, queue)| (name, vec![bottleneck_with(queue)])).collect()
}

/// Returns a drop-tail queue behind each shaper, at or near the rate of the serial one.
fn shapers() -> Vec<(&'static str, Vec<StageSpec>)> {
    let of = |rate, shaper| {
        let queue = QueueSpec::Droptail(Limit::Bytes(100_000));
        let kind = StageKind::Bottleneck(BottleneckSpec { rate, shaper, queue, layer: Layer::Ethernet });
        vec![StageSpec { name: "bottleneck".into(), kind, changes: vec![] }]
    };
    let constant = || RateSpec::Constant(BitRate::from_bps(10_000_000));
    let (period, tick) = (Duration::from_secs(1), Duration::from_millis(4));
    let times = (1..=831).map(|index| Duration::from_micros(1200) * index).collect();
    let trace = OpportunitiesSpec { times, bytes: 1514, period };
    vec![
        ("serial", of(constant(), ShaperSpec::Serial)),
        (
            "token bucket",
            of(constant(), ShaperSpec::TokenBucket(TokenBucketSpec { burst: 3028, initial: None })),
        ),
        ("cbq", of(constant(), ShaperSpec::Cbq(CbqSpec::default()))),
        ("sleeping", of(constant(), ShaperSpec::Sleeping(SleepingSpec { tick, late: 0 }))),
        ("opportunities", of(RateSpec::Opportunities(trace), ShaperSpec::Serial)),
    ]
}

fn benches(criterion: &mut Criterion) {
    let mut paths: Vec<(&str, Vec<StageSpec>)> = vec![
        ("loss", vec![loss()]),
        ("bottleneck", vec![bottleneck()]),
        ("delay", vec![delay()]),
        ("bottleneck+delay", vec![bottleneck(), delay()]),
        ("loss+bottleneck+delay", vec![loss(), bottleneck(), delay()]),
    ];
    paths.extend(impairments());
    paths.extend(disciplines());
    paths.extend(shapers());
    let mut group = criterion.benchmark_group("path");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, stages) in paths {
        let mut path = Path::new(&stages, StageId(0), 1, Direction::Down).expect("a valid path");
        let (mut start, mut tally) = (Instant::ZERO, Tally::default());
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let departed = load(&mut path, start, &mut tally);
                start += Duration::from_nanos(1_187_000) * PACKETS;
                departed
            });
        });
        black_box((tally.fates, tally.bytes));
    }
    group.finish();
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(30).warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2)).without_plots();
    targets = benches
}
criterion_main!(all);
