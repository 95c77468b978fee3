//! The cost of writing packets of Named Data Networking, of reading them and of taking them out of a stream:
//! an Interest for a segment, and a Data of 4096 B, with all its bytes (and DigestSha256, made and checked),
//! read without the check as forwarders do, and with filler as in virtual time. Throughput is in packets.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::Chunk;
use streamgauge_wire::ndn::{
    Component, Data, Fragmenter, Interest, LpPacket, Name, Packet, Reader, Reassembler,
};

/// Content of a Data.
const CONTENT: u32 = 4096;
/// Packets of a stream.
const PACKETS: usize = 100;
/// Payload of a datagram on Ethernet.
const DATAGRAM: usize = 1472;

fn segment(number: u64) -> Name {
    let clip: Name = "/example/clip/v=1".parse().expect("a name");
    clip.child(Component::segment(number)).expect("four components")
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ndn");
    group.throughput(Throughput::Elements(1));
    let interest = Interest { nonce: Some(1), lifetime_ms: Some(5000), ..Interest::of(segment(1000)) };
    let filler = Data { freshness_ms: Some(10_000), ..Data::of(segment(1000), Chunk::filler(CONTENT)) };
    let real = Data { content: Chunk::bytes(vec![0; filler.content.len()]), ..filler.clone() };
    group.bench_function("write/interest", |b| b.iter(|| black_box(&interest).write()));
    group.bench_function("write/data", |b| b.iter(|| black_box(&real).write()));
    group.bench_function("write/data, filler", |b| b.iter(|| black_box(&filler).write()));
    let packets = [interest.write(), real.write(), filler.write()];
    for (what, packet) in ["interest", "data", "data, filler"].into_iter().zip(&packets) {
        group.bench_function(format!("read/{what}"), |b| b.iter(|| Packet::read(black_box(packet))));
    }
    group.bench_function("read/data, unchecked", |b| b.iter(|| Data::read_unchecked(black_box(&packets[1]))));
    group.bench_function("fragments/data, filler", |b| {
        let mut fragmenter = Fragmenter::of(DATAGRAM, 0);
        let mut reassembler = Reassembler::default();
        let packet = LpPacket::of(packets[2].clone());
        b.iter(|| {
            let fragments = fragmenter.cut(&packet).expect("it has room");
            let read = fragments.into_iter().map(|fragment| LpPacket::read(fragment).expect("ours"));
            read.filter_map(|fragment| reassembler.push(Default::default(), fragment)).count()
        });
    });

    group.throughput(Throughput::Elements(PACKETS as u64));
    for (what, packet) in [("interest", &packets[0]), ("data", &packets[1])] {
        let bytes = Chunk::bytes(packet.head().repeat(PACKETS));
        group.bench_function(format!("stream/{what}"), |b| {
            b.iter(|| {
                let mut reader = Reader::default();
                reader.push(bytes.clone());
                assert_eq!(reader.by_ref().filter(Result::is_ok).count(), PACKETS);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
