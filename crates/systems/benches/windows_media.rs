//! The cost of a packet of media for Microsoft's server and player together: made, paced, sent, kept,
//! received, played. Throughput is in packets of media, over a path without a rate that loses nothing, 10 ms
//! each way.

mod pair;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::Duration;
use streamgauge_systems::System;
use streamgauge_systems::media::{ClipSpec, LadderSpec, LevelSpec};
use streamgauge_systems::windows_media::{PlayerKind, PlayerSettings, WindowsMediaSpec, WmTransport};

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
    let mut group = criterion.benchmark_group("windows_media");
    group.sample_size(20);
    for (name, transport) in [("UDP", WmTransport::Udp), ("TCP", WmTransport::Tcp)] {
        let picture = Duration::from_millis(40);
        let ladder = LadderSpec {
            name: "bench".into(),
            segment: Duration::from_secs(1),
            video: [28_000, 109_000, 282_000, 548_000].map(|rate| level(rate, picture)).into(),
            audio: Some(level(32_000, Duration::from_millis(20))),
        };
        let player = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::Wmp9) };
        let flow = flow(WindowsMediaSpec { ladder, player, ..WindowsMediaSpec::usual() }.app());
        group.throughput(Throughput::Elements(stream(&flow)));
        group.bench_with_input(BenchmarkId::new("stream", name), &flow, |bencher, flow| {
            bencher.iter(|| black_box(stream(flow)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
