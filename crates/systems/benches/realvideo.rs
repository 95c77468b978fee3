//! The cost of a packet of media for RealNetworks' server and player together: made, paced, sent, kept,
//! received, acknowledged, played. Throughput is in packets of media, over a path without a rate that loses
//! nothing, 10 ms each way.

mod pair;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::Duration;
use streamgauge_systems::System;
use streamgauge_systems::media::{ClipSpec, LadderSpec, LevelSpec};
use streamgauge_systems::realvideo::{MediaTransport, PlayerKind, PlayerSettings, RealVideoSpec};

use pair::{flow, stream};

/// 100 s, a key frame each second that is twice as long as another.
fn level(rate_bps: u64, interval: Duration) -> LevelSpec {
    let in_a_second = 1_000_000_000 / interval.as_nanos();
    let mean = (rate_bps / 8 / (in_a_second + 1)) as u32;
    let frame_bytes: Vec<u32> =
        (0..in_a_second).map(|frame| if frame == 0 { 2 * mean } else { mean }).collect();
    let clip = ClipSpec {
        name: "bench".into(),
        duration: Duration::from_secs(100),
        frame_interval: interval,
        frame_bytes: frame_bytes.into(),
        ..ClipSpec::default()
    };
    LevelSpec { bit_rate_bps: rate_bps, size: (0, 0), clip }
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("realvideo");
    group.sample_size(20);
    for (name, transport) in [("UDP", MediaTransport::Udp), ("TCP", MediaTransport::Tcp)] {
        let picture = Duration::from_millis(40);
        let ladder = LadderSpec {
            name: "bench".into(),
            segment: Duration::from_secs(1),
            video: [34_000, 80_000, 225_000, 450_000].map(|rate| level(rate, picture)).into(),
            audio: Some(level(32_000, Duration::from_millis(20))),
        };
        let player = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::RealPlayer8) };
        let flow = flow(RealVideoSpec { ladder, player, ..RealVideoSpec::usual() }.app());
        group.throughput(Throughput::Elements(stream(&flow)));
        group.bench_with_input(BenchmarkId::new("stream", name), &flow, |bencher, flow| {
            bencher.iter(|| black_box(stream(flow)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
