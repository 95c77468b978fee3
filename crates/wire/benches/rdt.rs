//! The cost of writing and reading RDT's packets: data of 640 B, with all its bytes and with filler as in
//! virtual time, and an acknowledgement of 100 numbers; and the cost of a rule book of 8 levels. Throughput
//! is in packets and in books.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::Chunk;
use streamgauge_wire::asm::{AsmCondition, AsmRule, AsmRuleBook};
use streamgauge_wire::rdt::{AckPacket, Body, DataPacket, Packet, SequenceNumber, parse};

/// Payload of a data packet.
const PAYLOAD: usize = 640;

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rdt");
    group.throughput(Throughput::Elements(1));
    let real = [0; PAYLOAD];
    let data = |payload| {
        Packet::Data(DataPacket {
            sequence: SequenceNumber::of(1000),
            total_reliable: Some(10),
            rule: 2,
            timestamp_ms: 40_000,
            payload,
            ..DataPacket::default()
        })
    };
    let (first, last) = (SequenceNumber::of(900), SequenceNumber::of(1000));
    let acknowledge = || Packet::Ack(AckPacket::of(0, first, last, |number| number.get() % 10 > 0));
    let kinds = [
        ("data", data(Body::from(&real[..]))),
        ("data, filler", data(Body::filler(PAYLOAD as u32))),
        ("ack", acknowledge()),
    ];
    for (what, packet) in &kinds {
        let datagram: Chunk = packet.write();
        group.bench_function(format!("write/{what}"), |b| b.iter(|| black_box(packet).write()));
        group.bench_function(format!("read/{what}"), |b| b.iter(|| parse(black_box(&datagram)).count()));
    }
    group.bench_function("make/ack", |b| b.iter(acknowledge));
    group.finish();
}

fn books(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("asm");
    group.throughput(Throughput::Elements(1));
    let rules = (1..=8).flat_map(|level: u32| {
        let rule = move || {
            AsmRule::when(Some(AsmCondition::bandwidth(level * 20_000, Some(level * 20_000 + 20_000))))
        };
        let key = rule().with(AsmRule::AVERAGE_BANDWIDTH, level * 20_000).with(AsmRule::PRIORITY, 9);
        let rest = rule().with(AsmRule::AVERAGE_BANDWIDTH, 0).with(AsmRule::PRIORITY, 5);
        [key, rest.with_quoted(AsmRule::ON_DEPEND, 2 * level - 2)]
    });
    let book = AsmRuleBook { rules: rules.collect() };
    let text = book.to_string();
    group.bench_function("write", |b| b.iter(|| black_box(&book).to_string()));
    group.bench_function("read", |b| {
        b.iter(|| black_box(&text).parse::<AsmRuleBook>().map(|book| book.rules.len()))
    });
    group.bench_function("hold", |b| b.iter(|| black_box(&book).holding(black_box(70_000.0)).count()));
    group.finish();
}

criterion_group!(benches, packets, books);
criterion_main!(benches);
