//! The cost of the origin, for a ladder of ten levels and 10 min in segments of 4 s. `build`: frames to
//! segments and all manifests. `segment`: found by its path and read to its end, 256 KiB at a time as the
//! server does. `manifest`: an MPD of one set's timeline, read as a player does; throughput is in segments.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Duration, Instant};
use streamgauge_systems::dash::manifest::Manifest;
use streamgauge_systems::dash::origin::{MPD, OriginSettings, Presentation, TIMELINE_MPD};
use streamgauge_systems::http::Library;
use streamgauge_systems::media::{ClipSpec, LadderSpec, LevelSpec};

const LEVELS: u64 = 10;
const PIECE: u64 = 256 << 10;

fn ladder() -> LadderSpec {
    let level = |number: u64| {
        let bit_rate_bps = 300_000 * (number + 1);
        let clip = ClipSpec {
            name: "clip".into(),
            duration: Duration::from_secs(600),
            frame_interval: Duration::from_millis(40),
            frame_bytes: (0..15_000)
                .map(|frame| (bit_rate_bps / 200) as u32 + frame % 97)
                .collect::<Vec<_>>()
                .into(),
            key_frames: (0..15_000).step_by(50).collect::<Vec<_>>().into(),
            ..ClipSpec::default()
        };
        LevelSpec { bit_rate_bps, size: (1280, 720), clip }
    };
    let video = (0..LEVELS).map(level).collect();
    LadderSpec { name: "ladder".into(), segment: Duration::from_secs(4), video, audio: None }
}

fn fetch(presentation: &Presentation, path: &str) -> u64 {
    let found = presentation.find(path, Instant::ZERO).expect("never busy").expect("it is there");
    let mut at = 0;
    while at < found.length() {
        at += found.read(at, PIECE.min(found.length() - at)).expect("it is read").len() as u64;
    }
    at
}

fn origin(c: &mut Criterion) {
    let (ladder, settings) = (ladder(), OriginSettings::default());
    let build = || Presentation::of_ladder(&ladder, &settings).expect("it is cut");
    c.bench_function("origin/build", |b| b.iter(|| black_box(build())));
    let presentation = build();
    c.bench_function("origin/segment", |b| {
        let mut number = 0;
        b.iter(|| {
            number = number % 150 + 1;
            black_box(fetch(&presentation, &format!("/v7/{number}.m4s")))
        });
    });
    c.bench_function("origin/range", |b| {
        let file = presentation.find("/v7.mp4", Instant::ZERO).expect("never busy").expect("it is there");
        let mut at = 0;
        b.iter(|| {
            at = (at + 7_919_993) % (file.length() - PIECE);
            black_box(file.read(at, PIECE).expect("it is read"))
        });
    });
    let mut group = c.benchmark_group("origin/manifest");
    for (name, path, segments) in [("number", MPD, 1), ("timeline", TIMELINE_MPD, 150 * LEVELS)] {
        let found = presentation.find(path, Instant::ZERO).expect("never busy").expect("it is there");
        let text = found.read(0, found.length()).expect("it is read").head().to_vec();
        group.throughput(Throughput::Elements(segments));
        group.bench_function(name, |b| b.iter(|| Manifest::read(black_box(&text), "http://server/a.mpd")));
    }
    group.finish();
}

criterion_group!(benches, origin);
criterion_main!(benches);
