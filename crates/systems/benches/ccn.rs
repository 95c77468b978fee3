//! The cost of a content-centric forwarder. `pass`: an Interest that arrives, is pending, is forwarded and is
//! answered; throughput is in Data. `stored`: one that is answered out of the content store. `full`: Data
//! that make room for each other in it. `plain_map`: the same names inserted into an ordered map and taken
//! out again, which every forwarder needs.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::ccn::forwarder::{FaceId, FacePacket, Forwarder};
use streamgauge_systems::ccn::{CcnPreset, CcnSettings};
use streamgauge_wire::ndn::{Component, Data, Interest, Name};

const DOWN: FaceId = FaceId(0);
const UP: FaceId = FaceId(1);
/// Segments of an object.
const SEGMENTS: u64 = 1_000;
const CONTENT_BYTES: u32 = 4096;

fn prefix() -> Name {
    Name::of([Component::generic(&b"clip"[..])]).unwrap()
}

fn names() -> Vec<Name> {
    let object =
        prefix().with([Component::generic(&b"v3"[..]), Component::generic(&b"seg-17.m4s"[..])]).unwrap();
    (0..SEGMENTS).map(|segment| object.child(Component::segment(segment)).unwrap()).collect()
}

fn interests() -> Vec<Interest> {
    let of = |(name, nonce): (Name, u32)| {
        let mut interest = Interest::of(name);
        interest.nonce = Some(nonce);
        interest
    };
    names().into_iter().zip(0..).map(of).collect()
}

fn data() -> Vec<Data> {
    names().into_iter().map(|name| Data::of(name, Chunk::filler(CONTENT_BYTES))).collect()
}

fn drain(forwarder: &mut Forwarder) {
    while let Some(packet) = forwarder.next_packet() {
        black_box(packet);
    }
}

/// Passes everything through once.
fn pass(forwarder: &mut Forwarder, now: Instant, interests: &[Interest], data: &[Data]) {
    for (interest, data) in interests.iter().zip(data) {
        forwarder.receive(now, DOWN, FacePacket::Interest(interest.clone()));
        drain(forwarder);
        forwarder.receive(now, UP, FacePacket::Data(data.clone()));
        drain(forwarder);
    }
}

fn forwarder(store_bytes: u64) -> Forwarder {
    let mut forwarder = Forwarder::new(&CcnSettings::of(CcnPreset::NdnToday).forwarder(store_bytes));
    forwarder.route(prefix(), UP);
    forwarder
}

fn benchmark(criterion: &mut Criterion) {
    let (interests, data) = (interests(), data());
    let mut group = criterion.benchmark_group("ccn");
    group.throughput(Throughput::Elements(SEGMENTS));
    let now = Instant::ZERO + Duration::from_secs(1);
    group.bench_function("pass", |bencher| {
        let mut one = forwarder(0);
        bencher.iter(|| pass(&mut one, now, &interests, &data));
    });
    group.bench_function("stored", |bencher| {
        let mut one = forwarder(u64::MAX);
        pass(&mut one, now, &interests, &data);
        bencher.iter(|| {
            for interest in &interests {
                one.receive(now, DOWN, FacePacket::Interest(interest.clone()));
                drain(&mut one);
            }
        });
        assert!(one.counts().store_hits > 0 && one.counts().forwarded == SEGMENTS);
    });
    group.bench_function("full", |bencher| {
        let mut one = forwarder(SEGMENTS / 2 * u64::from(CONTENT_BYTES));
        bencher.iter(|| pass(&mut one, now, &interests, &data));
    });
    group.bench_function("plain_map", |bencher| {
        bencher.iter(|| {
            let mut map = BTreeMap::new();
            for interest in &interests {
                map.insert(interest.name.clone(), interest.nonce);
            }
            for data in &data {
                black_box(map.remove(&data.name));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
