//! The cost of counting a packet, and of a sample for the thread that forwards.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{
    Cause, Direction, Fate, FlowId, Instant, Item, Outcome, PacketId, QueueDepth, StageId,
};
use streamgauge_live::Aggregates;
use streamgauge_path::spec::PathSpec;

fn counts() -> Aggregates {
    let path: PathSpec = serde_json::from_value(serde_json::json!({
        "down": [{"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 1_000_000},
                  "queue": {"droptail": {"bytes": 9000}}}}}, {"name": "delay", "kind": {"delay": {"delay": 0, "steps": []}}}],
        "up": [{"name": "wire", "kind": {"delay": {"delay": 0, "steps": []}}}]}))
    .expect("a path");
    Aggregates::new(4, &path)
}

fn count(c: &mut Criterion) {
    let mut counts = counts();
    let item = Item::new(PacketId(1), FlowId(2), 1500);
    let fate = |stage| Fate {
        item,
        stage: StageId(stage),
        t_in: Instant::from_nanos(1_000),
        at: Instant::from_nanos(5_000_000),
        outcome: Outcome::Delivered,
        cause: Cause::None,
        queue: QueueDepth { bytes: 3000, packets: 2 },
        marked: false,
    };
    let fates = [fate(0), fate(1)];
    let mut group = c.benchmark_group("live");
    group.throughput(Throughput::Elements(1));
    group.bench_function("a packet", |b| {
        b.iter(|| {
            counts.entered(Direction::Down, FlowId(2), 1514);
            for fate in std::hint::black_box(&fates) {
                counts.fate(Direction::Down, fate);
            }
            counts.stayed(Direction::Down, FlowId(2), 5_000_000);
            counts.left(Direction::Down, FlowId(2), 1514);
        });
    });
    group.bench_function("clear", |b| {
        b.iter(|| {
            counts.stayed(Direction::Down, FlowId(2), 5_000_000);
            counts.clear();
        });
    });
    group.finish();
}

criterion_group!(benches, count);
criterion_main!(benches);
