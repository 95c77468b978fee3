//! The cost of a decision, rule by rule: given a segment, asked for the next, over a ladder of ten levels and
//! a link with a rate that rises and falls.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use streamgauge_base::{BitRate, Duration};
use streamgauge_systems::abr::{Fetched, Ladder, RULES, Situation, Tuning};

/// In kbit/s.
const RATES: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];
const SEGMENT: Duration = Duration::from_secs(4);
/// A session's segments, after which a rule is made anew.
const SEGMENTS: usize = 150;

fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as u64)
}

fn bench(criterion: &mut Criterion) {
    let ladder = Ladder {
        rates: RATES.iter().map(|kbps| BitRate::from_bps(kbps * 1000)).collect(),
        segment: SEGMENT,
        segments: None,
        sizes: Vec::new(),
    };
    let mut group = criterion.benchmark_group("abr");
    for one in RULES {
        let tuning = Tuning::default();
        let mut rule = (one.make)(&tuning);
        let (mut segment, mut level, mut now_s, mut buffer_s) = (0, None, 0.0, 0.0f64);
        group.bench_function(BenchmarkId::from_parameter(one.name), |bencher| {
            bencher.iter(|| {
                if segment == SEGMENTS {
                    rule = (one.make)(&tuning);
                    (segment, level, now_s, buffer_s) = (0, None, 0.0, 0.0);
                }
                let situation = |now_s: f64, level, buffer_s: f64| Situation {
                    now: seconds(now_s),
                    ladder: &ladder,
                    segment,
                    level,
                    buffer: seconds(buffer_s),
                    target: Duration::from_secs(30),
                    playing: segment > 0,
                    live: None,
                };
                let decision = rule.decide(black_box(&situation(now_s, level, buffer_s)));
                // 0.5 to 4.5 Mbit/s.
                let bps = 0.5e6 + 1e6 * ((segment * 7) % 5) as f64;
                let bytes = ladder.bytes(decision.level, segment);
                let took_s = 0.05 + bytes * 8.0 / bps;
                let fetched = Fetched {
                    segment,
                    level: decision.level,
                    bytes: bytes as u64,
                    asked: seconds(now_s),
                    first_byte: seconds(now_s + 0.05),
                    done: seconds(now_s + took_s),
                    seen: seconds(now_s + took_s),
                    appended: seconds(now_s + took_s),
                    reading: seconds(took_s),
                    abandoned: false,
                };
                now_s += took_s;
                buffer_s = ((buffer_s - took_s).max(0.0) + SEGMENT.as_secs_f64()).min(30.0);
                level = Some(decision.level);
                rule.fetched(black_box(&fetched), &situation(now_s, level, buffer_s));
                segment += 1;
                decision.level
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
