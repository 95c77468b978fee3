//! The cost of a media packet for server and player together: made, sent, received, acknowledged, played.
//! Throughput is in media packets, over a path without a rate that loses nothing, 10 ms each way.

mod pair;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::Duration;
use streamgauge_plan::TcpSpec;
use streamgauge_systems::System;
use streamgauge_systems::darwin::{DarwinSpec, PlayerKind, PlayerSettings, Preset, ServerSettings};
use streamgauge_systems::media::ClipSpec;

use pair::{flow, stream};

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("darwin");
    group.sample_size(20);
    for (name, preset, kind) in [
        ("source", Preset::Source, PlayerKind::Quicktime),
        ("paper", Preset::Paper, PlayerKind::Quicktime),
        ("plain UDP", Preset::Source, PlayerKind::Vlc),
    ] {
        let clip = ClipSpec {
            name: "bench".into(),
            duration: Duration::from_secs(100),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![5000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000].into(),
            ..ClipSpec::default()
        };
        let (server, player) = (ServerSettings::of(preset), PlayerSettings::of(kind));
        let flow = flow(DarwinSpec { clip, server, player, tcp: TcpSpec::default() }.app());
        group.throughput(Throughput::Elements(stream(&flow)));
        group.bench_with_input(BenchmarkId::new("stream", name), &flow, |bencher, flow| {
            bencher.iter(|| black_box(stream(flow)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
