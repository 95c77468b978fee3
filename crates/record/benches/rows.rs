//! Cost of a row of `packets.parquet` and of `events.parquet`: digest, encoding and writing, all in; and of a trial's
//! `metrics.parquet`.
//! `cargo bench -p streamgauge-record`.
//!
//! The packets are those of bulk TCP flows through bottleneck and delay and of their acknowledgements through the
//! other direction's wire: full frames, a queue that fills and drops, sequence numbers that interleave. The events are
//! those of a player and its server: a picture every 40 ms, and every fifth time a level with its reason. The metrics are
//! those of two flows over 300 s: counts of whole packets, a few of them shared, and means.

use std::fs;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{
    Cause, Direction, Duration, Event, Fate, FlowId, Headers, Instant, Item, Outcome, PacketId, PacketInfo,
    QueueDepth, RandomStream, StageId, TransportHeader,
};
use streamgauge_plan::{FlowEntry, Legend, Protocols, Role, StageEntry, StreamProtocol};
use streamgauge_record::{Classifier, MetricRow, Metrics, PacketWriter, write_events, write_metrics};

const ROWS: usize = 1 << 20;
const EVENTS: usize = 1 << 17;

type Row = (Fate, PacketInfo, Direction);

fn legend(flows: u16) -> Legend {
    let stage = |name: &str, direction| StageEntry { name: name.into(), direction };
    Legend {
        flows: (0..flows).map(|i| FlowEntry { name: format!("tcp-{i}"), subject: i == 0 }).collect(),
        stages: vec![
            stage("bottleneck", Direction::Down),
            stage("delay", Direction::Down),
            stage("wire", Direction::Up),
        ],
    }
}

/// Makes rows of `flows` bulk flows over `flows` Mbit/s, about 1 in 40 packets dropped.
fn rows(flows: u16) -> Vec<Row> {
    let mut random = RandomStream::named(1, "bench", "rows");
    let role = |flow| if flow == 0 { Role::Subject } else { Role::Rival };
    let told = (0..flows).map(|flow| (role(flow), Protocols::tcp(StreamProtocol::Opaque)));
    let mut classifier = Classifier::new(told);
    let mut next = vec![0u32; usize::from(flows)];
    let mut rows = Vec::with_capacity(ROWS + 3);
    let service = Duration::from_nanos(12_112_000 / u64::from(flows));
    let mut leaves = Instant::ZERO;
    let mut id = 0;
    while rows.len() < ROWS {
        let flow = FlowId(random.below(u64::from(flows)) as u16);
        let packets = 3 + random.below(50) as u32;
        let seq = &mut next[usize::from(flow.0)];
        let item = Item { hash: 7, ..Item::new(PacketId(id), flow, 1500) };
        let headers = Headers {
            transport: TransportHeader::Tcp { seq: *seq, ack: 1, flags: 16 },
            header_bytes: 32,
            payload_bytes: 1448,
            payload_head: &[],
        };
        *seq = seq.wrapping_add(1448);
        let info = classifier.classify(flow, Direction::Down, 7, &headers);
        leaves += service;
        let arrives =
            leaves - Duration::from_nanos(service.as_nanos() * u64::from(packets) - random.below(90_000));
        let queue = QueueDepth { bytes: packets * 1514, packets };
        let mut fate = Fate {
            item,
            stage: StageId(0),
            t_in: arrives,
            at: leaves,
            outcome: Outcome::Delivered,
            cause: Cause::None,
            queue,
            marked: false,
        };
        id += 1;
        if random.below(40) == 0 {
            fate = Fate { at: arrives, outcome: Outcome::Dropped, cause: Cause::QueueFull, ..fate };
            rows.push((fate, info, Direction::Down));
            continue;
        }
        rows.push((fate, info, Direction::Down));
        let arrived = leaves + Duration::from_millis(10);
        rows.push((
            Fate { stage: StageId(1), t_in: leaves, at: arrived, queue: QueueDepth::default(), ..fate },
            info,
            Direction::Down,
        ));
        if random.below(2) == 0 {
            let headers = Headers {
                transport: TransportHeader::Tcp { seq: 1, ack: *seq, flags: 16 },
                payload_bytes: 0,
                ..headers
            };
            let info = classifier.classify(flow, Direction::Up, 7, &headers);
            let item = Item { id: PacketId(id), bytes: 66, ip_bytes: 52, ..item };
            id += 1;
            rows.push((
                Fate {
                    item,
                    stage: StageId(2),
                    t_in: arrived,
                    at: arrived,
                    queue: QueueDepth::default(),
                    ..fate
                },
                info,
                Direction::Up,
            ));
        }
    }
    rows.truncate(ROWS);
    rows
}

fn write(path: &Path, legend: &Legend, rows: &[Row]) -> u64 {
    let mut writer = PacketWriter::create(path, legend).expect("a writable directory");
    for (fate, info, direction) in rows {
        writer.row(fate, info, *direction).expect("a row");
    }
    writer.finish().expect("a finished file").rows
}

fn events() -> Vec<Event> {
    let event = |i: usize| {
        let (name, unit, reason) = match i % 5 {
            4 => ("rudp_cwnd", "B", format!("{} B in flight", 24_576 + 1448 * (i % 40)).into()),
            _ => ("frame_shown", "s", "".into()),
        };
        Event {
            at: Instant::from_nanos(40_000_000 * i as u64),
            flow: Some(FlowId((i % 2) as u16)),
            name: name.into(),
            value: Some((i % 977) as f64 / 7.0),
            unit: unit.into(),
            reason,
        }
    };
    (0..EVENTS).map(event).collect()
}

const METRICS: usize = 150;
const SAMPLES: usize = 600;

fn metrics() -> Metrics<'static> {
    let mut random = RandomStream::named(1, "bench", "metrics");
    let row = |i: usize| MetricRow {
        flow: Some(format!("flow-{}", i % 2)),
        stage: None,
        metric: format!("metric-{}", i / 2),
        value: Some(i as f64 / 7.0),
        min: None,
        max: None,
        unit: "bit/s".into(),
        lists: [Some(i), (!i.is_multiple_of(3)).then_some(i % 8), None, None],
    };
    let mut value = |i: usize| match (i / SAMPLES) % 4 {
        0 => 0.0,
        1 => random.below(1000) as f64 / 7.0,
        _ => 12_000.0 * random.below(40) as f64,
    };
    Metrics {
        trial: "bench sim seed 1".into(),
        valid: true,
        window_s: (0.0, 300.0),
        about: "{}".into(),
        rows: (0..METRICS).map(row).collect(),
        lists: (0..METRICS * SAMPLES).map(&mut value).collect::<Vec<_>>().into(),
        samples: SAMPLES,
    }
}

fn bench(c: &mut Criterion) {
    let directory = std::env::temp_dir().join(format!("streamgauge-bench-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a temporary directory");
    let path = directory.join("packets.parquet");
    let mut group = c.benchmark_group("packets.parquet");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    for flows in [2, 200] {
        let (legend, rows) = (legend(flows), rows(flows));
        group.bench_function(format!("{flows} flows"), |b| b.iter(|| write(&path, &legend, &rows)));
        // Not there if a filter on the command line left it out.
        if let Ok(file) = fs::metadata(&path) {
            println!("{:.2} bytes a row on disk", file.len() as f64 / ROWS as f64);
        }
    }
    group.finish();
    let mut group = c.benchmark_group("events.parquet");
    group.throughput(Throughput::Elements(EVENTS as u64)).sample_size(10);
    let (path, legend, events) = (directory.join("events.parquet"), legend(2), events());
    group.bench_function("2 flows", |b| b.iter(|| write_events(&path, &events, &legend).expect("a file")));
    group.finish();
    let mut group = c.benchmark_group("metrics.parquet");
    let (path, metrics) = (directory.join("metrics.parquet"), metrics());
    group.throughput(Throughput::Elements((METRICS * SAMPLES) as u64)).sample_size(30);
    group.bench_function("2 flows", |b| b.iter(|| write_metrics(&path, &metrics).expect("a file")));
    group.finish();
    fs::remove_dir_all(&directory).expect("our own directory");
}

criterion_group!(benches, bench);
criterion_main!(benches);
